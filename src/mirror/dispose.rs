//! Removing a private root, and confirming that it is gone.
//!
//! A root is gone when the directory has no name any more: one that was moved away is not. Fails with
//! [`Failure::CleanupUnconfirmed`] and nothing else, whose cause is what the removal said; without a cause where a hook
//! said it was done and the root is still there.

use super::hooks::Hooks;
use crate::failure::{Failure, Result};
use crate::fs::private_root::PrivateRoot;

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
    match hooks.remove_root(root.path()) {
        Ok(true) if root.is_gone() => Ok(()),
        Ok(true) => Err(unconfirmed(None)),
        // A hook that nobody waits for any more, since the work was called off, must not leave the root behind.
        Ok(false) | Err(Failure::Aborted) => root.remove().map_err(|cause| unconfirmed(Some(cause))),
        Err(cause) => Err(unconfirmed(Some(cause))),
    }
}
