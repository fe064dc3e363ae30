//! Opening a file of a walked tree and reading it so that a change in the middle is seen.
//!
//! Fails with `contained_execution_source_changed` where a look differs from an earlier one, with
//! `file_checkpoint_hardlink_unsupported` where the file got a second name, with the system's error otherwise.
//! Source of the rules: `contract/mirror.md`, "When a mirror is accepted".

use super::quota::Allowance;
use super::walk::{Entry, Root};
use crate::failure::{CheckpointCode, ContainedCode, Facts, Failure, Result};
use crate::fs::stream::{End, StreamFailure};
use crate::fs::{Directory, File, Identity, Metadata, NodeType, OperationError};

/// Whether files with more than one name are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// A second name is refused.
    Single,
    /// Any number of names.
    Any,
}

/// A file that is open and was the expected one when it was opened.
#[derive(Debug)]
pub struct Opened {
    /// The open file.
    pub file: File,
    /// The look at it through its descriptor.
    pub metadata: Metadata,
}

/// The refusal of a file with several names.
#[must_use]
pub fn hard_linked(relative_path: &[u8], links: u64) -> Failure {
    Failure::Checkpoint {
        code: CheckpointCode::HardlinkUnsupported,
        facts: Facts { links: Some(links), ..Facts::at(relative_path) },
    }
}

/// Opens the file of an entry through the directory that holds it. It must be exactly what it was when it was walked.
///
/// # Errors
/// See the module.
pub fn open(root: Root<'_>, directory: &Directory, entry: &Entry, links: Links) -> Result<Opened> {
    let file = directory.open_file(entry.name()).map_err(|error| root.failure(error, &entry.path))?;
    let metadata = file.metadata().map_err(|error| root.failure(error, &entry.path))?;
    check(&metadata, entry, entry.identity, links)?;
    Ok(Opened { file, metadata })
}

/// Opens the file of an entry that was only listed in this reading and must be, as far as the tree hash goes, what it was
/// in an earlier one. One that is larger now is a limit's refusal if it passes one of `allowances`.
///
/// # Errors
/// See the module.
pub fn open_listed(
    root: Root<'_>,
    directory: &Directory,
    entry: &Entry,
    links: Links,
    allowances: &[&Allowance],
) -> Result<Opened> {
    let file = directory.open_file(entry.name()).map_err(|error| root.failure(error, &entry.path))?;
    let metadata = file.metadata().map_err(|error| root.failure(error, &entry.path))?;
    check(&metadata, entry, metadata.identity, links)?;
    if metadata.identity.size > entry.file_size() {
        return Err(grown(entry, metadata.identity.size, allowances));
    }
    if metadata.identity.size != entry.file_size() || metadata.permissions() != entry.permissions() {
        return Err(changed(entry));
    }
    Ok(Opened { file, metadata })
}

/// Refuses a file of which more was read than it held when it was walked, before that is used for anything.
///
/// # Errors
/// See the module.
pub fn refuse_growth(
    root: Root<'_>,
    opened: &Opened,
    entry: &Entry,
    reached: u64,
    allowances: &[&Allowance],
) -> Result<()> {
    if reached <= entry.file_size() {
        return Ok(());
    }
    // Not all of it needs to be read to know that it passes a limit.
    let now = opened.file.metadata().map_err(|error| root.failure(error, &entry.path))?;
    Err(grown(entry, now.identity.size.max(reached), allowances))
}

/// The refusal of a file that grew to `size`: a limit's if it passes one.
fn grown(entry: &Entry, size: u64, allowances: &[&Allowance]) -> Failure {
    let passed = allowances.iter().find_map(|allowance| allowance.check(entry.file_size(), size, &entry.path).err());
    passed.unwrap_or_else(|| changed(entry))
}

/// Confirms, by the look after the last byte, that the file is still what it was.
///
/// # Errors
/// See the module.
pub fn unchanged(opened: &Opened, entry: &Entry, links: Links, end: &End) -> Result<()> {
    check(&end.after, entry, opened.metadata.identity, links)
}

/// Confirms that the file is still what it was and that all of it was read.
///
/// # Errors
/// See the module.
pub fn finish(opened: &Opened, entry: &Entry, links: Links, end: &End) -> Result<()> {
    unchanged(opened, entry, links, end)?;
    if end.bytes == end.after.identity.size { Ok(()) } else { Err(changed(entry)) }
}

fn check(metadata: &Metadata, entry: &Entry, expected: Identity, links: Links) -> Result<()> {
    if metadata.node_type != NodeType::File {
        return Err(changed(entry));
    }
    if links == Links::Single && metadata.links > 1 {
        return Err(hard_linked(&entry.path, metadata.links));
    }
    if metadata.identity == expected { Ok(()) } else { Err(changed(entry)) }
}

/// The source changed at this entry.
#[must_use]
pub fn changed(entry: &Entry) -> Failure {
    Failure::contained_at(ContainedCode::SourceChanged, &entry.path)
}

/// Opens the directory of a batch, which must still be the node that was walked.
///
/// # Errors
/// See the module.
pub fn open_parent(root: Root<'_>, entries: &[Entry], parent: Option<u32>) -> Result<Directory> {
    let Some(parent) = parent.map(|parent| &entries[parent as usize]) else {
        return root.directory.open_directory(b"").map_err(|error| root.failure(error, b""));
    };
    let failed = |error: OperationError| root.failure(error, &parent.path);
    let directory = root.directory.open_directory(&parent.path).map_err(failed)?;
    let metadata = directory.metadata().map_err(failed)?;
    if metadata.identity.same_node(&parent.identity) { Ok(directory) } else { Err(changed(parent)) }
}

/// The failure of a stream at an entry.
#[must_use]
pub fn stream_failure(source: Root<'_>, copy: Root<'_>, entry: &Entry, failure: StreamFailure<Failure>) -> Failure {
    match failure {
        StreamFailure::Source(error) => source.failure(error, &entry.path),
        StreamFailure::Destination(error) => copy.failure(error, &entry.path),
        StreamFailure::Stopped(failure) => failure,
        StreamFailure::Differ => changed(entry),
    }
}
