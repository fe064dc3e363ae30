//! Any bytes in Git's small files: the parsers come to an end without a panic, and what they accept is what the rules
//! of `src/git/mod.rs` allow, checked here by simpler and slower means.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sallyport::git::format::{back_pointer, commondir_pointer, config_has_core, gitdir_pointer, head_is_valid};

fuzz_target!(|content: &[u8]| {
    if head_is_valid(content) {
        let line = content.trim_ascii_end();
        assert!(!line.iter().any(u8::is_ascii_control), "a HEAD of two lines was taken");
        let symbolic = line.strip_prefix(b"ref: refs/").is_some_and(|name| !name.is_empty());
        let detached = (40..=64).contains(&line.len()) && line.iter().all(u8::is_ascii_hexdigit);
        assert!(symbolic || detached, "an invalid HEAD was taken");
    }
    for (pointer, prefix) in
        [(gitdir_pointer(content), &b"gitdir: "[..]), (commondir_pointer(content), b""), (back_pointer(content), b"")]
    {
        if let Some(path) = pointer {
            assert!(!path.is_empty(), "an empty path was taken");
            assert!(content.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(path)), "a path was made up");
            assert!(!path.contains(&0) && !path.contains(&b'\n'), "a path of two lines, or with a NUL");
        }
    }
    if config_has_core(content) {
        let lower = content.to_ascii_lowercase();
        assert!(lower.windows(6).any(|window| window == b"[core]"), "a section was made up");
    }
});
