//! Walking a tree by metadata alone, in the order of the tree hash.
//!
//! The order is that of the relative paths as bytes with `/` as the byte it is, so `a-b` stands between `a` and `a/x`.
//! Because the walk itself goes in that order, the first thing that is wrong is always the same one, a limit is passed
//! at the same entry every time, and nothing has to be sorted afterwards. Stops at the first refusal. What is taken,
//! skipped and refused is decided by the [`WalkRules`]; a node that changes between two looks is
//! `contained_execution_source_changed`.
//!
//! Any depth: the way down is kept as names, and only the deepest directories stay open ([`HELD`]).

use std::path::Path;

use super::control::Control;
use crate::failure::{CheckpointCode, ContainedCode, Facts, Failure, Result};
use crate::fs::{Directory, Identity, Metadata, Name, NodeType, OperationError, Times};

/// What the rules say of a name or a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It becomes an entry.
    Take,
    /// It is left out.
    Skip,
}

/// The rules of one kind of walk.
pub trait WalkRules {
    /// Judges a location before the node is looked at. `relative_path` is in the directory that is being walked.
    ///
    /// # Errors
    /// A refusal.
    fn judge_location(&mut self, relative_path: &[u8]) -> Result<Judgement>;

    /// Judges a symlink by its text and where it leads.
    ///
    /// # Errors
    /// A refusal.
    fn judge_symlink(&mut self, root: &Directory, relative_path: &[u8], target: &[u8]) -> Result<Judgement>;

    /// Judges a file that has more than one name.
    ///
    /// # Errors
    /// A refusal.
    fn judge_links(&mut self, relative_path: &[u8], metadata: &Metadata) -> Result<()>;

    /// Whether the content of a directory that is itself an entry is walked.
    fn enters(&mut self, relative_path: &[u8]) -> bool;

    /// Counts an entry against the limits.
    ///
    /// # Errors
    /// A limit that is passed.
    fn count(&mut self, entry: &Entry) -> Result<()>;

    /// How many more entries can be taken before a limit is passed: no more than one beyond it is ever kept in memory.
    fn room_left(&self) -> usize;
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symlink with its text.
    Symlink(Box<[u8]>),
}

/// A node of a tree at one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path relative to the root, as raw bytes.
    pub path: Box<[u8]>,
    /// Where the directory that holds it stands in the list of entries; nothing for the root.
    pub parent: Option<u32>,
    /// What it is.
    pub kind: EntryKind,
    /// The identity at this look.
    pub identity: Identity,
    /// The times that a copy keeps.
    pub times: Times,
}

impl Entry {
    /// The last component of the path.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        let start = self.path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        &self.path[start..]
    }

    /// The permission bits alone.
    #[must_use]
    pub fn permissions(&self) -> u32 {
        self.identity.mode & 0o777
    }

    /// The size in bytes of a file, 0 for everything else.
    #[must_use]
    pub fn file_size(&self) -> u64 {
        if self.kind == EntryKind::File { self.identity.size } else { 0 }
    }
}

/// A tree that is walked: its open root, and the path by which messages name it.
#[derive(Debug, Clone, Copy)]
pub struct Root<'a> {
    /// The open root directory.
    pub directory: &'a Directory,
    /// Its canonical path.
    pub path: &'a Path,
}

impl Root<'_> {
    /// The failure of an operation below this root: what vanished or became something else in the middle of a reading
    /// is a change; everything else is the system's error.
    #[must_use]
    pub fn failure(&self, error: OperationError, relative_path: &[u8]) -> Failure {
        if error.means_changed() {
            Failure::Contained {
                code: ContainedCode::SourceChanged,
                facts: Facts::at(relative_path),
                cause: Some(Box::new(error.beneath(self.path, relative_path))),
            }
        } else {
            error.beneath(self.path, relative_path)
        }
    }
}

/// How many directories of the way down stay open.
const HELD: usize = 8;

