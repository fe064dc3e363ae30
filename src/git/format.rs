//! The few Git file formats that tell a boundary: `HEAD`, `config`, a `.git` file, `commondir` and `gitdir`.
//!
//! Everything here is a pure function over bytes and never fails: what does not have the form is not the thing. Git
//! itself is more lenient in places (see the tests); what it would take and this does not ends as an invalid boundary,
//! which matches nothing. Source of the forms: `contract/mirror.md`, "Git boundary", and Git's `gitrepository-layout(5)`
//! and `git-config(1)`.

/// The most bytes of a `HEAD` that are read.
pub const HEAD_LIMIT: usize = 4 * 1024;
/// The most bytes of a `.git` file, a `commondir` or a `gitdir` that are read; no path is longer.
pub const POINTER_LIMIT: usize = 8 * 1024;
/// The most bytes of a `config` that are read.
pub const CONFIG_LIMIT: usize = 4 * 1024 * 1024;

/// Whether this is the content of a `HEAD`: one line, `ref: refs/…` or 40 to 64 hex digits.
#[must_use]
pub fn head_is_valid(content: &[u8]) -> bool {
    let line = content.trim_ascii_end();
    if line.iter().any(u8::is_ascii_control) {
        return false;
    }
    match line.strip_prefix(b"ref: refs/") {
        Some(rest) => !rest.is_empty(),
        None => (40..=64).contains(&line.len()) && line.iter().all(u8::is_ascii_hexdigit),
    }
}

/// The path in a `.git` file: one line, `gitdir: …`.
#[must_use]
pub fn gitdir_pointer(content: &[u8]) -> Option<&[u8]> {
    single_line(content)?.strip_prefix(b"gitdir: ").filter(|path| !path.is_empty())
}

/// The path in a `commondir` file: one line, nothing but the path.
#[must_use]
pub fn commondir_pointer(content: &[u8]) -> Option<&[u8]> {
    single_line(content).filter(|path| !path.is_empty())
}

/// The path of the `.git` file in the `gitdir` file of a linked worktree's git dir: one line, nothing but the path.
#[must_use]
pub fn back_pointer(content: &[u8]) -> Option<&[u8]> {
    commondir_pointer(content)
}

/// The line without its ends of line; nothing where there is more than one, or a byte that no path can hold. Spaces at
/// the end belong to the path.
fn single_line(content: &[u8]) -> Option<&[u8]> {
    let mut line = content;
    while let [rest @ .., b'\n' | b'\r'] = line {
        line = rest;
    }
    (!line.iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0))).then_some(line)
}

/// Whether a Git configuration has a `[core]` section, the name in any letter case.
///
/// `[core "x"]` and `[core.x]` are other sections. Comments and values that go on in the next line are read as Git reads
/// them, so a `[core]` inside one is no section; what Git would call a syntax error ends the search.
#[must_use]
pub fn config_has_core(content: &[u8]) -> bool {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let mut reader = ConfigReader { content, position: 0 };
    loop {
        match reader.next() {
            Some(b'#' | b';') => reader.skip_line(),
            Some(b'[') => match reader.section() {
                Some(name) if name.eq_ignore_ascii_case(b"core") => return true,
                Some(_) => {}
                None => return false,
            },
            Some(byte) if is_space(byte) => {}
            Some(byte) if byte.is_ascii_alphabetic() && reader.variable().is_some() => {}
            None | Some(_) => return false,
        }
    }
}

/// The bytes that Git's own `isspace` takes.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

struct ConfigReader<'content> {
    content: &'content [u8],
    position: usize,
}

impl<'content> ConfigReader<'content> {
    /// The next byte; an end of line of two bytes is one.
    fn next(&mut self) -> Option<u8> {
        let byte = *self.content.get(self.position)?;
        self.position += 1;
        if byte == b'\r' && self.content.get(self.position) == Some(&b'\n') {
            self.position += 1;
            return Some(b'\n');
        }
        Some(byte)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// The name of a section, the bracket before it already read. The name of one with a subsection is empty, as it can
    /// be no plain section; nothing is a syntax error.
    fn section(&mut self) -> Option<&'content [u8]> {
        let start = self.position;
        loop {
            match self.next()? {
                b']' => return Some(&self.content[start..self.position - 1]),
                b' ' | b'\t' => {
                    self.subsection()?;
                    return Some(b"");
                }
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {}
                _ => return None,
            }
        }
    }

    /// Reads from the space before a quoted subsection to the bracket behind it.
    fn subsection(&mut self) -> Option<()> {
        let mut byte = self.next()?;
        while matches!(byte, b' ' | b'\t') {
            byte = self.next()?;
        }
        if byte != b'"' {
            return None;
        }
        loop {
            match self.next()? {
                b'\n' => return None,
                b'"' => break,
                b'\\' if self.next()? == b'\n' => return None,
                _ => {}
            }
        }
        (self.next()? == b']').then_some(())
    }

