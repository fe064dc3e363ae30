//! A tool of the tests: runs a program on a kernel that seems to lack a layer.
//!
//! `under_filter landlock|seccomp PROGRAM ARGUMENT…` installs a filter that answers the system calls of that layer as an
//! old kernel or a container's profile would, and becomes the program. Fails with a sentence and 2.

#![allow(clippy::print_stderr, reason = "a tool of the tests says what is wrong")]
#![allow(missing_docs, reason = "a program has no items for others")]

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

const PR_SET_SECCOMP: u64 = 22;
const ENOSYS: u32 = 38;
const EINVAL: u32 = 22;

fn program(layer: &str) -> Result<BpfProgram, String> {
    let (rules, errno): (BTreeMap<i64, Vec<SeccompRule>>, u32) = match layer {
        "landlock" => (
            [libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self]
                .into_iter()
                .map(|call| (call, Vec::new()))
                .collect(),
            ENOSYS,
        ),
        "seccomp" => {
            let option = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, PR_SET_SECCOMP)
                .and_then(|condition| SeccompRule::new(vec![condition]))
                .map_err(|error| error.to_string())?;
            (BTreeMap::from([(libc::SYS_seccomp, Vec::new()), (libc::SYS_prctl, vec![option])]), EINVAL)
        }
        other => return Err(format!("there is no layer {other}")),
    };
    let target = if cfg!(target_arch = "x86_64") { TargetArch::x86_64 } else { TargetArch::aarch64 };
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), target)
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(layer), Some(command)) = (arguments.next(), arguments.next()) else {
        eprintln!("under_filter: say which layer to hide, and what to run");
        return ExitCode::from(2);
    };
    let installed = program(&layer.to_string_lossy())
        .and_then(|program| seccompiler::apply_filter(&program).map_err(|error| error.to_string()));
    if let Err(reason) = installed {
        eprintln!("under_filter: {reason}");
        return ExitCode::from(2);
    }
    let error = Command::new(command).args(arguments).exec();
    eprintln!("under_filter: {error}");
    ExitCode::from(2)
}