struct Level {
    /// Length of the path of this directory; the path itself is shared.
    path_length: usize,
    entry: Option<u32>,
    identity: Identity,
    open: Option<Directory>,
    /// Names still to be looked at, the next one last.
    names: Vec<Name>,
    /// Where the listing was cut because no more entries than these seemed to have room: after this name.
    cut_after: Option<Name>,
    /// Directories that were looked at and whose content comes later: it stands behind `name/`, and names like
    /// `name-x` come before that. The next one is last.
    waiting: Vec<(Name, Identity, u32)>,
}

enum Next {
    Look(Name),
    Enter(Name, Identity, u32),
    Done,
}

impl Level {
    fn next(&mut self) -> Next {
        let content_first = match (self.names.last(), self.waiting.last()) {
            (Some(name), Some((directory, ..))) => content_before(directory, name),
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if content_first && let Some((name, identity, entry)) = self.waiting.pop() {
            return Next::Enter(name, identity, entry);
        }
        self.names.pop().map_or(Next::Done, Next::Look)
    }
}

/// Whether what is below `directory` comes before its sibling `name`.
fn content_before(directory: &[u8], name: &[u8]) -> bool {
    match name.strip_prefix(directory) {
        Some(rest) => rest.first().is_none_or(|byte| *byte >= b'/'),
        None => directory < name,
    }
}

/// Walks a tree and gives each entry to `sink` in the order of the tree hash.
///
/// # Errors
/// The first refusal in that order.
pub fn walk(
    root: Root<'_>,
    rules: &mut dyn WalkRules,
    control: &Control<'_>,
    sink: &mut dyn FnMut(Entry) -> Result<()>,
) -> Result<()> {
    let mut path: Vec<u8> = Vec::new();
    let root_identity = root.directory.metadata().map_err(|error| root.failure(error, b""))?.identity;
    let reopened = root.directory.open_directory(b"").map_err(|error| root.failure(error, b""))?;
    let mut levels = vec![open_level(root, reopened, root_identity, None, &path, rules, control)?];
    let mut count: u32 = 0;
    while let Some(level) = levels.last_mut() {
        if level.names.is_empty()
            && let Some(last) = level.cut_after.take()
        {
            // Some of the names that were kept turned out not to be entries: go on where the listing was cut.
            let again = reopen(root, level.identity, &path)?;
            (level.names, level.cut_after) = list_names(root, &again, Some(&last), &path, rules, control)?;
        }
        match level.next() {
            Next::Done => {
                levels.pop();
                path.truncate(levels.last().map_or(0, |above| above.path_length));
            }
            Next::Look(name) => {
                control.checkpoint()?;
                let length = path.len();
                push(&mut path, &name);
                let parent = level.entry;
                let directory = held(root, level, &path[..length])?;
                let taken = look(root, directory, &name, &path, parent, rules)?;
                path.truncate(length);
                let Some(entry) = taken else { continue };
                rules.count(&entry)?;
                if entry.kind == EntryKind::Directory {
                    level.waiting.push((name, entry.identity, count));
                }
                count = count
                    .checked_add(1)
                    .ok_or_else(|| Failure::checkpoint_at(CheckpointCode::QuotaExceeded, &entry.path))?;
                sink(entry)?;
            }
            Next::Enter(name, identity, entry) => {
                control.checkpoint()?;
                let length = path.len();
                push(&mut path, &name);
                if !rules.enters(&path) {
                    path.truncate(length);
                    continue;
                }
                let parent = held(root, level, &path[..length])?;
                let child = parent.open_directory(&name).map_err(|error| root.failure(error, &path))?;
                let below = open_level(root, child, identity, Some(entry), &path, rules, control)?;
                levels.push(below);
                if let Some(above) = levels.len().checked_sub(HELD + 1) {
                    levels[above].open = None;
                }
            }
        }
    }
    Ok(())
}

/// The open directory of a level; one that was closed to save descriptors is opened again and must be the same.
fn held<'level>(root: Root<'_>, level: &'level mut Level, path: &[u8]) -> Result<&'level Directory> {
    let open = match level.open.take() {
        Some(open) => open,
        None => reopen(root, level.identity, path)?,
    };
    Ok(level.open.insert(open))
}

/// Opens a directory again that must still be the one it was.
fn reopen(root: Root<'_>, expected: Identity, path: &[u8]) -> Result<Directory> {
    let again = root.directory.open_directory(path).map_err(|error| root.failure(error, path))?;
    let now = again.metadata().map_err(|error| root.failure(error, path))?;
    if now.identity != expected {
        return Err(Failure::contained_at(ContainedCode::SourceChanged, path));
    }
    Ok(again)
}

/// Lists a directory that was opened, between two looks at it.
fn open_level(
    root: Root<'_>,
    directory: Directory,
    expected: Identity,
    entry: Option<u32>,
    path: &[u8],
    rules: &mut dyn WalkRules,
    control: &Control<'_>,
) -> Result<Level> {
    let changed = || Failure::contained_at(ContainedCode::SourceChanged, path);
    let before = directory.metadata().map_err(|error| root.failure(error, path))?;
    if before.identity != expected {
        return Err(changed());
    }
    let (names, cut_after) = list_names(root, &directory, None, path, rules, control)?;
    let after = directory.metadata().map_err(|error| root.failure(error, path))?;
    if after.identity != expected {
        return Err(changed());
    }
    let path_length = path.len();
    Ok(Level { path_length, entry, identity: expected, open: Some(directory), names, cut_after, waiting: Vec::new() })
}

/// Lists the names that the rules do not leave out, those behind `after` where it is given, the first one last; and the
/// last name that was kept where the listing had to be cut.
fn list_names(
    root: Root<'_>,
    directory: &Directory,
    after: Option<&[u8]>,
    path: &[u8],
    rules: &mut dyn WalkRules,
    control: &Control<'_>,
) -> Result<(Vec<Name>, Option<Name>)> {
    let most = rules.room_left().saturating_add(1);
    let mut names: Vec<Name> = Vec::new();
    let mut cut = false;
    let mut child_path = path.to_vec();
    directory
        .list(|name, _| {
            child_path.truncate(path.len());
            push(&mut child_path, name);
            if after.is_some_and(|after| name <= after)
                || rules.judge_location(&child_path).map_err(Stop::Failed)? == Judgement::Skip
            {
                return Ok(());
            }
            names.push(name.into());
            if names.len() >= most.saturating_mul(2) {
                // Only the first of them can be entries before the limit is passed; the rest need not be kept.
                control.checkpoint().map_err(Stop::Failed)?;
                names.sort_unstable();
                names.truncate(most);
                cut = true;
            }
            Ok(())
        })
        .map_err(|stop| match stop {
            Stop::Failed(failure) => failure,
            Stop::Listing(error) => root.failure(error, path),
        })?;
    names.sort_unstable_by(|left, right| right.cmp(left));
    let last = if cut { names.first().cloned() } else { None };
    Ok((names, last))
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

/// Looks at one name. Nothing where the rules leave it out.
fn look(
    root: Root<'_>,
    directory: &Directory,
    name: &[u8],
    path: &[u8],
    parent: Option<u32>,
    rules: &mut dyn WalkRules,
) -> Result<Option<Entry>> {
    let failed = |error| root.failure(error, path);
    let metadata = directory.metadata_of(name).map_err(failed)?;
    let kind = match metadata.node_type {
        NodeType::Directory => EntryKind::Directory,
        NodeType::File => {
            if metadata.links > 1 {
                rules.judge_links(path, &metadata)?;
            }
            EntryKind::File
        }
        NodeType::Symlink => {
            let target = directory.target_of(name).map_err(failed)?;
            let judged = rules.judge_symlink(root.directory, path, &target)?;
            let after = directory.metadata_of(name).map_err(failed)?;
            if after.identity != metadata.identity || directory.target_of(name).map_err(failed)? != target {
                return Err(Failure::contained_at(ContainedCode::SourceChanged, path));
            }
            if judged == Judgement::Skip {
                return Ok(None);
            }
            EntryKind::Symlink(target.into())
        }
        NodeType::Special(node_kind) => {
            return Err(Failure::Checkpoint {
                code: CheckpointCode::UnsupportedNode,
                facts: Facts { node_kind: Some(node_kind), ..Facts::at(path) },
            });
        }
    };
    Ok(Some(Entry { path: path.into(), parent, kind, identity: metadata.identity, times: metadata.times }))
}

fn push(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}
