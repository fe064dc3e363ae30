//! From what the child reports of an error to the words that a person reads: the one table of denials.
//!
//! Nothing here fails; the one look at the file system is where a refused path inside really leads. Source of the rules:
//! `contract/sandbox.md`, "Errors". A denial is told in the same words whoever denied it: Node's Permission Model says
//! what was denied, the kernel gives only an error number and the name of the operation, so the operation is taken from
//! those.

use std::cell::Cell;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::shape::{first, lenient_text};
use crate::fs::path::{canonical_path, lexical_path};
use crate::isolation::plan::Layer;

/// The longest text that is taken over, in bytes. The child cuts at 64 Ki units of UTF-16, of which each can be three
/// bytes: what it cut is not cut again, so that there is one mark.
pub const LONGEST_TEXT: usize = 3 * 64 * 1024;

/// `PATH_MAX`.
const LONGEST_PATH: usize = 4096;

/// How many parts of an aggregate are looked at: what the child describes of one.
const MOST_PARTS: usize = 8;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorType {
    /// A file could not be imported.
    Import,
    /// What the files declare could not be put together.
    Resolution,
    /// Files import each other in a circle.
    Circular,
    /// Something was tried that is not allowed.
    Permission,
}

/// An error as plain data, as `runtime/child-errors.js` describes it. Every field may be missing: it comes from code
/// that is not trusted.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RawError<'a> {
    /// The message of an Error.
    #[serde(deserialize_with = "lenient_text")]
    pub message: Option<String>,
    /// `String(error)` of what is no Error.
    #[serde(deserialize_with = "lenient_text")]
    pub text: Option<String>,
    /// Whether it is an Error.
    pub is_error: bool,
    /// Its code.
    #[serde(deserialize_with = "lenient_text")]
    pub code: Option<String>,
    /// The permission of Node's Permission Model.
    #[serde(deserialize_with = "lenient_text")]
    pub permission: Option<String>,
    /// What it was asked for.
    #[serde(deserialize_with = "lenient_text")]
    pub resource: Option<String>,
    /// The operation of a system error.
    #[serde(deserialize_with = "lenient_text")]
    pub syscall: Option<String>,
    /// The path of a system error.
    #[serde(deserialize_with = "lenient_text")]
    pub path: Option<String>,
    /// The second path of one that has two.
    #[serde(deserialize_with = "lenient_text")]
    pub dest: Option<String>,
    /// The address of a network error.
    #[serde(deserialize_with = "lenient_text")]
    pub address: Option<String>,
    /// Its port.
    #[serde(deserialize_with = "lenient_text")]
    pub port: Option<String>,
    /// The host of a look-up.
    #[serde(deserialize_with = "lenient_text")]
    pub hostname: Option<String>,
    /// The parts of an aggregate, each read when it is looked at: a tree of them would be larger than its text by far.
    #[serde(borrow, deserialize_with = "first::<MOST_PARTS, _, _>")]
    pub errors: Vec<&'a RawValue>,
    /// The cause, likewise.
    #[serde(borrow)]
    pub cause: Option<&'a RawValue>,
}

/// How often a report looks where a path leads. Project code reports as many errors within errors as it likes, and each
/// look takes the caller's side a call for every part of a path; after so many the text of a path decides.
const MOST_LOOKS: usize = 1000;

/// Where the child could read, to tell a denial from an ordinary refusal inside of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Boundary {
    /// Canonical directories that the child may read.
    pub readable: Vec<String>,
    /// The layers of the kernel that held the child, so that their refusals are denials.
    pub layers: Vec<Layer>,
    /// How often it was looked where a path leads.
    #[serde(skip)]
    looks: Cell<usize>,
}

impl Boundary {
    /// A boundary that nothing was asked of yet.
    #[must_use]
    pub fn new(readable: Vec<String>, layers: Vec<Layer>) -> Self {
        Self { readable, layers, looks: Cell::new(0) }
    }

    /// Whether a refusal of something in the file system can be a denial: Landlock's answer is `EACCES`, that of the
    /// filters `EPERM`.
    fn denies_files_by(&self, code: &str) -> bool {
        self.layers.contains(if code == "EPERM" { &Layer::Seccomp } else { &Layer::Landlock })
    }
}

/// An error in the words of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassifiedError {
    /// The project file it is about, or empty.
    pub file: String,
    /// The sentence.
    pub message: String,
    /// Its kind.
    #[serde(rename = "type")]
    pub error_type: ErrorType,
}

/// What was denied.
struct Denial {
    operation: Option<String>,
    resource: Option<String>,
}

