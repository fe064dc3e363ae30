//! Starting the child, waiting for it, and ending it, whatever it does.
//!
//! One thread does all of it for one child: it starts the launcher (the child is killed with this thread), hands it its
//! plan, and then waits for the first of: the result, the end of the child, the deadline, the caller's abort. It never
//! waits for more than that: a child that keeps its descriptors, its timers or a spinning signal handler is killed.
//! When a function here returns, the child and its process group are dead and reaped, and every descriptor is closed.
//!
//! Fails with [`Failure::Aborted`] and with the system's error where the launcher cannot be started at all; everything
//! that the child does wrong is a [`ChildEnd`] with words for a person.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use super::frame::{FrameError, FrameReader};
use super::output::OutputStream;
use crate::failure::{Failure, Result};
use crate::fs::absolute::{first_names, read_start};
use crate::isolation::channel;
use crate::isolation::plan::{LaunchFailure, LaunchLine, LaunchPlan, ResourceLimits, read_report};

/// How long a child may go on after its result is complete, or after it closed the result descriptor: long enough to
/// end by itself, short enough that nobody waits for it.
const GRACE: Duration = Duration::from_secs(1);

/// The most that is still read of each output stream after the child is dead: more than a pipe holds.
const MOST_DRAINED: usize = 2 * 1024 * 1024;

/// How often the memory of a child is looked at. `RLIMIT_DATA` counts what is writable now, so that machine code can fill
/// memory, make it read-only, and have more; or only read from memory that it never fills, for which the kernel still
/// keeps tables. What the kernel counts for a process has all of it.
const MEMORY_LOOKS: Duration = Duration::from_millis(200);

/// The lines of `proc_pid_status(5)` that count: memory that no file stands behind, in use or swapped out, and the tables.
const MEMORY_LINES: [&str; 5] = ["RssAnon:", "RssShmem:", "VmSwap:", "VmPTE:", "HugetlbPages:"];

/// How many threads are asked for the memory of a process. All have the same; those that have ended have none.
const MOST_ASKED: usize = 16;

/// What to start.
#[derive(Debug, Clone)]
pub struct ChildRequest {
    /// The launcher program.
    pub launcher: PathBuf,
    /// What it is told.
    pub plan: LaunchPlan,
    /// The whole environment of the child.
    pub environment: Vec<(String, String)>,
    /// The largest result in bytes.
    pub largest_result: u64,
    /// How long the child may take, from its start.
    pub timeout: Duration,
}

/// How the caller's side reaches a child that is being waited for.
#[derive(Debug)]
pub struct Signals {
    wake: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    cancelled: bool,
    begun: bool,
    control_read: Option<OwnedFd>,
    control_write: Option<OwnedFd>,
    /// The other end of what the child was told, by which it shows whether it was heard.
    told: Option<OwnedFd>,
}

impl Signals {
    /// Makes the control pipe and the means to wake the waiting thread.
    ///
    /// # Errors
    /// `pipe`, `eventfd`.
    pub fn new() -> Result<Self> {
        let (control_read, control_write) = pipe_with(PipeFlags::CLOEXEC).map_err(system("pipe"))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(system("eventfd"))?;
        let state = State {
            cancelled: false,
            begun: false,
            control_read: Some(control_read),
            control_write: Some(control_write),
            told: None,
        };
        Ok(Self { wake, state: Mutex::new(state) })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the control pipe anew, for the next child of the same job.
    ///
    /// # Errors
    /// `pipe`.
    pub(super) fn renew_control(&self) -> Result<()> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(system("pipe"))?;
        let mut state = self.lock();
        (state.control_read, state.control_write) = (Some(read), Some(write));
        Ok(())
    }

    /// Tells the child to begin. Again, or after its end, it does nothing.
    pub fn begin(&self) {
        let mut state = self.lock();
        state.begun = true;
        if let Some(control) = state.control_write.take() {
            // A child that is gone by now is seen by its end. The pipe is empty, so this does not wait.
            state.told = rustix::io::write(&control, b"b").is_ok().then_some(control);
        }
    }

    /// Has the child killed.
    pub fn cancel(&self) {
        self.lock().cancelled = true;
        // The counter cannot be full: it is written once for each cancel.
        let _woken = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Whether the child read that it is to begin.
    fn was_heard(&self) -> bool {
        let state = self.lock();
        state.told.as_ref().is_some_and(|told| rustix::io::ioctl_fionread(told) == Ok(0))
    }

    /// Whether the child was told to begin, so that nobody writes any more what it begins with.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.lock().begun
    }
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl std::fmt::Display for Exit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Signal(number) => write!(formatter, "signal {}", signal_name(*number)),
        }
    }
}

