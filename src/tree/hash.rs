//! The hashes of nodes and trees: SHA-256, lower-case hex. Source: `contract/mirror.md`, "Node and tree hashes".
//!
//! Pure; nothing here fails. Permission bits are written in decimal, which is how the reference has always done it, so
//! every stored hash depends on it.

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest as lower-case hex, kept inline: a tree of 100,000 entries has as many of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct HexDigest([u8; 64]);

impl HexDigest {
    /// The digest as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Always ASCII: every way to make one goes through the table of hex digits.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl std::fmt::Debug for HexDigest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A hash that is fed in pieces.
#[derive(Clone, Debug, Default)]
pub struct ContentHasher(Sha256);

impl ContentHasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all that was added.
    #[must_use]
    pub fn finish(self) -> HexDigest {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0.finalize()) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        HexDigest(hex)
    }
}

/// The digest of some bytes.
#[must_use]
pub fn hash_bytes(bytes: &[u8]) -> HexDigest {
    let mut hasher = ContentHasher::default();
    hasher.update(bytes);
    hasher.finish()
}

/// `file:<perm>:<hex of the content>`; `mode` may carry type bits, only `0o777` of it counts.
#[must_use]
pub fn hash_file_node(mode: u32, content_hash: &str) -> HexDigest {
    hash_bytes(format!("file:{}:{content_hash}", mode & 0o777).as_bytes())
}

/// `directory:<perm>`.
#[must_use]
pub fn hash_directory_node(mode: u32) -> HexDigest {
    hash_bytes(format!("directory:{}", mode & 0o777).as_bytes())
}

/// `symlink:<target as stored>`.
#[must_use]
pub fn hash_symlink_target(target: &[u8]) -> HexDigest {
    hash_bytes(&[b"symlink:", target].concat())
}

/// The hash of a tree from its entries **in order**: path, NUL, node hash in hex, NUL for each.
#[derive(Clone, Debug, Default)]
pub struct TreeHasher(ContentHasher);

impl TreeHasher {
    /// Adds the next entry.
    pub fn add(&mut self, relative_path: &[u8], node_hash: &str) {
        self.0.update(relative_path);
        self.0.update(&[0]);
        self.0.update(node_hash.as_bytes());
        self.0.update(&[0]);
    }

    /// The tree hash of what was added; of nothing, the hash of the empty tree.
    #[must_use]
    pub fn finish(self) -> HexDigest {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_bits_are_written_in_decimal() {
        assert_eq!(hash_directory_node(0o40755), hash_bytes(b"directory:493"));
        assert_eq!(hash_file_node(0o100_644, "ab"), hash_bytes(b"file:420:ab"));
        assert_eq!(hash_symlink_target(b"../b"), hash_bytes(b"symlink:../b"));
    }

    #[test]
    fn the_empty_tree_is_the_hash_of_nothing() {
        assert_eq!(
            TreeHasher::default().finish().as_str(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
