//! Removing a directory of ours, whatever was put into it.
//!
//! A command that ran in a mirror may leave unwritable directories, deep trees, links, FIFOs, mounts, and may still be
//! writing. So:
//! 1. The directory is emptied through the descriptor that holds it, wherever it was moved to, before anybody looks at
//!    its path. It counts as removed once it has no name left, and not because nothing is at its path.
//! 2. Nothing is followed, and nothing on another mount is touched: what is found there belongs to somebody else.
//! 3. A directory that cannot be opened or changed is given to its owner first; any depth, with a bounded number of
//!    descriptors, two where the process has no more; and a directory that is filled again while it is emptied is
//!    emptied a bounded number of times.
//!
//! Fails with the first operation that could not be done, and its path (`EXDEV` for a mount); with
//! `contained_execution_boundary_failed`, whose cause names the path, where the directory is somewhere else by now.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;

use super::directory::{Directory, Name, TypeHint};
use super::identity::NodeType;
use super::operation::OperationError;
use crate::failure::{ContainedCode, Facts, Failure, Result};

/// How often one directory is emptied again because somebody keeps filling it.
const MOST_ROUNDS: u32 = 16;

/// How many names are read before they are removed, so that memory does not grow with the directory.
const BATCH: usize = 4096;

/// How many levels keep their directory open.
const HELD: usize = 16;

/// How often a removal waits for a descriptor, and how long each time: about five seconds in all.
const MOST_PAUSES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