fn signal_name(number: i32) -> String {
    const NAMES: [(i32, &str); 14] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (15, "SIGTERM"),
        (24, "SIGXCPU"),
        (25, "SIGXFSZ"),
        (31, "SIGSYS"),
    ];
    NAMES.iter().find(|(known, _)| *known == number).map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The deadline passed.
    TimedOut(Duration),
    /// The launcher could not do what it was told.
    Launch(LaunchFailure),
    /// The child ended or closed the descriptor without a whole frame, or sent too much.
    Frame(FrameError),
    /// It used more memory than it may.
    Memory,
    /// It used up its processor time.
    ProcessorTime,
    /// Node could not write its trace events to this file, and would wait for it for ever.
    TraceFile(String),
}

/// What is known of a child after its end.
#[derive(Debug)]
pub struct ChildEnd {
    /// The frame, or why there is none.
    pub frame: std::result::Result<Vec<u8>, Fault>,
    /// How it ended by itself; nothing if it was killed from here.
    pub exit: Option<Exit>,
    /// Whether it came as far as to wait for the bundle, and read that it is there.
    pub began: bool,
    /// The last of what it wrote to stderr, made harmless.
    pub stderr_tail: String,
    /// What the launcher told.
    pub launcher: Vec<LaunchLine>,
}

/// A line of output and whether it came on stderr.
pub type OutputLine = (bool, String);

fn system(operation: &'static str) -> impl Fn(Errno) -> Failure {
    move |errno| Failure::system(errno.raw_os_error(), operation, "")
}

/// A child that is killed and reaped when this is dropped, on whatever way out.
struct Reaper {
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
    reaped: bool,
}

impl Reaper {
    fn kill(&self) {
        // Until it is reaped its number is its own. Either call may find that it is gone already.
        let _group = kill_process_group(self.pid, Signal::KILL);
        let _leader = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Kills what is left of it, reaps it, and tells how it ended.
    fn reap(&mut self) -> Option<Exit> {
        use std::os::unix::process::ExitStatusExt;
        self.kill();
        self.reaped = true;
        // Waits for this very child; nothing else in the process is touched. If the host reaps all children by itself
        // the status is not known.
        let status = self.child.wait().ok()?;
        status.code().map(Exit::Code).or_else(|| status.signal().map(Exit::Signal))
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        if !self.reaped {
            self.reap();
        }
    }
}

/// Starts a child and waits for its end. `on_output` is given lines as they come.
///
/// # Errors
/// See the module.
pub fn run(request: &ChildRequest, signals: &Signals, on_output: &mut dyn FnMut(Vec<OutputLine>)) -> Result<ChildEnd> {
    let started = Instant::now();
    let (result, result_write) = pipe_with(PipeFlags::CLOEXEC).map_err(system("pipe"))?;
    let (status, status_there) = channel::pair().map_err(system("socketpair"))?;
    let mut child = Command::new(&request.launcher)
        .env_clear()
        .envs(request.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(status_there))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::system(error.raw_os_error().unwrap_or_default(), "spawn", &request.launcher))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let pid = Pid::from_child(&child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| {
        // Without it the child cannot be waited for together with its pipes; it has done nothing yet.
        let _killed = child.kill();
        let _reaped = child.wait();
        system("pidfd_open")(errno)
    })?;
    let mut reaper = Reaper { child, pid, pidfd, reaped: false };
    let plan = serde_json::to_vec(&request.plan)
        .map_err(|error| Failure::Internal(format!("a launch plan has no JSON form: {error}")))?;
    let control = signals.lock().control_read.take();
    let control = control.ok_or_else(|| Failure::Internal("a child was started twice for one job".to_owned()))?;
    match channel::send(status.as_fd(), &plan, result_write.as_fd(), control.as_fd()) {
        // A launcher that died before it read its plan is seen by its end.
        Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => {}
        Err(errno) => return Err(system("sendmsg")(errno)),
    }
    drop((result_write, control));

