//! The first walk: what will be copied, found out by metadata alone, with every limit checked before a byte is written.
//!
//! Fails with the first refusal in path order; with `contained_execution_source_is_protected` for a source that is
//! Git's own data.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::rules::{Boundaries, MirrorRules, Quotas};
use super::{MirrorRequest, relative_to};
use crate::failure::{ContainedCode, Failure, Result};
use crate::fs::path::{canonical_path, lexical_path};
use crate::fs::{Beneath, Directory, Metadata, NodeType, OperationError, TypeHint};
use crate::git::discover::{MetadataRoots, discover};
use crate::tree::control::{Control, ProgressPhase};
use crate::tree::read::hard_linked;
use crate::tree::walk::{Entry, EntryKind, Root, walk};

/// Why something was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipRule {
    /// It is Git's own data.
    GitMetadata,
    /// It is a protected root.
    ProtectedRoot,
}

/// Something that was left out. A bare repository stands here once, though its directory is in the mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The path relative to the source.
    pub path: Vec<u8>,
    /// Why.
    pub rule: SkipRule,
}

impl Serialize for Skipped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Form<'a> {
            relative_path: std::borrow::Cow<'a, str>,
            rule: SkipRule,
        }
        Form { relative_path: String::from_utf8_lossy(&self.path), rule: self.rule }.serialize(serializer)
    }
}

/// What will be copied.
#[derive(Debug)]
pub struct Plan {
    /// Every entry, in the order of the tree hash.
    pub entries: Vec<Entry>,
    /// What is left out, in path order.
    pub skipped: Vec<Skipped>,
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symlinks.
    pub symlinks: u64,
    /// Bytes in files.
    pub bytes: u64,
    pub(super) boundaries: Boundaries,
    pub(super) quotas: Quotas,
}

/// Walks the source.
///
/// # Errors
/// See the module.
pub fn plan(
    request: &MirrorRequest,
    source: Root<'_>,
    protected_roots: &[PathBuf],
    control: &Control<'_>,
) -> Result<Plan> {
    let protected: std::collections::HashSet<Vec<u8>> =
        protected_roots.iter().filter_map(|root| relative_to(source.path, root)).collect();
    let mut boundaries = Boundaries { protected, metadata: MetadataRoots::default() };
    let quotas = Quotas::from(request.limits);
    // Most trees hold nothing of Git's but a `.git` directory, and looking for it first would list every directory once
    // more. So the first walk goes without, and counts if no directory gave a reason to look.
    let suspicion = Cell::new(false);
    let rules = MirrorRules::without_metadata(&boundaries, request.links, quotas, &suspicion);
    let walked = match walk_source(source, rules, &|| suspicion.get(), control) {
        Ok(walked) if !suspicion.get() => walked,
        Err(failure @ (Failure::Aborted | Failure::Hook(_))) => return Err(failure),
        // A refusal may be one of something that is Git's, or that comes after something that is to be refused first.
        Ok(_) | Err(_) => {
            control.begin(ProgressPhase::Snapshot, None);
            let given = lexical_path(&request.source_root);
            let skip = |path: &[u8]| boundaries.protected.contains(path);
            let metadata = discover(source.directory, &[source.path, &given], &skip, &|| control.checkpoint())?;
            if metadata.root_is_repository {
                return Err(Failure::contained(ContainedCode::SourceIsProtected));
            }
            boundaries.metadata = metadata;
            walk_source(source, MirrorRules::new(&boundaries, request.links, quotas), &|| false, control)?
        }
    };
    let Walked { entries, mut skipped, linked } = walked;
    refuse_protected_nodes(&linked, protected_roots, control)?;
    skipped.sort_by(|left, right| left.path.cmp(&right.path));
    let count = |wanted: fn(&EntryKind) -> bool| entries.iter().filter(|entry| wanted(&entry.kind)).count() as u64;
    Ok(Plan {
        files: count(|kind| *kind == EntryKind::File),
        directories: count(|kind| *kind == EntryKind::Directory),
        symlinks: count(|kind| matches!(kind, EntryKind::Symlink(_))),
        bytes: entries.iter().map(Entry::file_size).sum(),
        entries,
        skipped,
        boundaries,
        quotas,
    })
}

