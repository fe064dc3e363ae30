//! Random plans of path operations, run once in each way of opening a path beneath a directory.
//!
//! The property tests and the fuzzer share this file. A plan is bytes: eight of them are one step, and any bytes are a
//! plan, so that a failing one shrinks well. [`compare`] runs a plan in two fresh roots of the same content, one for
//! each way, and gives a sentence about the first step at which the two disagree, or at which one of them opened
//! something else than what stands at that path without following a link.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use sallyport::fs::{Beneath, Directory, NodeType, OperationError};

/// How many bytes are one step.
pub(crate) const STEP_BYTES: usize = 8;

/// A file outside of every root, which links may name and nothing may open.
const OUTSIDE: &str = "outside";

/// Few names, so that the steps of a plan meet each other.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

const TARGETS: [&str; 10] = ["a", "b/c", ".", "..", "../a", "../../outside", "a/../b", "./d", "/", "none"];

/// One operation of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    MakeDirectory(String),
    MakeFile(String),
    MakeLink(String, &'static str),
    MakeFifo(String),
    Move(String, String),
    Remove(String),
    OpenDirectory(String),
    PassDirectory(String),
    OpenFile(String),
    Look(String),
    ReadLink(String),
}

impl Step {
    fn decode(bytes: [u8; STEP_BYTES]) -> Self {
        let name = |byte: u8| NAMES[usize::from(byte) % NAMES.len()];
        let path = |bytes: &[u8]| {
            let depth = usize::from(bytes[0]) % (bytes.len() - 1) + 1;
            bytes[1..=depth].iter().map(|byte| name(*byte)).collect::<Vec<_>>().join("/")
        };
        let first = path(&bytes[1..5]);
        match bytes[0] % 13 {
            0 | 1 => Self::MakeDirectory(first),
            2 => Self::MakeFile(first),
            3 | 4 => Self::MakeLink(first, TARGETS[usize::from(bytes[5]) % TARGETS.len()]),
            5 => Self::MakeFifo(first),
            6 => Self::Move(first, path(&bytes[5..])),
            7 => Self::Remove(first),
            8 => Self::OpenDirectory(first),
            9 => Self::PassDirectory(first),
            10 => Self::OpenFile(first),
            11 => Self::Look(first),
            _ => Self::ReadLink(first),
        }
    }
}

/// What a step gave, in a form that can be compared between the two roots.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// It was done.
    Done,
    /// A node was opened or looked at: its path by a model that follows no link, and its type.
    Node(Option<String>, NodeType),
    /// The text of a link.
    Text(Vec<u8>),
    /// Something on the way is a link, or no directory. The two ways may say this differently.
    Blocked,
    /// Any other answer of the kernel.
    Refused(Errno),
}

fn refused(error: OperationError) -> Outcome {
    match error.errno {
        Errno::LOOP | Errno::NOTDIR => Outcome::Blocked,
        errno => Outcome::Refused(errno),
    }
}

/// One root, worked on in one way.
struct Side {
    path: PathBuf,
    directory: Directory,
}

impl Side {
    fn new(base: &Path, name: &str, way: Beneath) -> std::io::Result<Self> {
        let path = base.join(name);
        fs::create_dir(&path)?;
        let directory = Directory::open_canonical(&path, way)
            .map_err(|error| std::io::Error::from_raw_os_error(error.errno.raw_os_error()))?;
        Ok(Self { path, directory })
    }