    let mut waiting = Waiting {
        result: Some(result),
        status: Some(status),
        stdout: stdout.map(OwnedFd::from),
        stderr: stderr.map(OwnedFd::from),
        frame: FrameReader::new(request.largest_result),
        launcher: Vec::new(),
        streams: Default::default(),
        trace_file: None,
        buffer: vec![0; 64 * 1024],
    };
    waiting.set_non_blocking()?;
    let stop = waiting.wait(request, signals, &reaper, started, on_output)?;
    let killed = !matches!(stop, Stop::Exited);
    let used = processor_time_of(pid);
    let exit = reaper.reap().filter(|_| !killed);
    let late = waiting.drain(on_output);
    let fault = match stop {
        Stop::Cancelled => return Err(Failure::Aborted),
        Stop::TimedOut => Some(Fault::TimedOut(request.timeout)),
        Stop::Refused(error) => Some(Fault::Frame(error)),
        Stop::Stuck(file) => Some(Fault::TraceFile(file)),
        Stop::TooLarge => Some(Fault::Memory),
        Stop::Exited | Stop::Reported => late.err().map(Fault::Frame),
    };
    let launcher = read_report(&waiting.launcher);
    let launch = launcher.iter().find_map(|line| match line {
        LaunchLine::Failed(failure) => Some(failure.clone()),
        _ => None,
    });
    let frame = match (launch, fault) {
        (Some(failure), _) => Err(Fault::Launch(failure)),
        (None, Some(fault)) => Err(fault),
        (None, None) => waiting.frame.finish().map_err(|error| match error {
            FrameError::Missing if is_out_of_time(exit, used, request.plan.limits) => Fault::ProcessorTime,
            error => Fault::Frame(error),
        }),
    };
    let [_, stderr_stream] = &waiting.streams;
    Ok(ChildEnd { frame, exit, began: signals.was_heard(), stderr_tail: stderr_stream.tail(), launcher })
}

/// Why the waiting is over.
enum Stop {
    Exited,
    Reported,
    TimedOut,
    Cancelled,
    Refused(FrameError),
    Stuck(String),
    TooLarge,
}

struct Waiting {
    result: Option<OwnedFd>,
    status: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    frame: FrameReader,
    /// What the launcher said.
    launcher: Vec<u8>,
    /// stdout and stderr.
    streams: [OutputStream; 2],
    /// The file for which the child's main thread waits for ever.
    trace_file: Option<String>,
    buffer: Vec<u8>,
}

/// The memory of a process that its limit is for, in bytes; nothing where it is not told.
fn memory_of(pid: Pid) -> Option<u64> {
    let process = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
    let told = |folder: &Path| memory_in(&read_start(&folder.join("status"), 16 * 1024).ok()?);
    // Machine code can end the first thread alone: the process goes on, and its own file tells nothing any more.
    told(&process).or_else(|| {
        let threads = process.join("task");
        first_names(&threads, MOST_ASKED).ok()?.iter().find_map(|thread| told(&threads.join(thread)))
    })
}

/// Whether a child ended because its processor time was used up: by the signal that says so, or, where it listens for that
/// and goes on, by the one that comes a second later.
fn is_out_of_time(exit: Option<Exit>, used: Option<Duration>, limits: ResourceLimits) -> bool {
    const SIGKILL: i32 = 9;
    const SIGXCPU: i32 = 24;
    match exit {
        Some(Exit::Signal(SIGXCPU)) => true,
        Some(Exit::Signal(SIGKILL)) => {
            limits.cpu_seconds.zip(used).is_some_and(|(allowed, used)| used >= Duration::from_secs(allowed))
        }
        _ => false,
    }
}

/// The processor time of a process, all of its threads together; nothing where it is not told. One that has ended and was
/// not reaped has it too.
fn processor_time_of(pid: Pid) -> Option<Duration> {
    let text = read_start(Path::new(&format!("/proc/{}/stat", pid.as_raw_nonzero())), 4096).ok()?;
    processor_time_in(&text)
}

/// The same from the text of `proc_pid_stat(5)`: `utime` and `stime`, in ticks of the clock. The name, which is the
/// child's own, ends with the last parenthesis.
fn processor_time_in(stat: &[u8]) -> Option<Duration> {
    let text = String::from_utf8_lossy(stat);
    let (_name, fields) = text.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    let ticks = times.next()?.ok()?.checked_add(times.next()?.ok()?)?;
    Some(Duration::from_millis(ticks.checked_mul(1000)? / rustix::param::clock_ticks_per_second().max(1)))
}

/// Whether the system tells the memory of processes, this one for a start.
#[must_use]
pub fn can_see_memory() -> bool {
    let own = i32::try_from(std::process::id()).ok().and_then(Pid::from_raw);
    own.and_then(memory_of).is_some()
}

/// The same from the text of `proc_pid_status(5)`, which has it in KiB.
fn memory_in(status: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(status).ok()?;
    let of_line = |name: &&str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    // A kernel without swap does not have every line.
    MEMORY_LINES.iter().filter_map(of_line).reduce(u64::saturating_add)
}

