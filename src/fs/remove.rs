//! Removing a directory of ours, whatever was put into it.
//!
//! A command that ran in a mirror may leave unwritable directories, deep trees, links, FIFOs, and may still be writing.
//! So: nothing is followed; a directory that cannot be opened or changed is given to its owner first; any depth, with a
//! bounded number of descriptors; and a directory that is filled again while it is emptied is emptied a bounded number
//! of times. Fails with the first operation that could not be done, and its path.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

use super::beneath::Beneath;
use super::directory::{Directory, Name, TypeHint};
use super::operation::OperationError;
use crate::failure::{ContainedCode, Failure, Result};

/// How often one directory is emptied again because somebody keeps filling it.
const MOST_ROUNDS: u32 = 16;

/// How many names are read before they are removed, so that memory does not grow with the directory.
const BATCH: usize = 4096;

/// A directory on the way down. The ones above the deepest few are closed and opened again on the way up.
struct Level {
    name_length: usize,
    rounds: u32,
    open: Option<Directory>,
    below: Vec<Name>,
}

/// How many levels keep their directory open.
const HELD: usize = 16;

/// Removes `root`, which is open as `directory`, and all that is in it; `checkpoint` is called now and then and may
/// stop it. Nothing is removed if another directory is at the path by now.
///
/// # Errors
/// The first operation that could not be done; what `checkpoint` gives.
pub fn remove_root(root: &Path, directory: &Directory, checkpoint: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let (Some(parent_path), Some(name)) = (root.parent(), root.file_name()) else {
        return Err(Failure::contained(ContainedCode::BoundaryFailed));
    };
    let parent = Directory::open_canonical(parent_path, Beneath::detected()).map_err(|error| error.at(parent_path))?;
    let name = name.as_bytes();
    let held = directory.metadata().map_err(|error| error.at(root))?;
    match parent.metadata_of(name) {
        Err(error) if error.errno == Errno::NOENT => return Ok(()),
        Err(error) => return Err(error.at(root)),
        // Somebody moved the root away and put another one there: that one is not ours to remove.
        Ok(found) if !found.identity.same_node(&held.identity) => {
            return Err(Failure::contained(ContainedCode::BoundaryFailed));
        }
        Ok(_) => {}
    }
    let mut rounds = 0;
    loop {
        empty(root, directory, checkpoint)?;
        match parent.remove_directory(name) {
            Ok(()) => return Ok(()),
            Err(error) if error.errno == Errno::NOENT => return Ok(()),
            Err(error) if filled_again(error) && rounds < MOST_ROUNDS => rounds += 1,
            Err(error) => return Err(error.at(root)),
        }
    }
}

fn filled_again(error: OperationError) -> bool {
    matches!(error.errno, Errno::NOTEMPTY | Errno::EXIST)
}

/// Empties an open directory.
fn empty(root: &Path, top: &Directory, checkpoint: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let mut path: Vec<u8> = Vec::new();
    let first = remove_names(root, &path, &reopen(root, top, &path)?, checkpoint)?;
    let mut levels = vec![Level { name_length: 0, rounds: 0, open: None, below: first }];
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.below.pop() {
            // Down: into the next directory of this level.
            let parent = match level.open.take() {
                Some(open) => open,
                None => reopen(root, top, &path)?,
            };
            let child = open_child(&parent, &name).map_err(|error| error.beneath(root, &joined(&path, &name)))?;
            level.open = Some(parent);
            let Some(child) = child else { continue };
            push(&mut path, &name);
            let below = remove_names(root, &path, &child, checkpoint)?;
            levels.push(Level { name_length: name.len(), rounds: 0, open: Some(child), below });
            if let Some(above) = levels.len().checked_sub(HELD + 1) {
                levels[above].open = None;
            }
            continue;
        }
        // Up: this level is empty, so its directory goes.
        let (name_length, rounds) = (level.name_length, level.rounds);
        if levels.len() == 1 {
            return Ok(());
        }
        let name = path[path.len() - name_length..].to_vec();
        let parent_path = path[..path.len() - name_length].strip_suffix(b"/").unwrap_or_default().to_vec();
        let above = levels.len() - 2;
        let parent = match levels[above].open.take() {
            Some(open) => open,
            None => reopen(root, top, &parent_path)?,
        };
        let removed = remove_with_permission(&parent, |parent| parent.remove_directory(&name));
        levels[above].open = Some(parent);
        match removed {
            Ok(()) => {}
            Err(error) if error.errno == Errno::NOENT => {}
            Err(error) if filled_again(error) && rounds < MOST_ROUNDS => {
                let again = reopen(root, top, &path)?;
                let below = remove_names(root, &path, &again, checkpoint)?;
                if let Some(level) = levels.last_mut() {
                    *level = Level { name_length, rounds: rounds + 1, open: Some(again), below };
                }
                continue;
            }
            Err(error) => return Err(error.beneath(root, &path)),
        }
        levels.pop();
        path = parent_path;
    }
    Ok(())
}

