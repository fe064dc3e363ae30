//! A child that has more memory than its limit counts is killed all the same (`docs/threat-model.md`, "Layers").

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot start its child fails")]
#![allow(unsafe_code, reason = "mapping memory has no safe form")]

use std::path::PathBuf;
use std::time::Duration;

use sallyport::isolation::plan::{LaunchPlan, LaunchTask, Layers, ResourceLimits};
use sallyport::sandbox::child::{ChildRequest, Fault, Signals, run};

/// With this in its environment the test is the child.
const FILLS: &str = "SALLYPORT_TEST_FILLS_MEMORY";

const PIECE: usize = 16 * 1024 * 1024;

/// Fills a piece of memory, makes it read-only, which takes it out of what `RLIMIT_DATA` counts, and goes on: what machine
/// code can do. Ends where it is refused more, or has four GiB.
fn fill_memory() {
    for _ in 0..256 {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at a place of the kernel's choice, filled to its length and never unmapped.
        let made_read_only = unsafe {
            let place = libc::mmap(std::ptr::null_mut(), PIECE, protection, flags, -1, 0);
            if place == libc::MAP_FAILED {
                return;
            }
            std::ptr::write_bytes(place.cast::<u8>(), 1, PIECE);
            libc::mprotect(place, PIECE, libc::PROT_READ) == 0
        };
        if !made_read_only {
            return;
        }
        // Slow enough for who looks five times a second.
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn memory_that_is_read_only_by_now_counts_too() {
    if std::env::var_os(FILLS).is_some() {
        fill_memory();
        return;
    }
    let program = std::env::current_exe().unwrap().canonicalize().unwrap();
    let request = ChildRequest {
        launcher: PathBuf::from(env!("CARGO_BIN_EXE_sallyport-launch")),
        plan: LaunchPlan {
            parent: std::process::id(),
            task: LaunchTask::Become { program: program.to_string_lossy().into_owned(), arguments: Vec::new() },
            limits: ResourceLimits { cpu_seconds: None, data_bytes: Some(256 * 1024 * 1024) },
            layers: Layers::default(),
        },
        environment: vec![(FILLS.to_owned(), "1".to_owned())],
        largest_result: 1,
        timeout: Duration::from_secs(60),
    };
    let end = run(&request, &Signals::new().unwrap(), &mut |_| {}).unwrap();
    assert_eq!(end.frame, Err(Fault::Memory));
}