/// The file that Node says it could not write trace events to. Its main thread waits for that writer without end and
/// cannot report anything any more, so this line is all there is. Project code that prints it ends its own run.
fn trace_file_in(line: &str) -> Option<String> {
    let (file, _reason) = line.strip_prefix("Could not open trace file ")?.rsplit_once(": ")?;
    Some(file.to_owned())
}

/// One read of a descriptor that does not wait.
enum Piece {
    Some(usize),
    Nothing,
    End,
}

fn read(descriptor: BorrowedFd<'_>, buffer: &mut [u8]) -> Piece {
    match rustix::io::read(descriptor, buffer) {
        Ok(0) => Piece::End,
        Ok(count) => Piece::Some(count),
        Err(Errno::AGAIN | Errno::INTR) => Piece::Nothing,
        // A pipe's other end that went away with an error is an end.
        Err(_) => Piece::End,
    }
}

impl Waiting {
    fn set_non_blocking(&self) -> Result<()> {
        for descriptor in [&self.result, &self.status, &self.stdout, &self.stderr].into_iter().flatten() {
            rustix::io::ioctl_fionbio(descriptor, true).map_err(system("ioctl"))?;
        }
        Ok(())
    }

    fn wait(
        &mut self,
        request: &ChildRequest,
        signals: &Signals,
        Reaper { pid, pidfd, .. }: &Reaper,
        started: Instant,
        on_output: &mut dyn FnMut(Vec<OutputLine>),
    ) -> Result<Stop> {
        let deadline = started.checked_add(request.timeout);
        let mut grace: Option<Instant> = None;
        let mut look = request.plan.limits.data_bytes.map(|most| (most, started + MEMORY_LOOKS));
        loop {
            if signals.is_cancelled() {
                return Ok(Stop::Cancelled);
            }
            if self.result.is_none() && self.frame.is_complete() {
                return Ok(Stop::Reported);
            }
            if grace.is_none() && (self.result.is_none() || self.frame.is_complete()) {
                grace = Some(Instant::now() + GRACE);
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(Stop::TimedOut);
            }
            if grace.is_some_and(|grace| now >= grace) {
                return Ok(Stop::Reported);
            }
            if let Some((most, next)) = &mut look
                && now >= *next
            {
                if memory_of(*pid).is_some_and(|memory| memory > *most) {
                    return Ok(Stop::TooLarge);
                }
                *next = now + MEMORY_LOOKS;
            }
            let until = deadline.into_iter().chain(grace).chain(look.map(|(_, next)| next)).min();
            let Ready { result, status, stdout, stderr, exited } =
                self.poll(pidfd, &signals.wake, until.map(|until| until.saturating_duration_since(now)))?;
            if status {
                self.read_status();
            }
            // Output first: what was written before the result is forwarded before it.
            if stdout {
                self.read_output(false, on_output);
            }
            if stderr {
                self.read_output(true, on_output);
            }
            if let Some(file) = self.trace_file.take() {
                return Ok(Stop::Stuck(file));
            }
            if result && let Err(error) = self.read_result() {
                return Ok(Stop::Refused(error));
            }
            if exited {
                return Ok(Stop::Exited);
            }
        }
    }

    fn poll(&self, pidfd: &OwnedFd, wake: &OwnedFd, wait: Option<Duration>) -> Result<Ready> {
        let optional = [&self.result, &self.status, &self.stdout, &self.stderr];
        let mut entries: Vec<PollFd<'_>> =
            optional.iter().copied().flatten().chain([pidfd, wake]).map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        // A moment more than asked for, so that the time is over when it returns.
        let timespec = wait.map(|wait| Timespec::try_from(wait + Duration::from_millis(1)).unwrap_or_default());
        match poll(&mut entries, timespec.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(system("poll")(errno)),
        }
        let mut ready = entries.iter().map(|entry| !entry.revents().is_empty());
        let mut of = |descriptor: &Option<OwnedFd>| descriptor.is_some() && ready.next().unwrap_or(false);
        let (result, status, stdout, stderr) = (of(&self.result), of(&self.status), of(&self.stdout), of(&self.stderr));
        Ok(Ready { result, status, stdout, stderr, exited: ready.next().unwrap_or(false) })
    }

    fn read_status(&mut self) {
        let Some(status) = &self.status else { return };
        match read(status.as_fd(), &mut self.buffer) {
            // The launcher's own words are short.
            Piece::Some(count) if self.launcher.len() < self.buffer.len() => {
                self.launcher.extend_from_slice(&self.buffer[..count]);
            }
            Piece::Some(_) | Piece::Nothing => {}
            Piece::End => self.status = None,
        }
    }