/// Removes the directory that is open as `directory` and was made as `path`, a name in `parent`, and all that is in it.
///
/// # Errors
/// See the module.
pub(super) fn remove_root(path: &Path, parent: &Directory, directory: &Directory) -> Result<()> {
    let Some(name) = path.file_name().map(OsStrExt::as_bytes) else {
        return Err(Failure::contained(ContainedCode::BoundaryFailed));
    };
    let failed = |error: OperationError| error.at(path);
    let mut rounds = 0;
    while !is_gone(directory).map_err(failed)? {
        // What ran inside may have taken the directory from its owner, who then could not even open it again.
        directory.set_permissions(0o700).map_err(failed)?;
        Emptying::new(path, directory).run()?;
        let held = directory.metadata().map_err(failed)?;
        match parent.metadata_of(name) {
            Ok(found) if found.identity.same_node(&held.identity) => {}
            Ok(_) => return Err(moved(path, Errno::STALE)),
            Err(error) if error.means_missing() && is_gone(directory).map_err(failed)? => return Ok(()),
            Err(error) if error.means_missing() => return Err(moved(path, error.errno)),
            Err(error) => return Err(failed(error)),
        }
        match parent.remove_directory(name) {
            Ok(()) => return Ok(()),
            Err(error) if (filled_again(error) || error.means_missing()) && rounds < MOST_ROUNDS => rounds += 1,
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// Whether an open directory has no name any more. Then nothing can be in it, and nothing can be put into it.
pub(super) fn is_gone(directory: &Directory) -> std::result::Result<bool, OperationError> {
    match directory.metadata() {
        Ok(metadata) => Ok(metadata.links == 0),
        // How a network file system says it.
        Err(error) if matches!(error.errno, Errno::STALE | Errno::NOENT) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The failure of a directory that its path does not lead to any more, with what is said of the path.
pub(super) fn moved(path: &Path, errno: Errno) -> Failure {
    Failure::Contained {
        code: ContainedCode::BoundaryFailed,
        facts: Facts::default(),
        cause: Some(Box::new(OperationError { operation: "lstat", errno }.at(path))),
    }
}

fn filled_again(error: OperationError) -> bool {
    matches!(error.errno, Errno::NOTEMPTY | Errno::EXIST)
}

/// A directory on the way down. The ones above the deepest few are closed and opened again on the way up.
struct Level {
    name_length: usize,
    rounds: u32,
    open: Option<Directory>,
    below: Vec<Name>,
}

/// Emptying one directory, from its top to the deepest level and back.
struct Emptying<'a> {
    root: &'a Path,
    top: &'a Directory,
    /// Where the deepest level is, relative to the top.
    path: Vec<u8>,
    levels: Vec<Level>,
    /// How many levels keep their directory open; one where descriptors are short.
    held: usize,
    pauses: u32,
}

impl<'a> Emptying<'a> {
    fn new(root: &'a Path, top: &'a Directory) -> Self {
        Self { root, top, path: Vec::new(), levels: Vec::new(), held: HELD, pauses: 0 }
    }

    fn run(mut self) -> Result<()> {
        let top = self.reopen()?;
        let below = self.remove_names(&top)?;
        self.levels.push(Level { name_length: 0, rounds: 0, open: Some(top), below });
        while let Some(level) = self.levels.last_mut() {
            if let Some(name) = level.below.pop() {
                self.descend(&name)?;
            } else if self.levels.len() > 1 {
                self.ascend()?;
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Goes into a directory of the deepest level and removes what is no directory in it.
    fn descend(&mut self, name: &[u8]) -> Result<()> {
        let parent = self.take_open(self.levels.len() - 1)?;
        let child = self.with_descriptor(|| open_child(&parent, name));
        let child = child.map_err(|error| error.beneath(self.root, &joined(&self.path, name)))?;
        self.give_back(self.levels.len() - 1, parent);
        let Some(child) = child else { return Ok(()) };
        self.path = joined(&self.path, name);
        let below = self.remove_names(&child)?;
        self.levels.push(Level { name_length: name.len(), rounds: 0, open: Some(child), below });
        if let Some(above) = self.levels.len().checked_sub(self.held + 1) {
            self.levels[above].open = None;
        }
        Ok(())
    }

    /// Removes the directory of the deepest level, which is empty, and goes back to the one above.
    fn ascend(&mut self) -> Result<()> {
        let Some(level) = self.levels.pop() else { return Ok(()) };
        drop(level.open);
        let whole = self.path.clone();
        let name = whole[whole.len() - level.name_length..].to_vec();
        self.path.truncate(whole.len() - level.name_length);
        if self.path.last() == Some(&b'/') {
            self.path.pop();
        }
        let parent = self.take_open(self.levels.len() - 1)?;
        let removed = remove_with_permission(&parent, |parent| parent.remove_directory(&name));
        self.give_back(self.levels.len() - 1, parent);
        match removed {
            Ok(()) => Ok(()),
            Err(error) if error.means_missing() => Ok(()),
            Err(error) if filled_again(error) && level.rounds < MOST_ROUNDS => {
                self.path = whole;
                let again = self.reopen()?;
                let below = self.remove_names(&again)?;
                self.levels.push(Level { name_length: name.len(), rounds: level.rounds + 1, open: Some(again), below });
                Ok(())
            }
            Err(error) => Err(error.beneath(self.root, &whole)),
        }
    }

    /// The directory of a level, whose path must be the present one; it goes back by [`Self::give_back`].
    fn take_open(&mut self, index: usize) -> Result<Directory> {
        match self.levels[index].open.take() {
            Some(open) => Ok(open),
            None => self.reopen(),
        }
    }

    fn give_back(&mut self, index: usize, directory: Directory) {
        self.levels[index].open = Some(directory);
    }

    /// Opens the present directory for listing from its beginning.
    fn reopen(&mut self) -> Result<Directory> {
        let (top, path) = (self.top, self.path.clone());
        self.with_descriptor(|| if path.is_empty() { top.open_directory(b"") } else { top.open_directory_here(&path) })
            .map_err(|error| error.beneath(self.root, &path))
    }

    /// Does something that needs a descriptor. Where the process has none left, the ones that are only kept for speed
    /// are closed first; then it is waited for others to close theirs.
    fn with_descriptor<T>(
        &mut self,
        attempt: impl Fn() -> std::result::Result<T, OperationError>,
    ) -> std::result::Result<T, OperationError> {
        loop {
            match attempt() {
                Err(error) if matches!(error.errno, Errno::MFILE | Errno::NFILE) && self.pauses < MOST_PAUSES => {
                    self.held = 1;
                    let closed = self.levels.iter_mut().filter_map(|level| level.open.take()).count();
                    if closed == 0 {
                        self.pauses += 1;
                        std::thread::sleep(PAUSE);
                    }
                }
                other => return other,
            }
        }
    }

    /// Removes every name in the present directory that is no directory, until none is left, and gives the directories.
    fn remove_names(&self, directory: &Directory) -> Result<Vec<Name>> {
        let mut directories: Vec<Name> = Vec::new();
        let mut files: Vec<(Name, TypeHint)> = Vec::new();
        let listed = directory.list(|name, hint| {
            if hint == TypeHint::Directory {
                directories.push(name.into());
            } else {
                files.push((name.into(), hint));
            }
            if files.len() >= BATCH { remove_files(directory, &mut files, &mut directories) } else { Ok(()) }
        });
        listed
            .and_then(|()| remove_files(directory, &mut files, &mut directories))
            .map_err(|NotRemoved { name, error }| error.beneath(self.root, &joined(&self.path, &name)))?;
        Ok(directories)
    }
}

/// Removes what was listed; what turns out to be a directory joins the directories.
fn remove_files(
    directory: &Directory,
    files: &mut Vec<(Name, TypeHint)>,
    directories: &mut Vec<Name>,
) -> std::result::Result<(), NotRemoved> {
    let is_directory =
        |name: &[u8]| directory.metadata_of(name).is_ok_and(|found| found.node_type == NodeType::Directory);
    for (name, hint) in files.drain(..) {
        if hint == TypeHint::Unknown && is_directory(&name) {
            directories.push(name);
            continue;
        }
        match remove_with_permission(directory, |directory| directory.remove_file(&name)) {
            Ok(()) => {}
            Err(error) if error.means_missing() => {}
            // It became a directory since it was listed.
            Err(error) if matches!(error.errno, Errno::ISDIR | Errno::PERM) && is_directory(&name) => {
                directories.push(name);
            }
            Err(error) => return Err(NotRemoved { name, error }),
        }
    }
    Ok(())
}

/// An operation that failed on a name of a directory, or with the empty name on the directory itself.
struct NotRemoved {
    name: Name,
    error: OperationError,
}

impl From<OperationError> for NotRemoved {
    fn from(error: OperationError) -> Self {
        Self { name: Name::default(), error }
    }
}

/// Opens a directory to empty it, with permissions made for it if it must be; nothing if it is gone or no directory.
fn open_child(parent: &Directory, name: &[u8]) -> std::result::Result<Option<Directory>, OperationError> {
    let mut opened = parent.open_directory_here(name);
    if is_denied(&opened) {
        // Either of the two may have been taken from its owner.
        parent.set_permissions(0o700)?;
        opened = parent.open_directory_here(name);
    }
    if is_denied(&opened) {
        parent.open_up(name)?;
        opened = parent.open_directory_here(name);
    }
    match opened {
        Ok(child) => Ok(Some(child)),
        Err(error) if error.means_missing() => Ok(None),
        Err(error) if matches!(error.errno, Errno::NOTDIR | Errno::LOOP) => {
            // It was swapped for something else; that goes as a file.
            remove_with_permission(parent, |parent| parent.remove_file(name)).map(|()| None)
        }
        Err(error) => Err(error),
    }
}

fn is_denied<T>(outcome: &std::result::Result<T, OperationError>) -> bool {
    matches!(outcome, Err(OperationError { errno: Errno::ACCESS, .. }))
}

/// Does something in a directory, and once more after making the directory writable for its owner.
fn remove_with_permission(
    directory: &Directory,
    operation: impl Fn(&Directory) -> std::result::Result<(), OperationError>,
) -> std::result::Result<(), OperationError> {
    let outcome = operation(directory);
    if !is_denied(&outcome) {
        return outcome;
    }
    directory.set_permissions(0o700)?;
    operation(directory)
}

fn joined(path: &[u8], name: &[u8]) -> Vec<u8> {
    match (path, name) {
        ([], name) => name.to_vec(),
        (path, []) => path.to_vec(),
        (path, name) => [path, b"/", name].concat(),
    }
}
