//! What every long piece of work looks at between two steps: the caller's abort, the deadline, and the counters that
//! progress is made from.
//!
//! Fails with [`Failure::Aborted`], with the timeout's diagnostic, or with what the clock gives (a test's clock is a
//! callback and may throw).

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::failure::{CheckpointCode, Facts, Failure, Result};

/// A clock in milliseconds since the epoch.
pub trait Clock: Send + Sync {
    /// The time now.
    ///
    /// # Errors
    /// Only a clock that is a callback can fail.
    fn now_milliseconds(&self) -> Result<f64>;
}

/// The system's time at its making, moved on by the monotonic clock, so that setting the time does not end the work.
#[derive(Debug)]
pub struct SystemClock {
    epoch_milliseconds: f64,
    started: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { epoch_milliseconds: (since_epoch.as_secs_f64() * 1000.0).floor(), started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now_milliseconds(&self) -> Result<f64> {
        // Whole milliseconds, as `Date.now()` gives them: a deadline made from it is printed.
        Ok(self.epoch_milliseconds + (self.started.elapsed().as_secs_f64() * 1000.0).floor())
    }
}

/// What is going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgressPhase {
    /// The walk by metadata.
    Snapshot,
    /// Copying.
    Copy,
    /// The last reading of source and copy, or the hashing of an index.
    Verify,
    /// Removing.
    Dispose,
}

/// How far the work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// What is going on.
    pub phase: ProgressPhase,
    /// Entries done in this phase.
    pub entries: u64,
    /// Bytes done in this phase.
    pub bytes: u64,
    /// All entries, once they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_entries: Option<u64>,
    /// All bytes, once they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
}

/// Takes progress; must return quickly.
pub type ProgressSink = Box<dyn Fn(Progress) + Send + Sync>;

/// At most ten reports a second (`contract/surface.md`).
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

struct Reporting {
    phase: ProgressPhase,
    totals: Option<(u64, u64)>,
    reported: Option<Instant>,
}

/// The shared view of one piece of work, looked at from all of its threads.
pub struct Control<'a> {
    cancelled: &'a AtomicBool,
    clock: &'a dyn Clock,
    deadline: Option<(f64, &'static str)>,
    sink: Option<ProgressSink>,
    reporting: Mutex<Reporting>,
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl<'a> Control<'a> {
    /// Work without a deadline yet.
    pub fn new(cancelled: &'a AtomicBool, clock: &'a dyn Clock, sink: Option<ProgressSink>) -> Self {
        Self {
            cancelled,
            clock,
            deadline: None,
            sink,
            reporting: Mutex::new(Reporting { phase: ProgressPhase::Snapshot, totals: None, reported: None }),
            entries: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Sets the deadline in milliseconds since the epoch; `what` begins the diagnostic (`mirror`, `snapshot`).
    pub fn set_deadline(&mut self, milliseconds: f64, what: &'static str) {
        self.deadline = Some((milliseconds, what));
    }

    /// The clock's time.
    ///
    /// # Errors
    /// What the clock gives.
    pub fn now_milliseconds(&self) -> Result<f64> {
        self.clock.now_milliseconds()
    }

    /// To be called per directory, per entry and per chunk.
    ///
    /// # Errors
    /// Aborted; past the deadline; what the clock gives.
    pub fn checkpoint(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Failure::Aborted);
        }
        let Some((deadline, what)) = self.deadline else { return Ok(()) };
        if self.clock.now_milliseconds()? > deadline {
            return Err(Failure::Diagnostic {
                code: CheckpointCode::PrepareTimeout,
                diagnostic: format!("{what} preparation exceeded deadlineMs={deadline}"),
                facts: Facts::default(),
            });
        }
        Ok(())
    }

    /// Begins a phase: counters at zero, totals where they are known.
    pub fn begin(&self, phase: ProgressPhase, totals: Option<(u64, u64)>) {
        if let Ok(mut reporting) = self.reporting.lock() {
            reporting.phase = phase;
            reporting.totals = totals;
            self.entries.store(0, Ordering::Relaxed);
            self.bytes.store(0, Ordering::Relaxed);
        }
        self.report();
    }

    /// Counts work that was done, and reports it if it is time.
    pub fn advance(&self, entries: u64, bytes: u64) {
        if self.sink.is_none() {
            return;
        }
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.report();
    }

    fn report(&self) {
        let Some(sink) = &self.sink else { return };
        // A thread that finds the lock taken has nothing to add: the holder is reporting.
        let Ok(mut reporting) = self.reporting.try_lock() else { return };
        if reporting.reported.is_some_and(|last| last.elapsed() < REPORT_INTERVAL) {
            return;
        }
        reporting.reported = Some(Instant::now());
        sink(Progress {
            phase: reporting.phase,
            entries: self.entries.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            total_entries: reporting.totals.map(|(entries, _)| entries),
            total_bytes: reporting.totals.map(|(_, bytes)| bytes),
        });
    }
}
