//! What makes two looks at a node equal: device, inode, mode, size, and both times to the nanosecond.
//!
//! Source of the rule: `contract/mirror.md`, "When a mirror is accepted". The times of the last access take no part:
//! reading changes them.

use rustix::fs::{FileType, Stat, Timespec};

use crate::failure::NodeKind;

/// A point in time as the file system stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    seconds: i64,
    nanoseconds: i64,
}

/// The identity of a node at one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The device it is on.
    pub device: u64,
    /// The inode on that device.
    pub inode: u64,
    /// The whole `st_mode`, type bits included.
    pub mode: u32,
    /// The size in bytes.
    pub size: u64,
    modified: Moment,
    changed: Moment,
}

impl Identity {
    /// Whether it is the same node, whatever happened to it since.
    #[must_use]
    pub fn same_node(&self, other: &Self) -> bool {
        self.device == other.device && self.inode == other.inode
    }
}

/// The times that a copy keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    accessed: Moment,
    modified: Moment,
}

impl From<Times> for rustix::fs::Timestamps {
    fn from(times: Times) -> Self {
        let timespec = |moment: Moment| Timespec { tv_sec: moment.seconds, tv_nsec: moment.nanoseconds };
        Self { last_access: timespec(times.accessed), last_modification: timespec(times.modified) }
    }
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeType {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// Anything that cannot be mirrored.
    Special(NodeKind),
}

/// One look at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// What a second look is compared with.
    pub identity: Identity,
    /// What it is.
    pub node_type: NodeType,
    /// How many names it has.
    pub links: u64,
    /// The user it belongs to.
    pub owner: u32,
    /// The times that a copy keeps.
    pub times: Times,
}

impl Metadata {
    /// The permission bits alone, nothing above `0o777`.
    #[must_use]
    pub fn permissions(&self) -> u32 {
        self.identity.mode & 0o777
    }

    /// When the content was changed last, in milliseconds since the epoch.
    #[must_use]
    pub fn modified_milliseconds(&self) -> i64 {
        let modified = self.identity.modified;
        modified.seconds.saturating_mul(1000).saturating_add(modified.nanoseconds / 1_000_000)
    }
}

impl From<&Stat> for Metadata {
    // The fields of `stat` have other widths on other systems; each fits the type it is given here.
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        reason = "the widths and signs of these fields differ between systems"
    )]
    fn from(stat: &Stat) -> Self {
        let mode = stat.st_mode as u32;
        Self {
            identity: Identity {
                device: stat.st_dev as u64,
                inode: stat.st_ino as u64,
                mode,
                size: stat.st_size as u64,
                modified: Moment { seconds: stat.st_mtime as i64, nanoseconds: stat.st_mtime_nsec as i64 },
                changed: Moment { seconds: stat.st_ctime as i64, nanoseconds: stat.st_ctime_nsec as i64 },
            },
            node_type: match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => NodeType::Directory,
                FileType::RegularFile => NodeType::File,
                FileType::Symlink => NodeType::Symlink,
                FileType::Fifo => NodeType::Special(NodeKind::Fifo),
                FileType::Socket => NodeType::Special(NodeKind::Socket),
                FileType::BlockDevice => NodeType::Special(NodeKind::BlockDevice),
                FileType::CharacterDevice => NodeType::Special(NodeKind::CharacterDevice),
                FileType::Unknown => NodeType::Special(NodeKind::Unknown),
            },
            links: stat.st_nlink as u64,
            owner: stat.st_uid,
            times: Times {
                accessed: Moment { seconds: stat.st_atime as i64, nanoseconds: stat.st_atime_nsec as i64 },
                modified: Moment { seconds: stat.st_mtime as i64, nanoseconds: stat.st_mtime_nsec as i64 },
            },
        }
    }
}
