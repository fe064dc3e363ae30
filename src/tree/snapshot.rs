//! One node as callers see it, and reading a single one by its path.
//!
//! Source: `contract/mirror.md`, "Node and tree hashes"; `contract/surface.md`, `SnapshotNode`. Reading fails with the
//! system's error, with `file_checkpoint_unsupported_node` for what is neither file, directory nor link, and with
//! `contained_execution_source_changed` for a node that changes while it is read.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::control::Control;
use super::hash::{ContentHasher, HexDigest, hash_directory_node, hash_file_node, hash_symlink_target};
use super::quota::Allowance;
use super::read;
use super::walk::{Entry, EntryKind, Root};
use crate::failure::{CheckpointCode, Facts, Failure, Result};
use crate::fs::directory::path_bytes;
use crate::fs::stream::{CHUNK, End, read_to_end};
use crate::fs::{Beneath, Directory, NodeType, absolute};

/// A node of a tree at one moment. Two are equal when kind, mode, size, target and hash are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum SnapshotNode {
    /// Nothing is there.
    Absent,
    /// A regular file.
    File {
        /// The whole `st_mode`, type bits included.
        mode: u32,
        /// Bytes.
        size: u64,
        /// The node hash.
        hash: String,
    },
    /// A symlink. Links carry no mode.
    Symlink {
        /// The text as stored; lossy where it is not UTF-8, which the hash is not.
        target: String,
        /// The node hash.
        hash: String,
    },
    /// A directory.
    Directory {
        /// The whole `st_mode`, type bits included.
        mode: u32,
        /// The node hash.
        hash: String,
    },
}

impl SnapshotNode {
    /// The node of a walked entry; a file's content was hashed by then.
    #[must_use]
    pub fn of(entry: &Entry, content: Option<&HexDigest>) -> Self {
        let mode = entry.identity.mode;
        match &entry.kind {
            EntryKind::Directory => Self::Directory { mode, hash: hash_directory_node(mode).as_str().to_owned() },
            EntryKind::File => Self::File {
                mode,
                size: entry.identity.size,
                hash: hash_file_node(mode, content.map_or("", HexDigest::as_str)).as_str().to_owned(),
            },
            EntryKind::Symlink(target) => Self::Symlink {
                target: String::from_utf8_lossy(target).into_owned(),
                hash: hash_symlink_target(target).as_str().to_owned(),
            },
        }
    }

    /// The node hash; empty where nothing is there.
    #[must_use]
    pub fn hash(&self) -> &str {
        match self {
            Self::Absent => "",
            Self::File { hash, .. } | Self::Symlink { hash, .. } | Self::Directory { hash, .. } => hash,
        }
    }
}

/// Reads the node at an absolute path; absent for what is missing or below something that is no directory.
///
/// # Errors
/// See the module.
pub fn read_snapshot_node(path: &Path, control: &Control<'_>) -> Result<SnapshotNode> {
    let last = path_bytes(path).rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let (Some(parent), Some(name), false) = (path.parent(), path.file_name(), matches!(last, b"" | b"." | b".."))
    else {
        return read_directory_node(path);
    };
    // Links above the node are the caller's own; only the last component is the node.
    let parent = match absolute::real_path(parent, "lstat") {
        Ok(parent) => parent,
        Err(failure) if failure.means_absent() => return Ok(SnapshotNode::Absent),
        Err(failure) => return Err(failure),
    };
    let directory = match Directory::open_canonical_passage(&parent, Beneath::detected()) {
        Ok(directory) => directory,
        Err(error) if error.means_changed() => return Ok(SnapshotNode::Absent),
        Err(error) => return Err(error.at(path)),
    };
    read_node_in(Root { directory: &directory, path: &parent }, &directory, path_bytes(Path::new(name)), control)
}

/// Reads the node at an absolute path that ends with a slash, `.` or `..`, or is the root of the file system: what it
/// leads to, which must be a directory; absent where it leads to none.
fn read_directory_node(path: &Path) -> Result<SnapshotNode> {
    let real = match absolute::real_path(path, "lstat") {
        Ok(real) => real,
        Err(failure) if failure.means_absent() => return Ok(SnapshotNode::Absent),
        Err(failure) => return Err(failure),
    };
    let directory = match Directory::open_canonical_passage(&real, Beneath::detected()) {
        Ok(directory) => directory,
        Err(error) if error.means_changed() => return Ok(SnapshotNode::Absent),
        Err(error) => return Err(error.at(path)),
    };
    let mode = directory.metadata().map_err(|error| error.at(path))?.identity.mode;
    Ok(SnapshotNode::Directory { mode, hash: hash_directory_node(mode).as_str().to_owned() })
}

/// Reads the node at a clean path below a root without following any link; absent for what is missing or below
/// something that is no directory, a link included.
///
/// # Errors
/// See the module.
pub fn read_node_beneath(root: Root<'_>, relative_path: &[u8], control: &Control<'_>) -> Result<SnapshotNode> {
    let (parent, _) = split_name(relative_path);
    match root.directory.pass_directory(parent) {
        Ok(directory) => read_node_in(root, &directory, relative_path, control),
        Err(error) if error.means_changed() => Ok(SnapshotNode::Absent),
        Err(error) => Err(error.beneath(root.path, parent)),
    }
}

