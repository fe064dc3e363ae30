//! The threads that jobs run on: the addon's own, not libuv's four, so that a big mirror does not stall the caller's
//! other file work, and a job that waits for JavaScript cannot keep JavaScript's own work from running.
//!
//! At most [`MOST_RUNNING`] jobs run at a time; the rest wait in the order in which they came. A job that may wait for a
//! hook does not count: what it waits for may itself be a job. Fails where the system gives no thread.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Enough to keep a machine busy, few enough that a thousand calls at once do not become thousands of threads.
const MOST_RUNNING: usize = 16;

type Work = Box<dyn FnOnce() + Send>;

struct Queue {
    running: usize,
    waiting: VecDeque<Work>,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { running: 0, waiting: VecDeque::new() });

fn lock() -> std::sync::MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name("sallyport".to_owned()).spawn(work).map(drop)
}

/// Runs work as soon as there is room for it.
///
/// # Errors
/// The system gives no thread; the work is dropped.
pub(super) fn submit(work: Work) -> std::io::Result<()> {
    {
        let mut queue = lock();
        if queue.running >= MOST_RUNNING {
            queue.waiting.push_back(work);
            return Ok(());
        }
        queue.running += 1;
    }
    spawn(move || {
        let mut work = work;
        loop {
            work();
            let mut queue = lock();
            let Some(next) = queue.waiting.pop_front() else {
                queue.running -= 1;
                return;
            };
            work = next;
        }
    })
    .inspect_err(|_| lock().running -= 1)
}

/// Runs work at once, beside all that is queued.
///
/// # Errors
/// The system gives no thread; the work is dropped.
pub(super) fn submit_beside(work: Work) -> std::io::Result<()> {
    spawn(work)
}
