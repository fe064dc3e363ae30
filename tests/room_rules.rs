//! The rooms of the crate keep to themselves: which room may use which, who may touch files, who knows Node, where
//! `unsafe` may stand, and where failure codes are written down (`src/lib.rs`; `docs/architecture.md`).
//!
//! The rules are read off the source text, without comments and test modules. A violation is named with its file and
//! line.

#![allow(clippy::unwrap_used, reason = "a source file that cannot be read is a test that cannot run")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sallyport::failure::{CheckpointCode, ContainedCode, SandboxCode};

/// The rooms, and which others each may use. What is not listed here is not a room yet: list it.
const ROOMS: [(&str, &[&str]); 9] = [
    ("failure", &[]),
    ("isolation", &["fs"]),
    ("sandbox", &["isolation", "fs", "failure"]),
    ("fs", &["failure"]),
    ("tree", &["fs", "failure"]),
    ("git", &["fs", "failure"]),
    ("mirror", &["tree", "git", "fs", "failure"]),
    ("binding", &["sandbox", "isolation", "mirror", "tree", "git", "fs", "failure"]),
    // The launcher: a program of its own, which sees the crate from outside.
    ("bin", &[]),
];

/// The rooms in which `unsafe` may stand; each use with its SAFETY sentence, which clippy holds.
const MAY_BE_UNSAFE: [&str; 3] = ["fs", "isolation", "bin"];

/// The rooms that may touch files: one for all work on trees, and the one that confines the launcher, which has to open
/// what it names to the kernel.
const MAY_TOUCH_FILES: [&str; 2] = ["fs", "isolation"];

/// What reaches a file. Methods are listed as they are called, since a path has them without any import.
const FILE_CALLS: [&str; 19] = [
    "std::fs",
    "std::os::unix::fs",
    "rustix::fs",
    "tempfile",
    ".canonicalize(",
    ".metadata()?",
    ".symlink_metadata(",
    ".read_dir(",
    ".read_link(",
    ".exists(",
    ".try_exists(",
    ".is_file()",
    ".is_dir()",
    ".is_symlink()",
    "File::open(",
    "File::create(",
    "OpenOptions",
    "temp_dir(",
    "current_dir(",
];

/// A source file: its room, its path for messages, and its lines of code with their numbers.
struct Source {
    room: String,
    name: String,
    lines: Vec<(usize, String)>,
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The code of a line: what stands before a comment. A `//` in a string ends it too, which no rule here minds.
fn code_of(line: &str) -> &str {
    let text = line.trim_start();
    if text.starts_with('*') || text.starts_with("/*") {
        return "";
    }
    text.split("//").next().unwrap_or_default()
}

fn lines_of(text: &str) -> Vec<(usize, String)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, code_of(line).to_owned()))
        .filter(|(_, code)| !code.is_empty())
        .collect()
}

fn rust_sources() -> Vec<Source> {
    let root = repository().join("src");
    files_below(&root, "rs")
        .into_iter()
        .map(|path| {
            let relative = path.strip_prefix(&root).unwrap().to_path_buf();
            let first = relative.iter().next().unwrap().to_string_lossy();
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            Source {
                room: first.trim_end_matches(".rs").to_owned(),
                name: format!("src/{}", relative.display()),
                lines: lines_of(code),
            }
        })
        .collect()
}

/// The places at which a rule is broken.
fn violations(sources: &[Source], breaks: impl Fn(&Source, &str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for (number, code) in &source.lines {
            if breaks(source, code) {
                found.push(format!("{}:{number}: {}", source.name, code.trim()));
            }
        }
    }
    found
}

/// Whether a word stands in the code by itself.
fn has_word(code: &str, word: &str) -> bool {
    code.split(|character: char| !character.is_alphanumeric() && character != '_').any(|found| found == word)
}

#[test]
fn every_source_file_is_in_a_known_room() {
    let known: BTreeSet<&str> = ROOMS.iter().map(|(room, _)| *room).chain(["lib"]).collect();
    let unknown: Vec<String> = rust_sources()
        .into_iter()
        .filter(|source| !known.contains(source.room.as_str()))
        .map(|source| source.name)
        .collect();
    assert_eq!(unknown, Vec::<String>::new());
}

#[test]
fn rooms_use_only_the_rooms_they_may() {
    let sources = rust_sources();
    for (room, may_use) in ROOMS {
        let others: Vec<&str> =
            ROOMS.iter().map(|(other, _)| *other).filter(|other| *other != room && !may_use.contains(other)).collect();
        let found = violations(&sources, |source, code| {
            source.room == room
                && others.iter().any(|other| {
                    code.contains(&format!("crate::{other}")) || (code.contains("crate::{") && has_word(code, other))
                })
        });
        assert_eq!(found, Vec::<String>::new(), "{room} may use {may_use:?}");
    }
}

#[test]
fn files_are_touched_only_where_they_may_be() {
    let found = violations(&rust_sources(), |source, code| {
        !MAY_TOUCH_FILES.contains(&source.room.as_str()) && FILE_CALLS.iter().any(|call| code.contains(call))
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn only_the_binding_knows_node() {
    let found = violations(&rust_sources(), |source, code| {
        source.room != "binding" && (has_word(code, "napi") || has_word(code, "napi_derive"))
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn unsafe_code_stands_only_where_it_may() {
    let found = violations(&rust_sources(), |source, code| {
        !MAY_BE_UNSAFE.contains(&source.room.as_str())
            && (has_word(code, "unsafe") || has_word(code, "unsafe_code") || has_word(code, "no_mangle"))
    });
    assert_eq!(found, Vec::<String>::new());
}

const PREFIXES: [&str; 3] = ["contained_execution_", "file_checkpoint_", "sandbox_"];

#[test]
fn codes_are_written_down_once_in_rust() {
    let found = violations(&rust_sources(), |source, code| {
        source.room != "failure" && PREFIXES.iter().any(|prefix| code.contains(&format!("\"{prefix}")))
    });
    assert_eq!(found, Vec::<String>::new());
}

/// JavaScript names codes in two ways, and both fail where the table does not have the code: a constant by `known`, and
/// the constructor of the error class.
#[test]
fn javascript_names_only_codes_that_are_looked_up_in_the_table() {
    const LOOKED_UP: [&str; 3] = ["known(", "new ContainedExecutionFailureError(", "super("];
    let codes: BTreeSet<&str> = ContainedCode::ALL
        .iter()
        .map(|code| code.as_str())
        .chain(CheckpointCode::ALL.iter().map(|code| code.as_str()))
        .chain(SandboxCode::ALL.iter().map(|code| code.as_str()))
        .collect();
    let mut found = Vec::new();
    let mut files = files_below(&repository().join("js"), "js");
    files.extend(["index.js", "index.mjs"].map(|name| repository().join(name)));
    for path in files {
        for (number, code) in lines_of(&fs::read_to_string(&path).unwrap()) {
            let literals = PREFIXES.iter().flat_map(|prefix| code.match_indices(prefix));
            for (position, _) in literals {
                let before = code[..position].trim_end_matches(['\'', '"', '`']);
                let literal = code[position..].split(['\'', '"', '`']).next().unwrap_or_default();
                if !codes.contains(literal) || !LOOKED_UP.iter().any(|call| before.ends_with(call)) {
                    found.push(format!("{}:{number}: {}", path.display(), code.trim()));
                }
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
}
