//! Paths: resolving them, comparing them, and the few looks at the file system that a judgement about a path needs.
//!
//! Paths are bytes here; turning them into text is left to the binding. Nothing here fails with an error: a path that
//! cannot be resolved stays as it was written, and what cannot be looked at is never taken for absent. These looks are
//! made by name, so they tell how things stood at that moment; work that must not be led astray by a writer opens
//! through directory handles instead.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::absolute;
use super::identity::NodeType;
use crate::failure::NodeKind;

/// A path in two parts: what exists, and what does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitPath {
    /// The longest prefix that exists, with every symlink resolved.
    pub existing: PathBuf,
    /// The rest as it was written, empty where all of it exists. Its first component may be a dangling or circular link,
    /// or lie in a directory that may not be searched.
    pub missing: PathBuf,
}

impl SplitPath {
    /// Both parts in one.
    #[must_use]
    pub fn joined(&self) -> PathBuf {
        // Joining an empty path would add a trailing separator.
        if self.missing.as_os_str().is_empty() { self.existing.clone() } else { self.existing.join(&self.missing) }
    }

    /// The nearest directory that exists: the existing part, or the directory of the file that it is.
    #[must_use]
    pub fn nearest_directory(&self) -> &Path {
        if node_type_of(&self.existing) == Some(NodeType::Directory) {
            return &self.existing;
        }
        self.existing.parent().unwrap_or(&self.existing)
    }
}

/// Takes `.` and `..` out of a path by its text alone, as Node's `path.resolve` does with an absolute one.
///
/// `..` above the root of an absolute path stays at the root; in a relative path it is kept.
#[must_use]
pub fn lexical_path(path: &Path) -> PathBuf {
    let mut kept: Vec<Component<'_>> = Vec::new();
    for component in path.components() {
        match (component, kept.last()) {
            (Component::CurDir, _) | (Component::ParentDir, Some(Component::RootDir)) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                kept.pop();
            }
            _ => kept.push(component),
        }
    }
    kept.into_iter().collect()
}

/// Resolves the symlinks of the longest prefix of `path` that exists. `path` is absolute and is resolved by its text
/// first.
///
/// A dangling or circular link, and whatever lies in a directory that may not be searched, counts as missing from there
/// on.
#[must_use]
pub fn split_path(path: &Path) -> SplitPath {
    let resolved = lexical_path(path);
    let ancestors: Vec<&Path> = resolved.ancestors().collect();
    // If a path resolves, so does all above it: halving finds the place with few calls however long the path is.
    let first = ancestors.partition_point(|ancestor| real_path(ancestor).is_none());
    for ancestor in &ancestors[first..] {
        if let (Some(existing), Ok(missing)) = (real_path(ancestor), resolved.strip_prefix(ancestor)) {
            let missing = missing.to_path_buf();
            return SplitPath { existing, missing };
        }
    }
    SplitPath { existing: resolved, missing: PathBuf::new() }
}

/// The canonical form of an absolute path: symlinks resolved for the longest prefix that exists, the missing rest
/// appended as it is (`contract/mirror.md`, "prepareContainedExecutionMirror", 3).
#[must_use]
pub fn canonical_path(path: &Path) -> PathBuf {
    split_path(path).joined()
}

/// The directory that `path` leads to, with every symlink resolved as the system resolves it (so `link/..` is the parent
/// of what the link points to). Nothing where it is no directory or cannot be reached.
#[must_use]
pub fn real_directory(path: &Path) -> Option<PathBuf> {
    real_path(path).filter(|real| node_type_of(real) == Some(NodeType::Directory))
}

/// What `path` leads to, with every symlink resolved as the system resolves it. Nothing where it cannot be reached.
#[must_use]
pub fn real_path(path: &Path) -> Option<PathBuf> {
    absolute::real_path(path, "realpath").ok()
}

/// Whether `target` is `root` or lies beneath it, component by component. Both are absolute and free of `..`.
#[must_use]
pub fn at_or_within(root: &Path, target: &Path) -> bool {
    target.starts_with(root)
}

/// `target` relative to `root`, both absolute and with their symlinks resolved first: empty for the root itself, nothing
/// outside it.
#[must_use]
pub fn relative_within(root: &Path, target: &Path) -> Option<PathBuf> {
    canonical_path(target).strip_prefix(canonical_path(root)).ok().map(Path::to_path_buf)
}

/// What is at `path`, without following a symlink there. Nothing where nothing is; what cannot be looked at is special:
/// whoever asks must not take it for absent.
#[must_use]
pub fn node_type_of(path: &Path) -> Option<NodeType> {
    match absolute::metadata(path, "lstat") {
        Ok(metadata) => Some(metadata.node_type),
        Err(failure) if failure.means_absent() => None,
        Err(_) => Some(NodeType::Special(NodeKind::Unknown)),
    }
}

