//! Looks at absolute paths that a caller gave, with Node's form of failure.
//!
//! What is found here is only where the work begins: everything below is then opened through a [`super::Directory`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD};

use super::identity::Metadata;
use super::operation::OperationError;
use crate::failure::{Failure, Result};

/// The real path, every link resolved.
///
/// # Errors
/// The system's error under the name of `operation`, since a caller knows the step by that and not by `realpath`.
pub fn real_path(path: &Path, operation: &'static str) -> Result<PathBuf> {
    std::fs::canonicalize(path)
        .map_err(|error| Failure::system(error.raw_os_error().unwrap_or_default(), operation, path))
}

/// A look at what is at a path, a link itself if it is one.
///
/// # Errors
/// The system's error under the name of `operation`.
pub fn metadata(path: &Path, operation: &'static str) -> Result<Metadata> {
    rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
        .map(|stat| Metadata::from(&stat))
        .map_err(|errno| OperationError { operation, errno }.at(path))
}

/// The first bytes of the regular file at a path, at most `most`; never waits for a FIFO.
///
/// # Errors
/// The system's error.
pub fn read_start(path: &Path, most: usize) -> Result<Vec<u8>> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let failed = |error: std::io::Error| Failure::system(error.raw_os_error().unwrap_or_default(), "open", path);
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    let mut start = Vec::new();
    file.take(most as u64).read_to_end(&mut start).map_err(failed)?;
    Ok(start)
}

/// The first names in the directory at a path, at most `most`, in no order.
///
/// # Errors
/// The system's error.
pub fn first_names(path: &Path, most: usize) -> Result<Vec<OsString>> {
    let failed = |error: std::io::Error| Failure::system(error.raw_os_error().unwrap_or_default(), "scandir", path);
    let entries = std::fs::read_dir(path).map_err(failed)?;
    entries.take(most).map(|entry| entry.map(|entry| entry.file_name()).map_err(failed)).collect()
}