/// Classifies an error.
#[must_use]
pub fn classify(file: &str, error: &RawError<'_>, fallback: ErrorType, boundary: &Boundary) -> ClassifiedError {
    let found = denial(error, boundary, 0);
    let (message, error_type) = match found {
        Some(denial) => (denied_message(file, &denial), ErrorType::Permission),
        None => (if error.is_error { error.message.clone() } else { error.text.clone() }.unwrap_or_default(), fallback),
    };
    ClassifiedError { file: cut(file), message: cut(&message), error_type }
}

/// A write that was denied and of which the child could not report.
#[must_use]
pub fn denied_write(path: &str) -> String {
    denied_message("", &Denial { operation: Some("FileSystemWrite".to_owned()), resource: Some(path.to_owned()) })
}

fn denied_message(file: &str, denial: &Denial) -> String {
    let operation = denial.operation.as_deref().unwrap_or("an unrecognized sandboxed operation");
    let resource = denial.resource.as_deref().map(|resource| format!(" ({resource})")).unwrap_or_default();
    let place = if file.is_empty() { "sandboxed run-fallback code".to_owned() } else { format!("\"{file}\"") };
    format!("sandbox denied {operation}{resource}: {place} attempted an operation outside the sandbox's allowlist")
}

/// How deep causes and aggregates are looked through.
const DEEPEST: usize = 8;

fn denial(error: &RawError<'_>, boundary: &Boundary, depth: usize) -> Option<Denial> {
    let own = permission_model(error).or_else(|| kernel(error, boundary));
    if own.is_some() || depth >= DEEPEST {
        return own;
    }
    error.cause.iter().chain(&error.errors).find_map(|inner| {
        // What is no description of an error says nothing of a denial.
        let inner: RawError<'_> = serde_json::from_str(inner.get()).ok()?;
        denial(&inner, boundary, depth + 1)
    })
}

/// What Node itself denied.
fn permission_model(error: &RawError<'_>) -> Option<Denial> {
    match error.code.as_deref()? {
        "ERR_ACCESS_DENIED" => {
            // Some operations give both fields empty; that says nothing.
            let said = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
            let (permission, resource) = (said(&error.permission), said(&error.resource));
            // Node 25 denies the network without saying so in a field.
            let network = permission.is_none() && network_operation(error);
            let operation = permission.or_else(|| network.then(|| "Net".to_owned()));
            Some(Denial { operation, resource: resource.or_else(|| network.then(|| place(error))?) })
        }
        "ERR_DLOPEN_DISABLED" => Some(Denial {
            operation: Some("Addons".to_owned()),
            resource: error.resource.clone().or_else(|| error.path.clone()),
        }),
        // Native code by another door: the codes have other reasons too, so that the sentence decides.
        "ERR_LOAD_SQLITE_EXTENSION" | "ERR_CRYPTO_CUSTOM_ENGINE_NOT_SUPPORTED" => error
            .message
            .as_deref()?
            .contains("permission model")
            .then(|| Denial { operation: Some("Addons".to_owned()), resource: None }),
        _ => None,
    }
}

fn network_operation(error: &RawError<'_>) -> bool {
    matches!(
        error.syscall.as_deref(),
        Some(
            "connect" | "socket" | "bind" | "listen" | "send" | "getaddrinfo" | "getnameinfo" | "queryA" | "queryAaaa"
        )
    ) || error.address.is_some()
        || error.hostname.is_some()
}

/// The address, host or path that an operation was for.
fn place(error: &RawError<'_>) -> Option<String> {
    match (&error.address, &error.port) {
        (Some(address), Some(port)) => Some(format!("{address}:{port}")),
        (Some(address), None) => Some(address.clone()),
        (None, _) => error.hostname.clone().or_else(|| error.path.clone()),
    }
}

