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
use crate::fs::path::push_name;
use crate::fs::{Directory, Identity, ListingEnd, Metadata, Name, NodeType, OperationError, Times, TypeHint};

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

    /// How many more entries can be taken before a limit is passed. Of the names of one directory no more than a few
    /// thousand or about twice this room are kept in memory at a time, whichever is more.
    fn room_left(&self) -> usize;

    /// A listing of this directory begins; a large one may be listed more than once.
    fn begin_listing(&mut self, _directory: &[u8]) {}

    /// Is shown every name of the listing, in the order of the file system, also those that will be left out.
    fn see_name(&mut self, _name: &[u8], _hint: TypeHint) {}

    /// The look to give to a name that the listing calls a regular file, so that it need not be looked at here. Whoever
    /// gives one opens the file later and compares what it is then.
    fn known_file(&self, _relative_path: &[u8]) -> Option<(Identity, Times)> {
        None
    }
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

    /// The text of a symlink.
    #[must_use]
    pub fn target(&self) -> Option<&[u8]> {
        if let EntryKind::Symlink(target) = &self.kind { Some(target) } else { None }
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
    /// Names still to be looked at, the next one last, with what the listing says of them.
    names: Vec<(Name, TypeHint)>,
    /// Where the listing was cut because no more entries than these seemed to have room: every name up to this one was
    /// kept, and none behind it.
    cut_after: Option<Name>,
    /// Directories that were looked at and whose content comes later: it stands behind `name/`, and names like
    /// `name-x` come before that. The next one is last.
    waiting: Vec<(Name, Identity, u32)>,
}

enum Next {
    Look(Name, TypeHint),
    Enter(Name, Identity, u32),
    Done,
}

