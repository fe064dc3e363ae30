//! Trying what a confined process must not be able to do.
//!
//! A layer that was accepted may hold nothing: rules on a file system that does not enforce them, a filter that another
//! one answers for. So the launcher confines itself with one layer and tries, for real. An attempt counts as refused
//! only if the system says so; nothing here fails.

#![allow(unsafe_code, reason = "forking and mapping memory have no safe form, and are what is tried here")]

use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketType};

use super::plan::Probed;

/// Tries everything. `file` is outside of what is granted; `memory_bytes` is more than is allowed.
#[must_use]
pub fn attempt(file: &str, memory_bytes: u64) -> Probed {
    let read = |path: &Path, flags| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).is_err();
    let file = Path::new(file);
    let directory = file.parent().unwrap_or(file);
    Probed {
        read: read(file, OFlags::RDONLY),
        list: read(directory, OFlags::RDONLY | OFlags::DIRECTORY) && read(Path::new("/"), OFlags::RDONLY),
        write: rustix::fs::open(
            directory.join("made"),
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC,
            Mode::RUSR,
        )
        .is_err(),
        network: [AddressFamily::INET, AddressFamily::INET6, AddressFamily::UNIX, AddressFamily::NETLINK]
            .into_iter()
            .all(|family| matches!(rustix::net::socket(family, SocketType::DGRAM, None), Err(errno) if errno != rustix::io::Errno::AFNOSUPPORT)),
        process: cannot_fork(),
        signal: rustix::process::getppid()
            .is_some_and(|parent| rustix::process::test_kill_process(parent).is_err()),
        signal_by_descriptor: cannot_own_a_descriptor(),
        memory: cannot_map(memory_bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS),
        uncounted_memory: cannot_map(memory_bytes, libc::MAP_SHARED | libc::MAP_ANONYMOUS)
            && cannot_map(memory_bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_GROWSDOWN),
    }
}

fn cannot_fork() -> bool {
    // SAFETY: this process has one thread, and the new one ends at once without running anything of this program.
    let outcome = unsafe { libc::fork() };
    if outcome == 0 {
        // SAFETY: ends the process without running anything.
        unsafe { libc::_exit(0) };
    }
    if outcome > 0 {
        // SAFETY: waits for the very process that was made above.
        unsafe { libc::waitpid(outcome, std::ptr::null_mut(), 0) };
    }
    outcome < 0
}

fn cannot_own_a_descriptor() -> bool {
    let Ok((pipe, _other_end)) = rustix::pipe::pipe() else { return false };
    // SAFETY: names this very process as the one that a pipe of its own would signal; no signal is switched on.
    unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&pipe), libc::F_SETOWN, libc::getpid()) < 0 }
}

fn cannot_map(bytes: u64, flags: i32) -> bool {
    let Ok(length) = usize::try_from(bytes) else { return false };
    // SAFETY: asks for a new mapping at a place of the kernel's choice; it is never touched and is unmapped below.
    let place = unsafe {
        libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags | libc::MAP_NORESERVE, -1, 0)
    };
    if place == libc::MAP_FAILED {
        return true;
    }
    // SAFETY: unmaps exactly what was mapped above.
    unsafe { libc::munmap(place, length) };
    false
}
