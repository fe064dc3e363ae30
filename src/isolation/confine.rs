//! Applying a plan to the process itself, in the launcher, in the order in which it must be done.
//!
//! Every step that fails ends it, with the step and what the system said: a child that is held by less than was planned
//! never starts. Layers of the kernel that are not required are told as missing instead.

#![allow(unsafe_code, reason = "taking over descriptors and closing all others has no safe form")]

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::channel::Received;
use super::landlock::Unrestricted;
use super::plan::{
    CONTROL_DESCRIPTOR, LaunchFailure, LaunchLine, LaunchTask, Layer, Layers, RESULT_DESCRIPTOR, ResourceLimits,
};
use super::system_calls::Architecture;
use super::{landlock, probe, seccomp};

fn failed(step: &str) -> impl Fn(Errno) -> LaunchFailure {
    move |errno| LaunchFailure { step: step.to_owned(), reason: errno.to_string() }
}

/// Confines this process and does its task. Comes back only where it did not become a program.
#[must_use]
pub fn confine_and_do(received: Received, status: &OwnedFd) -> LaunchLine {
    let task = received.plan.task.clone();
    if let Err(failure) = confine(received, status) {
        return LaunchLine::Failed(failure);
    }
    match task {
        LaunchTask::Become { program, arguments } => {
            let error = Command::new(&program).args(arguments).exec();
            LaunchLine::Failed(LaunchFailure { step: format!("starting {program}"), reason: error.to_string() })
        }
        LaunchTask::Probe { file, memory_bytes } => LaunchLine::Probed(probe::attempt(&file, memory_bytes)),
    }
}

/// Tells a line on the status socket; whether it went.
#[allow(clippy::must_use_candidate, reason = "a parent that does not listen is seen elsewhere")]
pub fn tell(status: &OwnedFd, line: &LaunchLine) -> bool {
    let Ok(mut text) = serde_json::to_vec(line) else { return false };
    text.push(b'\n');
    rustix::io::write(status, &text).is_ok_and(|written| written == text.len())
}

fn confine(received: Received, status: &OwnedFd) -> Result<(), LaunchFailure> {
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
    if let LaunchTask::Become { program, .. } = &plan.task
        && plan.layers.required
    {
        stay_tied(program)?;
    }
    place_descriptors(result, control, status)?;
    limit(plan.limits)?;
    tell(status, &LaunchLine::Applied(Layer::ResourceLimits));
    rustix::thread::set_no_new_privs(true).map_err(failed("giving up new privileges"))?;
    apply(&plan.layers, status)
}

/// Refuses a program by which the child would outlive its parent: the kernel forgets the signal for a parent's death
/// where a program is executed that has set-id bits or file capabilities, prctl(2), although it grants neither here.
fn stay_tied(program: &str) -> Result<(), LaunchFailure> {
    let refused = |what: &str, how: &str| LaunchFailure {
        step: format!("starting {program}"),
        reason: format!(
            "{what}, by which the kernel would untie it from its parent; take them off ({how}), or give a copy"
        ),
    };
    let status = rustix::fs::stat(program).map_err(failed("looking at the program"))?;
    if Mode::from_raw_mode(status.st_mode).intersects(Mode::SUID | Mode::SGID) {
        return Err(refused("it has set-id bits", "chmod ug-s"));
    }
    let mut value = [0; 64];
    match rustix::fs::getxattr(program, "security.capability", &mut value) {
        Ok(_) | Err(Errno::RANGE) => Err(refused("it has file capabilities", "setcap -r")),
        // None are there, or the file system has none.
        Err(_) => Ok(()),
    }
}

/// Applies the layers of the kernel: files first, since the filters on system calls would refuse some of its steps.
fn apply(layers: &Layers, status: &OwnedFd) -> Result<(), LaunchFailure> {
    if layers.landlock.is_some() || layers.seccomp {
        drop_capabilities()?;
    }
    let outcome = |layer, outcome: Result<(), String>| match outcome {
        Ok(()) => {
            tell(status, &LaunchLine::Applied(layer));
            Ok(())
        }
        Err(reason) if layers.required => Err(LaunchFailure { step: format!("applying the layer {layer:?}"), reason }),
        Err(reason) => {
            tell(status, &LaunchLine::Missing(layer, reason));
            Ok(())
        }
    };
    if let Some(policy) = &layers.landlock {
        let restricted = match landlock::restrict(policy) {
            Ok(()) => Ok(()),
            Err(Unrestricted::Kernel(reason)) => Err(reason),
            Err(Unrestricted::Grant(reason)) => {
                return Err(LaunchFailure { step: "granting what may be read".to_owned(), reason });
            }
        };
        outcome(Layer::Landlock, restricted)?;
    }
    if layers.seccomp {
        let filters = Architecture::native()
            .ok_or_else(|| "there are no filters for this architecture".to_owned())
            .and_then(|architecture| seccomp::programs(architecture, std::process::id()))
            .and_then(|programs| seccomp::install(&programs));
        outcome(Layer::Seccomp, filters)?;
    }
    Ok(())
}

