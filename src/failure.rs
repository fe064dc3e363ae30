//! The one table of failure codes, phases and dispositions, and the crate's error type.
//!
//! Every refusal of the crate is a [`Failure`]. It crosses into JavaScript as data ([`FailureRecord`]), where `js/`
//! makes the error class from it: asynchronous native functions cannot carry a code of their own. Nothing here acts;
//! nothing here fails. Source of the rules: `contract/failures.md` and `contract/surface.md`, "Errors, in general".

use std::path::{Path, PathBuf};

use serde::Serialize;

macro_rules! contained_codes {
    ($($variant:ident => $text:literal,)*) => {
        /// A `contained_execution_*` failure code, in the order of the published list.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "each variant is the code that stands beside it in the table")]
        pub enum ContainedCode { $($variant,)* }

        impl ContainedCode {
            /// Every code, in the published order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as programs match it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => concat!("contained_execution_", $text),)* }
            }
        }
    };
}

contained_codes! {
    BoundaryFailed => "boundary_failed",
    CapabilityInvalid => "capability_invalid",
    CapabilityMismatch => "capability_mismatch",
    CleanupUnconfirmed => "cleanup_unconfirmed",
    ContainerCleanupUnconfirmed => "container_cleanup_unconfirmed",
    ControlPlaneRootsRequired => "control_plane_roots_required",
    CreateFailed => "create_failed",
    CreateInvalid => "create_invalid",
    CreateMismatch => "create_mismatch",
    CreateTimeout => "create_timeout",
    CreateTruncated => "create_truncated",
    Disabled => "disabled",
    DockerBinaryInvalid => "docker_binary_invalid",
    DockerConfigMissing => "docker_config_missing",
    DockerDaemonInvalid => "docker_daemon_invalid",
    DockerDaemonUnavailable => "docker_daemon_unavailable",
    DockerHostInvalid => "docker_host_invalid",
    DockerSubstrateMismatch => "docker_substrate_mismatch",
    DockerSubstrateOverlap => "docker_substrate_overlap",
    DockerSubstrateUnavailable => "docker_substrate_unavailable",
    HostIdentityUnavailable => "host_identity_unavailable",
    ImageInspectInvalid => "image_inspect_invalid",
    ImageInspectTruncated => "image_inspect_truncated",
    ImageMismatch => "image_mismatch",
    ImageMissing => "image_missing",
    InputFingerprintInvalid => "input_fingerprint_invalid",
    InspectFailed => "inspect_failed",
    InspectInvalid => "inspect_invalid",
    InspectMismatch => "inspect_mismatch",
    InspectTimeout => "inspect_timeout",
    InspectTruncated => "inspect_truncated",
    InvalidContainerName => "invalid_container_name",
    InvalidCwd => "invalid_cwd",
    InvalidImageId => "invalid_image_id",
    InvalidMirrorLease => "invalid_mirror_lease",
    InvalidMount => "invalid_mount",
    InvalidUser => "invalid_user",
    MirrorLimitsInvalid => "mirror_limits_invalid",
    ProbeCreateFailed => "probe_create_failed",
    ProbeFailed => "probe_failed",
    ProbeInspectFailed => "probe_inspect_failed",
    ProbeInspectInvalid => "probe_inspect_invalid",
    ProbeInspectTruncated => "probe_inspect_truncated",
    ProbeRootCleanupUnconfirmed => "probe_root_cleanup_unconfirmed",
    ProtectedRootOverlap => "protected_root_overlap",
    ResourceLimitsInvalid => "resource_limits_invalid",
    SafeOpenUnavailable => "safe_open_unavailable",
    SourceChanged => "source_changed",
    SourceIsProtected => "source_is_protected",
    SourceNotDirectory => "source_not_directory",
    StartAttemptFailed => "start_attempt_failed",
    UnknownOption => "unknown_option",
    UnsafeSymlink => "unsafe_symlink",
}

/// The part of a contained execution that a code belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Removing what was made.
    Cleanup,
    /// The stored description of what the host can do.
    Capability,
    /// The container image.
    Image,
    /// The mirror's lease.
    Lease,
    /// Making the mirror.
    Mirror,
    /// The life of the container.
    ContainerLifecycle,
    /// Everything else at the boundary.
    Boundary,
}

/// What a caller may do after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disposition {
    /// The ordinary one-shot approval may be asked for.
    ApprovalFallback,
    /// The command is denied.
    Deny,
}

/// Where a failure can be mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remediation {
    /// By starting a new session.
    SessionStart,
    /// Nowhere by itself.
    None,
}

