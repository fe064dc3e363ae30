//! Verified private mirrors: plan, copy, verify, dispose.
//!
//! The order of the steps and every rule come from `contract/mirror.md`. Three readings: the plan walks by metadata and
//! checks the limits before a byte is written; the copy hashes what it writes; then source and copy are walked once more
//! and read side by side. A mirror is returned only if all of them agree. Any failure removes what was made; where the
//! removal fails too, that failure wins, since a copy of a workspace that nobody knows of must not lie about.
//!
//! | file | what it does |
//! | --- | --- |
//! | `rules` | what the walk skips, takes and refuses |
//! | `plan` | the first walk; Git's data, limits, hard links |
//! | `copy` | writing the copy |
//! | `verify` | the last reading |
//! | `dispose` | removing a root, and confirming it |
//! | `hooks` | the seams that tests use |
//! | `lease` | what stays held while a mirror is in use |
//! | `turn` | how many mirrors are made at a time |

pub mod copy;
pub mod dispose;
pub mod hooks;
pub mod lease;
pub mod plan;
pub mod rules;
mod turn;
pub mod verify;

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use crate::failure::{ContainedCode, Failure, Result};
use crate::fs::directory::path_bytes;
use crate::fs::path::{at_or_within, canonical_path, lexical_path};
use crate::fs::private_root::{MIRROR_PREFIX, PrivateRoot};
use crate::fs::{Beneath, Directory, NodeType, absolute};
use crate::tree::control::{Control, ProgressPhase};
use crate::tree::index::tree_hash;
use crate::tree::read::Links;
use crate::tree::walk::Root;
use crate::tree::work::thread_count;
pub use hooks::Hooks;
pub use lease::Lease;
pub use plan::{SkipRule, Skipped};
use turn::Turn;

/// The limits of a mirror; each at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MirrorLimits {
    /// The most entries, directories and links included.
    pub max_files: u64,
    /// The most bytes read from the source in one reading.
    pub max_source_bytes: u64,
    /// The most bytes written: files, and the texts of links.
    pub max_workspace_bytes: u64,
    /// How long preparing may take, in milliseconds.
    pub prepare_timeout_milliseconds: u64,
}

/// What to mirror, and how.
#[derive(Debug, Clone)]
pub struct MirrorRequest {
    /// The absolute source, with its links as the caller gave them.
    pub source_root: PathBuf,
    /// Absolute paths that must never be copied.
    pub control_plane_roots: Vec<PathBuf>,
    /// The limits.
    pub limits: MirrorLimits,
    /// What happens to files with several names.
    pub links: Links,
    /// Whether the copy gets the times of the source.
    pub preserve_times: bool,
    /// Whether the copy is flushed to the disk.
    pub flush: bool,
    /// Where the private root is made.
    pub temp_directory: PathBuf,
    /// The way in which paths are opened.
    pub beneath: Beneath,
}

/// How long each part took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct PhaseMilliseconds {
    /// The first walk.
    pub snapshot: f64,
    /// Copying.
    pub copy: f64,
    /// The last reading.
    pub verify: f64,
}

/// What a mirror holds and what was left out of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MirrorReport {
    /// The tree hash that source and copy agree on.
    pub tree_hash: String,
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symlinks.
    pub symlinks: u64,
    /// Bytes in files.
    pub bytes: u64,
    /// How long each part took.
    pub milliseconds: PhaseMilliseconds,
    /// What was left out, in path order.
    pub skipped: Vec<Skipped>,
}

/// A mirror that is ready.
#[derive(Debug)]
pub struct Mirror {
    /// The private root, held.
    pub root: PrivateRoot,
    /// The lexical source root: where a guest is to see the mirror.
    pub guest_workspace_path: PathBuf,
    /// The canonical source root.
    pub source_root: PathBuf,
    /// The canonical protected roots, as they were given.
    pub protected_roots: Vec<PathBuf>,
    /// What it holds.
    pub report: MirrorReport,
}

/// Whether a canonical path is at or within a protected root.
fn is_protected(path: &Path, protected_roots: &[PathBuf]) -> bool {
    protected_roots.iter().any(|root| at_or_within(root, path))
}

/// Whether a walk of the source would come upon this place.
fn walk_would_see(source_root: &Path, protected_roots: &[PathBuf], place: &Path) -> bool {
    let Ok(relative) = place.strip_prefix(source_root) else { return false };
    let in_git = relative.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
    !in_git && !is_protected(place, protected_roots)
}

/// Whether a path can be handed to JavaScript, and back, without loss: a handle names its root by text.
fn has_text(path: &Path) -> bool {
    path.to_str().is_some()
}