    /// Reads the rest of a variable, its first letter already read, to the end of its last line.
    fn variable(&mut self) -> Option<()> {
        let mut byte = self.next();
        while byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            byte = self.next();
        }
        while matches!(byte, Some(b' ' | b'\t')) {
            byte = self.next();
        }
        match byte {
            None | Some(b'\n') => Some(()),
            Some(b'=') => self.value(),
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<()> {
        let mut quoted = false;
        loop {
            match self.next() {
                None | Some(b'\n') => return (!quoted).then_some(()),
                Some(b'#' | b';') if !quoted => {
                    self.skip_line();
                    return Some(());
                }
                Some(b'"') => quoted = !quoted,
                Some(b'\\') => match self.next() {
                    Some(b'\n' | b't' | b'b' | b'n' | b'\\' | b'"') => {}
                    _ => return None,
                },
                Some(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn heads() {
        let sha1 = "0123456789abcdefABCDEF0123456789abcdef01";
        let sha256 = sha1.repeat(2)[..64].to_owned();
        for good in [
            "ref: refs/heads/main\n",
            "ref: refs/heads/main",
            "ref: refs/heads/main\r\n",
            "ref: refs/heads/with \u{e9} in it\n",
            "ref: refs/x",
            sha1,
            &format!("{sha1}\n"),
            &sha256,
        ] {
            assert!(head_is_valid(good.as_bytes()), "{good:?}");
        }
        for bad in [
            "",
            "\n",
            "ref: refs/",
            "ref: refs/\n",
            "ref: heads/main\n",
            "ref:refs/heads/main\n",
            " ref: refs/heads/main\n",
            "Ref: refs/heads/main\n",
            "ref: refs/heads/a\nref: refs/heads/b\n",
            "ref: refs/heads/a\0",
            "main\n",
            &sha1[..39],
            &format!("{sha256}0"),
            &format!("{sha1}\n{sha1}\n"),
            &format!("g{}", &sha1[1..]),
        ] {
            assert!(!head_is_valid(bad.as_bytes()), "{bad:?}");
        }
    }

    #[test]
    fn pointers() {
        assert_eq!(gitdir_pointer(b"gitdir: ../x\n"), Some(b"../x".as_slice()));
        assert_eq!(gitdir_pointer(b"gitdir: /a b \r\n"), Some(b"/a b ".as_slice()));
        assert_eq!(gitdir_pointer(b"gitdir: \xff"), Some(b"\xff".as_slice()));
        for bad in
            ["", "gitdir: ", "gitdir: \n", "gitdir:x\n", " gitdir: x\n", "gitdir: a\ngitdir: b\n", "gitdir: a\0b"]
        {
            assert_eq!(gitdir_pointer(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(commondir_pointer(b"../..\n"), Some(b"../..".as_slice()));
        assert_eq!(commondir_pointer(b"\n"), None);
        assert_eq!(commondir_pointer(b"a\nb\n"), None);
        assert_eq!(back_pointer(b"/w/.git\n"), Some(b"/w/.git".as_slice()));
    }

    #[test]
    fn core_sections() {
        for good in [
            "[core]\n\tbare = false\n",
            "[core]",
            "[CORE]\n",
            "  [Core] bare = true\n",
            "\u{feff}[core]\n",
            "# comment\n; another\n[user]\n\tname = \"A; [x\"\n[core]\n",
            "[remote \"origin\"]\n\turl = x\n[core]\n",
            "[a \"q\\\"]\"]\n[core]",
            "[user]\r\n\tname = x\r\n[core]\r\n",
            "[user] name\n[core]\n",
            "[user]\n\tname = a \\\n b\n[core]\n",
        ] {
            assert!(config_has_core(good.as_bytes()), "{good:?}");
        }
        for bad in [
            "",
            "core",
            "[user]\n\tname = core\n",
            "[core \"x\"]\n",
            "[core.x]\n",
            "[ core ]\n",
            "[cor]\n",
            "[coree]\n",
            "# [core]\n",
            "[user] # [core]\n",
            "[user]\n\tname = a \\\n[core]\n",
            "[user]\n\tname = \"[core]\"\n",
            "{\"a\": 1}\n[core]\n",
            "[a \"\n\"]\n[core]\n",
            "[user]\n\tname = \\x\n[core]\n",
            "[core",
        ] {
            assert!(!config_has_core(bad.as_bytes()), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(content in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (head_is_valid(&content), config_has_core(&content));
            let _ = (gitdir_pointer(&content), commondir_pointer(&content));
        }

        #[test]
        fn any_config_like_text_is_read_to_an_end(content in "[\\[\\]core\"\\\\ =#;\r\n.-]{0,60}") {
            let found = config_has_core(content.as_bytes());
            prop_assert!(!found || content.to_ascii_lowercase().contains("[core]"));
        }

        #[test]
        fn a_pointer_gives_back_its_path(path in "[^\\r\\n\\x00]{1,60}") {
            let file = format!("gitdir: {path}\n");
            prop_assert_eq!(gitdir_pointer(file.as_bytes()), Some(path.as_bytes()));
            let file = format!("{path}\n");
            prop_assert_eq!(commondir_pointer(file.as_bytes()), Some(path.as_bytes()));
        }

        #[test]
        fn a_core_section_is_found_after_any_variables(
            names in proptest::collection::vec("[a-z][a-z-]{0,8}", 0..6),
            values in proptest::collection::vec("[a-zA-Z0-9 /:@.]{0,20}", 6),
            name in "[cC][oO][rR][eE]",
        ) {
            let mut text = String::from("[other \"part\"]\n");
            for (name, value) in names.iter().zip(&values) {
                writeln!(text, "\t{name} = \"{value}\" # {value}").unwrap();
            }
            prop_assert!(!config_has_core(text.as_bytes()));
            writeln!(text, "[{name}]").unwrap();
            prop_assert!(config_has_core(text.as_bytes()));
        }
    }
}
