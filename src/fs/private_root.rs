//! Fresh directories of our own under a temp directory: mode 0700 whatever the umask says, and held by a lock for as
//! long as somebody uses them, so that a sweep can tell the living from what a killed process left behind.
//!
//! A root keeps its own descriptor and one of the directory that it was made in, so that it can be removed without a
//! look at any path on the way. Fails with the system error of the operation, and with
//! `contained_execution_boundary_failed` where the directory at the path is not the one that was opened; a root that
//! could be made but not held is removed again.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::absolute;
use super::beneath::Beneath;
use super::directory::Directory;
use super::identity::NodeType;
use super::operation::OperationError;
use super::remove::{is_gone, moved, remove_root};
use crate::failure::{ContainedCode, Facts, Failure, Result};

/// How the names of mirror roots begin; six random characters follow (`contract/mirror.md`, step 5).
pub const MIRROR_PREFIX: &str = "belay-contained-mirror-";

/// How the names of the directories of sandboxed runs begin (`contract/sandbox.md`, "Bundling"); so do those of bundles
/// that callers made for themselves, which are theirs to remove.
pub const RUN_PREFIX: &str = "chant-sandbox-";

/// What only the directory of a run has in it: an empty file that is made when the directory is held.
const RUN_MARK: &[u8] = b".sallyport-run";

/// How many random characters end the name of a root.
const RANDOM_CHARACTERS: usize = 6;

/// How often another root is made because a sweep took the one before, in the moment in which nobody held it.
const MOST_ATTEMPTS: u32 = 16;

/// A private root that is held by this process.
#[derive(Debug)]
pub struct PrivateRoot {
    path: PathBuf,
    parent: Directory,
    directory: Directory,
}

impl PrivateRoot {
    /// Makes a root under `parent`, which must exist.
    ///
    /// # Errors
    /// A system error (`mkdtemp`, `open`, `chmod`, `flock`); the module's code where every root that was made was taken
    /// away before it could be held.
    pub fn create(parent: &Path, prefix: &str, beneath: Beneath) -> Result<Self> {
        let mut attempts = 1;
        loop {
            let path = make(parent, prefix)?;
            match Self::take(&path, beneath, Content::Any) {
                Err(failure) if was_taken_away(&failure) && attempts < MOST_ATTEMPTS => attempts += 1,
                Err(failure) if was_taken_away(&failure) => {
                    return Err(Failure::Contained {
                        code: ContainedCode::BoundaryFailed,
                        facts: Facts::default(),
                        cause: Some(Box::new(failure)),
                    });
                }
                Err(failure) => {
                    // It is empty and ours: nothing but this call knows of it. What failed first is what is told.
                    let _removed = std::fs::remove_dir(&path);
                    return Err(failure);
                }
                held => return held,
            }
        }
    }

    /// Takes hold of a directory that somebody else made, with what is in it, and gives it mode 0700.
    ///
    /// # Errors
    /// A system error: it is missing, no directory, a link, not ours, or held by somebody else.
    pub fn hold(path: &Path, beneath: Beneath) -> Result<Self> {
        Self::take(path, beneath, Content::Any)
    }

    /// The same for the directory of a sandboxed run, which a sweep takes for one from here on.
    ///
    /// # Errors
    /// As [`PrivateRoot::hold`]; the mark is there already or cannot be made.
    pub fn hold_run(path: &Path, beneath: Beneath) -> Result<Self> {
        let root = Self::hold(path, beneath)?;
        root.directory
            .create_file(RUN_MARK)
            .map_err(|error| error.at(&super::directory::join_bytes(path, RUN_MARK)))?;
        Ok(root)
    }

    /// The same for a directory that must be empty: what is in a root goes with it, and what a caller had there before
    /// is not ours to remove.
    ///
    /// # Errors
    /// As [`PrivateRoot::hold`]; the module's code where there is something in it, which is then left as it was.
    pub fn hold_empty(path: &Path, beneath: Beneath) -> Result<Self> {
        Self::take(path, beneath, Content::Nothing)
    }

