//! The error of one system call: which operation, and what the kernel said. It gets its path from the caller.

use std::path::Path;

use rustix::io::Errno;

use crate::failure::{Failure, SystemFailure};

/// A system call that failed, before it is known which path it was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationError {
    /// The operation by the name that Node uses for it.
    pub operation: &'static str,
    /// What the kernel said.
    pub errno: Errno,
}

/// Why a listing ended before its last name.
#[derive(Debug)]
pub enum ListingEnd {
    /// Whoever was given the names stopped it.
    Stopped(Failure),
    /// The system could not list any further.
    Failed(OperationError),
}

impl From<OperationError> for ListingEnd {
    fn from(error: OperationError) -> Self {
        Self::Failed(error)
    }
}

impl OperationError {
    /// For use in `map_err`: names the operation of an `Errno`.
    pub fn named(operation: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self { operation, errno }
    }

    /// The failure of this operation on a path below a root.
    #[must_use]
    pub fn beneath(self, root: &Path, relative_path: &[u8]) -> Failure {
        Failure::System(SystemFailure {
            errno: self.errno.raw_os_error(),
            syscall: self.operation,
            path: Some(super::directory::join_bytes(root, relative_path)),
            relative_path: Some(relative_path.to_vec()),
        })
    }

    /// The failure of this operation on an absolute path.
    #[must_use]
    pub fn at(self, path: &Path) -> Failure {
        Failure::system(self.errno.raw_os_error(), self.operation, path)
    }

    /// Whether nothing was there.
    #[must_use]
    pub fn means_missing(self) -> bool {
        self.errno == Errno::NOENT
    }

    /// Whether something on the way was no directory.
    #[must_use]
    pub fn means_below_file(self) -> bool {
        self.errno == Errno::NOTDIR
    }

    /// Whether the node was gone, or no longer what it was: a parent that is no directory any more, a link in its place.
    #[must_use]
    pub fn means_changed(self) -> bool {
        matches!(self.errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::STALE)
            // What is said of a node that is no link any more.
            || (self.operation == "readlink" && self.errno == Errno::INVAL)
    }
}
