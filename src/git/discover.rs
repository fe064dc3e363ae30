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

use super::format::{commondir_pointer, config_has_core, gitdir_pointer, head_is_valid};
use crate::failure::Result;
use crate::fs::directory::{join_bytes, path_bytes};
use crate::fs::path::real_directory;
use crate::fs::{Directory, NodeType, OperationError, TypeHint};

/// More than Git ever writes into one of its small files.
const SMALL_FILE_LIMIT: usize = 64 * 1024;

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

/// What one directory's listing says.
#[derive(Default)]
struct Listing {
    directories: Vec<Vec<u8>>,
    git_file: bool,
    parts: u8,
    commondir: bool,
}

/// Looks through a tree for Git's own data. `skip` says of a relative path that it is not to be looked into.
///
/// # Errors
/// What `checkpoint` gives.
pub fn discover(
    root: &Directory,
    root_path: &Path,
    skip: &dyn Fn(&[u8]) -> bool,
    checkpoint: &dyn Fn() -> Result<()>,
) -> Result<MetadataRoots> {
    let mut found = MetadataRoots::default();
    let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        checkpoint()?;
        let Ok(directory) = root.open_directory(&path) else { continue };
        let Ok(listing) = list(&directory) else { continue };
        if listing.parts == 4 && is_complete(&directory) {
            if path.is_empty() {
                found.root_is_repository = true;
            }
            found.bare_repositories.insert(path);
            continue;
        }
        if path.is_empty() && listing.commondir && has_valid_head(&directory) {
            found.root_is_repository = true;
        }
        if listing.git_file {
            follow_git_file(root, root_path, &path, &directory, &mut found);
        }
        waiting.extend(listing.directories.into_iter().filter_map(|name| {
            let child = if path.is_empty() { name } else { [&path, &b"/"[..], &name].concat() };
            (!skip(&child)).then_some(child)
        }));
    }
    Ok(found)
}

fn list(directory: &Directory) -> std::result::Result<Listing, OperationError> {
    let mut listing = Listing::default();
    directory.list(|name, hint| {
        if name.eq_ignore_ascii_case(b".git") {
            listing.git_file |= name == b".git" && hint != TypeHint::Directory;
            return Ok(());
        }
        match name {
            b"HEAD" | b"config" | b"objects" | b"refs" => listing.parts += 1,
            b"commondir" => listing.commondir = true,
            _ => {}
        }
        let is_directory = match hint {
            TypeHint::Directory => true,
            TypeHint::Unknown => is(directory, name, NodeType::Directory),
            TypeHint::File | TypeHint::Other => false,
        };
        if is_directory {
            listing.directories.push(name.to_vec());
        }
        Ok::<(), OperationError>(())
    })?;
    Ok(listing)
}

fn is(directory: &Directory, name: &[u8], node_type: NodeType) -> bool {
    directory.metadata_of(name).is_ok_and(|metadata| metadata.node_type == node_type)
}

/// The content of a small regular file; nothing for anything else, which is then never opened.
fn small_file(directory: &Directory, name: &[u8]) -> Option<Vec<u8>> {
    if !is(directory, name, NodeType::File) {
        return None;
    }
    let file = directory.open_file(name).ok()?;
    let mut content = vec![0; SMALL_FILE_LIMIT + 1];
    let mut length = 0;
    while length < content.len() {
        match file.read(&mut content[length..]).ok()? {
            0 => break,
            count => length += count,
        }
    }
    content.truncate(length);
    (length <= SMALL_FILE_LIMIT).then_some(content)
}

fn has_valid_head(directory: &Directory) -> bool {
    small_file(directory, b"HEAD").is_some_and(|head| head_is_valid(&head))
}

fn is_complete(directory: &Directory) -> bool {
    has_valid_head(directory)
        && small_file(directory, b"config").is_some_and(|config| config_has_core(&config))
        && is(directory, b"objects", NodeType::Directory)
        && is(directory, b"refs", NodeType::Directory)
}

/// Takes in the git dir and the common dir that the `.git` file in `path` leads to.
fn follow_git_file(root: &Directory, root_path: &Path, path: &[u8], directory: &Directory, found: &mut MetadataRoots) {
    let Some(content) = small_file(directory, b".git") else { return };
    let Some(pointer) = gitdir_pointer(&content) else { return };
    let Some(git_directory) = inside(root_path, path, path, pointer) else { return };
    let Ok(opened) = root.open_directory(&git_directory) else { return };
    if !has_valid_head(&opened) {
        return;
    }
    let commondir = small_file(&opened, b"commondir");
    if commondir.is_none() && !is_complete(&opened) {
        return;
    }
    let common = commondir
        .as_deref()
        .and_then(commondir_pointer)
        .and_then(|pointer| inside(root_path, path, &git_directory, pointer))
        .filter(|common| root.open_directory(common).is_ok_and(|opened| is_complete(&opened)));
    found.git_directories.extend(common);
    found.git_directories.insert(git_directory);
}

/// Where a pointer in a file of `base` leads, relative to the root; nothing if that is outside the tree, or is the
/// directory of the `.git` file or one above it.
fn inside(root_path: &Path, git_file_directory: &[u8], base: &[u8], pointer: &[u8]) -> Option<Vec<u8>> {
    let target = real_directory(&join_bytes(&join_bytes(root_path, base), pointer))?;
    let relative = target.strip_prefix(root_path).ok()?;
    let holds_git_file = join_bytes(root_path, git_file_directory).starts_with(&target);
    (!holds_git_file).then(|| path_bytes(relative).to_vec())
}