    fn take(path: &Path, beneath: Beneath, content: Content) -> Result<Self> {
        let path = absolute::real_path(path, "realpath")?;
        let (Some(parent_path), Some(name)) = (path.parent(), path.file_name().map(OsStrExt::as_bytes)) else {
            return Err(Failure::contained(ContainedCode::BoundaryFailed));
        };
        let failed = |error: OperationError| error.at(&path);
        // Only to be passed through: a temp directory need not be readable.
        let parent = Directory::open_canonical_passage(parent_path, beneath).map_err(|error| error.at(parent_path))?;
        let directory = match parent.open_directory(name) {
            // The umask may have taken it from its owner.
            Err(error) if error.errno == Errno::ACCESS => {
                parent.open_up(name).and_then(|()| parent.open_directory(name)).map_err(failed)?
            }
            other => other.map_err(failed)?,
        };
        if content == Content::Nothing && !is_empty(&directory).map_err(failed)? {
            return Err(Failure::Contained {
                code: ContainedCode::BoundaryFailed,
                facts: Facts::default(),
                cause: Some(Box::new(OperationError { operation: "scandir", errno: Errno::NOTEMPTY }.at(&path))),
            });
        }
        directory.set_permissions(0o700).map_err(failed)?;
        lock(&directory).map_err(failed)?;
        let root = Self { path: path.clone(), parent, directory };
        // Until it was locked, a sweep could take it for one that nobody uses.
        if root.is_in_place() { Ok(root) } else { Err(moved(&path, Errno::STALE)) }
    }

    /// Its canonical path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open directory.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Whether its path still leads to it. What cannot be looked at does not.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        match (absolute::metadata(&self.path, "lstat"), self.directory.metadata()) {
            (Ok(found), Ok(held)) => found.identity.same_node(&held.identity),
            _ => false,
        }
    }

    /// Whether it has been removed: not moved, and not replaced. What cannot be looked at was not.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        is_gone(&self.directory).is_ok_and(|gone| gone)
    }

    /// Removes the root and everything in it, and confirms that it is gone.
    ///
    /// # Errors
    /// The first operation that could not be done, with its path; the module's code where the root is somewhere else by
    /// now: then it is empty.
    pub fn remove(&self) -> Result<()> {
        remove_root(&self.path, &self.parent, &self.directory)
    }
}

/// What may be in a directory that becomes a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Any,
    Nothing,
}

/// Makes a directory with a random name.
fn make(parent: &Path, prefix: &str) -> Result<PathBuf> {
    let made = tempfile::Builder::new()
        .prefix(prefix)
        .rand_bytes(RANDOM_CHARACTERS)
        .make_in(parent, |path| std::fs::DirBuilder::new().mode(0o700).create(path))
        .map_err(|error| Failure::system(error.raw_os_error().unwrap_or_default(), "mkdtemp", parent))?;
    // The crate would remove it like a file when it is dropped; this is a directory, and its owner removes it.
    made.into_temp_path()
        .keep()
        .map_err(|error| Failure::Internal(format!("a private root could not be kept: {error}")))
}

/// Whether a root that was just made failed to be held because a sweep was faster: it is gone, or locked to be removed.
fn was_taken_away(failure: &Failure) -> bool {
    match failure {
        Failure::System(system) => [Errno::NOENT, Errno::BUSY].map(Errno::raw_os_error).contains(&system.errno),
        Failure::Contained { code, .. } => *code == ContainedCode::BoundaryFailed,
        _ => false,
    }
}

fn is_empty(directory: &Directory) -> std::result::Result<bool, OperationError> {
    let mut empty = true;
    // A descriptor of its own: the position in the listing of the one that is held must stay at the beginning.
    directory.open_directory(b"")?.list(|_, _| {
        empty = false;
        Ok::<(), OperationError>(())
    })?;
    Ok(empty)
}

/// Takes the lock that holds a root. It belongs to the open descriptor, so the kernel drops it with the process.
fn lock(directory: &Directory) -> std::result::Result<(), OperationError> {
    super::beneath::retry(|| {
        rustix::fs::flock(directory.descriptor(), FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
            // `retry` repeats EAGAIN, which is how flock says that somebody else holds it: that answer is final.
            if errno == Errno::WOULDBLOCK { Errno::BUSY } else { errno }
        })
    })
    .map_err(OperationError::named("flock"))
}