fn split_name(relative_path: &[u8]) -> (&[u8], &[u8]) {
    match relative_path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&relative_path[..slash], &relative_path[slash + 1..]),
        None => (&[], relative_path),
    }
}

fn read_node_in(
    root: Root<'_>,
    directory: &Directory,
    relative_path: &[u8],
    control: &Control<'_>,
) -> Result<SnapshotNode> {
    let name = match split_name(relative_path) {
        // The root itself, asked for as `.`.
        (_, b"") => b".",
        (_, name) => name,
    };
    let metadata = match directory.metadata_of(name) {
        Ok(metadata) => metadata,
        Err(error) if error.means_changed() => return Ok(SnapshotNode::Absent),
        Err(error) => return Err(error.beneath(root.path, relative_path)),
    };
    let kind = match metadata.node_type {
        NodeType::Directory => EntryKind::Directory,
        NodeType::File => EntryKind::File,
        NodeType::Symlink => {
            EntryKind::Symlink(directory.target_of(name).map_err(|error| root.failure(error, relative_path))?.into())
        }
        NodeType::Special(node_kind) => {
            return Err(Failure::Checkpoint {
                code: CheckpointCode::UnsupportedNode,
                facts: Facts { node_kind: Some(node_kind), ..Facts::at(relative_path) },
            });
        }
    };
    let entry =
        Entry { path: relative_path.into(), parent: None, kind, identity: metadata.identity, times: metadata.times };
    if entry.kind != EntryKind::File {
        return Ok(SnapshotNode::of(&entry, None));
    }
    let mut buffer = vec![0; CHUNK];
    let content = hash_content(root, directory, &entry, read::Links::Any, &mut buffer, control, None)?;
    Ok(SnapshotNode::of(&entry, Some(&content)))
}

/// Hashes the content of a walked file. One that grows is refused at once, by the limit if it passes `allowance`; where
/// none is given it is read to its end first.
///
/// # Errors
/// See the module.
pub fn hash_content(
    root: Root<'_>,
    directory: &Directory,
    entry: &Entry,
    links: read::Links,
    buffer: &mut [u8],
    control: &Control<'_>,
    allowance: Option<&Allowance>,
) -> Result<HexDigest> {
    let opened = read::open(root, directory, entry, links)?;
    let (digest, end) = hash_opened(root, &opened, entry, buffer, control, allowance)?;
    read::finish(&opened, entry, links, &end)?;
    Ok(digest)
}

fn hash_opened(
    root: Root<'_>,
    opened: &read::Opened,
    entry: &Entry,
    buffer: &mut [u8],
    control: &Control<'_>,
    allowance: Option<&Allowance>,
) -> Result<(HexDigest, End)> {
    let mut hasher = ContentHasher::default();
    let mut reached = 0;
    let end = read_to_end(&opened.file, buffer, |chunk| {
        control.checkpoint()?;
        reached += chunk.len() as u64;
        if let Some(allowance) = allowance {
            read::refuse_growth(root, opened, entry, reached, &[allowance])?;
        }
        hasher.update(chunk);
        control.advance(0, chunk.len() as u64);
        Ok(())
    })
    .map_err(|failure| read::stream_failure(root, root, entry, failure))?;
    Ok((hasher.finish(), end))
}

/// Hashes the content of the file at an absolute path, following links as opening does, but never waiting for a FIFO.
/// Its size need not be what was read: that of a file in `/proc` is 0.
///
/// # Errors
/// The system's error; `file_checkpoint_unsupported_node` for what is no regular file.
pub fn hash_file_content(path: &Path, control: &Control<'_>) -> Result<String> {
    let canonical = absolute::real_path(path, "open")?;
    match read_snapshot_content(&canonical, control)? {
        Some(content) => Ok(content.as_str().to_owned()),
        None => Err(Failure::Checkpoint { code: CheckpointCode::UnsupportedNode, facts: Facts::default() }),
    }
}

fn read_snapshot_content(path: &Path, control: &Control<'_>) -> Result<Option<HexDigest>> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let directory = Directory::open_canonical_passage(parent, Beneath::detected()).map_err(|error| error.at(path))?;
    let name = path_bytes(Path::new(name));
    let metadata = directory.metadata_of(name).map_err(|error| error.at(path))?;
    if metadata.node_type != NodeType::File {
        return Ok(None);
    }
    let entry = Entry {
        path: name.into(),
        parent: None,
        kind: EntryKind::File,
        identity: metadata.identity,
        times: metadata.times,
    };
    let root = Root { directory: &directory, path: parent };
    let opened = read::open(root, &directory, &entry, read::Links::Any)?;
    let (digest, end) = hash_opened(root, &opened, &entry, &mut vec![0; CHUNK], control, None)?;
    read::unchanged(&opened, &entry, read::Links::Any, &end)?;
    Ok(Some(digest))
}
