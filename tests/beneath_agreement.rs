//! The two ways of opening a path beneath a directory do the same, whatever stands there and however it changes.
//!
//! Each case is a random plan of making, moving, removing and opening, run in both ways in roots of their own
//! (`tests/support/path_plan.rs`). The fuzzer (`fuzz/`) runs the same plans for longer.

mod support {
    pub(crate) mod path_plan;
}

use proptest::prelude::*;
use support::path_plan::{STEP_BYTES, compare};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_plan_gives_the_same_in_both_ways(
        plan in prop::collection::vec(any::<[u8; STEP_BYTES]>(), 0..60),
    ) {
        prop_assert_eq!(compare(&plan.concat()), Ok(()));
    }
}
