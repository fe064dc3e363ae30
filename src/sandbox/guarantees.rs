//! What holds a child, found out by probes: which layers the kernel has, and which guarantee each of them really holds.
//!
//! The launcher confines itself with one layer at a time and tries (`isolation::probe`); what is found is kept for the
//! process, since neither the kernel nor the filters above a process change. Fails where the launcher cannot be started;
//! a layer that is not there is an answer, with its reason. Source: `contract/sandbox.md`, "Isolation".

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use serde::Serialize;

use super::child::{self, ChildRequest, Signals};
use crate::failure::Result;
use crate::fs::Beneath;
use crate::fs::private_root::PrivateRoot;
use crate::isolation::landlock::{self, LandlockPolicy};
use crate::isolation::plan::{LaunchLine, LaunchPlan, LaunchTask, Layer, Layers, Probed, ResourceLimits};

/// Memory that a probe may take, in bytes: the launcher itself needs a few MiB.
const PROBE_MEMORY: u64 = 64 * 1024 * 1024;

/// A launcher that does not come back from a probe in this time holds nothing.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// A layer that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TriedLayer {
    /// What it refused; nothing where it could not be applied.
    pub refused: Option<Probed>,
    /// Why it could not be applied.
    pub reason: Option<String>,
    /// Whether the launcher said so itself, so that it is no accident of the moment.
    #[serde(skip)]
    pub answered: bool,
}

/// What the kernel's layers hold here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KernelLayers {
    /// The version of Landlock's interface.
    pub landlock_abi: Option<u32>,
    /// Landlock.
    pub landlock: TriedLayer,
    /// The filters on system calls.
    pub seccomp: TriedLayer,
    /// Resource limits.
    pub resource_limits: TriedLayer,
}

impl KernelLayers {
    /// The same for a child that went without some layers, each with the reason.
    #[must_use]
    pub fn without(mut self, missing: &[(Layer, String)]) -> Self {
        for (layer, reason) in missing {
            let tried = match layer {
                Layer::Landlock => &mut self.landlock,
                Layer::Seccomp => &mut self.seccomp,
                Layer::ResourceLimits => &mut self.resource_limits,
            };
            (tried.refused, tried.reason) = (None, Some(reason.clone()));
        }
        self
    }
}

static FOUND: Mutex<Option<KernelLayers>> = Mutex::new(None);

/// Tries every layer, once for the process.
///
/// # Errors
/// The system's error where the launcher cannot be started, or the temp directory not be written to.
pub fn kernel_layers(launcher: &Path, temp_directory: &Path, signals: &Signals) -> Result<KernelLayers> {
    // The lock is not held while the launcher runs: two first calls at once both try, and find the same.
    let known = FOUND.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    if let Some(known) = known {
        return Ok(known);
    }
    let root = PrivateRoot::create(temp_directory, "sallyport-probe-", Beneath::detected())?;
    let found = try_all(launcher, &root, signals);
    root.remove()?;
    let found = found?;
    // An answer is a fact about the kernel; a launcher that did not come back is not, and is asked again.
    if [&found.landlock, &found.seccomp, &found.resource_limits].iter().all(|layer| layer.answered) {
        *FOUND.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(found.clone());
    }
    Ok(found)
}

fn try_all(launcher: &Path, root: &PrivateRoot, signals: &Signals) -> Result<KernelLayers> {
    let file = root.path().join("outside");
    root.directory().create_file(b"outside").map_err(|error| error.at(&file))?;
    let attempt = |layer, layers, limits| try_layer(launcher, &file, layer, layers, limits, signals);
    let none = ResourceLimits::default();
    let landlock = Layers { landlock: Some(LandlockPolicy::default()), seccomp: false, required: true };
    let seccomp = Layers { landlock: None, seccomp: true, required: true };
    let limited = ResourceLimits { data_bytes: Some(PROBE_MEMORY), ..none };
    let mut resource_limits = attempt(Layer::ResourceLimits, Layers::default(), limited)?;
    if !child::can_see_memory() {
        // Memory that is read-only by now is counted by that look alone.
        let reason = "/proc does not tell the memory of this process, so that of a child cannot be looked at";
        (resource_limits.refused, resource_limits.reason) = (None, Some(reason.to_owned()));
    }
    Ok(KernelLayers {
        landlock_abi: landlock::version().ok(),
        landlock: attempt(Layer::Landlock, landlock, none)?,
        seccomp: attempt(Layer::Seccomp, seccomp, none)?,
        resource_limits,
    })
}

