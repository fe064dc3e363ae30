//! Finding Git's own data inside a tree, before anything in the tree is judged.
//!
//! Only what is structurally Git's counts, so that nothing of a project is left out because of a name, and the result
//! does not depend on the order in which directories are read (`contract/mirror.md`, "What the walk skips"):
//! 1. The git dir that a `.git` file points to, if it is one (valid `HEAD`, and a `commondir` file or a complete
//!    repository), lies inside the tree, and is not the directory of the `.git` file or one above it. Its common dir
//!    likewise, if that is a complete repository.
//! 2. The content of a directory that is a complete bare repository.
//!
//! Nothing outside the tree has any influence. What cannot be read is passed over here: the walk that follows refuses
//! it, unless it is left out anyway. Fails only with what `checkpoint` gives.

use std::collections::HashSet;
use std::path::Path;

use super::format::{POINTER_LIMIT, commondir_pointer, gitdir_pointer};
use super::structure::{PARTS, has_valid_head, is_complete, is_directory};
use crate::failure::Result;
use crate::fs::directory::path_bytes;
use crate::fs::path::{path_from_bytes, push_name};
use crate::fs::resolve::resolve_beneath;
use crate::fs::stream::read_small_file;
use crate::fs::{Directory, ListingEnd, TypeHint};

/// Git's own data in a tree, by paths relative to its root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetadataRoots {
    /// Directories that are Git's with all that is in them.
    pub git_directories: HashSet<Vec<u8>>,
    /// Bare repositories: their content is Git's, the directory itself is the project's.
    pub bare_repositories: HashSet<Vec<u8>>,
    /// The root itself is a bare repository or a git dir.
    pub root_is_repository: bool,
}

/// What the names in one directory say of Git.
#[derive(Debug, Default, Clone, Copy)]
pub struct Marks {
    git_file: bool,
    parts: usize,
    commondir: bool,
}

impl Marks {
    /// Takes in a name of the directory.
    pub fn see(&mut self, name: &[u8], hint: TypeHint) {
        self.git_file |= name == b".git" && hint != TypeHint::Directory;
        self.parts += usize::from(PARTS.contains(&name));
        self.commondir |= name == b"commondir";
    }

    /// Whether there may be anything for [`discover`] to find by this directory. Where there is not by any directory of
    /// a tree, it would find nothing.
    #[must_use]
    pub fn call_for_discovery(self, is_root: bool) -> bool {
        self.git_file || self.parts == PARTS.len() || (is_root && self.commondir)
    }
}

/// How many names are read from one checkpoint to the next.
const NAMES_BETWEEN_CHECKS: u32 = 1024;

/// Looks through a tree for Git's own data. `spellings` are the absolute paths by which its root is known; `skip` says of
/// a relative path that it is not to be looked into.
///
/// # Errors
/// What `checkpoint` gives.
pub fn discover(
    root: &Directory,
    spellings: &[&Path],
    skip: &dyn Fn(&[u8]) -> bool,
    checkpoint: &dyn Fn() -> Result<()>,
) -> Result<MetadataRoots> {
    let mut found = MetadataRoots::default();
    let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        checkpoint()?;
        let Ok(directory) = root.open_directory(&path) else { continue };
        let (marks, directories) = match list(&directory, checkpoint) {
            Ok(listing) => listing,
            Err(ListingEnd::Stopped(failure)) => return Err(failure),
            Err(ListingEnd::Failed(_)) => continue,
        };
        if marks.parts == PARTS.len() && is_complete(&directory) {
            found.root_is_repository |= path.is_empty();
            found.bare_repositories.insert(path);
            continue;
        }
        found.root_is_repository |= path.is_empty() && marks.commondir && has_valid_head(&directory);
        if marks.git_file {
            follow_git_file(root, spellings, &path, &directory, &mut found);
        }
        waiting.extend(directories.into_iter().filter_map(|name| {
            let mut child = path.clone();
            push_name(&mut child, &name);
            (!skip(&child)).then_some(child)
        }));
    }
    Ok(found)
}

