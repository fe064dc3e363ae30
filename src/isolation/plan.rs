//! What the launcher is told, and what it tells, as JSON. Pure; nothing here fails.

use serde::{Deserialize, Serialize};

/// The descriptor of the result in the child.
pub const RESULT_DESCRIPTOR: i32 = 3;

/// The descriptor on which the child waits to be told to begin.
pub const CONTROL_DESCRIPTOR: i32 = 4;

/// The largest plan that is read, in bytes.
pub const LARGEST_PLAN: usize = 1024 * 1024;

/// How the launcher confines itself and what it becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LaunchPlan {
    /// The process that started the launcher: if it is gone, so is the reason to go on.
    pub parent: u32,
    /// The absolute path of the program to become.
    pub program: String,
    /// Its arguments, without its own name.
    pub arguments: Vec<String>,
    /// Resource limits.
    pub limits: ResourceLimits,
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

/// Why the launcher did not become the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaunchFailure {
    /// What it was doing, for a person.
    pub step: String,
    /// What the system said.
    pub reason: String,
}
