//! The limits of a walk, counted in path order, so that the same tree passes or fails at the same entry every time.
//!
//! Fails with `file_checkpoint_quota_exceeded` and the sentence of `contract/mirror.md` that names the counter.

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

/// What a limit leaves for a file that turns out to be larger than it was when it was walked.
///
/// All other files are taken to be as large as they were then, so the answer does not depend on how far the threads are.
/// That loses nothing: a walked tree is within its limits, and a file that grew is refused in any case.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    quota: Option<Quota>,
    total: u64,
}

impl Allowance {
    /// The allowance of a tree that counted `total` when it was walked.
    #[must_use]
    pub fn new(quota: Option<Quota>, total: u64) -> Self {
        Self { quota, total }
    }

    /// Checks a file that was `walked` bytes long and is `now` bytes long.
    ///
    /// # Errors
    /// The limit is passed.
    pub fn check(&self, walked: u64, now: u64, relative_path: &[u8]) -> Result<()> {
        let value = self.total.saturating_sub(walked).saturating_add(now);
        self.quota.as_ref().map_or(Ok(()), |quota| quota.check(value, relative_path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grew_is_counted_with_all_others_as_they_were() {
        let quota = Quota { counter: "c", option: "o", limit: 100 };
        let allowance = Allowance::new(Some(quota), 90);
        assert_eq!(allowance.check(20, 30, b"a"), Ok(()));
        let refused = allowance.check(20, 31, b"a");
        assert!(matches!(&refused, Err(Failure::Diagnostic { facts, .. }) if facts.value == Some(101)), "{refused:?}");
        assert_eq!(Allowance::new(None, 90).check(20, u64::MAX, b"a"), Ok(()));
    }
}