/// What the names in a directory say, and which of them are directories that may be the project's.
fn list(
    directory: &Directory,
    checkpoint: &dyn Fn() -> Result<()>,
) -> std::result::Result<(Marks, Vec<Vec<u8>>), ListingEnd> {
    let mut marks = Marks::default();
    let mut directories = Vec::new();
    let mut read: u32 = 0;
    directory.list(|name, hint| {
        read = read.wrapping_add(1);
        if read.is_multiple_of(NAMES_BETWEEN_CHECKS) {
            checkpoint().map_err(ListingEnd::Stopped)?;
        }
        marks.see(name, hint);
        let enters = match hint {
            _ if name.eq_ignore_ascii_case(b".git") => false,
            TypeHint::Directory => true,
            TypeHint::Unknown => is_directory(directory, name),
            TypeHint::File | TypeHint::Other => false,
        };
        if enters {
            directories.push(name.to_vec());
        }
        Ok::<(), ListingEnd>(())
    })?;
    Ok((marks, directories))
}

/// Takes in the git dir and the common dir that the `.git` file in `path` leads to.
fn follow_git_file(
    root: &Directory,
    spellings: &[&Path],
    path: &[u8],
    directory: &Directory,
    found: &mut MetadataRoots,
) {
    let Some(content) = read_small_file(directory, b".git", POINTER_LIMIT) else { return };
    let Some(pointer) = gitdir_pointer(&content) else { return };
    let Some(git_directory) = inside(root, spellings, path, path, pointer) else { return };
    let Ok(opened) = root.open_directory(&git_directory) else { return };
    if !has_valid_head(&opened) {
        return;
    }
    let commondir = read_small_file(&opened, b"commondir", POINTER_LIMIT);
    if commondir.is_none() && !is_complete(&opened) {
        return;
    }
    let common = commondir
        .as_deref()
        .and_then(commondir_pointer)
        .and_then(|pointer| inside(root, spellings, path, &git_directory, pointer))
        .filter(|common| root.open_directory(common).is_ok_and(|opened| is_complete(&opened)));
    found.git_directories.extend(common);
    found.git_directories.insert(git_directory);
}

