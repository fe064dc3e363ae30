//! Fresh directories of our own under a temp directory: mode 0700 whatever the umask says, and held by a lock for as
//! long as somebody uses them, so that a sweep can tell the living from what a killed process left behind.
//!
//! Fails with the system error of the operation; a root that could be made but not held is removed again.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::absolute;
use super::beneath::Beneath;
use super::directory::Directory;
use super::operation::OperationError;
use crate::failure::{Failure, Result};

/// How the names of mirror roots begin; six random characters follow (`contract/mirror.md`, step 5).
pub const MIRROR_PREFIX: &str = "belay-contained-mirror-";

/// How many random characters end the name of a root.
const RANDOM_CHARACTERS: usize = 6;

/// A private root that is held by this process.
#[derive(Debug)]
pub struct PrivateRoot {
    path: PathBuf,
    directory: Directory,
}

impl PrivateRoot {
    /// Makes a root under `parent`, which must exist.
    ///
    /// # Errors
    /// A system error (`mkdtemp`, `open`, `chmod`, `flock`).
    pub fn create(parent: &Path, prefix: &str, beneath: Beneath) -> Result<Self> {
        let made = tempfile::Builder::new()
            .prefix(prefix)
            .rand_bytes(RANDOM_CHARACTERS)
            .make_in(parent, |path| std::fs::DirBuilder::new().mode(0o700).create(path))
            .map_err(|error| Failure::system(error.raw_os_error().unwrap_or_default(), "mkdtemp", parent))?;
        // The crate would remove it like a file when it is dropped; this is a directory, and its owner removes it.
        let path = made
            .into_temp_path()
            .keep()
            .map_err(|error| Failure::Internal(format!("a private root could not be kept: {error}")))?;
        Self::hold(&path, beneath).inspect_err(|_| {
            // It is empty and ours: nothing but this call knows of it. What failed first is what is told.
            let _removed = std::fs::remove_dir(&path);
        })
    }

    /// Takes hold of a directory that a caller made, and gives it mode 0700.
    ///
    /// # Errors
    /// A system error: it is missing, no directory, a link, not ours, or held by somebody else.
    pub fn hold(path: &Path, beneath: Beneath) -> Result<Self> {
        let path = absolute::real_path(path, "realpath")?;
        let directory = Directory::open_canonical(&path, beneath).map_err(|error| error.at(&path))?;
        directory.set_permissions(0o700).map_err(|error| error.at(&path))?;
        lock(&directory).map_err(|error| error.at(&path))?;
        Ok(Self { path, directory })
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

/// Removes the roots that a killed process left in `parent`: directories of our own by name, owned by this user, whose
/// last change is older than `older_than_milliseconds`, and that nobody holds. Source: `contract/mirror.md`, "Where the
/// reference is not followed".
///
/// # Errors
/// A system error where `parent` cannot be read. A root that cannot be removed counts as kept.
pub fn sweep(parent: &Path, prefix: &str, older_than_milliseconds: u64, now_milliseconds: i64) -> Result<Swept> {
    let canonical = absolute::real_path(parent, "realpath")?;
    let directory = Directory::open_canonical(&canonical, Beneath::detected()).map_err(|error| error.at(&canonical))?;
    let mut names = Vec::new();
    directory
        .list(|name, _| {
            if is_root_name(name, prefix) {
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
    let abandoned = || {
        let root = parent.open_directory(name)?;
        let metadata = root.metadata()?;
        let age = now_milliseconds.saturating_sub(metadata.modified_milliseconds());
        let old = i64::try_from(older_than_milliseconds).is_ok_and(|least| age >= least);
        if metadata.owner != rustix::process::geteuid().as_raw() || !old {
            return Ok(None);
        }
        lock(&root)?;
        Ok::<_, OperationError>(Some(root))
    };
    match abandoned() {
        Ok(Some(root)) => super::remove::remove_root(path, &root, &mut || Ok(())).is_ok(),
        // Not to be opened, not to be locked: in use, or somebody else's. Kept and counted, as documented.
        Ok(None) | Err(_) => false,
    }
}

impl PrivateRoot {
    /// Removes the root and everything in it, and confirms that it is gone.
    ///
    /// # Errors
    /// The first operation that could not be done, with its path.
    pub fn remove(&self, checkpoint: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        super::remove::remove_root(&self.path, &self.directory, checkpoint)
    }
}

/// Whether nothing is at `path`. Something that cannot be looked at counts as there.
#[must_use]
pub fn is_absent(path: &Path) -> bool {
    matches!(rustix::fs::lstat(path.as_os_str().as_bytes()), Err(Errno::NOENT))
}