/// The codes after which the ordinary approval may be asked for, substrate first (`contract/failures.md`).
pub const APPROVAL_FALLBACK_REASONS: [ContainedCode; 2] =
    [ContainedCode::DockerSubstrateUnavailable, ContainedCode::DockerDaemonUnavailable];

impl ContainedCode {
    /// Finds a code by its text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }

    /// The phase: the first rule of `contract/failures.md` that fits.
    #[must_use]
    pub fn phase(self) -> Phase {
        let text = self.as_str();
        if text.contains("cleanup") {
            return Phase::Cleanup;
        }
        if text.contains("capability") {
            return Phase::Capability;
        }
        if text.contains("image") {
            return Phase::Image;
        }
        if text.contains("lease") {
            return Phase::Lease;
        }
        if matches!(
            self,
            Self::ControlPlaneRootsRequired
                | Self::MirrorLimitsInvalid
                | Self::SafeOpenUnavailable
                | Self::SourceChanged
                | Self::SourceIsProtected
                | Self::SourceNotDirectory
                | Self::UnsafeSymlink
        ) {
            return Phase::Mirror;
        }
        if ["_create_", "_inspect_", "_start_", "_probe_"].iter().any(|part| text.contains(part)) {
            return Phase::ContainerLifecycle;
        }
        Phase::Boundary
    }

    /// What a caller may do after it.
    #[must_use]
    pub fn disposition(self) -> Disposition {
        if APPROVAL_FALLBACK_REASONS.contains(&self) { Disposition::ApprovalFallback } else { Disposition::Deny }
    }

    /// Where it can be mended.
    #[must_use]
    pub fn remediation(self) -> Remediation {
        if matches!(self.phase(), Phase::Capability | Phase::Image) || self.as_str().contains("_docker_") {
            Remediation::SessionStart
        } else {
            Remediation::None
        }
    }
}

macro_rules! checkpoint_codes {
    ($($variant:ident => $text:literal,)*) => {
        /// A `file_checkpoint_*` code. The reference throws these as the message of a plain `Error`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "each variant is the code that stands beside it in the table")]
        pub enum CheckpointCode { $($variant,)* }

        impl CheckpointCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as programs match it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => concat!("file_checkpoint_", $text),)* }
            }
        }
    };
}

checkpoint_codes! {
    HardlinkUnsupported => "hardlink_unsupported",
    UnsupportedNode => "unsupported_node",
    NestedRepository => "nested_repository",
    QuotaExceeded => "quota_exceeded",
    PrepareTimeout => "prepare_timeout",
    PathEscape => "path_escape",
    CopyFailed => "copy_failed",
}

macro_rules! sandbox_codes {
    ($($(#[doc = $meaning:literal])+ $variant:ident => $text:literal,)*) => {
        /// A `sandbox_*` code: why a sandboxed run as a whole gave no result.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum SandboxCode { $($(#[doc = $meaning])+ $variant,)* }

        impl SandboxCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as programs match it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => concat!("sandbox_", $text),)* }
            }
        }
    };
}

sandbox_codes! {
    /// It took longer than `timeoutMs`.
    Timeout => "timeout",
    /// It took more memory than `memoryLimitMb` allows.
    MemoryLimit => "memory_limit",
    /// It took more processor time than `cpuSeconds`.
    CpuLimit => "cpu_limit",
    /// Its result is larger than `maxResultBytes`, or has more values or levels than are taken.
    ResultLimit => "result_limit",
    /// What it sent is no result.
    ResultInvalid => "result_invalid",
    /// It ended, or closed its descriptor, before it had a result.
    Exited => "exited",
    /// It could not be confined or started.
    LaunchFailed => "launch_failed",
    /// The kernel was to hold it, and does not hold all of it here.
    IsolationUnavailable => "isolation_unavailable",
}

impl Serialize for SandboxCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Which rule a refused symlink broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkRule {
    /// The target is an absolute path.
    AbsoluteTarget,
    /// The target, as written or as resolved, is outside the source.
    LeavesSource,
    /// The target is Git's own data.
    GitMetadata,
    /// The target is at or within a protected root.
    ProtectedRoot,
    /// The target does not exist, or the links go round in a circle.
    Unresolvable,
}

/// A kind of file that cannot be mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// A named pipe.
    Fifo,
    /// A unix socket.
    Socket,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharacterDevice,
    /// A type this crate does not know.
    Unknown,
}

