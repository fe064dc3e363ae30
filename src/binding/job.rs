//! A piece of work on a thread of the addon's own, and the one callback by which JavaScript hears of it.
//!
//! Events are JSON: `progress`, `hook` (the thread waits for the answer), and as the last one, always, `done` with a
//! value or a failure. Cancelling sets a flag that the work looks at per entry and per chunk; a hook that is being waited
//! for is given up. When a JavaScript environment ends (a worker is terminated, the process exits) its jobs are cancelled
//! and waited for, so that they remove what they made.

#![allow(clippy::needless_pass_by_value, reason = "a value from JavaScript arrives owned")]
#![cfg_attr(test, allow(dead_code, reason = "napi registers no export in a test build"))]

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};
use napi_derive::napi;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::failure::internal;
use super::lease::MirrorLease;
use super::queue::{self, Ticket, Turn};
use super::requests::{Request, no_thread};
use crate::failure::{Failure, FailureRecord, Result};
use crate::mirror::hooks::NoHooks;
use crate::mirror::{Hooks, Lease};
use crate::sandbox::child::{OutputLine, Signals};
use crate::tree::control::{Clock, Control, Progress, ProgressSink, SystemClock};

/// How long the end of an environment waits for its jobs to remove what they made.
const END_PATIENCE: Duration = Duration::from_secs(10);

type Notify = ThreadsafeFunction<String, (), String, Status, false>;

/// What a job has made.
pub(super) struct Outcome {
    /// The value as JSON.
    pub(super) value: String,
    /// The lease of a mirror.
    pub(super) lease: Option<Lease>,
}

impl Outcome {
    pub(super) fn value(value: String) -> Self {
        Self { value, lease: None }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Event<'a> {
    Progress {
        progress: Progress,
    },
    Hook {
        id: u32,
        name: &'a str,
        arguments: Vec<serde_json::Value>,
    },
    Output {
        lines: Vec<OutputLine>,
    },
    Done {
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Box<FailureRecord>>,
    },
}

/// What JavaScript says to a hook.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Value(serde_json::Value),
    Failed(u32),
}

#[derive(Default)]
struct State {
    answers: HashMap<u32, Answer>,
    lease: Option<Lease>,
    finished: bool,
}

/// What the thread and JavaScript share.
struct Shared {
    cancelled: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
    /// How a sandboxed child is reached, for the jobs that have one, while they run: its descriptors do not wait for a
    /// collection of garbage.
    signals: Mutex<Option<Arc<Signals>>>,
    /// By which the queue knows the job, where it may be withdrawn.
    ticket: Option<Ticket>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signals(&self) -> Option<Arc<Signals>> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn cancel(&self) {
        {
            // Under the lock, so that a thread that is about to wait cannot miss it.
            let _state = self.lock();
            self.cancelled.store(true, Ordering::Relaxed);
            self.changed.notify_all();
        }
        if let Some(signals) = self.signals() {
            signals.cancel();
        }
        // A job whose turn has not come ends here and now, not after those that came before it.
        if let Some(work) = self.ticket.and_then(queue::withdraw) {
            work(Turn::Withdrawn);
        }
    }
}

/// A job that runs, as the work sees it.
pub(super) struct Running {
    shared: Arc<Shared>,
    notify: Arc<Notify>,
    hooks: HashSet<String>,
    wants_progress: bool,
    next_hook: AtomicU32,
    system_clock: SystemClock,
}

