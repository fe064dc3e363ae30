//! Limiting a program that is already running: esbuild, which works for the caller on files that are not trusted.

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// Bounds the private memory of a child of this process, in bytes; a stricter bound that it has stays. A process that is
/// gone needs none.
///
/// # Errors
/// The system's, `EPERM` where it is no process of this user.
pub fn limit_memory(pid: u32, bytes: u64) -> Result<(), Errno> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let limited = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    let before = match prlimit(Some(pid), Resource::Data, limited) {
        // A limit that was lower already cannot be raised without rights, and is the better one.
        Err(Errno::PERM | Errno::SRCH) => return Ok(()),
        outcome => outcome?,
    };
    if before.maximum.is_some_and(|before| before < bytes) {
        prlimit(Some(pid), Resource::Data, before)?;
    }
    Ok(())
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
        child.kill().unwrap();
        child.wait().unwrap();
        limit_memory(child.id(), 1 << 30).unwrap();
    }
}
