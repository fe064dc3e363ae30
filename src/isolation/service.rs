//! Limiting a program that is already running: esbuild, which works for the caller on files that are not trusted.

use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::fs::absolute::read_start;

/// Bounds the private memory of a child of this process, in bytes; a stricter bound that it has stays. A process that is
/// gone needs none.
///
/// # Errors
/// The system's, `EPERM` where it is no process of this user, or a filter around this process lets nobody be bounded.
pub fn limit_memory(pid: u32, bytes: u64) -> Result<(), Errno> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let limited = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    let before = match prlimit(Some(pid), Resource::Data, limited) {
        Err(Errno::SRCH) => return Ok(()),
        // A limit that was lower already cannot be raised without rights, and is the better one.
        Err(Errno::PERM) if is_bounded(pid, bytes) => return Ok(()),
        outcome => outcome?,
    };
    if before.maximum.is_some_and(|before| before < bytes) {
        prlimit(Some(pid), Resource::Data, before)?;
    }
    Ok(())
}

/// Whether a process is bounded by this already. Asking needs no right but to look at it, and no call that a filter that
/// refuses to set limits would let through.
fn is_bounded(pid: Pid, bytes: u64) -> bool {
    let path = format!("/proc/{}/limits", pid.as_raw_nonzero());
    let Ok(limits) = read_start(Path::new(&path), 16 * 1024) else { return false };
    let text = String::from_utf8_lossy(&limits);
    let line = text.lines().find_map(|line| line.strip_prefix("Max data size"));
    let hard = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|hard| hard.parse::<u64>().ok());
    hard.is_some_and(|hard| hard <= bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_child_is_bounded_and_a_stricter_bound_stays() {
        let mut child = std::process::Command::new("sleep").arg("10").spawn().unwrap();
        let now = || {
            let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
            let line = limits.lines().find(|line| line.starts_with("Max data size")).unwrap();
            line.split_whitespace().nth(4).unwrap().parse::<u64>().unwrap()
        };
        limit_memory(child.id(), 1 << 30).unwrap();
        assert_eq!(now(), 1 << 30);
        limit_memory(child.id(), 1 << 31).unwrap();
        assert_eq!(now(), 1 << 30);
        let pid = Pid::from_child(&child);
        assert!(is_bounded(pid, 1 << 30) && is_bounded(pid, 1 << 31) && !is_bounded(pid, 1 << 29));
        child.kill().unwrap();
        child.wait().unwrap();
        limit_memory(child.id(), 1 << 30).unwrap();
    }
}
