//! The threads that jobs run on: the addon's own, not libuv's four, so that a big mirror does not stall the caller's
//! other file work, and a job that waits for JavaScript cannot keep JavaScript's own work from running.
//!
//! There are two lanes ([`Lane`]), so that what is soon done does not wait for what is not. In each at most
//! [`MOST_RUNNING`] jobs run at a time; the rest wait in the order in which they came, and can be withdrawn until their
//! turn comes. A job that may wait for a hook is in neither: what it waits for may itself be a job. Fails where the system
//! gives no thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Enough to keep a machine busy, few enough that a thousand calls at once do not become thousands of threads.
const MOST_RUNNING: usize = 16;

/// Where a job waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Work on whole trees, and children that run.
    Long,
    /// Looks at one node, and removing what is no longer needed.
    Prompt,
}

/// What becomes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Its turn has come.
    Run,
    /// It was withdrawn before that: it says so and does nothing else.
    Withdrawn,
}

/// A job, as the queue holds it.
pub(super) type Work = Box<dyn FnOnce(Turn) + Send>;

/// By which a job that waits is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

impl Ticket {
    /// One that no other job has.
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

struct Queue {
    running: usize,
    waiting: VecDeque<(Ticket, Work)>,
}

static LONG: Mutex<Queue> = Mutex::new(Queue { running: 0, waiting: VecDeque::new() });
static PROMPT: Mutex<Queue> = Mutex::new(Queue { running: 0, waiting: VecDeque::new() });

fn lock(lane: Lane) -> std::sync::MutexGuard<'static, Queue> {
    let queue = match lane {
        Lane::Long => &LONG,
        Lane::Prompt => &PROMPT,
    };
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name("sallyport".to_owned()).spawn(work).map(drop)
}

/// Runs work as soon as there is room for it in its lane.
///
/// # Errors
/// The system gives no thread; the work is dropped.
pub(super) fn submit(lane: Lane, ticket: Ticket, work: Work) -> std::io::Result<()> {
    {
        let mut queue = lock(lane);
        if queue.running >= MOST_RUNNING {
            queue.waiting.push_back((ticket, work));
            return Ok(());
        }
        queue.running += 1;
    }
    spawn(move || {
        let mut work = work;
        loop {
            work(Turn::Run);
            let mut queue = lock(lane);
            let Some((_, next)) = queue.waiting.pop_front() else {
                queue.running -= 1;
                return;
            };
            work = next;
        }
    })
    .inspect_err(|_| lock(lane).running -= 1)
}

/// Takes work out that still waits for its turn; nothing where that has come. What is taken out must be told so.
pub(super) fn withdraw(ticket: Ticket) -> Option<Work> {
    [Lane::Long, Lane::Prompt].into_iter().find_map(|lane| {
        let mut queue = lock(lane);
        let position = queue.waiting.iter().position(|(waiting, _)| *waiting == ticket)?;
        queue.waiting.remove(position).map(|(_, work)| work)
    })
}

/// Runs work at once, beside all that is queued.
///
/// # Errors
/// The system gives no thread; the work is dropped.
pub(super) fn submit_beside(work: Work) -> std::io::Result<()> {
    spawn(move || work(Turn::Run))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn what_waits_can_be_withdrawn_and_a_full_lane_does_not_stop_the_other() {
        let (told, heard) = mpsc::channel();
        let tell = |name: &'static str| -> Work {
            let told = told.clone();
            Box::new(move |turn| told.send((name, turn)).unwrap())
        };
        let mut gates = Vec::new();
        for _ in 0..MOST_RUNNING {
            let (gate, closed) = mpsc::channel::<()>();
            gates.push(gate);
            let long = move |_| {
                closed.recv().unwrap_err();
            };
            submit(Lane::Long, Ticket::next(), Box::new(long)).unwrap();
        }
        let (first, second) = (Ticket::next(), Ticket::next());
        submit(Lane::Long, first, tell("first")).unwrap();
        submit(Lane::Long, second, tell("second")).unwrap();
        let prompt = Ticket::next();
        submit(Lane::Prompt, prompt, tell("prompt")).unwrap();
        assert_eq!(heard.recv(), Ok(("prompt", Turn::Run)));
        withdraw(first).unwrap()(Turn::Withdrawn);
        assert_eq!(heard.recv(), Ok(("first", Turn::Withdrawn)));
        assert!(withdraw(first).is_none());
        assert!(withdraw(prompt).is_none());
        drop(gates);
        assert_eq!(heard.recv(), Ok(("second", Turn::Run)));
    }
}