/// The facts of a failure, for people and programs. All optional; see `contract/surface.md`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The path relative to the source root, as raw bytes.
    pub relative_path: Option<Vec<u8>>,
    /// The rule a symlink broke.
    pub rule: Option<LinkRule>,
    /// The kind of an unsupported node.
    pub node_kind: Option<NodeKind>,
    /// The number of names of a hard-linked file.
    pub links: Option<u64>,
    /// The limit that was passed, in the unit of the option it comes from.
    pub limit: Option<u64>,
    /// The value that passed it.
    pub value: Option<u64>,
}

impl Facts {
    /// Facts that name a path relative to the source root.
    #[must_use]
    pub fn at(relative_path: &[u8]) -> Self {
        Self { relative_path: Some(relative_path.to_vec()), ..Self::default() }
    }
}

/// A system error in Node's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemFailure {
    /// The raw `errno` (positive).
    pub errno: i32,
    /// The operation, by the name Node uses for it (`open`, `lstat`, `mkdir`, …).
    pub syscall: &'static str,
    /// The path that the operation was for, where it was for one.
    pub path: Option<PathBuf>,
    /// The same relative to the source root, where there is one.
    pub relative_path: Option<Vec<u8>>,
}

/// What went wrong, as one value for the whole crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A `ContainedExecutionFailureError`.
    #[error("{}", code.as_str())]
    Contained {
        /// The code, which is the message too.
        code: ContainedCode,
        /// Path, rule and numbers.
        facts: Facts,
        /// The failure below it, where one is known.
        cause: Option<Box<Failure>>,
    },
    /// A `ContainedExecutionCleanupUnconfirmedError`: a private root may still be there.
    #[error("contained_execution_cleanup_unconfirmed: {}", mirror_root.display())]
    CleanupUnconfirmed {
        /// The root that may still be there.
        mirror_root: PathBuf,
        /// Why removing it failed; nothing where it was reported as removed and is still there.
        cause: Option<Box<Failure>>,
        /// The failure that made the removal necessary, where it came first.
        preparation: Option<Box<Failure>>,
    },
    /// A `FileCheckpointDiagnosticError`.
    #[error("{}: {diagnostic}", code.as_str())]
    Diagnostic {
        /// The code, which is the message too.
        code: CheckpointCode,
        /// A sentence with the numbers.
        diagnostic: String,
        /// Path and numbers.
        facts: Facts,
    },
    /// A plain `Error` whose message is a `file_checkpoint_*` code.
    #[error("{}", code.as_str())]
    Checkpoint {
        /// The code, which is the message too.
        code: CheckpointCode,
        /// Path, kind and numbers.
        facts: Facts,
    },
    /// A system error in Node's form: `code`, `errno`, `syscall`, `path`.
    #[error("{}, {}{}", errno_text(.0.errno), .0.syscall, quoted(.0.path.as_deref()))]
    System(SystemFailure),
    /// The caller's signal was aborted; JavaScript rejects with its reason.
    #[error("the work was aborted by the caller")]
    Aborted,
    /// A hook of the caller failed; JavaScript holds what it threw under this number.
    #[error("the caller's hook number {0} failed")]
    Hook(u32),
    /// A fault of this crate. It is reported, never hidden.
    #[error("internal error in sallyport, please report it: {0}")]
    Internal(String),
}

/// The result type of the crate.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A contained-execution failure without further facts.
    #[must_use]
    pub fn contained(code: ContainedCode) -> Self {
        Self::Contained { code, facts: Facts::default(), cause: None }
    }

    /// A contained-execution failure at a path relative to the source root.
    #[must_use]
    pub fn contained_at(code: ContainedCode, relative_path: &[u8]) -> Self {
        Self::Contained { code, facts: Facts::at(relative_path), cause: None }
    }

    /// A refused symlink and the rule it broke.
    #[must_use]
    pub fn unsafe_symlink(relative_path: &[u8], rule: LinkRule) -> Self {
        Self::Contained {
            code: ContainedCode::UnsafeSymlink,
            facts: Facts { rule: Some(rule), ..Facts::at(relative_path) },
            cause: None,
        }
    }

    /// A plain refusal at a path relative to the source root.
    #[must_use]
    pub fn checkpoint_at(code: CheckpointCode, relative_path: &[u8]) -> Self {
        Self::Checkpoint { code, facts: Facts::at(relative_path) }
    }

    /// A system error.
    #[must_use]
    pub fn system(errno: i32, syscall: &'static str, path: impl AsRef<Path>) -> Self {
        Self::System(SystemFailure { errno, syscall, path: Some(path.as_ref().to_path_buf()), relative_path: None })
    }

    /// A system error that is about no path.
    #[must_use]
    pub fn system_without_path(errno: i32, syscall: &'static str) -> Self {
        Self::System(SystemFailure { errno, syscall, path: None, relative_path: None })
    }

    /// Whether it is the system's word that nothing is at a path: `ENOENT` or `ENOTDIR`.
    #[must_use]
    pub fn means_absent(&self) -> bool {
        const ABSENT: [i32; 2] = [2, 20];
        matches!(self, Self::System(system) if ABSENT.contains(&system.errno))
    }
}