/// Makes a verified mirror.
///
/// # Errors
/// Every refusal of `contract/mirror.md`, in the order of its steps. Nothing is left behind, or the failure is
/// [`Failure::CleanupUnconfirmed`].
pub fn prepare(request: &MirrorRequest, control: &mut Control<'_>, hooks: &dyn Hooks) -> Result<Mirror> {
    // Step 3: the spelling that a guest sees, and the real places.
    let guest_workspace_path = lexical_path(&request.source_root);
    let source_root = canonical_path(&request.source_root);
    let protected_roots: Vec<PathBuf> = request.control_plane_roots.iter().map(|root| canonical_path(root)).collect();
    // Step 4. Up to here nothing has been created.
    if is_protected(&source_root, &protected_roots) {
        return Err(Failure::contained(ContainedCode::SourceIsProtected));
    }
    // The place of a hook's root is known only once the hook has made it.
    if !hooks.makes_temp_root() {
        let temp_directory = canonical_path(&request.temp_directory);
        if !has_text(&temp_directory) || walk_would_see(&source_root, &protected_roots, &temp_directory) {
            return Err(Failure::contained(ContainedCode::BoundaryFailed));
        }
    }
    control.checkpoint()?;
    let _turn = Turn::wait(control, hooks)?;
    // Step 5.
    let root = match hooks.make_temp_root()? {
        None => PrivateRoot::create(&request.temp_directory, MIRROR_PREFIX, request.beneath)?,
        Some(given) if has_text(&canonical_path(&given)) => PrivateRoot::hold_empty(&given, request.beneath)?,
        Some(_) => return Err(Failure::contained(ContainedCode::BoundaryFailed)),
    };
    // Steps 6 and 7, and 8 for all that fails in them.
    let filled = fill(request, &source_root, &protected_roots, &root, control, hooks);
    match filled {
        Ok(report) => Ok(Mirror { root, guest_workspace_path, source_root, protected_roots, report }),
        Err(failure) => {
            control.begin(ProgressPhase::Dispose, None);
            Err(match dispose::remove(&root, hooks) {
                Ok(()) => failure,
                Err(Failure::CleanupUnconfirmed { mirror_root, cause, .. }) => {
                    Failure::CleanupUnconfirmed { mirror_root, cause, preparation: Some(Box::new(failure)) }
                }
                Err(other) => other,
            })
        }
    }
}

fn fill(
    request: &MirrorRequest,
    source_root: &Path,
    protected_roots: &[PathBuf],
    private: &PrivateRoot,
    control: &mut Control<'_>,
    hooks: &dyn Hooks,
) -> Result<MirrorReport> {
    if walk_would_see(source_root, protected_roots, private.path()) {
        return Err(Failure::contained(ContainedCode::BoundaryFailed));
    }
    #[allow(clippy::cast_precision_loss, reason = "limits are safe integers of JavaScript, which are exact as doubles")]
    let allowed = request.limits.prepare_timeout_milliseconds as f64;
    control.set_deadline(control.now_milliseconds()? + allowed, "mirror");
    let control = &*control;
    // With any seam in place, everything happens in path order on one thread, so that tests are deterministic.
    let threads = if hooks.any() { 1 } else { thread_count() };

    let started = Instant::now();
    control.begin(ProgressPhase::Snapshot, None);
    let source_directory = open_source(source_root, request.beneath)?;
    let source = Root { directory: &source_directory, path: source_root };
    let plan = plan::plan(request, source, protected_roots, control)?;
    let snapshot = elapsed_milliseconds(started);
    hooks.after_snapshot_captured()?;

    let started = Instant::now();
    control.begin(ProgressPhase::Copy, Some((plan.entries.len() as u64, plan.bytes)));
    let copy = Root { directory: private.directory(), path: private.path() };
    let contents = copy::copy(request, &plan, source, copy, threads, control, hooks)?;
    let copied = elapsed_milliseconds(started);

    let started = Instant::now();
    control.begin(ProgressPhase::Verify, Some((plan.entries.len() as u64, plan.bytes)));
    verify::verify(request, &plan, &contents, source, copy, threads, control)?;
    copy::give_final_permissions(&plan, copy, control)?;
    private.directory().set_permissions(0o700).map_err(|error| error.at(private.path()))?;
    if request.flush {
        private.directory().flush().map_err(|error| error.at(private.path()))?;
    }
    // All of this was done through the descriptor, and the caller has only the path.
    if !private.is_in_place() {
        return Err(Failure::contained(ContainedCode::BoundaryFailed));
    }
    let tree_hash = tree_hash(&plan.entries, &contents).as_str().to_owned();
    Ok(MirrorReport {
        tree_hash,
        files: plan.files,
        directories: plan.directories,
        symlinks: plan.symlinks,
        bytes: plan.bytes,
        milliseconds: PhaseMilliseconds { snapshot, copy: copied, verify: elapsed_milliseconds(started) },
        skipped: plan.skipped,
    })
}

/// Opens the source: missing is the system's error, anything but a directory has its own code.
fn open_source(source_root: &Path, beneath: Beneath) -> Result<Directory> {
    match absolute::metadata(source_root, "realpath")?.node_type {
        NodeType::Directory => {}
        // No link is left in a path that could be resolved: this one leads nowhere, which is the system's to say, or it
        // was put there since.
        NodeType::Symlink => {
            absolute::real_path(source_root, "realpath")?;
            return Err(Failure::contained(ContainedCode::SourceChanged));
        }
        NodeType::File | NodeType::Special(_) => return Err(Failure::contained(ContainedCode::SourceNotDirectory)),
    }
    Directory::open_canonical(source_root, beneath).map_err(|error| error.at(source_root))
}

fn elapsed_milliseconds(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 100_000.0).round() / 100.0
}

/// A path inside a root as bytes relative to it; nothing for one that is not inside.
fn relative_to(root: &Path, path: &Path) -> Option<Vec<u8>> {
    path.strip_prefix(root).ok().map(|relative| path_bytes(relative).to_vec())
}
