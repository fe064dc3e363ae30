//! What the launcher is told, and what it tells, as JSON. Pure; nothing here fails.

use serde::{Deserialize, Serialize};

use super::landlock::LandlockPolicy;

/// The descriptor of the result in the child.
pub const RESULT_DESCRIPTOR: i32 = 3;

/// The descriptor on which the child waits to be told to begin.
pub const CONTROL_DESCRIPTOR: i32 = 4;

/// The largest plan that is read, in bytes.
pub const LARGEST_PLAN: usize = 1024 * 1024;

/// How the launcher confines itself and what it does then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LaunchPlan {
    /// The process that started the launcher: if it is gone, so is the reason to go on.
    pub parent: u32,
    /// What it does once it is confined.
    pub task: LaunchTask,
    /// Resource limits.
    pub limits: ResourceLimits,
    /// The kernel's layers.
    pub layers: Layers,
}

/// What the launcher does once it is confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum LaunchTask {
    /// It becomes a program.
    Become {
        /// The absolute path of the program.
        program: String,
        /// Its arguments, without its own name.
        arguments: Vec<String>,
    },
    /// It tries what it must not be able to do, and tells what came of it.
    Probe {
        /// A file that it must not be able to read, in a directory where it must not be able to make one.
        file: String,
        /// A size of memory in bytes that it must not be able to take.
        memory_bytes: u64,
    },
}

/// The layers that are to be applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Layers {
    /// Landlock, with what may be opened.
    pub landlock: Option<LandlockPolicy>,
    /// The filters on system calls.
    pub seccomp: bool,
    /// Whether a layer that cannot be applied ends the launcher. Else it is told and gone without.
    pub required: bool,
}

/// Resource limits; nothing leaves one as it is inherited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceLimits {
    /// Processor time in seconds (`RLIMIT_CPU`).
    pub cpu_seconds: Option<u64>,
    /// Private writable memory in bytes (`RLIMIT_DATA`).
    pub data_bytes: Option<u64>,
}

/// A layer by its name in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Landlock.
    Landlock,
    /// The filters on system calls.
    Seccomp,
    /// Resource limits.
    ResourceLimits,
}

/// Why the launcher did not do what it was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaunchFailure {
    /// What it was doing, for a person.
    pub step: String,
    /// What the system said.
    pub reason: String,
}

/// One line of the launcher's report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LaunchLine {
    /// A layer was applied.
    Applied(Layer),
    /// A layer could not be applied and was not required: which, and why.
    Missing(Layer, String),
    /// The launcher ends.
    Failed(LaunchFailure),
    /// What a probe found out.
    Probed(Probed),
}

/// What a probe found out: for each attempt, whether it was refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "one for each attempt")]
pub struct Probed {
    /// Reading a file outside.
    pub read: bool,
    /// Listing a directory outside.
    pub list: bool,
    /// Making a file outside.
    pub write: bool,
    /// Getting a socket, of the internet and of unix.
    pub network: bool,
    /// Starting a process.
    pub process: bool,
    /// Signalling the parent by name.
    pub signal: bool,
    /// Having a descriptor signal the parent.
    pub signal_by_descriptor: bool,
    /// Taking more private memory than allowed.
    pub memory: bool,
    /// Taking memory that no limit counts: shared, or growing down.
    pub uncounted_memory: bool,
    /// Opening `/dev/zero` for writing: its shared pages are memory that no limit counts.
    pub memory_device: bool,
    /// Emptying a file outside by opening it for nothing else.
    pub truncate: bool,
    /// Making a user namespace, in which a process has every capability.
    pub namespace: bool,
}

/// Reads the lines of a launcher's report; what is no line of one is passed over.
#[must_use]
pub fn read_report(text: &[u8]) -> Vec<LaunchLine> {
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
