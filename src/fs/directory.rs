//! An open directory, and everything that is done through it.
//!
//! Names handed to the functions that end in `_of` and to the creating ones are single components; paths handed to
//! [`Directory::open_directory`] and [`Directory::open_file`] are relative and clean. Nothing follows a link, nothing
//! blocks on a FIFO. Every function fails with the operation and what the kernel said.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::beneath::{Beneath, PASSAGE, retry};
use super::identity::{Metadata, Times};
use super::operation::OperationError;

type Outcome<T> = Result<T, OperationError>;

/// A name in a directory.
pub type Name = Box<[u8]>;

/// What a listing says about a name without a look at the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeHint {
    /// It is a directory.
    Directory,
    /// It is a regular file.
    File,
    /// It is something else.
    Other,
    /// The file system does not say.
    Unknown,
}

/// A file opened for reading or writing.
#[derive(Debug)]
pub struct File(pub(super) OwnedFd);

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    beneath: Beneath,
}

/// The bytes of a path.
#[must_use]
pub fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Joins raw bytes to a root.
#[must_use]
pub fn join_bytes(root: &Path, relative_path: &[u8]) -> PathBuf {
    if relative_path.is_empty() { root.to_path_buf() } else { root.join(OsStr::from_bytes(relative_path)) }
}

impl Directory {
    /// Opens an absolute, canonical path. A link at its end is refused.
    ///
    /// # Errors
    /// `open`, with what the kernel said.
    pub fn open_canonical(path: &Path, beneath: Beneath) -> Outcome<Self> {
        Self::open_from_top(path, beneath, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC)
    }

    /// The same for a directory that is only passed through; see [`Directory::pass_directory`].
    ///
    /// # Errors
    /// `open`, with what the kernel said.
    pub fn open_canonical_passage(path: &Path, beneath: Beneath) -> Outcome<Self> {
        Self::open_from_top(path, beneath, PASSAGE)
    }

    fn open_from_top(path: &Path, beneath: Beneath, flags: OFlags) -> Outcome<Self> {
        let parts = path.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(|part| !part.is_empty());
        let clean = parts.collect::<Vec<_>>().join(&b'/');
        let top = |flags| retry(|| rustix::fs::open("/", flags, Mode::empty()));
        // Component by component or by openat2, no part of a canonical path can be a link: if one is now, somebody
        // swapped it after the path was resolved.
        let opened = if clean.is_empty() {
            top(flags)
        } else {
            top(PASSAGE).and_then(|top| beneath.open(top.as_fd(), &clean, flags))
        };
        Ok(Self { descriptor: opened.map_err(OperationError::named("open"))?, beneath })
    }

    /// The descriptor, for calls of this room.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// The way in which paths below it are opened.
    #[must_use]
    pub fn beneath(&self) -> Beneath {
        self.beneath
    }

