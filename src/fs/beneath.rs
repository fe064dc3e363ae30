//! Opening a path below a directory, so that nothing on the way can lead outside of it.
//!
//! Two ways, tried in this order and tested against each other:
//! 1. [`Beneath::Kernel`]: `openat2` with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`, one call for a path.
//! 2. [`Beneath::PerComponent`]: one `openat` with `O_NOFOLLOW` for each component, where the kernel has no `openat2`
//!    or a seccomp filter refuses it (containers do).
//!
//! A path may be longer than `PATH_MAX`: it is opened in pieces. Both give `ENOENT` for what is missing and `ELOOP` or
//! `ENOTDIR` for a link on the way. Source: `contract/mirror.md`, "When a mirror is accepted", last point.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

/// The way in which paths below a directory are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beneath {
    /// `openat2`, resolved by the kernel.
    Kernel,
    /// `openat`, a component at a time.
    PerComponent,
}

/// Which mounts a path may lead through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mounts {
    Any,
    This,
}

/// The longest piece of a path handed to the kernel at once; `PATH_MAX` is 4096 with its final NUL.
const LONGEST_PIECE: usize = 4000;

impl Beneath {
    /// The best way this kernel and its filters allow, found out once for the process.
    #[must_use]
    pub fn detected() -> Self {
        static DETECTED: OnceLock<Beneath> = OnceLock::new();
        *DETECTED.get_or_init(|| if kernel_resolves() { Self::Kernel } else { Self::PerComponent })
    }

    /// Opens `path`, which is relative, clean (no empty, `.` or `..` component) and not empty.
    ///
    /// # Errors
    /// What the kernel says; a link anywhere on the way is `ELOOP` or `ENOTDIR`.
    pub fn open(self, directory: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        self.open_all(directory, path, flags, Mounts::Any)
    }

    /// The same for what is on the mount that `directory` is on, by `path` as by its end.
    ///
    /// Where neither `openat2` nor `statx` tells one mount from another, devices are compared: a directory of the same
    /// device that is bound to a second place is not told from one that was made there.
    ///
    /// # Errors
    /// As [`Beneath::open`]; another mount is `EXDEV`.
    pub fn open_on_mount(self, directory: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let opened = self.open_all(directory, path, flags, Mounts::This)?;
        if self == Self::Kernel || mount_of(directory)? == mount_of(opened.as_fd())? {
            Ok(opened)
        } else {
            Err(Errno::XDEV)
        }
    }

    fn open_all(self, directory: BorrowedFd<'_>, path: &[u8], flags: OFlags, on: Mounts) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut held: Option<OwnedFd> = None;
        let mut rest = path;
        loop {
            let from = held.as_ref().map_or(directory, AsFd::as_fd);
            let (piece, following) = self.split(rest);
            if following.is_empty() {
                return self.open_piece(from, piece, flags, on);
            }
            held = Some(self.open_piece(from, piece, PASSAGE, on)?);
            rest = following;
        }
    }

    /// The piece to open next, and what is left after it.
    fn split(self, path: &[u8]) -> (&[u8], &[u8]) {
        let end = match self {
            Self::Kernel if path.len() <= LONGEST_PIECE => None,
            Self::Kernel => path[..LONGEST_PIECE]
                .iter()
                .rposition(|byte| *byte == b'/')
                .or_else(|| path.iter().position(|byte| *byte == b'/')),
            Self::PerComponent => path.iter().position(|byte| *byte == b'/'),
        };
        end.map_or((path, &[]), |end| (&path[..end], &path[end + 1..]))
    }

    fn open_piece(self, directory: BorrowedFd<'_>, piece: &[u8], flags: OFlags, on: Mounts) -> Result<OwnedFd, Errno> {
        match self {
            Self::Kernel if on == Mounts::This || piece.contains(&b'/') => kernel_open(directory, piece, flags, on),
            // A single component with O_NOFOLLOW cannot lead out of the tree, so the cheaper call is enough.
            _ => retry(|| openat(directory, piece, flags, Mode::empty())),
        }
    }
}

/// How a directory is opened that is only passed through: where the system has it, without needing read permission.
#[cfg(target_os = "linux")]
pub(super) const PASSAGE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(super) const PASSAGE: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[cfg(target_os = "linux")]
fn kernel_open(directory: BorrowedFd<'_>, path: &[u8], flags: OFlags, on: Mounts) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    resolve.set(ResolveFlags::NO_XDEV, on == Mounts::This);
    retry(|| openat2(directory, path, flags, Mode::empty(), resolve))
}