fn try_layer(
    launcher: &Path,
    file: &Path,
    layer: Layer,
    layers: Layers,
    limits: ResourceLimits,
    signals: &Signals,
) -> Result<TriedLayer> {
    let request = ChildRequest {
        launcher: launcher.to_path_buf(),
        plan: LaunchPlan {
            parent: std::process::id(),
            task: LaunchTask::Probe { file: file.to_string_lossy().into_owned(), memory_bytes: 2 * PROBE_MEMORY },
            limits,
            layers,
        },
        environment: Vec::new(),
        largest_result: 1,
        timeout: PROBE_TIMEOUT,
    };
    signals.renew_control()?;
    let end = child::run(&request, signals, &mut |_| {})?;
    let refused = end.launcher.iter().find_map(|line| match line {
        LaunchLine::Probed(probed) => Some(*probed),
        _ => None,
    });
    let applied = end.launcher.contains(&LaunchLine::Applied(layer));
    let reason = end.launcher.iter().find_map(|line| match line {
        LaunchLine::Failed(failure) => Some(format!("{}: {}", failure.step, failure.reason)),
        _ => None,
    });
    Ok(match refused {
        Some(refused) if applied => TriedLayer { refused: Some(refused), reason: None, answered: true },
        _ => TriedLayer {
            refused: None,
            answered: reason.is_some(),
            reason: Some(reason.unwrap_or_else(|| {
                let exit = end.exit.map_or_else(|| "no exit".to_owned(), |exit| exit.to_string());
                format!("the launcher ended without an answer ({exit})")
            })),
        },
    })
}

/// One property that a child shall have, and what holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guarantee {
    /// Whether a layer of the kernel holds it that a probe has shown to hold.
    pub held: bool,
    /// Every mechanism that works towards it.
    pub by: Vec<&'static str>,
    /// Why it is not held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guarantees {
    /// No file outside the grants.
    pub files: Guarantee,
    /// No network.
    pub network: Guarantee,
    /// No process.
    pub processes: Guarantee,
    /// No signal outside.
    pub signals: Guarantee,
    /// Bounded memory.
    pub memory: Guarantee,
}

impl Guarantees {
    /// Whether every one is held.
    #[must_use]
    pub fn all_held(&self) -> bool {
        self.each().iter().all(|(_, guarantee)| guarantee.held)
    }

    /// Each with its name.
    #[must_use]
    pub fn each(&self) -> [(&'static str, &Guarantee); 5] {
        [
            ("files", &self.files),
            ("network", &self.network),
            ("processes", &self.processes),
            ("signals", &self.signals),
            ("memory", &self.memory),
        ]
    }
}

/// The layers that are asked to hold a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The kernel's layers, or only Node's Permission Model.
    pub kernel: bool,
    /// The major version of the child's Node.
    pub node_major: u32,
}

/// A layer that can hold a guarantee: its name, what was found of it, and the attempts that it must refuse.
type Holder<'a> = (&'static str, &'a TriedLayer, fn(&Probed) -> bool);

/// What holds a child that is asked to be held by these layers.
#[must_use]
pub fn guarantees(layers: &KernelLayers, asked: Asked) -> Guarantees {
    const MODEL: &str = "node-permission-model";
    let refuses =
        |layer: &TriedLayer, what: fn(&Probed) -> bool| asked.kernel && layer.refused.as_ref().is_some_and(what);
    let guarantee = |model: bool, holders: &[Holder<'_>]| {
        let by: Vec<&'static str> =
            holders.iter().filter(|(_, layer, what)| refuses(layer, *what)).map(|(name, ..)| *name).collect();
        let held = !by.is_empty();
        let reason = (!held).then(|| {
            if !asked.kernel {
                return "no kernel layer was asked for; Node's Permission Model is no boundary against hostile code"
                    .to_owned();
            }
            holders
                .iter()
                .map(|(name, layer, _)| {
                    let why =
                        layer.reason.as_deref().unwrap_or("it was applied and a probe showed that it does not hold");
                    format!("{name}: {why}")
                })
                .collect::<Vec<_>>()
                .join("; ")
        });
        Guarantee { held, by: by.into_iter().chain(model.then_some(MODEL)).collect(), reason }
    };
    let (landlock, seccomp, limits) = (&layers.landlock, &layers.seccomp, &layers.resource_limits);
    // Before its version 3 Landlock lets a file be emptied that may be read; the filters refuse that too.
    let emptied = guarantee(
        false,
        &[("landlock", landlock, |probed| probed.truncate), ("seccomp", seccomp, |probed| probed.truncate)],
    );
    let files = guarantee(true, &[("landlock", landlock, |probed| probed.read && probed.list && probed.write)]);
    // The limit counts private memory only; the filters refuse the rest, but for what is mapped from a file that could be
    // opened for writing.
    let counted = guarantee(false, &[("resource-limits", limits, |probed| probed.memory)]);
    let uncounted = guarantee(false, &[("seccomp", seccomp, |probed| probed.uncounted_memory)]);
    let devices = guarantee(false, &[("landlock", landlock, |probed| probed.memory_device)]);
    Guarantees {
        files: both(files, emptied),
        network: guarantee(asked.node_major >= 25, &[("seccomp", seccomp, |probed| probed.network)]),
        processes: guarantee(true, &[("seccomp", seccomp, |probed| probed.process && probed.namespace)]),
        signals: guarantee(
            false,
            &[
                // Its scope is looked at when a signal is sent, by whatever road; the filters must close each road.
                ("landlock", landlock, |probed| probed.signal),
                ("seccomp", seccomp, |probed| probed.signal && probed.signal_by_descriptor),
            ],
        ),
        memory: both(both(counted, uncounted), devices),
    }
}