/// Gives up every capability but the one to read what other users own: a project of somebody else stays readable to
/// root, within what Landlock grants. Without any to begin with, nothing happens.
fn drop_capabilities() -> Result<(), LaunchFailure> {
    let step = "giving up capabilities";
    let held = rustix::thread::capabilities(None).map_err(failed(step))?;
    let kept = held.permitted & CapabilitySet::DAC_READ_SEARCH;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().difference(CapabilitySet::DAC_READ_SEARCH).iter() {
            match rustix::thread::remove_capability_from_bounding_set(capability) {
                // A capability that this kernel does not know cannot be had either.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(errno) => return Err(failed(step)(errno)),
            }
        }
    }
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets).map_err(failed(step))
}

/// Puts the two descriptors where the child expects them, nothing on standard input, and closes all others.
fn place_descriptors(result: OwnedFd, control: OwnedFd, status: &OwnedFd) -> Result<(), LaunchFailure> {
    let step = "placing its descriptors";
    // Out of the way first, so that no target is a source that is still needed.
    let high = |descriptor: OwnedFd| fcntl_dupfd_cloexec(&descriptor, CONTROL_DESCRIPTOR + 1).map_err(failed(step));
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
    let listing = std::fs::read_dir("/proc/self/fd");
    for entry in listing.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))? {
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

/// The most descriptors of a child. The kernel counts what they wait for (`fs.epoll.max_user_watches`) for the user, so
/// a child with very many could take it from the caller, whose event loop aborts where it gets none.
const MOST_DESCRIPTORS: u64 = 1024;

/// The most timers and queued signals of a child. Node uses none of either.
const MOST_QUEUED_SIGNALS: u64 = 64;

/// The largest stack of the first thread, in bytes: twice what is usual.
const LARGEST_STACK: u64 = 16 * 1024 * 1024;

fn limit(limits: ResourceLimits) -> Result<(), LaunchFailure> {
    // No core: it would hold what the child read. A limit of 0 keeps it out of files only; 1 is less than any file takes,
    // and the one number with which it is not handed to a program that collects cores either, core(5).
    set(Resource::Core, 1, 1, "forbidding cores")?;
    // No file may grow: the child writes none.
    set(Resource::Fsize, 0, 0, "forbidding files")?;
    // Node raises the soft limit to the hard one at its start, in many steps, which the filters refuse: it is there.
    set(Resource::Nofile, MOST_DESCRIPTORS, MOST_DESCRIPTORS, "limiting descriptors")?;
    // Timers and queued signals are counted for the user: without this a child could take all of them.
    set(Resource::Sigpending, MOST_QUEUED_SIGNALS, MOST_QUEUED_SIGNALS, "limiting queued signals")?;
    // The stack of the first thread is counted for nobody, and locked memory cannot be taken from it again.
    set(Resource::Stack, LARGEST_STACK, LARGEST_STACK, "limiting its stack")?;
    set(Resource::Memlock, 0, 0, "forbidding locked memory")?;
    if let Some(seconds) = limits.cpu_seconds {
        // The soft limit ends it by a signal that says why; the hard one is for who ignores that.
        set(Resource::Cpu, seconds, seconds.saturating_add(1), "limiting processor time")?;
    }
    if let Some(bytes) = limits.data_bytes {
        set(Resource::Data, bytes, bytes, "limiting memory")?;
    }
    Ok(())
}

/// Sets a limit, or leaves a stricter one that was inherited.
fn set(resource: Resource, soft: u64, hard: u64, step: &str) -> Result<(), LaunchFailure> {
    let inherited = getrlimit(resource);
    let hard = hard.min(inherited.maximum.unwrap_or(u64::MAX));
    let limit = Rlimit { current: Some(soft.min(hard)), maximum: Some(hard) };
    setrlimit(resource, limit).map_err(failed(step))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_that_the_kernel_would_untie_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let program = file.path().to_str().unwrap();
        let allow = |mode| std::fs::set_permissions(program, std::fs::Permissions::from_mode(mode)).unwrap();
        let reason = || stay_tied(program).map_err(|failure| failure.reason);
        allow(0o755);
        assert_eq!(reason(), Ok(()));
        for mode in [0o2755, 0o4755] {
            allow(mode);
            assert!(reason().unwrap_err().contains("set-id bits"), "{mode:o}");
        }
        allow(0o755);
        // CAP_NET_BIND_SERVICE, permitted, in version 2 of `vfs_cap_data`, as `setcap` writes it.
        let capability = [0, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let flags = rustix::fs::XattrFlags::empty();
        match rustix::fs::setxattr(program, "security.capability", &capability, flags) {
            Ok(()) => assert!(reason().unwrap_err().contains("file capabilities")),
            // Only root may write them, and not on every file system: then there are none, and none are seen.
            Err(_) => assert_eq!(reason(), Ok(())),
        }
        assert!(stay_tied("/there/is/no/such/program").is_err());
    }
}