impl Level {
    fn next(&mut self) -> Next {
        let content_first = match (self.names.last(), self.waiting.last()) {
            (Some((name, _)), Some((directory, ..))) => content_before(directory, name),
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if content_first && let Some((name, identity, entry)) = self.waiting.pop() {
            return Next::Enter(name, identity, entry);
        }
        self.names.pop().map_or(Next::Done, |(name, hint)| Next::Look(name, hint))
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
            let again = root.directory.open_directory(&path).map_err(|error| root.failure(error, &path))?;
            let expected = level.identity;
            (level.names, level.cut_after) = list_names(root, &again, expected, Some(&last), &path, rules, control)?;
        }
        match level.next() {
            Next::Done => {
                levels.pop();
                path.truncate(levels.last().map_or(0, |above| above.path_length));
            }
            Next::Look(name, hint) => {
                control.checkpoint()?;
                let length = path.len();
                push_name(&mut path, &name);
                let parent = level.entry;
                let known = match (rules.judge_location(&path)?, hint) {
                    (Judgement::Skip, _) => {
                        path.truncate(length);
                        continue;
                    }
                    (Judgement::Take, TypeHint::File) => rules.known_file(&path),
                    (Judgement::Take, _) => None,
                };
                let taken = if let Some((identity, times)) = known {
                    Some(Entry { path: path.as_slice().into(), parent, kind: EntryKind::File, identity, times })
                } else {
                    let directory = held(root, level, &path[..length])?;
                    look(root, directory, &name, &path, parent, rules)?
                };
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
                push_name(&mut path, &name);
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

/// A directory that was opened to be walked, with its names.
fn open_level(
    root: Root<'_>,
    directory: Directory,
    expected: Identity,
    entry: Option<u32>,
    path: &[u8],
    rules: &mut dyn WalkRules,
    control: &Control<'_>,
) -> Result<Level> {
    let (names, cut_after) = list_names(root, &directory, expected, None, path, rules, control)?;
    let path_length = path.len();
    Ok(Level { path_length, entry, identity: expected, open: Some(directory), names, cut_after, waiting: Vec::new() })
}

/// Names with what the listing says of them, the first one last; and where the listing was cut, if it was.
type Names = (Vec<(Name, TypeHint)>, Option<Name>);

/// However little room is left, so many names are kept: a directory of which most are left out would otherwise be listed
/// again for every few of them.
const FEWEST_KEPT: usize = 4096;

/// How many names are read from one look at the deadline and the caller's abort to the next.
const NAMES_BETWEEN_CHECKS: u32 = 1024;

/// Lists the names of a directory between two looks at it, those behind `after` where that is given.
fn list_names(
    root: Root<'_>,
    directory: &Directory,
    expected: Identity,
    after: Option<&[u8]>,
    path: &[u8],
    rules: &mut dyn WalkRules,
    control: &Control<'_>,
) -> Result<Names> {
    let confirm = || {
        let now = directory.metadata().map_err(|error| root.failure(error, path))?;
        if now.identity == expected { Ok(()) } else { Err(Failure::contained_at(ContainedCode::SourceChanged, path)) }
    };
    confirm()?;
    let most = rules.room_left().saturating_add(1).max(FEWEST_KEPT);
    let mut names: Vec<(Name, TypeHint)> = Vec::new();
    // From the first cut on: the last name that was kept. One behind it is not taken any more, even if there is room
    // again, since others that came before it were dropped.
    let mut bound: Option<Name> = None;
    let mut read: u32 = 0;
    rules.begin_listing(path);
    directory
        .list(|name, hint| {
            read = read.wrapping_add(1);
            if read.is_multiple_of(NAMES_BETWEEN_CHECKS) {
                control.checkpoint().map_err(ListingEnd::Stopped)?;
            }
            rules.see_name(name, hint);
            if after.is_some_and(|after| name <= after) || bound.as_deref().is_some_and(|bound| name > bound) {
                return Ok(());
            }
            names.push((name.into(), hint));
            if names.len() >= most.saturating_mul(2) {
                // Only the first of them can be entries before the limit is passed; the rest need not be kept.
                names.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
                names.truncate(most);
                bound = names.last().map(|(name, _)| name.clone());
            }
            Ok(())
        })
        .map_err(|end| match end {
            ListingEnd::Stopped(failure) => failure,
            ListingEnd::Failed(error) => root.failure(error, path),
        })?;
    confirm()?;
    names.sort_unstable_by(|(left, _), (right, _)| right.cmp(left));
    Ok((names, bound))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::fs::Beneath;
    use crate::tree::control::{Clock, SystemClock};

    /// Leaves out the names that begin with `skipped`, and has room for so many others.
    struct Rules {
        skipped: &'static str,
        room: usize,
    }

    impl WalkRules for Rules {
        fn judge_location(&mut self, relative_path: &[u8]) -> Result<Judgement> {
            let skip = !self.skipped.is_empty() && relative_path.starts_with(self.skipped.as_bytes());
            Ok(if skip { Judgement::Skip } else { Judgement::Take })
        }

        fn judge_symlink(&mut self, _: &Directory, _: &[u8], _: &[u8]) -> Result<Judgement> {
            Ok(Judgement::Skip)
        }

        fn judge_links(&mut self, _: &[u8], _: &Metadata) -> Result<()> {
            Ok(())
        }

        fn enters(&mut self, _: &[u8]) -> bool {
            true
        }

        fn count(&mut self, entry: &Entry) -> Result<()> {
            self.room =
                self.room.checked_sub(1).ok_or(Failure::checkpoint_at(CheckpointCode::QuotaExceeded, &entry.path))?;
            Ok(())
        }

        fn room_left(&self) -> usize {
            self.room
        }
    }

    fn walked(root: &Path, mut rules: Rules, clock: &dyn Clock, deadline: f64) -> (Vec<Vec<u8>>, Result<()>) {
        let path = root.canonicalize().unwrap();
        let directory = Directory::open_canonical(&path, Beneath::detected()).unwrap();
        let cancelled = AtomicBool::new(false);
        let mut control = Control::new(&cancelled, clock, None);
        control.set_deadline(deadline, "test");
        let mut paths = Vec::new();
        let end = walk(Root { directory: &directory, path: &path }, &mut rules, &control, &mut |entry| {
            paths.push(entry.path.into_vec());
            Ok(())
        });
        (paths, end)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(6))]

        // Links are cheap to make and are left out after they were listed, so the listing is cut and gone on with.
        #[test]
        fn a_limit_that_is_enough_loses_no_entry(
            seed in any::<u64>(), links in 9000_u64..20_000, files in 0_u64..40, spare in 0_usize..3
        ) {
            let root = tempfile::tempdir().unwrap();
            let name = |number: u64| format!("{:016x}", (number ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for number in 0..links {
                std::os::unix::fs::symlink("x", root.path().join(name(number))).unwrap();
            }
            let names: BTreeSet<String> = (links..links + files).map(name).collect();
            for name in &names {
                std::fs::write(root.path().join(name), "").unwrap();
            }
            let rules = Rules { skipped: "", room: names.len() + spare };
            let (paths, end) = walked(root.path(), rules, &SystemClock::default(), f64::MAX);
            prop_assert_eq!(end, Ok(()));
            prop_assert_eq!(paths, names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>());
            if let Some(last) = names.last() {
                let rules = Rules { skipped: "", room: names.len() - 1 };
                let (_, end) = walked(root.path(), rules, &SystemClock::default(), f64::MAX);
                prop_assert_eq!(end, Err(Failure::checkpoint_at(CheckpointCode::QuotaExceeded, last.as_bytes())));
            }
        }
    }

    /// Counts how often it is asked.
    struct CountingClock(AtomicU32);

    impl Clock for CountingClock {
        fn now_milliseconds(&self) -> Result<f64> {
            Ok(f64::from(self.0.fetch_add(1, Ordering::Relaxed)))
        }
    }

    #[test]
    fn the_deadline_is_looked_at_while_a_directory_is_listed() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..3000 {
            std::fs::write(root.path().join(format!("{number}")), "").unwrap();
        }
        let rules = Rules { skipped: "", room: usize::MAX };
        let clock = CountingClock(AtomicU32::new(0));
        let (paths, end) = walked(root.path(), rules, &clock, 0.5);
        assert!(matches!(end, Err(Failure::Diagnostic { code: CheckpointCode::PrepareTimeout, .. })), "{end:?}");
        assert_eq!(paths, Vec::<Vec<u8>>::new());
        assert_eq!(clock.0.into_inner(), 2, "once after 1024 names, once after 2048");
    }
}
