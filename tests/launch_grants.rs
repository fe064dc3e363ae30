//! A grant that cannot be opened ends the launch at every level: to go on without Landlock would grant everything because
//! something that was granted is gone (`docs/threat-model.md`).

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot start its child fails")]

use std::path::PathBuf;
use std::time::Duration;

use sallyport::isolation::landlock::LandlockPolicy;
use sallyport::isolation::plan::{LaunchPlan, LaunchTask, Layers, ResourceLimits};
use sallyport::sandbox::child::{ChildRequest, Fault, Signals, run};

#[test]
fn a_grant_that_is_gone_never_takes_the_layer_with_it() {
    for required in [true, false] {
        let missing = "/there/is/no/such/grant".to_owned();
        let policy = LandlockPolicy { readable: vec![missing.clone()], ..LandlockPolicy::default() };
        let request = ChildRequest {
            launcher: PathBuf::from(env!("CARGO_BIN_EXE_sallyport-launch")),
            plan: LaunchPlan {
                parent: std::process::id(),
                task: LaunchTask::Become { program: "/bin/true".to_owned(), arguments: Vec::new() },
                limits: ResourceLimits::default(),
                layers: Layers { landlock: Some(policy), seccomp: false, required },
            },
            environment: Vec::new(),
            largest_result: 1,
            timeout: Duration::from_secs(60),
        };
        let end = run(&request, &Signals::new().unwrap(), &mut |_| {}).unwrap();
        let Err(Fault::Launch(failure)) = end.frame else { unreachable!("it was started: {end:?}") };
        assert!(failure.reason.contains(&missing), "{failure:?}");
    }
}