/// Where a pointer in a file of `base` leads, relative to the root; nothing if that is outside the tree, or is the
/// directory of the `.git` file or one above it.
///
/// The pointer is the tree's own word, so it is never followed by name: an absolute one must begin with the root as it is
/// spelled, and the rest is followed from there without leaving the tree.
fn inside(
    root: &Directory,
    spellings: &[&Path],
    git_file_directory: &[u8],
    base: &[u8],
    pointer: &[u8],
) -> Option<Vec<u8>> {
    let target = if pointer.starts_with(b"/") {
        let pointer = path_from_bytes(pointer);
        let rest = spellings.iter().find_map(|spelling| pointer.strip_prefix(spelling).ok())?;
        resolve_beneath(root, b"", path_bytes(rest)).ok()?
    } else {
        resolve_beneath(root, base, pointer).ok()?
    };
    let holds_git_file = path_from_bytes(git_file_directory).starts_with(path_from_bytes(&target));
    (!holds_git_file).then_some(target)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs::{create_dir, create_dir_all, write};
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;
    use crate::failure::Failure;
    use crate::fs::Beneath;

    struct Tree {
        _guard: tempfile::TempDir,
        base: PathBuf,
        root: PathBuf,
    }

    impl Tree {
        fn new() -> Self {
            let guard = tempfile::tempdir().unwrap();
            let base = guard.path().canonicalize().unwrap();
            let root = base.join("root");
            create_dir(&root).unwrap();
            Self { _guard: guard, base, root }
        }

        fn git_directory(&self, path: &str) {
            create_dir_all(self.root.join(path).join("objects")).unwrap();
            create_dir_all(self.root.join(path).join("refs")).unwrap();
            write(self.root.join(path).join("HEAD"), "ref: refs/heads/main\n").unwrap();
            write(self.root.join(path).join("config"), "[core]\n").unwrap();
        }

        fn discover(&self, spellings: &[&Path], checkpoint: &dyn Fn() -> Result<()>) -> Result<MetadataRoots> {
            let root = Directory::open_canonical(&self.root, Beneath::detected()).unwrap();
            discover(&root, spellings, &|_| false, checkpoint)
        }

        fn git_directories(&self, spellings: &[&Path]) -> Vec<Vec<u8>> {
            let found = self.discover(spellings, &|| Ok(())).unwrap();
            found.git_directories.into_iter().collect()
        }
    }

    #[test]
    fn a_pointer_counts_only_if_it_stays_in_the_tree_all_the_way() {
        let tree = Tree::new();
        // A complete git dir that is no bare repository of its own, since it holds no valid HEAD until it is linked.
        create_dir_all(tree.root.join("project/deep")).unwrap();
        create_dir_all(tree.root.join("meta")).unwrap();
        write(tree.root.join("meta/HEAD"), "ref: refs/heads/main\n").unwrap();
        write(tree.root.join("meta/commondir"), "none\n").unwrap();
        create_dir(tree.base.join("outside")).unwrap();
        symlink(&tree.root, tree.base.join("outside/back")).unwrap();
        symlink("../../outside/back", tree.root.join("project/through")).unwrap();
        symlink("../meta", tree.root.join("project/near")).unwrap();
        let other = tree.base.join("spelling");
        symlink(&tree.root, &other).unwrap();
        let spellings = [tree.root.as_path(), &other];
        let absolute = |base: &Path, rest: &str| base.join(rest).display().to_string();
        for (pointer, counts) in [
            ("../meta".to_owned(), true),
            ("deep/../../meta".to_owned(), true),
            ("near".to_owned(), true),
            (absolute(&tree.root, "meta"), true),
            (absolute(&tree.root, "./meta/"), true),
            (absolute(&other, "meta"), true),
            (absolute(&tree.root, "project/near"), true),
            // All of these are the same directory in the end, by way of something outside.
            ("through/meta".to_owned(), false),
            ("../../root/meta".to_owned(), false),
            (absolute(&tree.root, "../root/meta"), false),
            (absolute(&tree.base, "outside/back/meta"), false),
            (absolute(&tree.root, "project/through/meta"), false),
            // The directory of the `.git` file, and one above it.
            (".".to_owned(), false),
            ("..".to_owned(), false),
        ] {
            write(tree.root.join("project/.git"), format!("gitdir: {pointer}\n")).unwrap();
            let expected: &[Vec<u8>] = if counts { &[b"meta".to_vec()] } else { &[] };
            assert_eq!(tree.git_directories(&spellings), expected, "{pointer}");
        }
    }

    #[test]
    fn what_git_takes_for_its_own_is_the_same_inside_a_tree_and_above_a_path() {
        let tree = Tree::new();
        let long_head = format!("ref: refs/heads/{}\n", "x".repeat(5000));
        let long_config = format!("{}[core]\n", "# comment\n".repeat(10_000));
        for (head, config, complete) in [
            ("ref: refs/heads/main\n", "[core]\n", true),
            (long_head.as_str(), "[core]\n", false),
            ("ref: refs/heads/main\n", long_config.as_str(), true),
        ] {
            tree.git_directory("bare");
            write(tree.root.join("bare/HEAD"), head).unwrap();
            write(tree.root.join("bare/config"), config).unwrap();
            let inside = tree.discover(&[&tree.root], &|| Ok(())).unwrap();
            assert_eq!(inside.bare_repositories.contains(b"bare".as_slice()), complete);
            assert_eq!(super::super::resolve(&tree.root.join("bare")).is_some(), complete);
        }
    }

    #[test]
    fn a_large_directory_is_not_listed_without_a_checkpoint() {
        let tree = Tree::new();
        for number in 0..1500 {
            symlink("x", tree.root.join(format!("{number}"))).unwrap();
        }
        let calls = Cell::new(0);
        let stop_at_second = || {
            calls.set(calls.get() + 1);
            if calls.get() == 2 { Err(Failure::Aborted) } else { Ok(()) }
        };
        assert_eq!(tree.discover(&[&tree.root], &stop_at_second), Err(Failure::Aborted));
    }
}