impl Running {
    /// The control of this job's work.
    pub(super) fn control(&self) -> Control<'_> {
        let sink: Option<ProgressSink> = self.wants_progress.then(|| {
            let notify = Arc::clone(&self.notify);
            Box::new(move |progress: Progress| send(&notify, &Event::Progress { progress })) as ProgressSink
        });
        Control::new(&self.shared.cancelled, self, sink)
    }

    /// How the child of this job is reached.
    pub(super) fn signals(&self) -> Result<Arc<Signals>> {
        self.shared.signals().ok_or_else(|| Failure::Internal("a job without a child was asked for it".to_owned()))
    }

    /// Whether the work was called off.
    pub(super) fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }

    /// Hands lines of a child's output to JavaScript. How many there can be is bounded where they are made.
    pub(super) fn output(&self, lines: Vec<OutputLine>) {
        if !lines.is_empty() {
            send(&self.notify, &Event::Output { lines });
        }
    }

    /// Calls a hook and waits for its answer.
    fn call(&self, name: &str, arguments: Vec<serde_json::Value>) -> Result<serde_json::Value> {
        let id = self.next_hook.fetch_add(1, Ordering::Relaxed);
        send(&self.notify, &Event::Hook { id, name, arguments });
        let mut state = self.shared.lock();
        loop {
            match state.answers.remove(&id) {
                Some(Answer::Value(value)) => return Ok(value),
                Some(Answer::Failed(number)) => return Err(Failure::Hook(number)),
                None if self.shared.cancelled.load(Ordering::Relaxed) => return Err(Failure::Aborted),
                None => state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.hooks.contains(name)
    }

    fn call_with_path(&self, name: &str, path: &Path, numbers: &[u64]) -> Result<()> {
        if self.has(name) {
            let mut arguments = vec![serde_json::Value::from(path.to_string_lossy())];
            arguments.extend(numbers.iter().map(|number| serde_json::Value::from(*number)));
            self.call(name, arguments)?;
        }
        Ok(())
    }
}

impl Clock for Running {
    fn now_milliseconds(&self) -> Result<f64> {
        if !self.has("now") {
            return self.system_clock.now_milliseconds();
        }
        let answer = self.call("now", Vec::new())?;
        answer.as_f64().ok_or_else(|| Failure::Internal("the hook now gave no number".to_owned()))
    }
}

impl Hooks for Running {
    fn any(&self) -> bool {
        !self.hooks.is_empty()
    }

    fn makes_temp_root(&self) -> bool {
        self.has("makeTempRoot")
    }

    fn make_temp_root(&self) -> Result<Option<PathBuf>> {
        if !self.makes_temp_root() {
            return Ok(None);
        }
        let answer = self.call("makeTempRoot", Vec::new())?;
        let path = answer.as_str().ok_or_else(|| Failure::Internal("the hook makeTempRoot gave no path".to_owned()))?;
        Ok(Some(PathBuf::from(path)))
    }

    fn remove_root(&self, root: &Path) -> Result<bool> {
        self.call_with_path("removeRoot", root, &[])?;
        Ok(self.has("removeRoot"))
    }

    fn after_snapshot_captured(&self) -> Result<()> {
        if self.has("afterSnapshotCaptured") {
            self.call("afterSnapshotCaptured", Vec::new())?;
        }
        Ok(())
    }

    fn before_copy_open(&self, source: &Path) -> Result<()> {
        self.call_with_path("beforeCopyOpen", source, &[])
    }

    fn after_copy_read(&self, source: &Path, bytes: u64, total: u64) -> Result<()> {
        self.call_with_path("afterCopyRead", source, &[bytes, total])
    }
}

/// The longest string of V8 on 64 bits, in characters, of which a byte is never more than one.
const LONGEST_STRING: usize = (1 << 29) - 24;

fn send(notify: &Notify, event: &Event<'_>) {
    // Every event is made of strings and numbers, which always have a JSON form.
    if let Ok(mut text) = serde_json::to_string(event) {
        // It would be thrown out of all reach in JavaScript, and nobody would hear of the end.
        if text.len() > LONGEST_STRING {
            let failure = Failure::Internal(format!("the answer of {} bytes is no string in JavaScript", text.len()));
            let failure = Some(Box::new(FailureRecord::from(&failure)));
            text = serde_json::to_string(&Event::Done { value: None, failure }).unwrap_or_default();
        }
        // The queue has no bound that could make this wait, and an environment that is closing needs no events.
        let _status = notify.call(text, ThreadsafeFunctionCallMode::NonBlocking);
    }
}

/// The job as JavaScript holds it.
#[napi]
pub struct NativeJob {
    shared: Arc<Shared>,
}

#[napi]
impl NativeJob {
    /// Asks the work to stop; `done` still comes.
    #[napi(catch_unwind)]
    pub fn cancel(&self) {
        self.shared.cancel();
    }

    /// Answers a hook: `{"value":…}`, or `{"failed":n}` with the number under which what it threw is kept.
    #[napi(catch_unwind)]
    pub fn answer(&self, id: u32, response: String) -> napi::Result<(), String> {
        let answer = serde_json::from_str(&response).map_err(internal)?;
        self.shared.lock().answers.insert(id, answer);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Tells the child of a sandboxed run to begin.
    #[napi(catch_unwind)]
    pub fn begin(&self) {
        if let Some(signals) = self.shared.signals() {
            signals.begin();
        }
    }

    /// The lease of a mirror, once.
    #[napi(catch_unwind)]
    pub fn take_lease(&self) -> Option<MirrorLease> {
        self.shared.lock().lease.take().map(MirrorLease::new)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Common {
    #[serde(default)]
    hooks: HashSet<String>,
    #[serde(default)]
    wants_progress: bool,
}

/// Starts a job. `notify` is called with each event as JSON, and keeps the event loop alive until `done`.
#[napi(catch_unwind)]
pub(crate) fn start_job(
    env: Env,
    kind: String,
    request: String,
    notify: Function<'_, String, ()>,
) -> napi::Result<NativeJob, String> {
    let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&request).map_err(internal)?;
    fields.insert("kind".to_owned(), kind.into());
    let fields = serde_json::Value::Object(fields);
    let Common { hooks, wants_progress } = Common::deserialize(&fields).map_err(internal)?;
    let mut request = Request::deserialize(&fields).map_err(internal)?;
    let held = request.hold();

    let signals = if matches!(request, Request::Sandbox(_) | Request::Probe { .. }) {
        Some(Arc::new(Signals::new().map_err(internal)?))
    } else {
        None
    };
    let notify: Notify = notify.build_threadsafe_function::<String>().build().map_err(internal)?;
    let ticket = Ticket::next();
    let shared = Arc::new(Shared {
        cancelled: AtomicBool::new(false),
        state: Mutex::default(),
        changed: Condvar::new(),
        signals: Mutex::new(signals),
        ticket: request.may_be_withdrawn().then_some(ticket),
    });
    remember(env, &shared).map_err(internal)?;
    let waits_for_javascript = !hooks.is_empty();
    let running = Running {
        shared: Arc::clone(&shared),
        notify: Arc::new(notify),
        hooks,
        wants_progress,
        next_hook: AtomicU32::new(0),
        system_clock: SystemClock::default(),
    };
    let notify = Arc::clone(&running.notify);
    if let Err(failure) = held {
        finish(&shared, &notify, Err(failure));
        return Ok(NativeJob { shared });
    }
    let lane = request.lane();
    let work = Box::new(move |turn| match turn {
        Turn::Run => run(request, running),
        Turn::Withdrawn => finish(&running.shared, &running.notify, Err(request.withdraw())),
    });
    let started = if waits_for_javascript { queue::submit_beside(work) } else { queue::submit(lane, ticket, work) };
    if let Err(error) = started {
        finish(&shared, &notify, Err(no_thread(&error)));
    }
    Ok(NativeJob { shared })
}

fn run(request: Request, running: Running) {
    let outcome = catch_unwind(AssertUnwindSafe(|| request.run(&running))).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Failure::Internal(text.unwrap_or_else(|| "a panic without words".to_owned())))
    });
    finish(&running.shared, &running.notify, outcome);
}

