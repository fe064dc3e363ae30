//! Removing a private root, and confirming that it is gone.
//!
//! Fails with [`Failure::CleanupUnconfirmed`] and nothing else, whose cause is what the removal said; without a cause
//! where the removal said it was done and the root is still there.

use super::hooks::Hooks;
use crate::failure::{Failure, Result};
use crate::fs::private_root::{PrivateRoot, is_absent};

/// Removes a root.
///
/// # Errors
/// See the module.
pub fn remove(root: &PrivateRoot, hooks: &dyn Hooks) -> Result<()> {
    let unconfirmed = |cause: Option<Failure>| Failure::CleanupUnconfirmed {
        mirror_root: root.path().to_path_buf(),
        cause: cause.map(Box::new),
        preparation: None,
    };
    let removed =
        hooks.remove_root(root.path()).and_then(|done| if done { Ok(()) } else { root.remove(&mut || Ok(())) });
    removed.map_err(|cause| unconfirmed(Some(cause)))?;
    if is_absent(root.path()) { Ok(()) } else { Err(unconfirmed(None)) }
}