#[cfg(not(target_os = "linux"))]
fn kernel_open(_: BorrowedFd<'_>, _: &[u8], _: OFlags, _: Mounts) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

fn kernel_resolves() -> bool {
    rustix::fs::open("/", PASSAGE, Mode::empty())
        .is_ok_and(|root| kernel_open(root.as_fd(), b"./.", PASSAGE, Mounts::Any).is_ok())
}

/// What tells the mount of an open node from others: its number, or its device where the kernel tells no number.
fn mount_of(node: BorrowedFd<'_>) -> Result<(Option<u64>, u64), Errno> {
    Ok((mount_number(node), rustix::fs::fstat(node)?.st_dev as u64))
}

#[cfg(target_os = "linux")]
fn mount_number(node: BorrowedFd<'_>) -> Option<u64> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let found = statx(node, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID).then_some(found.stx_mnt_id)
}

#[cfg(not(target_os = "linux"))]
fn mount_number(_: BorrowedFd<'_>) -> Option<u64> {
    None
}

/// Repeats a call that a signal interrupted, or that the kernel asks to repeat because a rename came in between.
pub(super) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut again = 0;
    loop {
        match call() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if again < 64 => again += 1,
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const WAYS: [Beneath; 2] = [Beneath::Kernel, Beneath::PerComponent];

    fn open_all(root: &std::path::Path, path: &[u8]) -> Vec<Result<u64, Errno>> {
        let directory = rustix::fs::open(root, PASSAGE, Mode::empty()).unwrap();
        WAYS.iter()
            .map(|way| {
                way.open(directory.as_fd(), path, OFlags::RDONLY).map(|fd| rustix::fs::fstat(fd).unwrap().st_ino)
            })
            .collect()
    }

    #[test]
    fn both_ways_open_the_same_and_follow_no_link() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        std::fs::write(root.path().join("a/b/c/file"), "x").unwrap();
        symlink("b", root.path().join("a/link")).unwrap();
        symlink("/etc", root.path().join("outside")).unwrap();

        let opened = open_all(root.path(), b"a/b/c/file");
        assert!(opened[0].is_ok());
        assert_eq!(opened[0], opened[1]);
        assert_eq!(open_all(root.path(), b"a/b/none"), vec![Err(Errno::NOENT); 2]);
        assert_eq!(open_all(root.path(), b"a/none/file"), vec![Err(Errno::NOENT); 2]);
        for path in [&b"a/link/c/file"[..], b"outside/passwd", b"outside", b"a/link"] {
            for result in open_all(root.path(), path) {
                assert!(matches!(result, Err(Errno::LOOP | Errno::NOTDIR)), "{path:?}: {result:?}");
            }
        }
    }

    /// `/proc` is a mount of its own wherever these tests run.
    #[test]
    fn both_ways_tell_one_mount_from_another() {
        let top = rustix::fs::open("/", PASSAGE, Mode::empty()).unwrap();
        let process = rustix::fs::open(format!("/proc/{}", std::process::id()), PASSAGE, Mode::empty()).unwrap();
        for way in WAYS {
            let opened = |from: &OwnedFd, path: &[u8]| way.open_on_mount(from.as_fd(), path, PASSAGE).map(|_| ()).err();
            assert_eq!(opened(&top, b"proc"), Some(Errno::XDEV), "{way:?}");
            assert_eq!(opened(&top, b"proc/sys"), Some(Errno::XDEV), "{way:?}");
            assert_eq!(opened(&process, b"task"), None, "{way:?}");
            assert_eq!(opened(&process, b"none"), Some(Errno::NOENT), "{way:?}");
        }
    }

    #[test]
    fn a_path_longer_than_the_kernel_takes_is_opened_in_pieces() {
        let root = tempfile::tempdir().unwrap();
        let mut directory = rustix::fs::open(root.path(), PASSAGE, Mode::empty()).unwrap();
        let mut path = Vec::new();
        for _ in 0..60 {
            let name = [b'd'; 100];
            rustix::fs::mkdirat(&directory, &name[..], Mode::RWXU).unwrap();
            directory = openat(&directory, &name[..], PASSAGE, Mode::empty()).unwrap();
            path.extend_from_slice(&name);
            path.push(b'/');
        }
        path.pop();
        assert!(path.len() > 4096);
        let opened = open_all(root.path(), &path);
        assert!(opened[0].is_ok());
        assert_eq!(opened[0], opened[1]);
    }
}
