//! The repository that a path belongs to, and what follows from it. The numbered rules are in [`super`].
//!
//! Nothing here fails: what cannot be told is an invalid boundary. All paths that come in are absolute; all that go out
//! have their symlinks resolved. They become text only when they are serialised, lossy where a name is not UTF-8.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::format::{POINTER_LIMIT, back_pointer, commondir_pointer, gitdir_pointer};
use super::structure::{self, PARTS};
use crate::fs::directory::join_bytes;
use crate::fs::path::{
    at_or_within, canonical_path, node_type_of, path_from_bytes, real_directory, real_path, split_path,
};
use crate::fs::stream::read_small_file;
use crate::fs::{Beneath, Directory, NodeType};

/// Where a repository's parts are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GitResourceIdentity {
    /// The directory that holds the `.git` entry; the directory itself for a bare repository.
    #[serde(serialize_with = "lossy")]
    pub repository_root: PathBuf,
    /// The git dir: for a linked worktree its own one below `worktrees`.
    #[serde(serialize_with = "lossy")]
    pub git_dir: PathBuf,
    /// The git dir that all worktrees of the repository share; it tells one repository from another.
    #[serde(serialize_with = "lossy")]
    pub common_dir: PathBuf,
    /// The `.git` directory or file; the directory itself for a bare repository.
    #[serde(serialize_with = "lossy")]
    pub git_entry_path: PathBuf,
}

/// What was found above a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum GitResourceIdentityInspection {
    /// A repository in good order.
    Resolved {
        /// Its parts.
        identity: GitResourceIdentity,
    },
    /// No boundary at any level.
    Absent,
    /// A boundary that is not in good order, or not of a kind that is supported.
    Invalid {
        /// The directory of the boundary.
        #[serde(serialize_with = "lossy")]
        boundary_path: PathBuf,
        /// What must be taken for Git's own data (rule 6).
        #[serde(serialize_with = "all_lossy")]
        metadata_roots: Vec<PathBuf>,
    },
}

/// By which right a root holds a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WorkspaceRootKind {
    /// It is the repository, or another worktree of it.
    Repo,
    /// It is one of the trusted roots.
    Trusted,
}

/// The root that a path belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceRootMatch {
    /// By which right.
    pub kind: WorkspaceRootKind,
    /// The root, canonical.
    #[serde(serialize_with = "lossy")]
    pub root: PathBuf,
    /// The canonical path relative to it; empty for the root itself.
    #[serde(serialize_with = "lossy")]
    pub relative_path: PathBuf,
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

fn all_lossy<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

/// Finds the boundary that `path` is in (rules 1 to 6).
#[must_use]
pub fn inspect(path: &Path) -> GitResourceIdentityInspection {
    let split = split_path(path);
    split.nearest_directory().ancestors().find_map(boundary_at).unwrap_or(GitResourceIdentityInspection::Absent)
}

/// The repository that `path` is in; nothing where there is none or its boundary is invalid.
#[must_use]
pub fn resolve(path: &Path) -> Option<GitResourceIdentity> {
    match inspect(path) {
        GitResourceIdentityInspection::Resolved { identity } => Some(identity),
        GitResourceIdentityInspection::Absent | GitResourceIdentityInspection::Invalid { .. } => None,
    }
}

/// Whether both paths are in the same repository (rule 8).
#[must_use]
pub fn same(left: &Path, right: &Path) -> bool {
    match (resolve(left), resolve(right)) {
        (Some(left), Some(right)) => left.common_dir == right.common_dir,
        _ => false,
    }
}

/// Whether `path` is Git's own data: of the boundary it is in, or of the one that `repository` is in (rule 7).
#[must_use]
pub fn is_metadata_path(path: &Path, repository: Option<&Path>) -> bool {
    let canonical = canonical_path(path);
    match inspect(repository.unwrap_or(&canonical)) {
        GitResourceIdentityInspection::Resolved { identity } => {
            canonical == identity.git_entry_path
                || at_or_within(&identity.git_dir, &canonical)
                || at_or_within(&identity.common_dir, &canonical)
        }
        GitResourceIdentityInspection::Invalid { metadata_roots, .. } => {
            metadata_roots.iter().any(|root| at_or_within(root, &canonical))
        }
        GitResourceIdentityInspection::Absent => false,
    }
}

/// The directory of the boundary that `path` is in, in good order or not.
#[must_use]
pub fn containing_root(path: &Path) -> Option<PathBuf> {
    match inspect(path) {
        GitResourceIdentityInspection::Resolved { identity } => Some(identity.repository_root),
        GitResourceIdentityInspection::Invalid { boundary_path, .. } => Some(boundary_path),
        GitResourceIdentityInspection::Absent => None,
    }
}