/// What the kernel denied: an error number and the operation it was given for.
fn kernel(error: &RawError<'_>, boundary: &Boundary) -> Option<Denial> {
    if boundary.layers.is_empty() {
        return None;
    }
    let code = error.code.as_deref()?;
    if let Some(denial) = told_by_message(code, error, boundary) {
        return Some(denial);
    }
    let syscall = error.syscall.as_deref()?;
    let operation = |name: &str, resource: Option<String>| Some(Denial { operation: Some(name.to_owned()), resource });
    if matches!(syscall, "getaddrinfo" | "getnameinfo") || syscall.starts_with("query") {
        return matches!(
            code,
            "EAI_AGAIN" | "EAI_FAIL" | "EAI_SYSTEM" | "ECONNREFUSED" | "ETIMEOUT" | "EPERM" | "EACCES"
        )
        .then(|| operation("Net", place(error)))?;
    }
    if !matches!(code, "EPERM" | "EACCES") {
        return None;
    }
    match syscall.split(' ').next().unwrap_or(syscall) {
        "connect" | "socket" | "bind" | "listen" | "send" | "sendto" | "sendmsg" | "setsockopt" => {
            operation("Net", place(error))
        }
        "spawn" | "spawnSync" | "fork" | "posix_spawn" | "execve" => {
            let program = syscall.split_once(' ').map(|(_, program)| program.to_owned());
            operation("ChildProcess", program.or_else(|| error.path.clone()))
        }
        "kill" => operation("Signal", error.path.clone()),
        // A file's own permissions, where no layer holds files.
        _ if !boundary.denies_files_by(code) => None,
        // The filters refuse to watch anything, inside too; a file's own permissions would be EACCES.
        "watch" if code == "EPERM" => operation("FileSystemRead", error.path.clone()),
        // The source is opened first: where it may be read, it was the copy that was refused.
        "copyfile" if error.dest.is_some() && error.path.as_deref().is_some_and(|path| is_readable(path, boundary)) => {
            operation("FileSystemWrite", error.dest.clone())
        }
        // Inside, a file's own permissions are EACCES; EPERM is the filters', for what would empty the file.
        "open" if code == "EPERM" && error.path.as_deref().is_some_and(|path| is_readable(path, boundary)) => {
            operation("FileSystemWrite", error.path.clone())
        }
        "open" | "read" | "scandir" | "opendir" | "lstat" | "stat" | "readlink" | "realpath" | "access"
        | "copyfile" | "watch" => {
            // Some versions do not say what they could not open as a directory.
            let Some(path) = error.path.clone() else {
                return (syscall == "opendir").then(|| operation("FileSystemRead", None))?;
            };
            // Inside what the child may read, a refusal is the file's own permissions and stays what it is.
            (!is_readable(&path, boundary)).then(|| operation("FileSystemRead", Some(path)))?
        }
        "write" | "mkdir" | "mkdtemp" | "rename" | "link" | "symlink" | "unlink" | "rmdir" | "rm" | "cp" | "chmod"
        | "fchmod" | "lchmod" | "chown" | "fchown" | "lchown" | "utime" | "futime" | "lutime" | "ftruncate"
        | "truncate" => operation("FileSystemWrite", error.path.clone()),
        _ => None,
    }
}

/// What the kernel denied where Node keeps the error number to itself and only its sentence has it.
fn told_by_message(code: &str, error: &RawError<'_>, boundary: &Boundary) -> Option<Denial> {
    let message = error.message.as_deref()?;
    let refused =
        ["EPERM", "EACCES", "Permission denied", "permission denied"].iter().any(|word| message.contains(word));
    let (name, resource) = match (code, error.syscall.as_deref()) {
        // Node takes the number of this one with the wrong sign, so that it has no name.
        ("ERR_SYSTEM_ERROR", Some("uv_interface_addresses")) => ("Net", None),
        ("ERR_SYSTEM_ERROR", Some("uv_os_setpriority")) if refused => ("Signal", None),
        // What follows is of files.
        _ if !boundary.layers.contains(&Layer::Landlock) => return None,
        ("ERR_SYSTEM_ERROR", Some("uv_os_get_passwd" | "uv_os_homedir")) if refused => {
            ("FileSystemRead", Some("/etc/passwd".to_owned()))
        }
        ("ERR_DLOPEN_FAILED", _) if refused => ("Addons", error.path.clone()),
        ("ERR_SQLITE_ERROR", _) => {
            // SQLite does not say why. A database that is missing inside of the project is none that was denied, but
            // only one that is attached is told by its path.
            let rest = message.strip_prefix("unable to open database")?;
            let path = rest.strip_prefix(": ").map(str::to_owned);
            if path.as_deref().is_some_and(|path| is_readable(path, boundary)) {
                return None;
            }
            ("FileSystemRead", path)
        }
        _ => return None,
    };
    Some(Denial { operation: Some(name.to_owned()), resource })
}

fn is_readable(path: &str, boundary: &Boundary) -> bool {
    // The kernel takes no longer one, and project code can report what it likes.
    if path.len() > LONGEST_PATH {
        return false;
    }
    let inside = |path: &Path| boundary.readable.iter().any(|root| path.starts_with(root));
    let path = Path::new(path);
    let seems_inside = inside(&lexical_path(path));
    let looks = boundary.looks.get();
    if looks >= MOST_LOOKS || (path.is_absolute() && !seems_inside) {
        return seems_inside;
    }
    boundary.looks.set(looks + 1);
    // A link inside that leads out is no file inside.
    inside(&canonical_path(path))
}