/// A failure as plain data, in the shape that `js/errors.js` turns into an error object.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureRecord {
    /// `contained`, `cleanup`, `diagnostic`, `checkpoint`, `system`, `aborted`, `hook` or `internal`.
    pub kind: &'static str,
    /// The message.
    pub message: String,
    /// The code that a program matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The sentence of a diagnostic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<String>,
    /// The root of an unconfirmed cleanup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror_root: Option<String>,
    /// Negative, as Node has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// The operation of a system error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syscall: Option<&'static str>,
    /// The path of a system error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The path relative to the source root; lossy where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative_path: Option<String>,
    /// The rule a symlink broke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<LinkRule>,
    /// The kind of an unsupported node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_kind: Option<NodeKind>,
    /// The number of names of a hard-linked file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<u64>,
    /// The limit that was passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The value that passed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// The number under which JavaScript holds what a hook threw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<u32>,
    /// The failure below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<FailureRecord>>,
    /// The failure that made a failed removal necessary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preparation_error: Option<Box<FailureRecord>>,
}

impl From<&Failure> for FailureRecord {
    fn from(failure: &Failure) -> Self {
        let nested = |inner: &Option<Box<Failure>>| inner.as_ref().map(|inner| Box::new(Self::from(inner.as_ref())));
        let plain = |kind: &'static str, code: &'static str| Self {
            kind,
            message: code.to_owned(),
            code: Some(code.to_owned()),
            ..Self::default()
        };
        match failure {
            Failure::Contained { code, facts, cause } => {
                Self { cause: nested(cause), ..plain("contained", code.as_str()) }.with_facts(facts)
            }
            Failure::CleanupUnconfirmed { mirror_root, cause, preparation } => Self {
                mirror_root: Some(mirror_root.to_string_lossy().into_owned()),
                cause: nested(cause),
                preparation_error: nested(preparation),
                ..plain("cleanup", ContainedCode::CleanupUnconfirmed.as_str())
            },
            Failure::Diagnostic { code, diagnostic, facts } => {
                Self { diagnostic: Some(diagnostic.clone()), ..plain("diagnostic", code.as_str()) }.with_facts(facts)
            }
            Failure::Checkpoint { code, facts } => plain("checkpoint", code.as_str()).with_facts(facts),
            Failure::System(system) => Self {
                kind: "system",
                message: failure.to_string(),
                code: Some(errno_name(system.errno)),
                errno: Some(-system.errno),
                syscall: Some(system.syscall),
                path: system.path.as_ref().map(|path| path.to_string_lossy().into_owned()),
                relative_path: system.relative_path.as_deref().map(lossy),
                ..Self::default()
            },
            Failure::Aborted => Self { kind: "aborted", message: failure.to_string(), ..Self::default() },
            Failure::Hook(number) => {
                Self { kind: "hook", message: failure.to_string(), hook: Some(*number), ..Self::default() }
            }
            Failure::Internal(_) => Self {
                kind: "internal",
                message: failure.to_string(),
                code: Some("ERR_INTERNAL".to_owned()),
                ..Self::default()
            },
        }
    }
}

impl FailureRecord {
    fn with_facts(self, facts: &Facts) -> Self {
        Self {
            relative_path: facts.relative_path.as_deref().map(lossy),
            rule: facts.rule,
            node_kind: facts.node_kind,
            links: facts.links,
            limit: facts.limit,
            value: facts.value,
            ..self
        }
    }
}

fn quoted(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!(" '{}'", path.display()))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

macro_rules! errno_names {
    ($($name:ident $number:literal $text:literal,)*) => {
        fn known_errno(errno: i32) -> Option<(&'static str, &'static str)> {
            match errno { $($number => Some((stringify!($name), $text)),)* _ => None }
        }
    };
}

