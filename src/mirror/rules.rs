//! What the walk of a mirror skips, takes and refuses.
//!
//! The rules, in the order in which they act (`contract/mirror.md`, "What the walk skips, takes and refuses"):
//! 1. Left out without a look inside: a name that is `.git` in any letter case; a protected root; a git dir that was
//!    found inside the tree.
//! 2. The content of a bare repository is left out, the directory stays.
//! 3. A file with several names is refused, or taken where the caller asked for copies.
//! 4. A symlink is taken if its text is relative, does not lead out of the tree, into Git's data or into a protected
//!    root, and resolves to something of which the same is true; else it is refused with the rule it broke.
//! 5. Limits: entries, bytes of the source; bytes of the copy only after all else, since the reference counts those when
//!    it writes.

use std::cell::Cell;
use std::collections::HashSet;

use super::MirrorLimits;
use super::plan::{SkipRule, Skipped};
use crate::failure::{Failure, LinkRule, Result};
use crate::fs::resolve::{Unresolved, resolve_beneath};
use crate::fs::{Directory, Metadata, TypeHint};
use crate::git::discover::{Marks, MetadataRoots};
use crate::tree::quota::Quota;
use crate::tree::read::{Links, hard_linked};
use crate::tree::walk::{Entry, EntryKind, Judgement, WalkRules};

/// The limits as quotas with their names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quotas {
    pub(super) nodes: Quota,
    pub(super) source_bytes: Quota,
    pub(super) workspace_bytes: Quota,
}

impl From<MirrorLimits> for Quotas {
    fn from(limits: MirrorLimits) -> Self {
        let quota = |counter, option, limit| Quota { counter, option, limit };
        Self {
            nodes: quota("mirror nodeCount", "maxFiles", limits.max_files),
            source_bytes: quota("mirror sourceBytes", "maxSourceBytes", limits.max_source_bytes),
            workspace_bytes: quota("mirror workspaceBytes", "maxWorkspaceBytes", limits.max_workspace_bytes),
        }
    }
}

/// The places in a tree that are not copied, by paths relative to its root.
#[derive(Debug, Default)]
pub(super) struct Boundaries {
    /// Protected roots inside the tree.
    pub(super) protected: HashSet<Vec<u8>>,
    /// Git's data inside the tree.
    pub(super) metadata: MetadataRoots,
}

/// Why a place is not to be reached.
enum Forbidden {
    Git,
    Protected,
}

impl Boundaries {
    /// Whether a location is, or lies below, a place that is not copied.
    fn forbids(&self, path: &[u8]) -> Option<Forbidden> {
        let mut end = 0;
        loop {
            let rest = &path[end..];
            let next = rest.iter().position(|byte| *byte == b'/').map(|slash| end + slash);
            let so_far = &path[..next.unwrap_or(path.len())];
            if is_git_name(&so_far[end..]) || self.metadata.git_directories.contains(so_far) {
                return Some(Forbidden::Git);
            }
            if self.protected.contains(so_far) {
                return Some(Forbidden::Protected);
            }
            end = next? + 1;
            if self.metadata.bare_repositories.contains(so_far) {
                return Some(Forbidden::Git);
            }
        }
    }
}

fn is_git_name(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}

fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The rules with their counters for one walk.
pub(super) struct MirrorRules<'a> {
    boundaries: &'a Boundaries,
    links: Links,
    quotas: Quotas,
    nodes: u64,
    bytes: u64,
    workspace_bytes: u64,
    /// The first entry at which the copy would be too large.
    workspace_refusal: Option<Failure>,
    /// Where it is told that something may be Git's data that the boundaries do not know of yet.
    suspicion: Option<&'a Cell<bool>>,
    /// What the names say of the directory that is being listed, and whether it is the root.
    marks: (Marks, bool),
    /// What was left out.
    pub(super) skipped: Vec<Skipped>,
    /// Files with several names: where, and which node.
    pub(super) linked: Vec<(Vec<u8>, Metadata)>,
}

impl<'a> MirrorRules<'a> {
    pub(super) fn new(boundaries: &'a Boundaries, links: Links, quotas: Quotas) -> Self {
        Self {
            boundaries,
            links,
            quotas,
            nodes: 0,
            bytes: 0,
            workspace_bytes: 0,
            workspace_refusal: None,
            suspicion: None,
            marks: (Marks::default(), false),
            skipped: Vec::new(),
            linked: Vec::new(),
        }
    }

    /// The same for boundaries in which Git's data was not looked for: `suspicion` becomes true at the first directory
    /// by which some may be found.
    pub(super) fn without_metadata(
        boundaries: &'a Boundaries,
        links: Links,
        quotas: Quotas,
        suspicion: &'a Cell<bool>,
    ) -> Self {
        Self { suspicion: Some(suspicion), ..Self::new(boundaries, links, quotas) }
    }

    /// What is only known at the end of a walk.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.workspace_refusal.take().map_or(Ok(()), Err)
    }

    fn skip(&mut self, path: &[u8], rule: SkipRule) -> Judgement {
        self.skipped.push(Skipped { path: path.to_vec(), rule });
        Judgement::Skip
    }
}