    /// Opens a directory below this one; the empty path opens this one again.
    ///
    /// # Errors
    /// `open`.
    pub fn open_directory(&self, path: &[u8]) -> Outcome<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let descriptor = if path.is_empty() {
            retry(|| rustix::fs::openat(&self.descriptor, ".", flags | OFlags::CLOEXEC, Mode::empty()))
        } else {
            self.beneath.open(self.descriptor.as_fd(), path, flags)
        };
        Ok(Self { descriptor: descriptor.map_err(OperationError::named("open"))?, beneath: self.beneath })
    }

    /// Opens a directory below this one only to pass through it or to ask about its names: it cannot be listed, and
    /// where the system has such descriptors it need not be readable. The empty path opens this one again.
    ///
    /// # Errors
    /// `open`.
    pub fn pass_directory(&self, path: &[u8]) -> Outcome<Self> {
        let path = if path.is_empty() { b"." } else { path };
        let descriptor = self.beneath.open(self.descriptor.as_fd(), path, PASSAGE);
        Ok(Self { descriptor: descriptor.map_err(OperationError::named("open"))?, beneath: self.beneath })
    }

    /// Opens a directory below this one on the same mount, so that it can be emptied.
    ///
    /// # Errors
    /// `open`; `EXDEV` for what is on another mount.
    pub(super) fn open_directory_here(&self, path: &[u8]) -> Outcome<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let descriptor = self.beneath.open_on_mount(self.descriptor.as_fd(), path, flags);
        Ok(Self { descriptor: descriptor.map_err(OperationError::named("open"))?, beneath: self.beneath })
    }

    /// Opens a file below this one for reading.
    ///
    /// # Errors
    /// `open`.
    pub fn open_file(&self, path: &[u8]) -> Outcome<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        self.beneath.open(self.descriptor.as_fd(), path, flags).map(File).map_err(OperationError::named("open"))
    }

    /// A look at this directory through its descriptor.
    ///
    /// # Errors
    /// `fstat`.
    pub fn metadata(&self) -> Outcome<Metadata> {
        metadata(self.descriptor.as_fd())
    }

    /// A look at a name in this directory.
    ///
    /// # Errors
    /// `lstat`.
    pub fn metadata_of(&self, name: &[u8]) -> Outcome<Metadata> {
        rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)
            .map(|stat| Metadata::from(&stat))
            .map_err(OperationError::named("lstat"))
    }

    /// The text of a link in this directory.
    ///
    /// # Errors
    /// `readlink`.
    pub fn target_of(&self, name: &[u8]) -> Outcome<Vec<u8>> {
        retry(|| rustix::fs::readlinkat(&self.descriptor, name, Vec::new()))
            .map(std::ffi::CString::into_bytes)
            .map_err(OperationError::named("readlink"))
    }

    /// Gives every name in this directory but `.` and `..` to `visit`, in the order of the file system.
    /// It may be called once for an open directory: the position in the listing belongs to the descriptor.
    ///
    /// # Errors
    /// `scandir`, or what `visit` gives.
    pub fn list<E: From<OperationError>>(
        &self,
        mut visit: impl FnMut(&[u8], TypeHint) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 16 * 1024];
        let mut listing = rustix::fs::RawDir::new(&self.descriptor, &mut buffer);
        while let Some(entry) = listing.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(OperationError { operation: "scandir", errno }.into()),
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            visit(
                name,
                match entry.file_type() {
                    FileType::Directory => TypeHint::Directory,
                    FileType::RegularFile => TypeHint::File,
                    FileType::Unknown => TypeHint::Unknown,
                    _ => TypeHint::Other,
                },
            )?;
        }
        Ok(())
    }

    /// Makes a directory that its owner, and nobody else, can list, enter and fill.
    ///
    /// # Errors
    /// `mkdir`, `lstat`, `chmod`.
    pub fn create_directory(&self, name: &[u8]) -> Outcome<()> {
        rustix::fs::mkdirat(&self.descriptor, name, Mode::RWXU).map_err(OperationError::named("mkdir"))?;
        // A umask or a default access list may have taken bits from the owner.
        if self.metadata_of(name)?.permissions() == 0o700 { Ok(()) } else { self.open_up(name) }
    }

    /// Makes a file that was not there, for writing, readable by its owner alone until it is given its own bits.
    ///
    /// # Errors
    /// `open`.
    pub fn create_file(&self, name: &[u8]) -> Outcome<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        retry(|| rustix::fs::openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR))
            .map(File)
            .map_err(OperationError::named("open"))
    }

    /// Makes a link with this text, and gives it times of its own where they are to be kept.
    ///
    /// # Errors
    /// `symlink`, `utimes`.
    pub fn create_symlink(&self, name: &[u8], target: &[u8], times: Option<Times>) -> Outcome<()> {
        rustix::fs::symlinkat(target, &self.descriptor, name).map_err(OperationError::named("symlink"))?;
        times.map_or(Ok(()), |times| {
            rustix::fs::utimensat(&self.descriptor, name, &times.into(), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(OperationError::named("utimes"))
        })
    }

    /// Sets the permission bits of this directory.
    ///
    /// # Errors
    /// `fchmod`.
    pub fn set_permissions(&self, permissions: u32) -> Outcome<()> {
        set_permissions(self.descriptor.as_fd(), permissions)
    }

    /// Sets the times of this directory.
    ///
    /// # Errors
    /// `futimes`.
    pub fn set_times(&self, times: Times) -> Outcome<()> {
        set_times(self.descriptor.as_fd(), times)
    }

    /// Gives a directory in this one to its owner alone, so that it can be opened and emptied.
    ///
    /// # Errors
    /// `open`, `chmod`; where the name is a link now, the kernel's refusal to follow it; `EXDEV` for another mount.
    pub(super) fn open_up(&self, name: &[u8]) -> Outcome<()> {
        // There is no fchmodat that does not follow links on every kernel, and a directory without permissions cannot
        // be opened for reading: a path-only descriptor names the very node, and /proc leads back to it.
        #[cfg(target_os = "linux")]
        {
            let held = self.beneath.open_on_mount(self.descriptor.as_fd(), name, PASSAGE);
            let held = held.map_err(OperationError::named("open"))?;
            let through = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
            match rustix::fs::chmod(through, Mode::RWXU) {
                Err(Errno::NOENT) => {}
                other => return other.map_err(OperationError::named("chmod")),
            }
        }
        rustix::fs::chmodat(&self.descriptor, name, Mode::RWXU, AtFlags::empty())
            .map_err(OperationError::named("chmod"))
    }

    /// Removes a name that is no directory.
    ///
    /// # Errors
    /// `unlink`.
    pub(super) fn remove_file(&self, name: &[u8]) -> Outcome<()> {
        rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty()).map_err(OperationError::named("unlink"))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `rmdir`.
    pub(super) fn remove_directory(&self, name: &[u8]) -> Outcome<()> {
        rustix::fs::unlinkat(&self.descriptor, name, AtFlags::REMOVEDIR).map_err(OperationError::named("rmdir"))
    }

    /// Writes everything below this directory to the disk, with one call where the system has one.
    ///
    /// # Errors
    /// `fsync`: also an earlier write of this file system that failed since it was opened.
    pub fn flush(&self) -> Outcome<()> {
        #[cfg(target_os = "linux")]
        return rustix::fs::syncfs(&self.descriptor).map_err(OperationError::named("fsync"));
        #[cfg(not(target_os = "linux"))]
        return rustix::fs::fsync(&self.descriptor).map_err(OperationError::named("fsync"));
    }
}

