//! What stays held while a mirror is in use: its root, its lock, and the facts by which a caller can tell that a handle
//! is the real one.
//!
//! A lease ends once and for all before its root is removed. Dropping it lets go of the lock, so that a root whose
//! handle was forgotten can be swept. Source: `contract/mirror.md`, "The handle".

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use super::hooks::Hooks;
use super::{Mirror, MirrorReport, dispose};
use crate::failure::Result;
use crate::fs::path::canonical_path;
use crate::fs::private_root::PrivateRoot;

/// The one way in which mirrors are made.
pub const BACKEND: &str = "file_copy";

/// The lease of one mirror.
#[derive(Debug)]
pub struct Lease {
    live: AtomicBool,
    root: Mutex<Option<PrivateRoot>>,
    host_mirror_root: PathBuf,
    guest_workspace_path: PathBuf,
    source_root: PathBuf,
    protected_roots: Vec<PathBuf>,
    report: MirrorReport,
}

/// The set of canonical roots, however they are spelled and ordered.
fn root_set(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut set: Vec<PathBuf> = roots.iter().map(|root| canonical_path(root)).collect();
    set.sort();
    set.dedup();
    set
}

impl From<Mirror> for Lease {
    fn from(mirror: Mirror) -> Self {
        Self {
            live: AtomicBool::new(true),
            host_mirror_root: mirror.root.path().to_path_buf(),
            root: Mutex::new(Some(mirror.root)),
            guest_workspace_path: mirror.guest_workspace_path,
            source_root: mirror.source_root,
            protected_roots: root_set(&mirror.protected_roots),
            report: mirror.report,
        }
    }
}

impl Lease {
    /// Whether the mirror may still be used.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }

    /// Ends the lease. It never begins again.
    pub fn end(&self) {
        self.live.store(false, Ordering::Release);
    }

    /// Where the mirror is.
    #[must_use]
    pub fn host_mirror_root(&self) -> &Path {
        &self.host_mirror_root
    }

    /// Where a guest is to see it.
    #[must_use]
    pub fn guest_workspace_path(&self) -> &Path {
        &self.guest_workspace_path
    }

    /// What it holds.
    #[must_use]
    pub fn report(&self) -> &MirrorReport {
        &self.report
    }

    /// Whether the lease is live and is that of a mirror of this source with these protected roots, a handle's fields
    /// are untouched, and the path of the mirror still leads to it.
    #[must_use]
    pub fn matches(
        &self,
        host_mirror_root: &str,
        guest_workspace_path: &str,
        backend: &str,
        source_root: &Path,
        protected_roots: &[PathBuf],
    ) -> bool {
        self.is_live()
            && self.host_mirror_root.to_string_lossy() == host_mirror_root
            && self.guest_workspace_path.to_string_lossy() == guest_workspace_path
            && backend == BACKEND
            && self.source_root == canonical_path(source_root)
            && self.protected_roots == root_set(protected_roots)
            && self.is_in_place()
    }

    /// Whether the mirror's path still leads to the mirror. Does not wait for a removal under way.
    fn is_in_place(&self) -> bool {
        let root = match self.root.try_lock() {
            Ok(root) => root,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        root.as_ref().is_some_and(PrivateRoot::is_in_place)
    }

    /// Ends the lease, removes the root and confirms that it is gone. Once that has succeeded it succeeds again.
    ///
    /// # Errors
    /// [`crate::failure::Failure::CleanupUnconfirmed`]; it can be tried again.
    pub fn dispose(&self, hooks: &dyn Hooks) -> Result<()> {
        self.end();
        let mut root = self.root.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = root.as_ref() {
            dispose::remove(held, hooks)?;
        }
        *root = None;
        Ok(())
    }
}