impl WalkRules for MirrorRules<'_> {
    fn judge_location(&mut self, relative_path: &[u8]) -> Result<Judgement> {
        let metadata = &self.boundaries.metadata;
        if is_git_name(last_name(relative_path)) || metadata.git_directories.contains(relative_path) {
            return Ok(self.skip(relative_path, SkipRule::GitMetadata));
        }
        if self.boundaries.protected.contains(relative_path) {
            return Ok(self.skip(relative_path, SkipRule::ProtectedRoot));
        }
        Ok(Judgement::Take)
    }

    fn judge_symlink(&mut self, root: &Directory, relative_path: &[u8], target: &[u8]) -> Result<Judgement> {
        let refuse = |rule| Err(Failure::unsafe_symlink(relative_path, rule));
        if target.starts_with(b"/") {
            return refuse(LinkRule::AbsoluteTarget);
        }
        let directory = &relative_path[..relative_path.len() - last_name(relative_path).len()];
        let Some(lexical) = lexical_target(directory, target) else { return refuse(LinkRule::LeavesSource) };
        if let Some(forbidden) = self.boundaries.forbids(&lexical) {
            return refuse(forbidden.into());
        }
        match resolve_beneath(root, directory, target) {
            Err(Unresolved::LeavesRoot) => refuse(LinkRule::LeavesSource),
            Err(Unresolved::Broken) => refuse(LinkRule::Unresolvable),
            Ok(real) => match self.boundaries.forbids(&real) {
                Some(forbidden) => refuse(forbidden.into()),
                None => Ok(Judgement::Take),
            },
        }
    }

    fn judge_links(&mut self, relative_path: &[u8], metadata: &Metadata) -> Result<()> {
        if self.links == Links::Single {
            return Err(hard_linked(relative_path, metadata.links));
        }
        self.linked.push((relative_path.to_vec(), *metadata));
        Ok(())
    }

    fn enters(&mut self, relative_path: &[u8]) -> bool {
        if self.boundaries.metadata.bare_repositories.contains(relative_path) {
            self.skip(relative_path, SkipRule::GitMetadata);
            return false;
        }
        true
    }

    fn count(&mut self, entry: &Entry) -> Result<()> {
        self.nodes += 1;
        self.bytes += entry.file_size();
        self.workspace_bytes += match &entry.kind {
            EntryKind::Symlink(target) => target.len() as u64,
            EntryKind::File | EntryKind::Directory => entry.file_size(),
        };
        self.quotas.nodes.check(self.nodes, &entry.path)?;
        self.quotas.source_bytes.check(self.bytes, &entry.path)?;
        if self.workspace_refusal.is_none() {
            self.workspace_refusal = self.quotas.workspace_bytes.check(self.workspace_bytes, &entry.path).err();
        }
        Ok(())
    }

    fn room_left(&self) -> usize {
        usize::try_from(self.quotas.nodes.limit.saturating_sub(self.nodes)).unwrap_or(usize::MAX)
    }

    fn begin_listing(&mut self, directory: &[u8]) {
        self.marks = (Marks::default(), directory.is_empty());
    }

    fn see_name(&mut self, name: &[u8], hint: TypeHint) {
        let Some(suspicion) = self.suspicion else { return };
        let (marks, is_root) = &mut self.marks;
        marks.see(name, hint);
        if marks.call_for_discovery(*is_root) {
            suspicion.set(true);
        }
    }
}

impl From<Forbidden> for LinkRule {
    fn from(forbidden: Forbidden) -> Self {
        match forbidden {
            Forbidden::Git => Self::GitMetadata,
            Forbidden::Protected => Self::ProtectedRoot,
        }
    }
}

/// Where a link's text leads by its spelling alone; nothing if that is above the root.
fn lexical_target(directory: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in directory.split(|byte| *byte == b'/').chain(target.split(|byte| *byte == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_followed_by_its_spelling() {
        assert_eq!(lexical_target(b"a/b/", b"../c").as_deref(), Some(&b"a/c"[..]));
        assert_eq!(lexical_target(b"a/", b".").as_deref(), Some(&b"a"[..]));
        assert_eq!(lexical_target(b"", b".").as_deref(), Some(&b""[..]));
        assert_eq!(lexical_target(b"a/", b"../.."), None);
        assert_eq!(lexical_target(b"", b"../src/x"), None);
    }

    #[test]
    fn what_lies_below_a_boundary_is_forbidden_and_what_only_looks_like_it_is_not() {
        let boundaries = Boundaries {
            protected: HashSet::from([b"control".to_vec()]),
            metadata: MetadataRoots {
                git_directories: HashSet::from([b"meta/one".to_vec()]),
                bare_repositories: HashSet::from([b"bare".to_vec()]),
                root_is_repository: false,
            },
        };
        let forbidden = |path: &[u8]| match boundaries.forbids(path) {
            None => "no",
            Some(Forbidden::Git) => "git",
            Some(Forbidden::Protected) => "protected",
        };
        assert_eq!(forbidden(b""), "no");
        assert_eq!(forbidden(b"a/.Git/x"), "git");
        assert_eq!(forbidden(b"a/.github"), "no");
        assert_eq!(forbidden(b"control"), "protected");
        assert_eq!(forbidden(b"control/a"), "protected");
        assert_eq!(forbidden(b"controller"), "no");
        assert_eq!(forbidden(b"meta/one/config"), "git");
        assert_eq!(forbidden(b"meta"), "no");
        assert_eq!(forbidden(b"bare"), "no");
        assert_eq!(forbidden(b"bare/HEAD"), "git");
    }
}