impl File {
    /// A look at this file through its descriptor.
    ///
    /// # Errors
    /// `fstat`.
    pub fn metadata(&self) -> Outcome<Metadata> {
        metadata(self.0.as_fd())
    }

    /// Sets the permission bits.
    ///
    /// # Errors
    /// `fchmod`.
    pub fn set_permissions(&self, permissions: u32) -> Outcome<()> {
        set_permissions(self.0.as_fd(), permissions)
    }

    /// Sets the times.
    ///
    /// # Errors
    /// `futimes`.
    pub fn set_times(&self, times: Times) -> Outcome<()> {
        set_times(self.0.as_fd(), times)
    }

    /// Reads into the buffer; 0 at the end.
    ///
    /// # Errors
    /// `read`.
    pub fn read(&self, buffer: &mut [u8]) -> Outcome<usize> {
        retry(|| rustix::io::read(&self.0, &mut *buffer)).map_err(OperationError::named("read"))
    }

    /// Writes all of the bytes.
    ///
    /// # Errors
    /// `write`.
    pub fn write_all(&self, mut bytes: &[u8]) -> Outcome<()> {
        while !bytes.is_empty() {
            let written = retry(|| rustix::io::write(&self.0, bytes)).map_err(OperationError::named("write"))?;
            bytes = &bytes[written..];
        }
        Ok(())
    }
}

fn metadata(descriptor: BorrowedFd<'_>) -> Outcome<Metadata> {
    rustix::fs::fstat(descriptor).map(|stat| Metadata::from(&stat)).map_err(OperationError::named("fstat"))
}

fn set_permissions(descriptor: BorrowedFd<'_>, permissions: u32) -> Outcome<()> {
    rustix::fs::fchmod(descriptor, Mode::from_bits_truncate(permissions)).map_err(OperationError::named("fchmod"))
}

fn set_times(descriptor: BorrowedFd<'_>, times: Times) -> Outcome<()> {
    rustix::fs::futimens(descriptor, &times.into()).map_err(OperationError::named("futimes"))
}
