//! Random plans of path operations: both ways of opening a path beneath a directory must do the same, and never open
//! anything but what stands at that path. The plans are those of `tests/beneath_agreement.rs`. A disagreement panics
//! with the step at which it happened.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/support/path_plan.rs"]
mod path_plan;

fuzz_target!(|plan: &[u8]| {
    if let Err(disagreement) = path_plan::compare(plan) {
        panic!("{disagreement}");
    }
});