/// A text of bounded length, with a mark where it was cut.
#[must_use]
pub fn cut(text: &str) -> String {
    if text.len() <= LONGEST_TEXT {
        return text.to_owned();
    }
    let mut end = LONGEST_TEXT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\u{2026} [cut]", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Layer; 2] = [Layer::Landlock, Layer::Seccomp];

    fn coded(code: &str) -> RawError<'static> {
        RawError { is_error: true, message: Some("m".to_owned()), code: Some(code.to_owned()), ..RawError::default() }
    }

    fn message(file: &str, error: &RawError<'_>) -> String {
        classify(file, error, ErrorType::Import, &Boundary::new(vec!["/p".to_owned()], BOTH.to_vec())).message
    }

    #[test]
    fn a_denial_of_node_is_told_by_file_operation_and_resource() {
        let mut error = coded("ERR_ACCESS_DENIED");
        assert_eq!(
            message("", &error),
            "sandbox denied an unrecognized sandboxed operation: sandboxed run-fallback code attempted an operation outside the sandbox's allowlist"
        );
        error.permission = Some("FileSystemRead".to_owned());
        error.resource = Some("/etc/hosts".to_owned());
        assert_eq!(
            message("/p/a.ts", &error),
            "sandbox denied FileSystemRead (/etc/hosts): \"/p/a.ts\" attempted an operation outside the sandbox's allowlist"
        );
    }

    #[test]
    fn a_denial_of_the_kernel_reads_the_same() {
        let error = RawError {
            syscall: Some("connect".to_owned()),
            address: Some("127.0.0.1".to_owned()),
            port: Some("80".to_owned()),
            ..coded("EPERM")
        };
        assert!(message("/p/a.ts", &error).starts_with("sandbox denied Net (127.0.0.1:80): "));
        let wrapped =
            r#"{"cause":{"errors":[5,{"code":"EPERM","syscall":"connect","address":"127.0.0.1","port":80}]}}"#;
        let wrapped: RawError<'_> = serde_json::from_str(wrapped).unwrap();
        assert!(message("/p/a.ts", &wrapped).starts_with("sandbox denied Net (127.0.0.1:80): "));
        let spawn = RawError { syscall: Some("spawn sh".to_owned()), ..coded("EPERM") };
        assert!(message("/p/a.ts", &spawn).starts_with("sandbox denied ChildProcess (sh): "));
    }

    #[test]
    fn an_ordinary_refusal_inside_stays_what_it_is() {
        let error =
            RawError { syscall: Some("open".to_owned()), path: Some("/p/secret".to_owned()), ..coded("EACCES") };
        assert_eq!(message("/p/a.ts", &error), "m");
        let outside = RawError { path: Some("/q".to_owned()), ..error };
        assert!(message("/p/a.ts", &outside).starts_with("sandbox denied FileSystemRead (/q): "));
    }

    #[test]
    fn what_a_layer_does_not_refuse_is_no_denial_where_it_alone_holds() {
        let by = |layers: &[Layer], error: &RawError<'_>| {
            let boundary = Boundary::new(vec!["/p".to_owned()], layers.to_vec());
            classify("", error, ErrorType::Import, &boundary).error_type
        };
        let of = |code: &'static str, syscall: &str| RawError {
            syscall: Some(syscall.to_owned()),
            path: Some("/q".to_owned()),
            ..coded(code)
        };
        let sqlite = RawError { message: Some("unable to open database file".to_owned()), ..coded("ERR_SQLITE_ERROR") };
        for error in [of("EACCES", "open"), of("EACCES", "mkdir"), sqlite] {
            assert_eq!(by(&[Layer::Landlock], &error), ErrorType::Permission, "{error:?}");
            assert_eq!(by(&[Layer::Seccomp], &error), ErrorType::Import, "{error:?}");
        }
        for error in [of("EPERM", "chmod"), of("EPERM", "watch")] {
            assert_eq!(by(&[Layer::Landlock], &error), ErrorType::Import, "{error:?}");
            assert_eq!(by(&[Layer::Seccomp], &error), ErrorType::Permission, "{error:?}");
        }
        for layer in BOTH {
            assert_eq!(by(&[layer], &of("EACCES", "connect")), ErrorType::Permission);
            assert_eq!(by(&[layer], &of("EPERM", "spawn sh")), ErrorType::Permission);
        }
        assert_eq!(by(&[], &of("EPERM", "connect")), ErrorType::Import);
    }

    #[test]
    fn a_copy_that_is_refused_is_a_write_where_its_source_may_be_read() {
        let copy = |path: &str| RawError {
            syscall: Some("copyfile".to_owned()),
            path: Some(path.to_owned()),
            dest: Some("/p/copy".to_owned()),
            ..coded("EACCES")
        };
        assert!(message("/p/a.ts", &copy("/p/b")).starts_with("sandbox denied FileSystemWrite (/p/copy): "));
        assert!(message("/p/a.ts", &copy("/q")).starts_with("sandbox denied FileSystemRead (/q): "));
    }

    #[test]
    fn where_a_path_leads_is_looked_at_inside_only_and_not_without_end() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let link = root.join("out");
        std::os::unix::fs::symlink("/etc", &link).unwrap();
        let boundary = Boundary::new(vec![root.to_string_lossy().into_owned()], BOTH.to_vec());
        assert!(!is_readable("/etc/passwd", &boundary));
        assert!(!is_readable(&format!("{}/../passwd", root.display()), &boundary));
        assert_eq!(boundary.looks.get(), 0);
        let through = format!("{}/passwd", link.display());
        let mut part = RawError { syscall: Some("open".to_owned()), path: Some(through.clone()), ..coded("EACCES") };
        assert!(denial(&part, &boundary, 0).is_some());
        part.path = Some(format!("{}/missing", root.display()));
        for _ in 0..2 * MOST_LOOKS {
            assert!(denial(&part, &boundary, 0).is_none());
        }
        assert_eq!(boundary.looks.get(), MOST_LOOKS);
        // From here on its text decides.
        assert!(is_readable(&through, &boundary));
    }

    #[test]
    fn a_denial_that_only_the_sentence_tells_reads_the_same() {
        let said = |code: &str, syscall: Option<&str>, text: &str| RawError {
            message: Some(text.to_owned()),
            syscall: syscall.map(str::to_owned),
            ..coded(code)
        };
        let cases = [
            (said("ERR_SYSTEM_ERROR", Some("uv_interface_addresses"), "returned Unknown system error 1"), "Net"),
            (said("ERR_SYSTEM_ERROR", Some("uv_os_setpriority"), "returned EPERM"), "Signal"),
            (said("ERR_SYSTEM_ERROR", Some("uv_os_get_passwd"), "returned EACCES"), "FileSystemRead (/etc/passwd)"),
            (said("ERR_SYSTEM_ERROR", Some("uv_os_homedir"), "returned EACCES"), "FileSystemRead (/etc/passwd)"),
            (said("EPERM", Some("watch"), "EPERM: operation not permitted, watch"), "FileSystemRead"),
            (said("ERR_DLOPEN_FAILED", None, "cannot open shared object file: Permission denied"), "Addons"),
            (said("ERR_SQLITE_ERROR", None, "unable to open database file"), "FileSystemRead"),
            (said("ERR_SQLITE_ERROR", None, "unable to open database: /q/x.db"), "FileSystemRead (/q/x.db)"),
            (said("ERR_LOAD_SQLITE_EXTENSION", None, "Cannot load when the permission model is enabled."), "Addons"),
            (said("EAI_AGAIN", Some("getnameinfo"), "getnameinfo EAI_AGAIN"), "Net"),
            (said("EPERM", Some("lchown"), "EPERM"), "FileSystemWrite"),
            (said("EACCES", Some("opendir"), "EACCES"), "FileSystemRead"),
        ];
        for (error, expected) in cases {
            assert!(message("/p/a.ts", &error).starts_with(&format!("sandbox denied {expected}: ")), "{error:?}");
        }
        for (code, text) in [
            ("ERR_SYSTEM_ERROR", "uv_os_get_passwd returned ENOENT"),
            ("ERR_DLOPEN_FAILED", "undefined symbol"),
            ("ERR_SQLITE_ERROR", "no such table"),
            ("ERR_SQLITE_ERROR", "unable to open database: /p/missing.db"),
            ("ERR_LOAD_SQLITE_EXTENSION", "extension loading is not allowed"),
        ] {
            assert_eq!(message("/p/a.ts", &said(code, None, text)), text);
        }
    }

    #[test]
    fn what_is_no_error_is_its_text() {
        let error = RawError { text: Some("42".to_owned()), ..RawError::default() };
        assert_eq!(message("", &error), "42");
        let long = RawError { text: Some("é".repeat(LONGEST_TEXT)), ..RawError::default() };
        assert!(message("", &long).len() < LONGEST_TEXT + 32);
        assert!(message("", &long).ends_with("\u{2026} [cut]"));
    }
}