/// A guarantee of two halves, where one without the other holds nothing.
fn both(one: Guarantee, other: Guarantee) -> Guarantee {
    let mut by = one.by;
    by.extend(other.by.into_iter().filter(|name| !by.contains(name)).collect::<Vec<_>>());
    Guarantee { held: one.held && other.held, by, reason: one.reason.or(other.reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(refused: Option<Probed>) -> TriedLayer {
        let reason = refused.is_none().then(|| "not there".to_owned());
        TriedLayer { refused, reason, answered: true }
    }

    #[test]
    fn each_guarantee_falls_with_the_layer_that_holds_it() {
        let files = Probed {
            read: true,
            list: true,
            write: true,
            truncate: true,
            signal: true,
            memory_device: true,
            ..Probed::default()
        };
        let calls = Probed {
            network: true,
            process: true,
            signal: true,
            signal_by_descriptor: true,
            uncounted_memory: true,
            truncate: true,
            namespace: true,
            ..Probed::default()
        };
        let memory = Probed { memory: true, ..Probed::default() };
        let all = KernelLayers {
            landlock_abi: Some(7),
            landlock: layer(Some(files)),
            seccomp: layer(Some(calls)),
            resource_limits: layer(Some(memory)),
        };
        let asked = Asked { kernel: true, node_major: 24 };
        assert!(guarantees(&all, asked).all_held());
        assert!(!guarantees(&all, Asked { kernel: false, ..asked }).files.held);

        let without_landlock = guarantees(&KernelLayers { landlock: layer(None), ..all.clone() }, asked);
        let held: Vec<bool> = without_landlock.each().iter().map(|(_, guarantee)| guarantee.held).collect();
        assert_eq!(held, [false, true, true, true, false]);
        assert_eq!(without_landlock.files.reason.as_deref(), Some("landlock: not there"));

        let without_seccomp = guarantees(&KernelLayers { seccomp: layer(None), ..all.clone() }, asked);
        let held: Vec<bool> = without_seccomp.each().iter().map(|(_, guarantee)| guarantee.held).collect();
        assert_eq!(held, [true, false, false, true, false]);

        let gone = |layer| guarantees(&all.clone().without(&[(layer, "not there".to_owned())]), asked);
        assert_eq!(gone(Layer::Landlock), without_landlock);
        assert_eq!(gone(Layer::Seccomp), without_seccomp);
        // The half that works is still told.
        assert_eq!(without_seccomp.memory.by, ["resource-limits", "landlock"]);
        assert_eq!(without_landlock.memory.by, ["resource-limits", "seccomp"]);
        assert!(!gone(Layer::ResourceLimits).memory.held);

        // An old version of Landlock, with the filters and without.
        let old = KernelLayers { landlock: layer(Some(Probed { truncate: false, ..files })), ..all.clone() };
        assert!(guarantees(&old, asked).files.held);
        assert!(!guarantees(&KernelLayers { seccomp: layer(None), ..old }, asked).files.held);

        // Accepted, and holding nothing.
        let hollow = guarantees(&KernelLayers { landlock: layer(Some(Probed::default())), ..all }, asked);
        assert!(!hollow.files.held);
    }
}