/// Opens a directory below the top for listing from its beginning.
fn reopen(root: &Path, top: &Directory, path: &[u8]) -> Result<Directory> {
    top.open_directory(path).map_err(|error| error.beneath(root, path))
}

/// Opens a directory to empty it, with permissions made for it if it must be; nothing if it is gone or no directory.
fn open_child(parent: &Directory, name: &[u8]) -> std::result::Result<Option<Directory>, OperationError> {
    match parent.open_directory(name) {
        Ok(child) => Ok(Some(child)),
        Err(error) if error.errno == Errno::NOENT => Ok(None),
        Err(error) if matches!(error.errno, Errno::NOTDIR | Errno::LOOP) => {
            // It was swapped for something else; that goes as a file.
            remove_with_permission(parent, |parent| parent.remove_file(name)).map(|()| None)
        }
        Err(error) if error.errno == Errno::ACCESS => {
            parent.open_up(name)?;
            parent.open_directory(name).map(Some)
        }
        Err(error) => Err(error),
    }
}

/// Removes every name that is no directory, until none is left, and gives the directories.
fn remove_names(
    root: &Path,
    path: &[u8],
    directory: &Directory,
    checkpoint: &mut dyn FnMut() -> Result<()>,
) -> Result<Vec<Name>> {
    let mut directories: Vec<Name> = Vec::new();
    let mut files: Vec<(Name, TypeHint)> = Vec::new();
    let failed = |error: OperationError, name: &[u8]| error.beneath(root, &joined(path, name));
    let mut clear = |files: &mut Vec<(Name, TypeHint)>, directories: &mut Vec<Name>| -> Result<()> {
        checkpoint()?;
        for (name, hint) in files.drain(..) {
            let is_directory = hint == TypeHint::Unknown
                && directory.metadata_of(&name).is_ok_and(|found| found.node_type == super::NodeType::Directory);
            if is_directory {
                directories.push(name);
                continue;
            }
            match remove_with_permission(directory, |directory| directory.remove_file(&name)) {
                Ok(()) => {}
                Err(error) if error.errno == Errno::NOENT => {}
                // It became a directory since it was listed.
                Err(error)
                    if matches!(error.errno, Errno::ISDIR | Errno::PERM) && is_now_directory(directory, &name) =>
                {
                    directories.push(name);
                }
                Err(error) => return Err(failed(error, &name)),
            }
        }
        Ok(())
    };
    directory
        .list(|name, hint| {
            if hint == TypeHint::Directory {
                directories.push(name.into());
            } else {
                files.push((name.into(), hint));
            }
            if files.len() >= BATCH { clear(&mut files, &mut directories).map_err(Stop::Failed) } else { Ok(()) }
        })
        .map_err(|stop| match stop {
            Stop::Failed(failure) => failure,
            Stop::Listing(error) => error.beneath(root, path),
        })?;
    clear(&mut files, &mut directories)?;
    Ok(directories)
}

enum Stop {
    Failed(Failure),
    Listing(OperationError),
}

impl From<OperationError> for Stop {
    fn from(error: OperationError) -> Self {
        Self::Listing(error)
    }
}

fn is_now_directory(directory: &Directory, name: &[u8]) -> bool {
    directory.metadata_of(name).is_ok_and(|found| found.node_type == super::NodeType::Directory)
}

/// Does something in a directory, and once more after making the directory writable for its owner.
fn remove_with_permission(
    directory: &Directory,
    operation: impl Fn(&Directory) -> std::result::Result<(), OperationError>,
) -> std::result::Result<(), OperationError> {
    match operation(directory) {
        Err(error) if error.errno == Errno::ACCESS => {
            directory.set_permissions(0o700)?;
            operation(directory)
        }
        other => other,
    }
}

fn push(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

fn joined(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut whole = path.to_vec();
    push(&mut whole, name);
    whole
}
