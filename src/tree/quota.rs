//! The limits of a walk, counted in path order, so that the same tree passes or fails at the same entry every time.
//!
//! Fails with `file_checkpoint_quota_exceeded` and the sentence of `contract/mirror.md` that names the counter.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::{CheckpointCode, Facts, Failure, Result};

/// One limit: what it counts, how the option is called, and how much it allows.
#[derive(Debug, Clone, Copy)]
pub struct Quota {
    /// How the diagnostic begins: `mirror nodeCount`.
    pub counter: &'static str,
    /// The option's name: `maxFiles`.
    pub option: &'static str,
    /// The most that is allowed.
    pub limit: u64,
}

impl Quota {
    /// Checks a value that was reached at a path.
    ///
    /// # Errors
    /// The limit is passed.
    pub fn check(&self, value: u64, relative_path: &[u8]) -> Result<()> {
        if value <= self.limit {
            return Ok(());
        }
        Err(Failure::Diagnostic {
            code: CheckpointCode::QuotaExceeded,
            diagnostic: format!("{}={value} exceeds {}={}", self.counter, self.option, self.limit),
            facts: Facts { limit: Some(self.limit), value: Some(value), ..Facts::at(relative_path) },
        })
    }
}

/// A limit on what threads really read, which can be more than the sizes said.
#[derive(Debug)]
pub struct SharedCount {
    quota: Option<Quota>,
    value: AtomicU64,
}

impl SharedCount {
    /// A counter from zero; without a quota it only counts.
    #[must_use]
    pub fn new(quota: Option<Quota>) -> Self {
        Self { quota, value: AtomicU64::new(0) }
    }

    /// Adds what was read at a path.
    ///
    /// # Errors
    /// The limit is passed.
    pub fn add(&self, amount: u64, relative_path: &[u8]) -> Result<()> {
        let value = self.value.fetch_add(amount, Ordering::Relaxed) + amount;
        self.quota.as_ref().map_or(Ok(()), |quota| quota.check(value, relative_path))
    }
}