fn finish(shared: &Shared, notify: &Notify, outcome: Result<Outcome>) {
    let (value, lease, failure) = match outcome {
        Ok(Outcome { value, lease }) => (RawValue::from_string(value).ok(), lease, None),
        Err(failure) => (None, None, Some(Box::new(FailureRecord::from(&failure)))),
    };
    shared.lock().lease = lease;
    *shared.signals.lock().unwrap_or_else(PoisonError::into_inner) = None;
    send(notify, &Event::Done { value: value.as_deref(), failure });
    let mut state = shared.lock();
    state.finished = true;
    shared.changed.notify_all();
}

thread_local! {
    static JOBS: RefCell<Vec<Weak<Shared>>> = const { RefCell::new(Vec::new()) };
    static HOOKED: Cell<bool> = const { Cell::new(false) };
}

/// Keeps a job in mind for the end of its environment, which has a thread of its own.
fn remember(env: Env, shared: &Arc<Shared>) -> napi::Result<()> {
    if !HOOKED.replace(true) {
        env.add_env_cleanup_hook((), |()| {
            HOOKED.set(false);
            end_jobs();
        })?;
    }
    JOBS.with_borrow_mut(|jobs| {
        jobs.retain(|job| {
            job.upgrade().is_some_and(|job| {
                let state = job.lock();
                !state.finished || state.lease.is_some()
            })
        });
        jobs.push(Arc::downgrade(shared));
    });
    Ok(())
}

/// Cancels the jobs of this environment and waits for them. `process.exit` runs no cleanup hook of the main thread, so
/// `js/job.js` calls this when the process tells that it exits.
#[napi(catch_unwind)]
pub(crate) fn end_jobs() {
    let jobs: Vec<Arc<Shared>> = JOBS.with_borrow_mut(|jobs| jobs.drain(..).filter_map(|job| job.upgrade()).collect());
    for job in &jobs {
        job.cancel();
    }
    let until = Instant::now() + END_PATIENCE;
    for job in &jobs {
        let mut state = job.lock();
        while !state.finished {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return };
            state = job.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        // A mirror that was made and that nobody took: there is no handle that could clean it up.
        if let Some(lease) = state.lease.take() {
            // Where this fails there is nobody left to tell; a sweep finds what stays.
            let _unconfirmed = lease.dispose(&NoHooks);
        }
    }
}