/// What a sweep did.
#[derive(Debug, Default, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Swept {
    /// The roots that were removed.
    pub removed: Vec<PathBuf>,
    /// How many roots of this kind were left: younger, in use, or somebody else's.
    pub kept: u64,
}

/// Removes the roots that a killed process left in `parent`, of mirrors and of sandboxed runs: directories of our own by
/// name, owned by this user, whose last change is older than `older_than_milliseconds`, and that nobody holds. Source:
/// `contract/mirror.md`, "Where the reference is not followed".
///
/// # Errors
/// A system error where `parent` cannot be read. A root that cannot be removed counts as kept.
pub fn sweep(parent: &Path, older_than_milliseconds: u64, now_milliseconds: i64) -> Result<Swept> {
    let canonical = absolute::real_path(parent, "realpath")?;
    let directory = Directory::open_canonical(&canonical, Beneath::detected()).map_err(|error| error.at(&canonical))?;
    let mut names = Vec::new();
    directory
        .list(|name, _| {
            let kind = [MIRROR_PREFIX, RUN_PREFIX].into_iter().find(|prefix| is_root_name(name, prefix));
            // What cannot be looked into is no run's, as far as can be seen.
            if kind.is_some_and(|prefix| prefix != RUN_PREFIX || is_run(&directory, name)) {
                names.push(name.to_vec());
            }
            Ok::<(), OperationError>(())
        })
        .map_err(|error| error.at(&canonical))?;
    names.sort();
    let mut swept = Swept::default();
    for name in names {
        let path = super::directory::join_bytes(&canonical, &name);
        if remove_abandoned(&directory, &name, &path, older_than_milliseconds, now_milliseconds) {
            swept.removed.push(path);
        } else {
            swept.kept += 1;
        }
    }
    Ok(swept)
}

/// Whether a directory is that of a run, not of a bundle that a caller has.
fn is_run(parent: &Directory, name: &[u8]) -> bool {
    parent.metadata_of(&[name, b"/", RUN_MARK].concat()).is_ok_and(|found| found.node_type == NodeType::File)
}

fn is_root_name(name: &[u8], prefix: &str) -> bool {
    name.strip_prefix(prefix.as_bytes())
        .is_some_and(|random| random.len() == RANDOM_CHARACTERS && random.iter().all(u8::is_ascii_alphanumeric))
}

/// Whether the root was abandoned and is gone now.
fn remove_abandoned(
    parent: &Directory,
    name: &[u8],
    path: &Path,
    older_than_milliseconds: u64,
    now_milliseconds: i64,
) -> bool {
    match take_abandoned(parent, name, older_than_milliseconds, now_milliseconds) {
        Ok(Some(root)) => remove_root(path, parent, &root).is_ok(),
        // Not to be opened, not to be locked: in use, or somebody else's. Kept and counted, as documented.
        Ok(None) | Err(_) => false,
    }
}

