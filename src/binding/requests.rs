//! The requests of jobs as `js/` writes them, and doing them. Conversions only.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::job::{Outcome, Running};
use super::lease::find;
use super::queue::Lane;
use crate::failure::{ContainedCode, Failure, Result};
use crate::fs::Beneath;
use crate::fs::private_root::{PrivateRoot, sweep};
use crate::isolation::plan::{LaunchLine, LaunchPlan, LaunchTask, Layer, Layers, ResourceLimits};
use crate::isolation::program::program_files;
use crate::mirror::{self, Lease, MirrorLimits, MirrorReport, MirrorRequest};
use crate::sandbox::child::{self, ChildRequest};
use crate::sandbox::classify::Boundary;
use crate::sandbox::guarantees::{Asked, Guarantees, KernelLayers, guarantees, kernel_layers};
use crate::sandbox::result::{Expected, Report, report};
use crate::tree::control::ProgressPhase;
use crate::tree::difference::read_observed_changes;
use crate::tree::index::{IndexQuotas, IndexRequest, build_tree_index};
use crate::tree::read::Links;
use crate::tree::snapshot::{hash_file_content, read_snapshot_node};

/// What is to be done; the tag is the kind that `startJob` is given.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Request {
    Mirror {
        source_root: PathBuf,
        control_plane_roots: Vec<PathBuf>,
        limits: Limits,
        hardlinks: Hardlinks,
        preserve_times: bool,
        flush: bool,
        temp_directory: PathBuf,
    },
    Dispose {
        lease: u32,
    },
    Index {
        resource_root: PathBuf,
        excluded_roots: Vec<PathBuf>,
        quotas: Option<Quotas>,
        deadline_ms: Option<f64>,
    },
    Observed {
        baseline_root: PathBuf,
        execution_root: PathBuf,
        relative_paths: Vec<String>,
    },
    SnapshotNode {
        path: PathBuf,
    },
    HashFile {
        path: PathBuf,
    },
    Sweep {
        temp_directory: PathBuf,
        older_than_ms: u64,
    },
    Sandbox(Box<SandboxRequest>),
    Probe {
        launcher: PathBuf,
        temp_directory: PathBuf,
        node_major: u32,
        kernel: bool,
        /// Layers that the child in question went without, and why.
        #[serde(default)]
        missing: Vec<(Layer, String)>,
    },
    ProgramFiles {
        path: PathBuf,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SandboxRequest {
    launcher: PathBuf,
    program: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    cpu_seconds: Option<u64>,
    memory_limit_bytes: Option<u64>,
    max_result_bytes: u64,
    timeout_ms: u64,
    expected: Expected,
    label: String,
    readable: Vec<String>,
    layers: Layers,
    /// Removed when the child is dead: JavaScript may be gone by then.
    bundle_directory: PathBuf,
    /// The same, from [`Request::hold`] on: no sweep takes it meanwhile.
    #[serde(skip)]
    held: Option<PrivateRoot>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SandboxAnswer<'a> {
    report: Report<'a>,
    /// Layers that could not be applied, with the reason.
    missing: Vec<(Layer, &'a str)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProbeAnswer<'a> {
    layers: &'a KernelLayers,
    guarantees: Guarantees,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Limits {
    max_files: u64,
    max_source_bytes: u64,
    max_workspace_bytes: u64,
    prepare_timeout_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Quotas {
    max_files: u64,
    max_source_bytes: u64,
    prepare_timeout_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Hardlinks {
    Reject,
    Copy,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PreparedMirror<'a> {
    host_mirror_root: std::borrow::Cow<'a, str>,
    guest_workspace_path: std::borrow::Cow<'a, str>,
    report: &'a MirrorReport,
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Failure::Internal(format!("an answer is no JSON: {error}")))
}

impl Request {
    /// Where it waits for its turn.
    pub(super) fn lane(&self) -> Lane {
        match self {
            Self::Dispose { .. } | Self::SnapshotNode { .. } | Self::HashFile { .. } | Self::ProgramFiles { .. } => {
                Lane::Prompt
            }
            _ => Lane::Long,
        }
    }

    /// Whether it ends when it is called off before its turn. Removing a mirror does not: at the end of a process there is
    /// nobody to do it later.
    pub(super) fn may_be_withdrawn(&self) -> bool {
        !matches!(self, Self::Dispose { .. })
    }

    /// Takes hold of what it works in, before it waits for its turn.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn hold(&mut self) -> Result<()> {
        if let Self::Sandbox(sandbox) = self {
            sandbox.held = Some(PrivateRoot::hold_run(&sandbox.bundle_directory, Beneath::detected())?);
        }
        Ok(())
    }

    /// Ends it before its turn.
    pub(super) fn withdraw(self) -> Failure {
        if let Self::Sandbox(sandbox) = self {
            remove_bundle(sandbox.held.as_ref());
        }
        Failure::Aborted
    }

    /// Does it.
    pub(super) fn run(self, running: &Running) -> Result<Outcome> {
        let mut control = running.control();
        match self {
            Self::Mirror {
                source_root,
                control_plane_roots,
                limits,
                hardlinks,
                preserve_times,
                flush,
                temp_directory,
            } => {
                let request = MirrorRequest {
                    source_root,
                    control_plane_roots,
                    limits: MirrorLimits {
                        max_files: limits.max_files,
                        max_source_bytes: limits.max_source_bytes,
                        max_workspace_bytes: limits.max_workspace_bytes,
                        prepare_timeout_milliseconds: limits.prepare_timeout_ms,
                    },
                    links: match hardlinks {
                        Hardlinks::Reject => Links::Single,
                        Hardlinks::Copy => Links::Any,
                    },
                    preserve_times,
                    flush,
                    temp_directory,
                    beneath: Beneath::detected(),
                };
                let lease = Lease::from(mirror::prepare(&request, &mut control, running)?);
                let value = json(&PreparedMirror {
                    host_mirror_root: lease.host_mirror_root().to_string_lossy(),
                    guest_workspace_path: lease.guest_workspace_path().to_string_lossy(),
                    report: lease.report(),
                })?;
                Ok(Outcome { value, lease: Some(lease) })
            }
            Self::Dispose { lease } => {
                // The handle that asks holds the lease, so it can only be missing by a fault of this package.
                let lease = find(lease).ok_or_else(|| Failure::contained(ContainedCode::InvalidMirrorLease))?;
                control.begin(ProgressPhase::Dispose, None);
                lease.dispose(running)?;
                Ok(Outcome::value("null".to_owned()))
            }
            Self::Index { resource_root, excluded_roots, quotas, deadline_ms } => {
                #[allow(clippy::cast_precision_loss, reason = "a safe integer of JavaScript is exact as a double")]
                let deadline = match (deadline_ms, &quotas) {
                    (Some(deadline), _) => Some(deadline),
                    (None, Some(quotas)) => Some(control.now_milliseconds()? + quotas.prepare_timeout_ms as f64),
                    (None, None) => None,
                };
                if let Some(deadline) = deadline {
                    control.set_deadline(deadline, "snapshot");
                }
                let quotas = quotas.map(|quotas| IndexQuotas {
                    max_files: quotas.max_files,
                    max_source_bytes: quotas.max_source_bytes,
                });
                let request = IndexRequest { resource_root, excluded_roots, quotas, beneath: Beneath::detected() };
                json(&build_tree_index(&request, &control)?).map(Outcome::value)
            }
            Self::Observed { baseline_root, execution_root, relative_paths } => {
                let paths: Vec<Vec<u8>> = relative_paths.into_iter().map(String::into_bytes).collect();
                json(&read_observed_changes(&baseline_root, &execution_root, &paths, &control)?).map(Outcome::value)
            }
            Self::SnapshotNode { path } => json(&read_snapshot_node(&path, &control)?).map(Outcome::value),
            Self::HashFile { path } => json(&hash_file_content(&path, &control)?).map(Outcome::value),
            Self::Sweep { temp_directory, older_than_ms } => {
                let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let now = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
                json(&sweep(&temp_directory, older_than_ms, now)?).map(Outcome::value)
            }
            Self::Sandbox(sandbox) => sandbox.run(running),
            Self::Probe { launcher, temp_directory, node_major, kernel, missing } => {
                let layers = kernel_layers(&launcher, &temp_directory, &*running.signals()?)?;
                let guarantees = guarantees(&layers.clone().without(&missing), Asked { kernel, node_major });
                json(&ProbeAnswer { layers: &layers, guarantees }).map(Outcome::value)
            }
            Self::ProgramFiles { path } => match program_files(&path) {
                Ok(files) => json(&files).map(Outcome::value),
                // Told as data: the caller knows by which name the program was given to it.
                Err(reason) => json(&serde_json::json!({ "reason": reason })).map(Outcome::value),
            },
        }
    }
}

/// Removes the directory of a bundle whose run is over. The caller's side looks for it again, and after a run that was
/// called off waits for the bundler before; where that side has ended, nobody else will. What is left or fails here is
/// found by it, or by a sweep.
fn remove_bundle(held: Option<&PrivateRoot>) {
    let _removed = held.map(PrivateRoot::remove);
}

impl SandboxRequest {
    fn run(self, running: &Running) -> Result<Outcome> {
        let request = ChildRequest {
            launcher: self.launcher,
            plan: LaunchPlan {
                parent: std::process::id(),
                task: LaunchTask::Become { program: self.program, arguments: self.arguments },
                limits: ResourceLimits { cpu_seconds: self.cpu_seconds, data_bytes: self.memory_limit_bytes },
                layers: self.layers,
            },
            environment: self.environment,
            largest_result: self.max_result_bytes,
            timeout: Duration::from_millis(self.timeout_ms),
        };
        let signals = running.signals()?;
        let end = child::run(&request, &signals, &mut |lines| running.output(lines));
        // What the caller's side may still write to is removed by it.
        if running.is_cancelled() || signals.has_begun() {
            remove_bundle(self.held.as_ref());
        }
        let end = end?;
        // What a run at best-effort went without refuses nothing.
        let applied = end.launcher.iter().filter_map(|line| match line {
            LaunchLine::Applied(layer) if *layer != Layer::ResourceLimits => Some(*layer),
            _ => None,
        });
        let boundary = Boundary::new(self.readable, applied.collect());
        let missing = end.launcher.iter().filter_map(|line| match line {
            LaunchLine::Missing(layer, reason) => Some((*layer, reason.as_str())),
            _ => None,
        });
        let report = report(&end, self.expected, &boundary, &self.label);
        json(&SandboxAnswer { report, missing: missing.collect() }).map(Outcome::value)
    }
}

/// The failure of starting a thread.
pub(super) fn no_thread(error: &std::io::Error) -> Failure {
    Failure::system_without_path(error.raw_os_error().unwrap_or_default(), "pthread_create")
}
