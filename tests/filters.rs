//! What the filters refuse, tried by machine code in a child that nothing else holds (`docs/threat-model.md`, "Layers").

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot start its child fails")]
#![allow(unsafe_code, reason = "these calls have no safe form")]

use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;

use sallyport::isolation::plan::{LaunchPlan, LaunchTask, Layers, ResourceLimits};
use sallyport::sandbox::child::{ChildRequest, Exit, Signals, run};

/// With this in its environment a test is the child.
const IS_CHILD: &str = "SALLYPORT_TEST_TRIES_CALLS";

/// `SECCOMP_RET_ALLOW`.
static ALLOW: u32 = 0x7fff_0000;

/// What a child may not do, each with the outcome of trying it.
fn refused_calls() -> Vec<(&'static str, i64)> {
    let zero = std::fs::File::options().read(true).write(true).open("/dev/zero").unwrap();
    let descriptor = zero.as_raw_fd();
    let map = |flags| {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let place = unsafe { libc::mmap(std::ptr::null_mut(), 1 << 21, protection, flags, descriptor, 0) };
        if place == libc::MAP_FAILED { -1 } else { 0 }
    };
    // SAFETY: none of these calls takes a pointer but the last but one, to a constant.
    unsafe {
        vec![
            ("mmap of /dev/zero, shared", map(libc::MAP_SHARED)),
            ("mmap of /dev/zero, shared and validated", map(libc::MAP_SHARED_VALIDATE)),
            ("fcntl F_SETOWN", i64::from(libc::fcntl(descriptor, libc::F_SETOWN, libc::getpid()))),
            ("fcntl F_NOTIFY", i64::from(libc::fcntl(descriptor, libc::F_NOTIFY, 0))),
            ("prctl PR_SET_PDEATHSIG", i64::from(libc::prctl(libc::PR_SET_PDEATHSIG, 0))),
            ("prctl PR_SET_DUMPABLE", i64::from(libc::prctl(libc::PR_SET_DUMPABLE, 1))),
            ("prctl PR_SET_CHILD_SUBREAPER", i64::from(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1))),
            ("map_shadow_stack", libc::syscall(453, 0, 4096, 0)),
            // Asks for the version; makes nothing.
            ("landlock_create_ruleset", libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, 1)),
            // Whether it has an action; sets nothing.
            ("seccomp", libc::syscall(libc::SYS_seccomp, 2, 0, &raw const ALLOW)),
            ("socket", i64::from(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0))),
        ]
    }
}

/// What a child needs, each with the outcome of trying it.
fn needed_calls() -> Vec<(&'static str, i64)> {
    let null = std::fs::File::open("/dev/null").unwrap();
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    // SAFETY: a new mapping at a place of the kernel's choice.
    let mapped =
        unsafe { libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    // SAFETY: the name ends with a zero, and the other calls take no pointer.
    unsafe {
        vec![
            ("mmap of a file, shared, to be read", if mapped == libc::MAP_FAILED { -1 } else { 0 }),
            ("fcntl F_DUPFD_CLOEXEC", i64::from(libc::fcntl(null.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0))),
            ("fcntl F_GETFL", i64::from(libc::fcntl(null.as_raw_fd(), libc::F_GETFL))),
            ("prctl PR_SET_NAME", i64::from(libc::prctl(libc::PR_SET_NAME, c"named".as_ptr()))),
        ]
    }
}

#[test]
fn refuse_what_machine_code_tries() {
    if std::env::var_os(IS_CHILD).is_some() {
        for (name, outcome) in refused_calls() {
            assert!(outcome < 0, "{name} was let through");
        }
        for (name, outcome) in needed_calls() {
            assert!(outcome >= 0, "{name} was refused");
        }
        return;
    }
    // Without the filters they are let through, so it is the filters that refuse them. Only a thread with a shadow stack
    // has the last but one.
    for (name, outcome) in refused_calls() {
        assert!(outcome >= 0 || name == "map_shadow_stack", "{name} is refused here anyway");
    }
    let program = std::env::current_exe().unwrap().canonicalize().unwrap();
    let arguments = ["--exact", "refuse_what_machine_code_tries", "--test-threads=1"].map(str::to_owned).to_vec();
    let request = ChildRequest {
        launcher: PathBuf::from(env!("CARGO_BIN_EXE_sallyport-launch")),
        plan: LaunchPlan {
            parent: std::process::id(),
            task: LaunchTask::Become { program: program.to_string_lossy().into_owned(), arguments },
            limits: ResourceLimits::default(),
            layers: Layers { landlock: None, seccomp: true, required: true },
        },
        environment: vec![(IS_CHILD.to_owned(), "1".to_owned())],
        largest_result: 1,
        timeout: Duration::from_secs(60),
    };
    let mut output = Vec::new();
    let end = run(&request, &Signals::new().unwrap(), &mut |lines| output.extend(lines)).unwrap();
    assert_eq!(end.exit, Some(Exit::Code(0)), "{end:?} {output:#?}");
}
