//! Applying a plan to the process itself, in the launcher, in the order in which it must be done.
//!
//! Every step that fails ends it, with the step and what the system said: a child that is held by less than was planned
//! never starts.

// The only unsafe call is close_range, for which rustix has no safe form.
#![allow(unsafe_code, reason = "closing every inherited descriptor has no safe form")]

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use super::channel::Received;
use super::plan::{CONTROL_DESCRIPTOR, LaunchFailure, RESULT_DESCRIPTOR, ResourceLimits};

fn failed(step: &str) -> impl Fn(Errno) -> LaunchFailure {
    move |errno| LaunchFailure { step: step.to_owned(), reason: errno.to_string() }
}

/// Confines this process and becomes the program. Comes back only with the failure.
#[must_use]
pub fn confine_and_become(received: Received, status: &OwnedFd) -> LaunchFailure {
    match prepare(received, status) {
        Err(failure) => failure,
        Ok(mut command) => {
            let error = command.exec();
            LaunchFailure { step: format!("starting {}", command.get_program().display()), reason: error.to_string() }
        }
    }
}

fn prepare(received: Received, status: &OwnedFd) -> Result<Command, LaunchFailure> {
    let Received { plan, result, control } = received;
    // A session of its own: nothing from the caller's terminal reaches it, and its group can be killed as a whole.
    rustix::process::setsid().map_err(failed("starting a session"))?;
    // Killed with the thread that started it, which waits for it as long as it lives.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(failed("tying its life to its parent"))?;
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get().cast_unsigned());
    if parent != Some(plan.parent) {
        return Err(LaunchFailure { step: "looking for its parent".to_owned(), reason: "it is gone".to_owned() });
    }
    place_descriptors(result, control, status)?;
    limit(plan.limits)?;
    let mut command = Command::new(plan.program);
    command.args(plan.arguments);
    Ok(command)
}

/// Puts the two descriptors where the child expects them, nothing on standard input, and closes all others.
fn place_descriptors(result: OwnedFd, control: OwnedFd, status: &OwnedFd) -> Result<(), LaunchFailure> {
    let step = "placing its descriptors";
    // Out of the way first, so that no target is a source that is still needed.
    let high = |descriptor: OwnedFd| fcntl_dupfd_cloexec(&descriptor, 64).map_err(failed(step));
    let (result, control) = (high(result)?, high(control)?);
    let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed(step))?;
    rustix::stdio::dup2_stdin(&null).map_err(failed(step))?;
    // Its own number may be one of the two that are filled next.
    drop(null);
    duplicate_to(&result, RESULT_DESCRIPTOR).map_err(failed(step))?;
    duplicate_to(&control, CONTROL_DESCRIPTOR).map_err(failed(step))?;
    // What is left open is closed by exec, the status socket last of all: that is how the parent knows it worked.
    fcntl_setfd(status, rustix::io::FdFlags::CLOEXEC).map_err(failed(step))?;
    close_on_exec_from(CONTROL_DESCRIPTOR + 1).map_err(failed("closing inherited descriptors"))
}

fn duplicate_to(source: &OwnedFd, target: i32) -> Result<(), Errno> {
    use std::os::fd::{FromRawFd, IntoRawFd};
    // SAFETY: the launcher owns its whole descriptor table, and nothing in it holds descriptors 3 and 4 at this point
    // but the sources that were moved away before. The handle is given up again right after.
    let mut place = unsafe { OwnedFd::from_raw_fd(target) };
    let outcome = rustix::io::dup2(source.as_fd(), &mut place);
    let _kept_open = place.into_raw_fd();
    outcome
}

fn close_on_exec_from(first: i32) -> Result<(), Errno> {
    // SAFETY: close_range takes three numbers and with CLOSE_RANGE_CLOEXEC only marks descriptors.
    let outcome =
        unsafe { libc::syscall(libc::SYS_close_range, first.cast_unsigned(), u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if outcome == 0 {
        return Ok(());
    }
    // A kernel before 5.11: mark what is listed.
    for entry in
        std::fs::read_dir("/proc/self/fd").map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?
    {
        let number = entry.ok().and_then(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        if let Some(number) = number.filter(|number| *number >= first) {
            // SAFETY: the number was open a moment ago and this process has one thread; marking it changes nothing else.
            let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
            match fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC) {
                // The listing's own descriptor is closed by now.
                Ok(()) | Err(Errno::BADF) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(())
}

fn limit(limits: ResourceLimits) -> Result<(), LaunchFailure> {
    let both = |value: u64| Rlimit { current: Some(value), maximum: Some(value) };
    // No core file: it would hold what the child read. No file may grow: the child writes none.
    setrlimit(Resource::Core, both(0)).map_err(failed("forbidding core files"))?;
    setrlimit(Resource::Fsize, both(0)).map_err(failed("forbidding files"))?;
    if let Some(seconds) = limits.cpu_seconds {
        setrlimit(Resource::Cpu, both(seconds)).map_err(failed("limiting processor time"))?;
    }
    if let Some(bytes) = limits.data_bytes {
        setrlimit(Resource::Data, both(bytes)).map_err(failed("limiting memory"))?;
    }
    Ok(())
}