/// Adds a name to a relative path of raw bytes.
pub fn push_name(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

/// A path made of raw bytes.
#[must_use]
pub fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, create_dir_all, write};
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    fn base() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let canonical = std::fs::canonicalize(directory.path()).unwrap();
        (directory, canonical)
    }

    #[test]
    fn dots_are_resolved_by_text() {
        for (path, expected) in [
            ("/a/./b//c/", "/a/b/c"),
            ("/a/../b", "/b"),
            ("/../..", "/"),
            ("/a/b/../../../c", "/c"),
            ("a/../../b", "../b"),
            ("./a", "a"),
            ("..", ".."),
            ("/", "/"),
        ] {
            assert_eq!(lexical_path(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn the_existing_prefix_is_resolved_and_the_rest_appended() {
        let (_guard, base) = base();
        create_dir_all(base.join("real/sub")).unwrap();
        symlink("real", base.join("link")).unwrap();
        assert_eq!(canonical_path(&base.join("link/sub")), base.join("real/sub"));
        assert_eq!(canonical_path(&base.join("link/sub/none/x")), base.join("real/sub/none/x"));
        assert_eq!(canonical_path(&base.join("link/../link/new")), base.join("real/new"));
        assert_eq!(canonical_path(Path::new("/")), Path::new("/"));
        assert_eq!(canonical_path(Path::new("/none-such/a/../b")), Path::new("/none-such/b"));
    }

    #[test]
    fn dangling_and_circular_links_count_as_missing() {
        let (_guard, base) = base();
        symlink("nowhere/x", base.join("dangling")).unwrap();
        symlink("b", base.join("a")).unwrap();
        symlink("a", base.join("b")).unwrap();
        assert_eq!(canonical_path(&base.join("dangling/y")), base.join("dangling/y"));
        assert_eq!(canonical_path(&base.join("a/y")), base.join("a/y"));
        assert_eq!(split_path(&base.join("a/y")).existing, base);
    }

    #[test]
    fn a_file_in_the_middle_ends_what_exists() {
        let (_guard, base) = base();
        write(base.join("file"), "x").unwrap();
        let split = split_path(&base.join("file/below/it"));
        assert_eq!(split.existing, base.join("file"));
        assert_eq!(split.missing, Path::new("below/it"));
        assert_eq!(split.nearest_directory(), base);
        assert_eq!(split.joined(), base.join("file/below/it"));
    }

    #[test]
    fn a_path_longer_than_the_system_takes_is_resolved_as_far_as_it_exists() {
        let (_guard, base) = base();
        let long = base.join("x/".repeat(100_000));
        assert_eq!(split_path(&long).existing, base);
    }

    #[test]
    fn within_goes_by_components() {
        assert!(at_or_within(Path::new("/a/b"), Path::new("/a/b")));
        assert!(at_or_within(Path::new("/a/b"), Path::new("/a/b/c")));
        assert!(at_or_within(Path::new("/"), Path::new("/a")));
        assert!(!at_or_within(Path::new("/a/b"), Path::new("/a/bc")));
        assert!(!at_or_within(Path::new("/a/b"), Path::new("/a")));
        let odd = path_from_bytes(b"/a/\xff");
        assert!(at_or_within(&odd, &odd.join("c")));
        assert!(!at_or_within(&odd, &path_from_bytes(b"/a/\xfe/c")));
    }

    #[test]
    fn kinds_are_told_without_following() {
        let (_guard, base) = base();
        create_dir(base.join("d")).unwrap();
        write(base.join("f"), "x").unwrap();
        symlink("d", base.join("l")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, base.join("p"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        assert_eq!(node_type_of(&base.join("d")), Some(NodeType::Directory));
        assert_eq!(node_type_of(&base.join("f")), Some(NodeType::File));
        assert_eq!(node_type_of(&base.join("l")), Some(NodeType::Symlink));
        assert_eq!(node_type_of(&base.join("p")), Some(NodeType::Special(NodeKind::Fifo)));
        assert_eq!(node_type_of(&base.join("none")), None);
        assert_eq!(node_type_of(&base.join("f/below")), None);
        assert_eq!(node_type_of(&base.join("n".repeat(300))), Some(NodeType::Special(NodeKind::Unknown)));
    }

    #[test]
    fn a_link_and_dots_are_resolved_as_the_system_does() {
        let (_guard, base) = base();
        create_dir_all(base.join("deep/target")).unwrap();
        symlink("deep/target", base.join("link")).unwrap();
        assert_eq!(real_directory(&base.join("link/..")), Some(base.join("deep")));
        assert_eq!(canonical_path(&base.join("link/..")), base);
        write(base.join("f"), "").unwrap();
        assert_eq!(real_directory(&base.join("f")), None);
        assert_eq!(real_path(&base.join("f")), Some(base.join("f")));
    }

    proptest! {
        #[test]
        fn lexical_paths_are_stable_and_free_of_dots(path in "/([a.]{0,2}/){0,8}[a.]{0,2}") {
            let once = lexical_path(Path::new(&path));
            prop_assert!(once.is_absolute());
            prop_assert!(once.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_))));
            prop_assert_eq!(lexical_path(&once), once);
        }

        #[test]
        fn bytes_survive(bytes in proptest::collection::vec(1_u8.., 0..40)) {
            let path = path_from_bytes(&bytes);
            prop_assert_eq!(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()), bytes.as_slice());
        }
    }
}
