//! A child that has more memory than its limit counts is killed all the same (`docs/threat-model.md`, "Layers").

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot start its child fails")]
#![allow(unsafe_code, reason = "mapping memory and ending a thread alone have no safe form")]

use std::path::PathBuf;
use std::time::Duration;

use sallyport::isolation::plan::{LaunchPlan, LaunchTask, Layers, ResourceLimits};
use sallyport::sandbox::child::{ChildRequest, Fault, Signals, run};

/// With this in its environment a test is the child.
const IS_CHILD: &str = "SALLYPORT_TEST_FILLS_MEMORY";

const LIMIT: u64 = 256 * 1024 * 1024;

const PIECE: usize = 16 * 1024 * 1024;

/// What one table of pages is for; it takes a page itself.
const TABLE: usize = 2 * 1024 * 1024;

fn map(bytes: usize, protection: i32) -> Option<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at a place of the kernel's choice, which is never unmapped.
    let place = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    (place != libc::MAP_FAILED).then_some(place.cast())
}

/// Slow enough for who looks five times a second.
fn go_slowly() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Fills a piece of memory, makes it read-only, which takes it out of what `RLIMIT_DATA` counts, and goes on: what machine
/// code can do. Ends where it is refused more, or has four GiB.
fn fill_memory() {
    for _ in 0..256 {
        let Some(place) = map(PIECE, libc::PROT_READ | libc::PROT_WRITE) else { return };
        // SAFETY: the whole of a mapping that nothing else knows of.
        let made_read_only = unsafe {
            std::ptr::write_bytes(place, 1, PIECE);
            libc::mprotect(place.cast(), PIECE, libc::PROT_READ) == 0
        };
        if !made_read_only {
            return;
        }
        go_slowly();
    }
}

/// Reads from memory that may never be written, a page in every stretch that has a table of its own: no page is filled,
/// but the tables are. Ends where it is refused more, or has two GiB of tables.
fn fill_tables() {
    const TABLES: usize = 4096;
    for _ in 0..128 {
        let Some(place) = map(TABLES * TABLE, libc::PROT_READ) else { return };
        // SAFETY: the whole of a readable mapping that nothing else knows of; advice changes no content.
        unsafe {
            libc::madvise(place.cast(), TABLES * TABLE, libc::MADV_NOHUGEPAGE);
            for table in 0..TABLES {
                std::ptr::read_volatile(place.add(table * TABLE));
            }
        }
        go_slowly();
    }
}

/// Ends the thread that the signal is for, alone.
extern "C" fn end_thread(_signal: i32) {
    // SAFETY: what the thread owns is leaked, and nobody waits for it.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// Ends the first thread, in which the test runner waits, and fills memory in another: the process goes on.
fn fill_memory_without_the_first_thread() {
    let filling = std::thread::spawn(|| {
        fill_memory();
        // SAFETY: ends the process, which nobody looks at any more.
        unsafe { libc::_exit(0) };
    });
    // SAFETY: the handler does a single system call; the first thread has the number of the process.
    unsafe {
        libc::signal(libc::SIGUSR1, end_thread as *const () as libc::sighandler_t);
        libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::getpid(), libc::SIGUSR1);
    }
    let _never_ends = filling.join();
}

/// Runs a test as the child that fills memory, and wants it killed.
fn is_killed(test: &str, fill: fn()) {
    if std::env::var_os(IS_CHILD).is_some() {
        fill();
        return;
    }
    let program = std::env::current_exe().unwrap().canonicalize().unwrap();
    let arguments = ["--exact", test, "--test-threads=1"].map(str::to_owned).to_vec();
    let request = ChildRequest {
        launcher: PathBuf::from(env!("CARGO_BIN_EXE_sallyport-launch")),
        plan: LaunchPlan {
            parent: std::process::id(),
            task: LaunchTask::Become { program: program.to_string_lossy().into_owned(), arguments },
            limits: ResourceLimits { cpu_seconds: None, data_bytes: Some(LIMIT) },
            layers: Layers::default(),
        },
        environment: vec![(IS_CHILD.to_owned(), "1".to_owned())],
        largest_result: 1,
        timeout: Duration::from_secs(60),
    };
    let end = run(&request, &Signals::new().unwrap(), &mut |_| {}).unwrap();
    assert_eq!(end.frame, Err(Fault::Memory), "{end:?}");
}

#[test]
fn memory_that_is_read_only_by_now_counts_too() {
    is_killed("memory_that_is_read_only_by_now_counts_too", fill_memory);
}

#[test]
fn tables_for_memory_that_is_never_filled_count_too() {
    is_killed("tables_for_memory_that_is_never_filled_count_too", fill_tables);
}

#[test]
fn a_process_whose_first_thread_has_ended_is_looked_at_too() {
    is_killed("a_process_whose_first_thread_has_ended_is_looked_at_too", fill_memory_without_the_first_thread);
}