// The numbers and names of Linux's generic errno table (asm-generic/errno-base.h, errno.h) with libuv's words, and
// the C library's where libuv has none, for the errors that file system calls give. On other systems only the names that share a number are right; nothing but
// Linux is verified (design.md, decision 12).
errno_names! {
    EPERM 1 "operation not permitted",
    ENOENT 2 "no such file or directory",
    EINTR 4 "interrupted system call",
    EIO 5 "i/o error",
    ENXIO 6 "no such device or address",
    E2BIG 7 "argument list too long",
    EBADF 9 "bad file descriptor",
    EAGAIN 11 "resource temporarily unavailable",
    ENOMEM 12 "not enough memory",
    EACCES 13 "permission denied",
    EBUSY 16 "resource busy or locked",
    EEXIST 17 "file already exists",
    EXDEV 18 "cross-device link not permitted",
    ENODEV 19 "no such device",
    ENOTDIR 20 "not a directory",
    EISDIR 21 "illegal operation on a directory",
    EINVAL 22 "invalid argument",
    ENFILE 23 "file table overflow",
    EMFILE 24 "too many open files",
    ETXTBSY 26 "text file is busy",
    EFBIG 27 "file too large",
    ENOSPC 28 "no space left on device",
    ESPIPE 29 "invalid seek",
    EROFS 30 "read-only file system",
    EMLINK 31 "too many links",
    EPIPE 32 "broken pipe",
    ENAMETOOLONG 36 "name too long",
    ENOSYS 38 "function not implemented",
    ENOTEMPTY 39 "directory not empty",
    ELOOP 40 "too many symbolic links encountered",
    ENODATA 61 "no data available",
    EOVERFLOW 75 "value too large for defined data type",
    EILSEQ 84 "illegal byte sequence",
    EOPNOTSUPP 95 "operation not supported on socket",
    ENOTCONN 107 "socket is not connected",
    ETIMEDOUT 110 "connection timed out",
    ESTALE 116 "stale file handle",
    EUCLEAN 117 "structure needs cleaning",
    EREMOTEIO 121 "remote I/O error",
    EDQUOT 122 "disk quota exceeded",
    ENOKEY 126 "required key not available",
}

fn errno_name(errno: i32) -> String {
    known_errno(errno).map_or_else(|| format!("errno {errno}"), |(name, _)| name.to_owned())
}

fn errno_text(errno: i32) -> String {
    known_errno(errno)
        .map_or_else(|| std::io::Error::from_raw_os_error(errno).to_string(), |(name, text)| format!("{name}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_the_first_rule_that_fits() {
        assert_eq!(ContainedCode::ContainerCleanupUnconfirmed.phase(), Phase::Cleanup);
        assert_eq!(ContainedCode::CapabilityMismatch.phase(), Phase::Capability);
        assert_eq!(ContainedCode::ImageInspectInvalid.phase(), Phase::Image);
        assert_eq!(ContainedCode::InvalidMirrorLease.phase(), Phase::Lease);
        assert_eq!(ContainedCode::UnsafeSymlink.phase(), Phase::Mirror);
        assert_eq!(ContainedCode::StartAttemptFailed.phase(), Phase::ContainerLifecycle);
        assert_eq!(ContainedCode::ProbeRootCleanupUnconfirmed.phase(), Phase::Cleanup);
        assert_eq!(ContainedCode::BoundaryFailed.phase(), Phase::Boundary);
    }

    #[test]
    fn only_the_two_docker_refusals_fall_back_to_approval() {
        let falling: Vec<_> = ContainedCode::ALL
            .iter()
            .filter(|code| code.disposition() == Disposition::ApprovalFallback)
            .map(|code| code.as_str())
            .collect();
        assert_eq!(
            falling,
            ["contained_execution_docker_daemon_unavailable", "contained_execution_docker_substrate_unavailable"]
        );
    }

    #[test]
    fn system_failures_read_like_nodes() {
        let record = FailureRecord::from(&Failure::system(2, "lstat", "/gone"));
        assert_eq!(record.message, "ENOENT: no such file or directory, lstat '/gone'");
        assert_eq!(record.code.as_deref(), Some("ENOENT"));
        assert_eq!(record.errno, Some(-2));
    }

    #[test]
    fn a_system_failure_without_a_path_names_none() {
        let record = FailureRecord::from(&Failure::system_without_path(11, "pthread_create"));
        assert_eq!(record.message, "EAGAIN: resource temporarily unavailable, pthread_create");
        assert_eq!(record.path, None);
    }

    #[test]
    fn what_network_and_encrypted_file_systems_say_has_a_name() {
        for (errno, name) in
            [(61, "ENODATA"), (84, "EILSEQ"), (107, "ENOTCONN"), (117, "EUCLEAN"), (121, "EREMOTEIO"), (126, "ENOKEY")]
        {
            assert_eq!(errno_name(errno), name);
        }
    }
}