/// Which root of a workspace holds `target`. The first rule that applies decides:
///
/// 1. `target` in an invalid boundary → none.
/// 2. `repository_root` and `target` both in a repository → the target's repository if it is the same (rule 8 of
///    [`super`]), else none: trust in a folder does not reach into a repository of its own.
/// 3. Neither in a repository, and `target` within `repository_root` → `repository_root`.
/// 4. The longest of `trusted_roots` that holds `target`. `repository_root` itself is never one of them: what the rules
///    above did not grant by it is not granted by naming it again.
/// 5. None.
#[must_use]
pub fn workspace_root_match(
    repository_root: &Path,
    trusted_roots: &[PathBuf],
    target: &Path,
) -> Option<WorkspaceRootMatch> {
    let repository_root = canonical_path(repository_root);
    let target = canonical_path(target);
    let target_inspection = inspect(&target);
    if matches!(target_inspection, GitResourceIdentityInspection::Invalid { .. }) {
        return None;
    }
    match (resolve(&repository_root), target_inspection) {
        (Some(own), GitResourceIdentityInspection::Resolved { identity }) => {
            return if own.common_dir == identity.common_dir {
                match_at(WorkspaceRootKind::Repo, &identity.repository_root, &target)
            } else {
                None
            };
        }
        (None, GitResourceIdentityInspection::Absent) => {
            if let Some(found) = match_at(WorkspaceRootKind::Repo, &repository_root, &target) {
                return Some(found);
            }
        }
        _ => {}
    }
    trusted_roots
        .iter()
        .map(|root| canonical_path(root))
        .filter(|root| *root != repository_root && at_or_within(root, &target))
        .max_by_key(|root| root.components().count())
        .and_then(|root| match_at(WorkspaceRootKind::Trusted, &root, &target))
}

fn match_at(kind: WorkspaceRootKind, root: &Path, target: &Path) -> Option<WorkspaceRootMatch> {
    let relative_path = target.strip_prefix(root).ok()?.to_path_buf();
    Some(WorkspaceRootMatch { kind, root: root.to_path_buf(), relative_path })
}

fn boundary_at(directory: &Path) -> Option<GitResourceIdentityInspection> {
    let entry = directory.join(".git");
    match node_type_of(&entry) {
        Some(NodeType::Directory) if is_complete(&entry) => Some(GitResourceIdentityInspection::Resolved {
            identity: GitResourceIdentity {
                repository_root: directory.to_path_buf(),
                git_dir: entry.clone(),
                common_dir: entry.clone(),
                git_entry_path: entry,
            },
        }),
        Some(NodeType::File) => Some(linked_worktree(directory, entry)),
        Some(NodeType::Directory | NodeType::Symlink | NodeType::Special(_)) => {
            Some(GitResourceIdentityInspection::Invalid {
                boundary_path: directory.to_path_buf(),
                metadata_roots: vec![entry],
            })
        }
        None => bare_repository(directory),
    }
}

/// Opens a directory whose path has no links any more.
fn open(directory: &Path) -> Option<Directory> {
    Directory::open_canonical_passage(directory, Beneath::detected()).ok()
}

/// Rule 3.
fn is_complete(directory: &Path) -> bool {
    open(directory).is_some_and(|directory| structure::is_complete(&directory))
}

fn has_valid_head(directory: &Path) -> bool {
    open(directory).is_some_and(|directory| structure::has_valid_head(&directory))
}

/// Rule 4.
fn linked_worktree(directory: &Path, entry: PathBuf) -> GitResourceIdentityInspection {
    let git_dir = follow(directory, ".git", gitdir_pointer).and_then(|path| real_directory(&path));
    let common_dir = git_dir
        .as_deref()
        .and_then(|git_dir| follow(git_dir, "commondir", commondir_pointer).and_then(|path| real_directory(&path)));
    if let (Some(git_dir), Some(common_dir)) = (&git_dir, &common_dir) {
        let leads_back = || {
            follow(git_dir, "gitdir", back_pointer).and_then(|path| real_path(&path)).is_some_and(|path| path == entry)
        };
        if has_valid_head(git_dir)
            && git_dir.parent() == Some(&common_dir.join("worktrees"))
            && is_complete(common_dir)
            && leads_back()
        {
            return GitResourceIdentityInspection::Resolved {
                identity: GitResourceIdentity {
                    repository_root: directory.to_path_buf(),
                    git_dir: git_dir.clone(),
                    common_dir: common_dir.clone(),
                    git_entry_path: entry,
                },
            };
        }
    }
    let mut metadata_roots = vec![entry];
    for root in [git_dir, common_dir].into_iter().flatten() {
        if !metadata_roots.contains(&root) {
            metadata_roots.push(root);
        }
    }
    GitResourceIdentityInspection::Invalid { boundary_path: directory.to_path_buf(), metadata_roots }
}