    fn read_output(&mut self, is_error: bool, on_output: &mut dyn FnMut(Vec<OutputLine>)) -> bool {
        let place = if is_error { &mut self.stderr } else { &mut self.stdout };
        let Some(descriptor) = place else { return false };
        let stream = &mut self.streams[usize::from(is_error)];
        let (lines, more) = match read(descriptor.as_fd(), &mut self.buffer) {
            Piece::Some(count) => (stream.take(&self.buffer[..count]), true),
            Piece::Nothing => (Vec::new(), false),
            Piece::End => {
                *place = None;
                (stream.finish().into_iter().collect(), false)
            }
        };
        if is_error && self.trace_file.is_none() {
            self.trace_file = lines.iter().find_map(|line| trace_file_in(line));
        }
        if !lines.is_empty() {
            on_output(lines.into_iter().map(|line| (is_error, line)).collect());
        }
        more
    }

    fn read_result(&mut self) -> std::result::Result<bool, FrameError> {
        let Some(result) = &self.result else { return Ok(false) };
        match read(result.as_fd(), &mut self.buffer) {
            Piece::Some(count) => self.frame.take(&self.buffer[..count]).map(|()| true),
            Piece::Nothing => Ok(false),
            Piece::End => {
                self.result = None;
                Ok(false)
            }
        }
    }

    /// Reads what the dead child left in its pipes.
    fn drain(&mut self, on_output: &mut dyn FnMut(Vec<OutputLine>)) -> std::result::Result<(), FrameError> {
        while self.status.is_some() {
            let before = self.launcher.len();
            self.read_status();
            if self.launcher.len() == before {
                break;
            }
        }
        for is_error in [false, true] {
            let mut rounds = MOST_DRAINED / self.buffer.len();
            while rounds > 0 && self.read_output(is_error, on_output) {
                rounds -= 1;
            }
            let last = self.streams[usize::from(is_error)].finish();
            on_output(last.into_iter().map(|line| (is_error, line)).collect());
        }
        while self.read_result()? {}
        Ok(())
    }
}

#[allow(clippy::struct_excessive_bools, reason = "one for each descriptor that is waited for")]
struct Ready {
    result: bool,
    status: bool,
    stdout: bool,
    stderr: bool,
    exited: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_process_is_what_no_file_stands_behind() {
        let status = b"Name:\tnode\nVmRSS:\t  90000 kB\nRssAnon:\t    1234 kB\nRssFile:\t   50000 kB\n";
        assert_eq!(memory_in(status), Some(1234 * 1024));
        let whole = [&status[..], b"RssShmem:\t1 kB\nVmPTE:\t20 kB\nVmSwap:\t300 kB\n"].concat();
        assert_eq!(memory_in(&whole), Some((1234 + 1 + 20 + 300) * 1024));
        assert_eq!(memory_in(b"Name:\tzombie\n"), None);
        let own = Pid::from_raw(i32::try_from(std::process::id()).unwrap()).unwrap();
        let before = memory_of(own).unwrap();
        let large = vec![1_u8; 64 * 1024 * 1024];
        assert!(memory_of(own).unwrap() > before + 32 * 1024 * 1024);
        drop(large);
    }

    #[test]
    fn the_processor_time_is_that_of_the_process_whatever_its_name_is() {
        let stat = b"7 (a) 1 (b)) Z 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0 1 0 0 0\n";
        let ticks = rustix::param::clock_ticks_per_second();
        assert_eq!(processor_time_in(stat), Some(Duration::from_millis(175 * 1000 / ticks)));
        assert_eq!(processor_time_in(b"7 (a"), None);
        let own = Pid::from_raw(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(processor_time_of(own).is_some());
        let limits = ResourceLimits { cpu_seconds: Some(2), data_bytes: None };
        let (short, long) = (Some(Duration::from_millis(1990)), Some(Duration::from_secs(3)));
        assert!(is_out_of_time(Some(Exit::Signal(9)), long, limits));
        assert!(!is_out_of_time(Some(Exit::Signal(9)), short, limits));
        assert!(!is_out_of_time(Some(Exit::Signal(9)), None, limits));
        assert!(!is_out_of_time(Some(Exit::Signal(9)), long, ResourceLimits::default()));
        assert!(is_out_of_time(Some(Exit::Signal(24)), None, ResourceLimits::default()));
        assert!(!is_out_of_time(Some(Exit::Code(1)), long, limits));
        assert!(!is_out_of_time(None, long, limits));
    }

    #[test]
    fn the_line_of_a_trace_file_names_it() {
        let line = "Could not open trace file a: b.log: permission denied";
        assert_eq!(trace_file_in(line).as_deref(), Some("a: b.log"));
        assert_eq!(trace_file_in("a warning: Could not open trace file x: y"), None);
    }
}