    /// The path at which a model finds this node, following no link: nothing for a node that is not in this root.
    fn place(&self, device: u64, inode: u64, path: &str) -> Option<String> {
        let mut so_far = self.path.clone();
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            so_far.push(part);
            let metadata = fs::symlink_metadata(&so_far).ok()?;
            if parts.peek().is_some() && !metadata.is_dir() {
                return None;
            }
            if parts.peek().is_none() && (metadata.dev(), metadata.ino()) == (device, inode) {
                return Some(path.to_owned());
            }
        }
        None
    }

    fn node(&self, path: &str, metadata: Result<sallyport::fs::Metadata, OperationError>) -> Outcome {
        metadata.map_or_else(refused, |metadata| {
            let identity = metadata.identity;
            Outcome::Node(self.place(identity.device, identity.inode, path), metadata.node_type)
        })
    }

    /// Does something with the last name of a path through the directory that holds it.
    fn at(&self, path: &str, act: impl FnOnce(&Directory, &[u8]) -> Outcome) -> Outcome {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        match self.directory.pass_directory(parent.as_bytes()) {
            Ok(directory) => act(&directory, name.as_bytes()),
            Err(error) => refused(error),
        }
    }

    /// A plain path, if what holds it really is in this root: plans make links that lead out of it.
    fn inside(&self, path: &str) -> std::io::Result<PathBuf> {
        let plain = self.path.join(path);
        let parent = plain.parent().map(fs::canonicalize).transpose()?;
        if parent.is_some_and(|parent| parent.starts_with(&self.path)) { Ok(plain) } else { Err(Errno::ACCESS.into()) }
    }

    fn run(&self, step: &Step) -> Outcome {
        let done = |outcome: Result<(), OperationError>| outcome.map_or_else(refused, |()| Outcome::Done);
        // The surroundings that change under the feet of the work are not sallyport's: they act by plain paths.
        let changed = |outcome: std::io::Result<()>| {
            outcome.map_or_else(
                |error| Outcome::Refused(Errno::from_raw_os_error(error.raw_os_error().unwrap_or_default())),
                |()| Outcome::Done,
            )
        };
        match step {
            Step::MakeDirectory(path) => self.at(path, |directory, name| done(directory.create_directory(name))),
            Step::MakeFile(path) => self.at(path, |directory, name| done(directory.create_file(name).map(drop))),
            Step::MakeLink(path, target) => {
                self.at(path, |directory, name| done(directory.create_symlink(name, target.as_bytes(), None)))
            }
            Step::MakeFifo(path) => {
                let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                changed(self.inside(path).and_then(|path| {
                    let outcome = rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0);
                    outcome.map_err(std::io::Error::from)
                }))
            }
            Step::Move(from, to) => changed(self.inside(from).and_then(|from| fs::rename(from, self.inside(to)?))),
            Step::Remove(path) => changed(self.inside(path).and_then(|path| remove(&path))),
            Step::OpenDirectory(path) => {
                let opened = self.directory.open_directory(path.as_bytes());
                self.node(path, opened.and_then(|directory| directory.metadata()))
            }
            Step::PassDirectory(path) => {
                let opened = self.directory.pass_directory(path.as_bytes());
                self.node(path, opened.and_then(|directory| directory.metadata()))
            }
            Step::OpenFile(path) => {
                let opened = self.directory.open_file(path.as_bytes());
                self.node(path, opened.and_then(|file| file.metadata()))
            }
            Step::Look(path) => self.at(path, |directory, name| self.node(path, directory.metadata_of(name))),
            Step::ReadLink(path) => {
                self.at(path, |directory, name| directory.target_of(name).map_or_else(refused, Outcome::Text))
            }
        }
    }
}

/// Removes a node, never what is in it.
fn remove(path: &Path) -> std::io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }
}

/// Runs a plan in both ways.
///
/// # Errors
/// A sentence about the first disagreement, or about the fresh roots where they cannot be made.
pub(crate) fn compare(plan: &[u8]) -> Result<(), String> {
    let base = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    let real = base.path().canonicalize().map_err(|error| format!("no canonical path: {error}"))?;
    let made = fs::write(real.join(OUTSIDE), "secret").and_then(|()| {
        Ok([Side::new(&real, "kernel", Beneath::Kernel)?, Side::new(&real, "component", Beneath::PerComponent)?])
    });
    let [kernel, component] = made.map_err(|error| format!("the roots could not be made: {error}"))?;
    for (number, bytes) in plan.chunks_exact(STEP_BYTES).enumerate() {
        let mut eight = [0; STEP_BYTES];
        eight.copy_from_slice(bytes);
        let step = Step::decode(eight);
        let (left, right) = (kernel.run(&step), component.run(&step));
        if left != right {
            return Err(format!("step {number}, {step:?}: the kernel's way gave {left:?}, the other {right:?}"));
        }
        if matches!(left, Outcome::Node(None, _)) {
            return Err(format!("step {number}, {step:?}: opened a node that is not at that path"));
        }
    }
    Ok(())
}
