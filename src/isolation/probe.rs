//! Trying what a confined process must not be able to do.
//!
//! A layer that was accepted may hold nothing: rules on a file system that does not enforce them, a filter that another
//! one answers for. So the launcher confines itself with one layer and tries, for real. An attempt counts as refused
//! only where the system says that it is not permitted: what fails for another reason (no such file, no more processes)
//! says nothing of the layer. Nothing here fails.

#![allow(unsafe_code, reason = "forking and mapping memory have no safe form, and are what is tried here")]

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};

use super::plan::Probed;

/// `O_ACCMODE`: open for neither reading nor writing.
const NO_ACCESS: u32 = 3;

/// Tries everything. `file` is outside of what is granted; `memory_bytes` is more than is allowed, and a quarter of it is
/// not: a machine that has none to give refuses both, and says nothing of a limit.
#[must_use]
pub fn attempt(file: &str, memory_bytes: u64) -> Probed {
    let open = |path: &Path, flags| is_refused(&rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::RUSR));
    let file = Path::new(file);
    let directory = file.parent().unwrap_or(file);
    // Another name at each layer: a file that is there already is none that was refused.
    let made = directory.join(format!("made-{}", std::process::id()));
    let socket = |family| is_refused(&rustix::net::socket(family, SocketType::DGRAM, None));
    Probed {
        read: open(file, OFlags::RDONLY),
        list: open(directory, OFlags::RDONLY | OFlags::DIRECTORY) && open(Path::new("/"), OFlags::RDONLY),
        write: open(&made, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL),
        truncate: open(file, OFlags::TRUNC) && open(file, OFlags::TRUNC | OFlags::from_bits_retain(NO_ACCESS)),
        network: [AddressFamily::INET, AddressFamily::INET6, AddressFamily::UNIX, AddressFamily::NETLINK]
            .into_iter()
            .all(socket),
        process: cannot_fork(),
        signal: rustix::process::getppid()
            .is_some_and(|parent| is_refused(&rustix::process::test_kill_process(parent))),
        signal_by_descriptor: cannot_own_a_descriptor(),
        memory: map(memory_bytes, libc::MAP_PRIVATE) == Err(Errno::NOMEM)
            && map(memory_bytes / 4, libc::MAP_PRIVATE) == Ok(()),
        uncounted_memory: [libc::MAP_SHARED, libc::MAP_PRIVATE | libc::MAP_GROWSDOWN]
            .into_iter()
            .all(|flags| is_refused(&map(memory_bytes, flags))),
        // Where there is none it cannot be used.
        memory_device: match rustix::fs::open("/dev/zero", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT) => true,
            opened => is_refused(&opened),
        },
        // The last: where it is granted, this process has other rights from here on.
        namespace: cannot_unshare(),
    }
}

fn is_refused<T>(outcome: &Result<T, Errno>) -> bool {
    matches!(outcome, Err(Errno::PERM | Errno::ACCESS))
}

/// The outcome of a call of the C library that gives -1 where it failed.
fn outcome(value: i32) -> Result<i32, Errno> {
    if value >= 0 {
        return Ok(value);
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

fn cannot_fork() -> bool {
    // SAFETY: this process has one thread, and the new one ends at once without running anything of this program.
    let forked = outcome(unsafe { libc::fork() });
    match forked {
        // SAFETY: ends the process without running anything.
        Ok(0) => unsafe { libc::_exit(0) },
        Ok(child) => {
            // SAFETY: waits for the very process that was made above.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            false
        }
        refused @ Err(_) => is_refused(&refused),
    }
}

fn cannot_own_a_descriptor() -> bool {
    let Ok((pipe, _other_end)) = rustix::pipe::pipe() else { return false };
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&pipe);
    // SAFETY: names this very process as the one that a pipe of its own would signal; no signal is switched on.
    is_refused(&outcome(unsafe { libc::fcntl(descriptor, libc::F_SETOWN, libc::getpid()) }))
}

fn cannot_unshare() -> bool {
    // SAFETY: this process has one thread and shares nothing with another that the new namespace could change.
    let unshared = outcome(unsafe { libc::unshare(libc::CLONE_NEWUSER) });
    // The kernel's word where an administrator allows none.
    unshared == Err(Errno::NOSPC) || is_refused(&unshared)
}

fn map(bytes: u64, flags: i32) -> Result<(), Errno> {
    let length = usize::try_from(bytes).map_err(|_| Errno::OVERFLOW)?;
    let flags = flags | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: asks for a new mapping at a place of the kernel's choice; it is never touched and is unmapped below.
    let place = unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if place == libc::MAP_FAILED {
        return outcome(-1).map(|_| ());
    }
    // SAFETY: unmaps exactly what was mapped above.
    unsafe { libc::munmap(place, length) };
    Ok(())
}