/// The root, open and locked, if it is old enough and belongs to this user.
fn take_abandoned(
    parent: &Directory,
    name: &[u8],
    older_than_milliseconds: u64,
    now_milliseconds: i64,
) -> std::result::Result<Option<Directory>, OperationError> {
    let may_be_taken = |found: &super::Metadata| {
        let age = now_milliseconds.saturating_sub(found.modified_milliseconds());
        found.node_type == NodeType::Directory
            && found.owner == rustix::process::geteuid().as_raw()
            && i64::try_from(older_than_milliseconds).is_ok_and(|least| age >= least)
    };
    let seen = parent.metadata_of(name)?;
    if !may_be_taken(&seen) {
        return Ok(None);
    }
    let opened = parent.open_directory(name);
    // What ran inside may have taken it from its owner.
    let opened_up = matches!(opened, Err(OperationError { errno: Errno::ACCESS, .. }));
    let root = if opened_up {
        parent.open_up(name)?;
        parent.open_directory(name)?
    } else {
        opened?
    };
    if !may_be_taken(&root.metadata()?) {
        return Ok(None);
    }
    if let Err(error) = lock(&root) {
        if opened_up {
            // Somebody uses it: it stays as they want it.
            root.set_permissions(seen.permissions())?;
        }
        return Err(error);
    }
    Ok(Some(root))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_root_is_held_even_where_a_sweep_takes_every_root_that_nobody_holds() {
        let base = tempfile::tempdir().unwrap();
        let busy = AtomicBool::new(true);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while busy.load(Ordering::Relaxed) {
                        // The clock of the future: every root is old enough.
                        sweep(base.path(), 0, i64::MAX).unwrap();
                    }
                });
            }
            let held: Vec<_> =
                (0..500).map(|_| PrivateRoot::create(base.path(), MIRROR_PREFIX, Beneath::detected())).collect();
            busy.store(false, Ordering::Relaxed);
            for root in held {
                let root = root.unwrap();
                assert!(root.is_in_place());
                root.remove().unwrap();
                assert!(root.is_gone());
            }
        });
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_sweep_takes_runs_that_nobody_holds_and_no_bundle_of_a_caller() {
        let base = tempfile::tempdir().unwrap();
        let made = |name: &str, file: &str| {
            let path = base.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join(file), "x").unwrap();
            path
        };
        let abandoned = made("chant-sandbox-aaaaaa", ".sallyport-run");
        let live = made("chant-sandbox-bbbbbb", "boot.mjs");
        let of_a_caller = made("chant-sandbox-cccccc", "child.mjs");
        let of_somebody_else = made("chant-sandbox-toolongname", ".sallyport-run");
        // Of a run that has not begun: there is nothing by which a sweep could tell that it is live.
        let beginning = made("chant-sandbox-dddddd", "boot.mjs");
        let held = PrivateRoot::hold_run(&live, Beneath::detected()).unwrap();
        let young = sweep(base.path(), u64::from(u32::MAX), 0).unwrap();
        assert_eq!((young.removed.len(), young.kept), (0, 2));
        let swept = sweep(base.path(), 0, i64::MAX).unwrap();
        assert_eq!(swept, Swept { removed: vec![abandoned.canonicalize().unwrap_or(abandoned)], kept: 1 });
        for path in [&live, &of_a_caller, &of_somebody_else, &beginning] {
            assert!(path.exists(), "{path:?}");
        }
        held.remove().unwrap();
    }

    #[test]
    fn what_is_in_a_directory_is_held_with_it_or_refuses_it() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("made");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("file"), "x").unwrap();
        let failure = PrivateRoot::hold_empty(&path, Beneath::detected()).unwrap_err();
        assert!(matches!(failure, Failure::Contained { code: ContainedCode::BoundaryFailed, .. }), "{failure:?}");
        assert!(path.join("file").exists());
        PrivateRoot::hold(&path, Beneath::detected()).unwrap().remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_root_that_was_moved_is_emptied_and_not_gone() {
        let base = tempfile::tempdir().unwrap();
        for beneath in [Beneath::Kernel, Beneath::PerComponent] {
            let root = PrivateRoot::create(base.path(), MIRROR_PREFIX, beneath).unwrap();
            let away = base.path().join("away");
            std::fs::create_dir_all(root.path().join("a/b")).unwrap();
            std::fs::write(root.path().join("a/b/file"), "x").unwrap();
            std::fs::rename(root.path(), &away).unwrap();
            let failure = root.remove().unwrap_err();
            assert!(matches!(failure, Failure::Contained { code: ContainedCode::BoundaryFailed, .. }), "{failure:?}");
            assert!(!root.is_gone());
            assert_eq!(std::fs::read_dir(&away).unwrap().count(), 0);
            std::fs::remove_dir(&away).unwrap();
            assert!(root.is_gone());
            root.remove().unwrap();
        }
    }

    #[test]
    fn any_depth_is_emptied_with_few_levels_held() {
        let base = tempfile::tempdir().unwrap();
        for beneath in [Beneath::Kernel, Beneath::PerComponent] {
            let root = PrivateRoot::create(base.path(), MIRROR_PREFIX, beneath).unwrap();
            let deep: PathBuf = (0..200).map(|level| format!("d{level}")).collect();
            std::fs::create_dir_all(root.path().join(&deep)).unwrap();
            for level in deep.ancestors() {
                std::fs::create_dir(root.path().join(level).join("sibling")).unwrap();
                std::fs::write(root.path().join(level).join("file"), "x").unwrap();
            }
            root.remove().unwrap();
            assert!(root.is_gone());
        }
    }
}
