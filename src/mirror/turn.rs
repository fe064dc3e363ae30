//! How many mirrors are made at a time: as many as the process may open files for.
//!
//! A preparation that runs out of descriptors fails, and so may its cleanup. Those with seams take no turn: what a seam
//! waits for may itself be a mirror. Fails with what the control says while it waits: an abort.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::hooks::Hooks;
use crate::failure::Result;
use crate::fs::descriptors;
use crate::tree::control::Control;

/// What one preparation opens at most: the levels that two walks keep, two directories and two files for each thread,
/// the source, the root.
const DESCRIPTORS: u64 = 56;

/// What the rest of the process may need.
const RESERVED: u64 = 32;

/// How often an abort is looked for.
const LOOK: Duration = Duration::from_millis(20);

static PREPARING: Mutex<u64> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// One preparation under way; it ends when this is dropped.
pub(super) struct Turn {
    counted: bool,
}

impl Turn {
    /// Waits until there is room for one more. One is always allowed.
    pub(super) fn wait(control: &Control<'_>, hooks: &dyn Hooks) -> Result<Self> {
        if hooks.any() {
            return Ok(Self { counted: false });
        }
        let most = descriptors::limit().map_or(u64::MAX, |limit| (limit.saturating_sub(RESERVED) / DESCRIPTORS).max(1));
        let mut preparing = PREPARING.lock().unwrap_or_else(PoisonError::into_inner);
        while *preparing >= most {
            control.checkpoint()?;
            preparing = ENDED.wait_timeout(preparing, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        *preparing += 1;
        Ok(Self { counted: true })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.counted {
            *PREPARING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
            ENDED.notify_one();
        }
    }
}
