//! The rules on files, ports and scopes: which version the kernel has, and putting them on this process.
//!
//! Everything that the version handles is denied but what the policy grants, as a hard requirement: a rule that the
//! kernel does not take fails, it is not left out. Whether a rule really holds on the file systems at hand is for the
//! probe to tell. Fails with a sentence for a person. Source: `contract/sandbox.md`, "Isolation"; landlock(7).

// The one unsafe call asks the kernel for the version, which the crate does not tell.
#![allow(unsafe_code, reason = "the version of Landlock can only be asked for by the bare system call")]

use std::os::fd::{AsFd, OwnedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::fs::Beneath;

/// What a child may open, by canonical paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LandlockPolicy {
    /// Files, and directories with all that is below them, that can be read.
    pub readable: Vec<String>,
    /// Files that can be read and executed.
    pub executable: Vec<String>,
    /// Files that can be read and written.
    pub writable: Vec<String>,
}

/// The version of the kernel's interface; 0 where there is none, with the reason.
///
/// # Errors
/// `ENOSYS` where the kernel has none, `EOPNOTSUPP` where it is switched off, or what a filter says.
pub fn version() -> Result<u32, Errno> {
    const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with no attributes, no size and the flag VERSION the call only returns a number.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(answer).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::NOSYS)
    })
}

fn known(version: u32) -> ABI {
    match version {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        9 => ABI::V9,
        _ => ABI::V10,
    }
}

/// Why a policy could not be put on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unrestricted {
    /// The kernel does not take it, in a sentence for a person.
    Kernel(String),
    /// A path that is to be granted cannot be opened. That says nothing of the kernel: to go on without the layer would
    /// grant everything because something that was granted is gone.
    Grant(String),
}

/// Puts the policy on this process, for good.
///
/// # Errors
/// See [`Unrestricted`].
pub fn restrict(policy: &LandlockPolicy) -> Result<(), Unrestricted> {
    let mut nodes = Vec::new();
    let version = version().map_err(|errno| Unrestricted::Kernel(format!("the kernel has no Landlock: {errno}")))?;
    for paths in [&policy.readable, &policy.executable, &policy.writable] {
        for path in paths {
            let node = open(path)
                .map_err(|errno| Unrestricted::Grant(format!("{path} cannot be opened to grant it: {errno}")))?;
            nodes.push(node);
        }
    }
    enforce(version, policy, nodes).map_err(Unrestricted::Kernel)
}

/// Makes and enforces the rules; `nodes` are the opened paths of the policy, in its order.
fn enforce(version: u32, policy: &LandlockPolicy, nodes: Vec<(OwnedFd, bool)>) -> Result<(), String> {
    let abi = known(version);
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .map_err(|error| text(&error))?;
    if version >= 4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi)).map_err(|error| text(&error))?;
    }
    if version >= 6 {
        ruleset = ruleset.scope(Scope::from_all(abi)).map_err(|error| text(&error))?;
    }
    let mut created = ruleset.create().map_err(|error| text(&error))?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let groups: [(&[String], BitFlags<AccessFs>); 3] = [
        (&policy.readable, read),
        (&policy.executable, AccessFs::ReadFile | AccessFs::Execute),
        (&policy.writable, AccessFs::ReadFile | AccessFs::WriteFile),
    ];
    let mut nodes = nodes.into_iter();
    for (paths, access) in groups {
        for (path, (node, is_directory)) in paths.iter().zip(&mut nodes) {
            // Rights on what is in a directory cannot be given to a file.
            let access = if is_directory { access } else { access & !BitFlags::from(AccessFs::ReadDir) };
            created = created.add_rule(PathBeneath::new(node, access)).map_err(|error| format!("{path}: {error}"))?;
        }
    }
    let status = created.restrict_self().map_err(|error| text(&error))?;
    if status.ruleset == RulesetStatus::FullyEnforced {
        Ok(())
    } else {
        Err("the kernel enforces only a part of the rules".to_owned())
    }
}

/// Opens a canonical path to name it in a rule. A link anywhere on it means that it was swapped since it was resolved.
fn open(path: &str) -> Result<(OwnedFd, bool), Errno> {
    let root = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let node = match path.strip_prefix('/') {
        Some("") => root,
        Some(below) => Beneath::detected().open(root.as_fd(), below.as_bytes(), OFlags::PATH)?,
        None => return Err(Errno::INVAL),
    };
    let mode = rustix::fs::fstat(node.as_fd())?.st_mode;
    Ok((node, rustix::fs::FileType::from_raw_mode(mode) == rustix::fs::FileType::Directory))
}