/// What a walk of the source met.
struct Walked {
    entries: Vec<Entry>,
    skipped: Vec<Skipped>,
    linked: Vec<(Vec<u8>, Metadata)>,
}

/// Walks the source by these rules. What it gives is of no use if it was given up.
fn walk_source(
    source: Root<'_>,
    mut rules: MirrorRules<'_>,
    given_up: &dyn Fn() -> bool,
    control: &Control<'_>,
) -> Result<Walked> {
    let mut entries = Vec::new();
    walk(source, &mut rules, control, &mut |entry| {
        if given_up() {
            return Err(Failure::Internal("a walk that was given up was taken for a whole one".to_owned()));
        }
        entries.push(entry);
        control.advance(1, 0);
        Ok(())
    })?;
    rules.finish()?;
    Ok(Walked { entries, skipped: rules.skipped, linked: rules.linked })
}

/// Refuses a file with several names if one of them is in a protected root. The protected roots are walked only if
/// there is such a file, and by metadata alone; one that cannot be read refuses.
fn refuse_protected_nodes(
    linked: &[(Vec<u8>, Metadata)],
    protected_roots: &[PathBuf],
    control: &Control<'_>,
) -> Result<()> {
    if linked.is_empty() {
        return Ok(());
    }
    // In path order, so the first name of a node stays.
    let mut wanted: HashMap<(u64, u64), usize> = HashMap::new();
    for (index, (_, metadata)) in linked.iter().enumerate() {
        wanted.entry((metadata.identity.device, metadata.identity.inode)).or_insert(index);
    }
    let mut first: Option<usize> = None;
    let mut check = |metadata: &Metadata| {
        if let Some(&index) = wanted.get(&(metadata.identity.device, metadata.identity.inode)) {
            first = Some(first.map_or(index, |known| known.min(index)));
        }
    };
    for root in protected_roots {
        visit_files(root, &mut check, control)?;
    }
    first.map_or(Ok(()), |index| {
        let (path, metadata) = &linked[index];
        Err(hard_linked(path, metadata.links))
    })
}

/// Shows every file with several names at or below `root` to `check`.
fn visit_files(root: &Path, check: &mut dyn FnMut(&Metadata), control: &Control<'_>) -> Result<()> {
    let (Some(parent), Some(name)) = (root.parent(), root.file_name()) else {
        return Err(Failure::contained(ContainedCode::ProtectedRootOverlap));
    };
    let found = Directory::open_canonical_passage(parent, Beneath::detected())
        .and_then(|parent| parent.metadata_of(crate::fs::directory::path_bytes(name.as_ref())));
    let metadata = match found {
        Ok(metadata) => metadata,
        Err(error) if error.means_missing() => return Ok(()),
        // Below a file nothing can be. Where it is a link that is in the way now, the path is no longer the real one.
        Err(error) if error.means_below_file() && canonical_path(root) == *root => return Ok(()),
        Err(error) => return Err(error.at(root)),
    };
    if metadata.node_type != NodeType::Directory {
        check(&metadata);
        return Ok(());
    }
    let top = Directory::open_canonical(root, Beneath::detected()).map_err(|error| error.at(root))?;
    let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        control.checkpoint()?;
        let failed = |error: OperationError| error.at(&crate::fs::directory::join_bytes(root, &path));
        let directory = top.open_directory(&path).map_err(failed)?;
        directory
            .list(|name, hint| {
                let child = || if path.is_empty() { name.to_vec() } else { [&path, &b"/"[..], name].concat() };
                match hint {
                    TypeHint::Directory => waiting.push(child()),
                    TypeHint::Other => {}
                    TypeHint::File | TypeHint::Unknown => {
                        let metadata = directory.metadata_of(name)?;
                        match metadata.node_type {
                            NodeType::Directory => waiting.push(child()),
                            NodeType::File if metadata.links > 1 => check(&metadata),
                            _ => {}
                        }
                    }
                }
                Ok::<(), OperationError>(())
            })
            .map_err(failed)?;
    }
    Ok(())
}