/// The path that a pointer file in a directory holds, a relative one taken from there.
fn follow(directory: &Path, name: &str, pointer: fn(&[u8]) -> Option<&[u8]>) -> Option<PathBuf> {
    let content = read_small_file(&open(directory)?, name.as_bytes(), POINTER_LIMIT)?;
    pointer(&content).map(|path| directory.join(path_from_bytes(path)))
}

/// Rule 5.
fn bare_repository(directory: &Path) -> Option<GitResourceIdentityInspection> {
    let exists = |name: &&[u8]| node_type_of(&join_bytes(directory, name)).is_some();
    if PARTS.iter().filter(|name| exists(name)).count() < 2 {
        return None;
    }
    let path = directory.to_path_buf();
    Some(if is_complete(directory) {
        GitResourceIdentityInspection::Resolved {
            identity: GitResourceIdentity {
                repository_root: path.clone(),
                git_dir: path.clone(),
                common_dir: path.clone(),
                git_entry_path: path,
            },
        }
    } else {
        GitResourceIdentityInspection::Invalid { boundary_path: path.clone(), metadata_roots: vec![path] }
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, create_dir_all, remove_file, write};
    use std::os::unix::fs::symlink;

    use super::GitResourceIdentityInspection::{Absent, Invalid, Resolved};
    use super::*;

    struct Base {
        _guard: tempfile::TempDir,
        path: PathBuf,
    }

    impl Base {
        fn new() -> Self {
            let guard = tempfile::tempdir().unwrap();
            let path = std::fs::canonicalize(guard.path()).unwrap();
            Self { _guard: guard, path }
        }

        fn directory(&self, name: &str) -> PathBuf {
            let path = self.path.join(name);
            create_dir_all(&path).unwrap();
            path
        }

        fn repository(&self, name: &str) -> PathBuf {
            let root = self.directory(name);
            git_dir(&root.join(".git"));
            root
        }

        /// A linked worktree of the repository at `main`.
        fn worktree(&self, main: &Path, name: &str) -> PathBuf {
            let root = self.directory(name);
            let own = main.join(".git/worktrees").join(name);
            create_dir_all(&own).unwrap();
            write(own.join("HEAD"), "ref: refs/heads/side\n").unwrap();
            write(own.join("commondir"), "../..\n").unwrap();
            write(own.join("gitdir"), format!("{}\n", root.join(".git").display())).unwrap();
            write(root.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
            root
        }
    }

    fn git_dir(path: &Path) {
        create_dir_all(path.join("objects")).unwrap();
        create_dir(path.join("refs")).unwrap();
        write(path.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        write(path.join("config"), "[core]\n\tbare = false\n").unwrap();
    }

    fn invalid(boundary: &Path, roots: &[&Path]) -> GitResourceIdentityInspection {
        Invalid {
            boundary_path: boundary.to_path_buf(),
            metadata_roots: roots.iter().map(|root| root.to_path_buf()).collect(),
        }
    }

    #[test]
    fn a_repository_is_found_from_below() {
        let base = Base::new();
        let root = base.repository("repo");
        create_dir_all(root.join("src/deep")).unwrap();
        let identity = resolve(&root.join("src/deep/none/x")).unwrap();
        assert_eq!(identity.repository_root, root);
        assert_eq!(identity.git_dir, root.join(".git"));
        assert_eq!(identity.common_dir, root.join(".git"));
        assert_eq!(identity.git_entry_path, root.join(".git"));
        assert_eq!(inspect(&base.path), Absent);
    }

    #[test]
    fn each_part_of_a_git_directory_is_needed() {
        for part in ["HEAD", "config", "objects", "refs"] {
            let base = Base::new();
            let root = base.repository("repo");
            let path = root.join(".git").join(part);
            std::fs::rename(&path, base.path.join("moved")).unwrap();
            assert_eq!(inspect(&root), invalid(&root, &[&root.join(".git")]), "without {part}");
            symlink(base.path.join("moved"), &path).unwrap();
            assert_eq!(inspect(&root), invalid(&root, &[&root.join(".git")]), "{part} is a link");
        }
    }

    #[test]
    fn a_worktree_needs_all_its_pointers() {
        let base = Base::new();
        let main = base.repository("main");
        let side = base.worktree(&main, "side");
        let own = main.join(".git/worktrees/side");
        let common = main.join(".git");
        assert!(matches!(inspect(&side), Resolved { .. }));
        assert!(same(&main, &side));
        let all: [&Path; 3] = [&side.join(".git"), &own, &common];

        for (file, content, roots) in [
            ("gitdir", "/none/.git\n".to_owned(), all.as_slice()),
            ("gitdir", format!("{}\n", main.join(".git").display()), &all),
            ("HEAD", "nonsense\n".to_owned(), &all),
            ("commondir", "none\n".to_owned(), &all[..2]),
            ("commondir", "..\n".to_owned(), &[all[0], all[1], &main.join(".git/worktrees")]),
        ] {
            let path = own.join(file);
            let before = std::fs::read(&path).unwrap();
            write(&path, &content).unwrap();
            assert_eq!(inspect(&side), invalid(&side, roots), "{file}: {content:?}");
            remove_file(&path).unwrap();
            assert!(matches!(inspect(&side), Invalid { .. }), "without {file}");
            write(&path, before).unwrap();
        }
        assert!(same(&main, &side));
        write(common.join("HEAD"), "nonsense\n").unwrap();
        assert_eq!(inspect(&side), invalid(&side, &all));
    }

    #[test]
    fn a_git_directory_elsewhere_is_no_worktree() {
        let base = Base::new();
        let main = base.repository("main");
        let side = base.worktree(&main, "side");
        let moved = base.path.join("moved");
        std::fs::rename(main.join(".git/worktrees/side"), &moved).unwrap();
        write(moved.join("commondir"), main.join(".git").to_str().unwrap()).unwrap();
        write(side.join(".git"), format!("gitdir: {}\n", moved.display())).unwrap();
        assert_eq!(inspect(&side), invalid(&side, &[&side.join(".git"), &moved, &main.join(".git")]));
    }

    #[test]
    fn bare_boundaries_need_two_marks() {
        let base = Base::new();
        let root = base.directory("x");
        create_dir(root.join("objects")).unwrap();
        assert_eq!(inspect(&root), Absent);
        create_dir(root.join("config")).unwrap();
        assert_eq!(inspect(&root.join("config")), invalid(&root, &[&root]));
        let whole = base.path.join("whole.git");
        git_dir(&whole);
        assert_eq!(resolve(&whole.join("objects")).unwrap().git_entry_path, whole);
    }

    #[test]
    fn names_that_are_not_utf8_are_bytes() {
        let base = Base::new();
        let root = base.path.join(path_from_bytes(b"r\xff"));
        git_dir(&root.join(".git"));
        let inspection = inspect(&root.join("x"));
        assert!(matches!(&inspection, Resolved { identity } if identity.repository_root == root));
        let text = serde_json::to_string(&inspection).unwrap();
        assert!(text.contains("r\u{fffd}"));
        assert!(text.starts_with(r#"{"status":"resolved","identity":{"repositoryRoot":""#));
    }

    #[test]
    fn inspections_serialise_with_a_status() {
        assert_eq!(serde_json::to_string(&Absent).unwrap(), r#"{"status":"absent"}"#);
        assert_eq!(
            serde_json::to_string(&invalid(Path::new("/a"), &[Path::new("/a/.git")])).unwrap(),
            r#"{"status":"invalid","boundaryPath":"/a","metadataRoots":["/a/.git"]}"#
        );
        let found = match_at(WorkspaceRootKind::Repo, Path::new("/a"), Path::new("/a/b/c"));
        assert_eq!(serde_json::to_string(&found).unwrap(), r#"{"kind":"repo","root":"/a","relativePath":"b/c"}"#);
    }

    #[test]
    fn workspace_roots() {
        let base = Base::new();
        let plain = base.directory("plain");
        let inner = base.directory("plain/inner");
        let repository = base.repository("repo");
        let nested = base.repository("repo/nested");
        let trusted = [base.path.clone(), inner.clone(), repository.clone(), plain.clone()];
        let root_of = |root: &Path, target: &Path| {
            workspace_root_match(root, &trusted, target).map(|found| (found.kind, found.root))
        };
        assert_eq!(root_of(&plain, &inner.join("x")), Some((WorkspaceRootKind::Repo, plain.clone())));
        assert_eq!(root_of(&repository, &inner.join("x")), Some((WorkspaceRootKind::Trusted, inner.clone())));
        assert_eq!(root_of(&repository, &repository.join("x")), Some((WorkspaceRootKind::Repo, repository.clone())));
        assert_eq!(root_of(&repository, &nested.join("x")), None);
        assert_eq!(root_of(&plain, &repository), Some((WorkspaceRootKind::Trusted, repository.clone())));
        assert_eq!(root_of(&repository, Path::new("/")), None);
        remove_file(nested.join(".git/HEAD")).unwrap();
        assert_eq!(root_of(&plain, &nested.join("x")), None);
    }
}
