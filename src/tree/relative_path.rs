//! Paths relative to a root: their order, what makes one unfit, and the tests on their segments.
//!
//! A relative path is bytes with `/` between its segments. An unfit one is a [`Failure::Checkpoint`] with the code
//! `file_checkpoint_path_escape` and the path; nothing else fails. Source of the rules: `contract/mirror.md`, "Node and
//! tree hashes" and "Tree index".

use std::cmp::Ordering;
use std::path::{Component, Path, PathBuf};

use crate::failure::{CheckpointCode, Failure, Result};
use crate::fs::path::{at_or_within, canonical_path, lexical_path, path_from_bytes};

/// The order of a tree's entries: byte by byte, the separator being the byte it is.
#[must_use]
pub fn compare_relative_paths(left: &[u8], right: &[u8]) -> Ordering {
    left.cmp(right)
}

/// Checks that a path names something in a tree, or its root.
///
/// # Errors
/// `file_checkpoint_path_escape` for a path that is empty, holds a NUL, is absolute, or leads out of its root by `..`.
pub fn validate_relative_path(relative_path: &[u8]) -> Result<()> {
    if relative_path.is_empty() || relative_path.contains(&0) || is_path_outside_root(&path_from_bytes(relative_path)) {
        return Err(Failure::checkpoint_at(CheckpointCode::PathEscape, relative_path));
    }
    Ok(())
}

/// The absolute path of an entry: the relative path, resolved by its text, beneath the canonical root. `root` is
/// absolute.
///
/// # Errors
/// As [`validate_relative_path`].
pub fn join_relative_path(root: &Path, relative_path: &[u8]) -> Result<PathBuf> {
    validate_relative_path(relative_path)?;
    Ok(lexical_path(&canonical_path(root).join(path_from_bytes(relative_path))))
}

/// Whether a path that is meant to be relative to a root lies outside it, by its text: an absolute one, or one that
/// leads out by `..`. The empty path is the root.
#[must_use]
pub fn is_path_outside_root(relative_path: &Path) -> bool {
    relative_path.is_absolute() || lexical_path(relative_path).components().next() == Some(Component::ParentDir)
}

/// Whether a path is the root's `.git`, in that letter case, or below it.
#[must_use]
pub fn is_root_git_metadata_path(relative_path: &[u8]) -> bool {
    segments_are_git(relative_path).next() == Some(true)
}

/// Whether a path has a segment `.git`, in that letter case, that is not its first.
#[must_use]
pub fn is_nested_git_path(relative_path: &[u8]) -> bool {
    segments_are_git(relative_path).skip(1).any(|is_git| is_git)
}

fn segments_are_git(relative_path: &[u8]) -> impl Iterator<Item = bool> {
    let segments: Vec<bool> = lexical_path(&path_from_bytes(relative_path))
        .components()
        .filter(|component| *component != Component::RootDir)
        .map(|component| component.as_os_str() == ".git")
        .collect();
    segments.into_iter()
}

/// Whether a tree index leaves an entry out: its place in the tree, or what it leads to, is at or within an excluded
/// root. All roots are absolute.
///
/// What lies above an excluded root is not excluded, nor is the root of the tree, nor a link that leads to it.
#[must_use]
pub fn is_excluded_tree_path(relative_path: &[u8], excluded_roots: &[PathBuf], resource_root: &Path) -> bool {
    let root = canonical_path(resource_root);
    let place = lexical_path(&root.join(path_from_bytes(relative_path)));
    if place == root {
        return false;
    }
    let leads_to = canonical_path(&place);
    excluded_roots
        .iter()
        .map(|excluded| canonical_path(excluded))
        .any(|excluded| at_or_within(&excluded, &place) || (leads_to != root && at_or_within(&excluded, &leads_to)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn order_is_by_bytes() {
        let mut paths = ["\u{1f600}", "\u{ff61}", "l", "e", "a0", "a/x", "a.txt", "a-b", "a"];
        paths.sort_by(|left, right| compare_relative_paths(left.as_bytes(), right.as_bytes()));
        assert_eq!(paths, ["a", "a-b", "a.txt", "a/x", "a0", "e", "l", "\u{ff61}", "\u{1f600}"]);
    }

    #[test]
    fn paths_that_escape_are_refused() {
        for bad in ["", "a\0b", "/", "/a", "..", "../a", "a/../..", "a/../../b", "./..", "a/./../.."] {
            let failure = validate_relative_path(bad.as_bytes()).unwrap_err();
            assert_eq!(failure, Failure::checkpoint_at(CheckpointCode::PathEscape, bad.as_bytes()));
        }
        for good in ["a", "a/b", ".", "..a", "a..", "...", "a/../b", "a\\..\\..\\b", " "] {
            assert_eq!(validate_relative_path(good.as_bytes()), Ok(()), "{good:?}");
        }
    }

    #[test]
    fn joining_goes_by_the_canonical_root() {
        let guard = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(guard.path()).unwrap();
        std::fs::create_dir(base.join("real")).unwrap();
        symlink("real", base.join("link")).unwrap();
        assert_eq!(join_relative_path(&base.join("link"), b"a/./b/../c"), Ok(base.join("real/a/c")));
        assert_eq!(join_relative_path(&base.join("link"), b"."), Ok(base.join("real")));
        assert!(join_relative_path(&base, b"../x").is_err());
    }

    #[test]
    fn git_segments() {
        for (path, root, nested) in [
            (".git", true, false),
            (".git/config", true, false),
            ("./.git", true, false),
            (".gitignore", false, false),
            (".GIT", false, false),
            ("a/.git", false, true),
            ("a/.git/b", false, true),
            (".git/a/.git", true, true),
            ("a/.git.x", false, false),
            ("", false, false),
        ] {
            assert_eq!(is_root_git_metadata_path(path.as_bytes()), root, "{path}");
            assert_eq!(is_nested_git_path(path.as_bytes()), nested, "{path}");
        }
    }

    #[test]
    fn exclusion_reaches_down_and_never_up() {
        let guard = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(guard.path()).unwrap();
        std::fs::create_dir_all(base.join("tree/a/b/c")).unwrap();
        symlink("a/b", base.join("tree/to-b")).unwrap();
        symlink(".", base.join("tree/to-root")).unwrap();
        symlink("tree", base.join("alias")).unwrap();
        let excluded = [base.join("alias/a/b")];
        let is_excluded = |path: &str| is_excluded_tree_path(path.as_bytes(), &excluded, &base.join("alias"));
        for (path, expected) in [
            ("a", false),
            ("a/b", true),
            ("a/b/c", true),
            ("a/bc", false),
            ("to-b", true),
            ("to-root", false),
            ("", false),
        ] {
            assert_eq!(is_excluded(path), expected, "{path}");
        }
        let everything = [base.clone()];
        assert!(is_excluded_tree_path(b"a", &everything, &base.join("tree")));
        assert!(!is_excluded_tree_path(b".", &everything, &base.join("tree")));
    }

    proptest! {
        #[test]
        fn a_valid_path_stays_beneath_its_root(path in "[a./]{0,12}") {
            let root = Path::new("/none-such/root");
            if let Ok(joined) = join_relative_path(root, path.as_bytes()) {
                prop_assert!(at_or_within(root, &joined));
            }
        }
    }
}
