//! The seams that tests use to make allocation, races, time and removal do what they want.
//!
//! In production nothing is hooked. A hook that fails gives [`crate::failure::Failure::Hook`], and what it threw is
//! kept by the side that owns the hooks. Source: `MirrorTestDependencies` in `contract/surface.md`; the clock is the
//! control's.

use std::path::{Path, PathBuf};

use crate::failure::Result;

/// The seams. The default of each is not to be there.
pub trait Hooks: Send + Sync {
    /// Whether any seam, the clock included, is in place.
    fn any(&self) -> bool {
        false
    }

    /// Whether `make_temp_root` is in place.
    fn makes_temp_root(&self) -> bool {
        false
    }

    /// Makes the private root; nothing to have it made as always.
    ///
    /// # Errors
    /// The hook failed.
    fn make_temp_root(&self) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// Removes the private root; `false` to have it removed as always.
    ///
    /// # Errors
    /// The hook failed.
    fn remove_root(&self, _root: &Path) -> Result<bool> {
        Ok(false)
    }

    /// Called between the first walk and the copy.
    ///
    /// # Errors
    /// The hook failed.
    fn after_snapshot_captured(&self) -> Result<()> {
        Ok(())
    }

    /// Called before a file is opened to be copied.
    ///
    /// # Errors
    /// The hook failed.
    fn before_copy_open(&self, _source: &Path) -> Result<()> {
        Ok(())
    }

    /// Called after each chunk, with its length and the bytes of this file so far.
    ///
    /// # Errors
    /// The hook failed.
    fn after_copy_read(&self, _source: &Path, _bytes: u64, _total: u64) -> Result<()> {
        Ok(())
    }
}

/// No seams.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
