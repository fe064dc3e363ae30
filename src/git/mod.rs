//! Finding a Git boundary without running Git: what repository a path belongs to, and what is Git's own data.
//!
//! No Git program is run and nothing of a repository's configuration is obeyed: the tree that is looked at is not
//! trusted, and Git runs commands that a repository's configuration names. Where something cannot be read or is not in
//! the form it must have, the answer is an invalid boundary, never an absent one. Source of all rules:
//! `contract/mirror.md`, "Git boundary". The rules, by number, where they act:
//!
//! 1. The search begins at the nearest directory that exists, of the path with its symlinks resolved, and goes up to the
//!    root; the first level that is a boundary is the answer ([`inspect`]).
//! 2. A level with a `.git` entry is a boundary. A symlink, or neither a file nor a directory → invalid.
//! 3. A `.git` directory is resolved if it is *complete*: a valid `HEAD`, a `config` with a `[core]` section, and the
//!    directories `objects` and `refs`; else invalid. Each must be what it is by itself, not through a link.
//! 4. A `.git` file is resolved if it belongs to a linked worktree: one line `gitdir: …` that leads to a directory with a
//!    valid `HEAD`, a `commondir` that leads to a complete directory whose `worktrees` is the git dir's parent, and a
//!    `gitdir` that leads back to this very file; else invalid, so the pointers of submodules are too. Paths in these
//!    files are resolved as the system does it, relative ones from the directory of the file.
//! 5. A level without `.git` is a boundary of a bare repository if two or more of `HEAD`, `config`, `objects` and `refs`
//!    exist: resolved if it is complete, else invalid. All its paths are the directory itself.
//! 6. The metadata roots of an invalid boundary: by rules 2 to 4 the `.git` entry, and the git dir and the common dir as
//!    far as they lead to directories; by rule 5 the directory.
//! 7. A path is metadata if, with its symlinks resolved, it is the `.git` entry of a resolved boundary, or at or within
//!    its git dir or common dir; or at or within a metadata root of an invalid one. Where a second path is given, the
//!    boundary is that path's, and the question is whether the first path is data of *that* repository
//!    ([`is_metadata_path`]).
//! 8. Two paths are the same repository's if both are resolved and have the same common dir ([`same`]).
//! 9. Which root of a workspace a path belongs to: see [`workspace_root_match`].
//!
//! It follows that a path inside a git dir finds that git dir first, by rule 5.

pub mod discover;
pub mod format;
pub mod identity;
mod structure;

pub use identity::{
    GitResourceIdentity, GitResourceIdentityInspection, WorkspaceRootKind, WorkspaceRootMatch, containing_root,
    inspect, is_metadata_path, resolve, same, workspace_root_match,
};
