//! What the child writes to stdout and stderr: cut into lines, made harmless, and bounded.
//!
//! Decoding keeps its state across pieces, so no character is broken at a border. Control characters other than tab and
//! newline become visible escapes: a title, a cleared screen or a filled clipboard is not for project code to set. A
//! line is at most [`LONGEST_LINE`] and a stream at most [`MOST_FORWARDED`]; what is cut is marked, and read on without
//! being kept, so that a flood neither fills memory nor stalls the child. Nothing here fails. Source:
//! `contract/sandbox.md`.

use std::collections::VecDeque;
use std::fmt::Write as _;

/// The longest line that is forwarded, in bytes of its raw form.
pub const LONGEST_LINE: usize = 256 * 1024;

/// The most that is forwarded of a stream, in bytes of its raw form.
pub const MOST_FORWARDED: usize = 1024 * 1024;

/// What a line counts towards that besides its bytes: handing on a line costs the caller's event loop time, an empty one
/// too.
const LINE_COST: usize = 64;

/// The last bytes of stderr that are kept for an error message.
pub const KEPT_TAIL: usize = 64 * 1024;

/// One stream of the child.
#[derive(Debug, Default)]
pub struct OutputStream {
    line: Vec<u8>,
    /// Whether the rest of the line is dropped because it is too long.
    cut_line: bool,
    forwarded: usize,
    cut_stream: bool,
    tail: VecDeque<u8>,
}

impl OutputStream {
    /// Takes the next piece and gives the lines that are complete by now, harmless, without their newline.
    pub fn take(&mut self, piece: &[u8]) -> Vec<String> {
        self.keep_tail(piece);
        let mut lines = Vec::new();
        let mut rest = piece;
        while !rest.is_empty() {
            let newline = rest.iter().position(|byte| *byte == b'\n');
            let part = &rest[..newline.unwrap_or(rest.len())];
            rest = newline.map_or(&[][..], |newline| &rest[newline + 1..]);
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            self.cut_line |= part.len() > room;
            if newline.is_some() {
                lines.extend(self.end_line());
            }
        }
        lines
    }

    /// The last line, where it has no newline.
    pub fn finish(&mut self) -> Option<String> {
        if self.line.is_empty() && !self.cut_line { None } else { self.end_line() }
    }

    fn end_line(&mut self) -> Option<String> {
        let raw = std::mem::take(&mut self.line);
        let cut = std::mem::take(&mut self.cut_line);
        if self.cut_stream {
            return None;
        }
        self.forwarded += raw.len() + LINE_COST;
        if self.forwarded > MOST_FORWARDED {
            self.cut_stream = true;
            return Some(format!("[output cut after {MOST_FORWARDED} bytes]"));
        }
        let mut line = harmless(&String::from_utf8_lossy(trim_partial(&raw, cut)));
        if cut {
            let _ = write!(line, " [line cut after {LONGEST_LINE} bytes]");
        }
        Some(line)
    }

    fn keep_tail(&mut self, piece: &[u8]) {
        let piece = &piece[piece.len().saturating_sub(KEPT_TAIL)..];
        self.tail.extend(piece);
        let over = self.tail.len().saturating_sub(KEPT_TAIL);
        self.tail.drain(..over);
    }

    /// The last bytes that came, harmless; newlines stay.
    #[must_use]
    pub fn tail(&self) -> String {
        let (front, back) = self.tail.as_slices();
        harmless(&String::from_utf8_lossy(&[front, back].concat()))
    }
}

/// A line that was cut may end within a character; that is no wrong byte of the child's.
fn trim_partial(raw: &[u8], cut: bool) -> &[u8] {
    if !cut {
        return raw;
    }
    match std::str::from_utf8(raw) {
        Err(error) if error.error_len().is_none() => &raw[..error.valid_up_to()],
        _ => raw,
    }
}

/// Characters that turn the direction of what is beside them, or end a line for some readers.
const MISLEADING: [std::ops::RangeInclusive<char>; 4] =
    ['\u{200e}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}', '\u{61c}'..='\u{61c}'];

/// Control characters other than tab and newline, and what misleads the eye, as visible escapes.
#[must_use]
pub fn harmless(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' | '\n' => clean.push(character),
            '\r' => clean.push_str("\\r"),
            control if control.is_control() && u32::from(control) < 0x100 => {
                let _ = write!(clean, "\\x{:02x}", u32::from(control));
            }
            misleading if MISLEADING.iter().any(|range| range.contains(&misleading)) => {
                let _ = write!(clean, "\\u{{{:x}}}", u32::from(misleading));
            }
            other => clean.push(other),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_character_at_a_border_is_not_broken() {
        let mut stream = OutputStream::default();
        let bytes = [&vec![b'a'; 10][..], "é\n".as_bytes()].concat();
        assert!(stream.take(&bytes[..11]).is_empty());
        assert_eq!(stream.take(&bytes[11..]), ["aaaaaaaaaaé"]);
    }

    #[test]
    fn control_sequences_are_shown_and_not_obeyed() {
        let mut stream = OutputStream::default();
        assert_eq!(stream.take(b"\x1b]0;title\x07\x1b[2J\ta\r\nlast"), ["\\x1b]0;title\\x07\\x1b[2J\ta\\r"]);
        assert_eq!(stream.finish().as_deref(), Some("last"));
        assert_eq!(stream.finish(), None);
        assert_eq!(harmless("\u{9b}31m"), "\\x9b31m");
        assert_eq!(harmless("a\u{202e}b\u{2066}\u{2028}é"), "a\\u{202e}b\\u{2066}\\u{2028}é");
    }

    #[test]
    fn floods_are_cut_and_marked() {
        let mut stream = OutputStream::default();
        for _ in 0..10 {
            assert!(stream.take(&vec![b'x'; LONGEST_LINE]).is_empty());
        }
        let line = stream.finish().unwrap();
        assert!(line.ends_with("[line cut after 262144 bytes]"));
        let lines: Vec<String> = (0..MOST_FORWARDED).flat_map(|_| stream.take(b"ab\n")).collect();
        assert!(lines.last().unwrap().starts_with("[output cut after"));
        assert_eq!(lines.iter().filter(|line| line.starts_with('[')).count(), 1);
        assert_eq!(stream.tail().len(), KEPT_TAIL);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_pieces(text in "[a-zé\n\t]{0,60}", at in 0_usize..60) {
            let bytes = text.as_bytes();
            let at = at.min(bytes.len());
            let whole = { let mut s = OutputStream::default(); let mut l = s.take(bytes); l.extend(s.finish()); l };
            let parts = {
                let mut s = OutputStream::default();
                let mut l = s.take(&bytes[..at]);
                l.extend(s.take(&bytes[at..]));
                l.extend(s.finish());
                l
            };
            prop_assert_eq!(whole, parts);
        }
    }
}
