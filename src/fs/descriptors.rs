//! How many descriptors the process may have open. Nothing here fails.

use rustix::process::{Resource, getrlimit};

/// The limit that holds now; nothing where there is none.
#[must_use]
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
