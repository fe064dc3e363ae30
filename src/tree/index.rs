//! The tree index: every node below a root with its hash, and the hash of all of it.
//!
//! The rules, in the order in which they act (`contract/mirror.md`, "Tree index"):
//! 1. A root that is no directory, a symlink included, is `file_checkpoint_unsupported_node`; a missing one is the
//!    system's error.
//! 2. What is at or within an excluded root is left out; nothing above it is.
//! 3. `.git`, in that exact case: left out at the root, `file_checkpoint_nested_repository` below it.
//! 4. Links are recorded whatever they point to, except that one whose own or real location is at or within an excluded
//!    root is left out.
//! 5. Files with several names and special nodes are refused.
//! 6. Limits and the deadline, with diagnostics that begin with `snapshot`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::control::{Control, ProgressPhase};
use super::hash::{HexDigest, TreeHasher};
use super::quota::{Allowance, Quota};
use super::read;
use super::snapshot::{SnapshotNode, hash_content};
use super::walk::{Entry, EntryKind, Judgement, Root, WalkRules, walk};
use super::work::{batches, for_each_batch, thread_count};
use crate::failure::{CheckpointCode, Failure, Result};
use crate::fs::directory::path_bytes;
use crate::fs::path::{at_or_within, canonical_path, lexical_path};
use crate::fs::stream::CHUNK;
use crate::fs::{Beneath, Directory, Metadata, NodeType, absolute};

/// The limits of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexQuotas {
    /// The most entries, directories and links included.
    pub max_files: u64,
    /// The most bytes in files.
    pub max_source_bytes: u64,
}

/// What to index.
#[derive(Debug, Clone)]
pub struct IndexRequest {
    /// The absolute root.
    pub resource_root: PathBuf,
    /// Absolute paths; what is at or within one is left out.
    pub excluded_roots: Vec<PathBuf>,
    /// Limits, where there are any.
    pub quotas: Option<IndexQuotas>,
    /// The way in which paths are opened.
    pub beneath: Beneath,
}

/// A node of an index, with its path as raw bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path relative to the root.
    pub relative_path: Vec<u8>,
    /// The node; never absent.
    pub node: SnapshotNode,
}

/// The path of a node for JavaScript: as text, and as raw bytes in hex where the text is lossy.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PathForm<'a> {
    relative_path: std::borrow::Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_path: Option<String>,
}

impl<'a> From<&'a [u8]> for PathForm<'a> {
    fn from(path: &'a [u8]) -> Self {
        let relative_path = String::from_utf8_lossy(path);
        let raw_path = matches!(relative_path, std::borrow::Cow::Owned(_)).then(|| {
            path.iter().fold(String::with_capacity(path.len() * 2), |mut hex, byte| {
                for digit in [byte >> 4, byte & 15] {
                    hex.extend(char::from_digit(u32::from(digit), 16));
                }
                hex
            })
        });
        Self { relative_path, raw_path }
    }
}

impl Serialize for TreeEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            #[serde(flatten)]
            path: PathForm<'a>,
            node: &'a SnapshotNode,
        }
        Form { path: PathForm::from(self.relative_path.as_slice()), node: &self.node }.serialize(serializer)
    }
}

/// The index of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeIndex {
    /// The version of this form: 1.
    pub version: u8,
    /// Every node, in the order of the tree hash.
    pub entries: Vec<TreeEntry>,
    /// The tree hash.
    pub tree_hash: String,
    /// Files and links.
    pub file_count: u64,
    /// Directories.
    pub directory_count: u64,
    /// Bytes in files.
    pub total_file_bytes: u64,
}

struct IndexRules<'a> {
    root_path: &'a Path,
    /// Excluded locations relative to the root; below one nothing is ever walked, so equality is enough.
    excluded: HashSet<Vec<u8>>,
    /// The same, absolute and real, for where links lead.
    excluded_real: Vec<PathBuf>,
    nodes: Option<Quota>,
    bytes: Option<Quota>,
    node_count: u64,
    byte_count: u64,
}

impl WalkRules for IndexRules<'_> {
    fn judge_location(&mut self, relative_path: &[u8]) -> Result<Judgement> {
        if self.excluded.contains(relative_path) || relative_path == b".git" {
            return Ok(Judgement::Skip);
        }
        if relative_path.ends_with(b"/.git") {
            return Err(Failure::checkpoint_at(CheckpointCode::NestedRepository, relative_path));
        }
        Ok(Judgement::Take)
    }

    fn judge_symlink(&mut self, _: &Directory, relative_path: &[u8], _: &[u8]) -> Result<Judgement> {
        if self.excluded_real.is_empty() {
            return Ok(Judgement::Take);
        }
        let real = canonical_path(&crate::fs::directory::join_bytes(self.root_path, relative_path));
        let leads_into = |excluded: &PathBuf| at_or_within(excluded, &real);
        Ok(if self.excluded_real.iter().any(leads_into) { Judgement::Skip } else { Judgement::Take })
    }

    fn judge_links(&mut self, relative_path: &[u8], metadata: &Metadata) -> Result<()> {
        Err(read::hard_linked(relative_path, metadata.links))
    }

    fn enters(&mut self, _: &[u8]) -> bool {
        true
    }

    fn count(&mut self, entry: &Entry) -> Result<()> {
        self.node_count += 1;
        self.byte_count += entry.file_size();
        for (quota, value) in [(self.nodes, self.node_count), (self.bytes, self.byte_count)] {
            quota.map_or(Ok(()), |quota| quota.check(value, &entry.path))?;
        }
        Ok(())
    }

    fn room_left(&self) -> usize {
        self.nodes.map_or(usize::MAX, |quota| {
            usize::try_from(quota.limit.saturating_sub(self.node_count)).unwrap_or(usize::MAX)
        })
    }
}

/// Where an excluded root stands below the resource root, by every spelling that a walk can meet.
fn excluded_below(root: &Path, given_root: &Path, excluded_roots: &[PathBuf]) -> HashSet<Vec<u8>> {
    let mut found = HashSet::new();
    for excluded in excluded_roots {
        let lexical = lexical_path(excluded);
        let real = canonical_path(excluded);
        for (base, spelling) in [(root, &real), (root, &lexical), (given_root, &lexical)] {
            if let Ok(relative) = spelling.strip_prefix(base) {
                found.insert(path_bytes(relative).to_vec());
            }
        }
    }
    found
}

/// Builds the index of a tree. The deadline is the control's.
///
/// # Errors
/// See the module.
pub fn build_tree_index(request: &IndexRequest, control: &Control<'_>) -> Result<TreeIndex> {
    let (path, directory) = open_root(&request.resource_root, request.beneath)?;
    let root = Root { directory: &directory, path: &path };
    let excluded = excluded_below(&path, &lexical_path(&request.resource_root), &request.excluded_roots);
    if excluded.contains(&Vec::new())
        || request.excluded_roots.iter().any(|excluded| at_or_within(&canonical_path(excluded), &path))
    {
        // The root itself is at or within an excluded root: nothing is left to index.
        return Ok(finish_index(Vec::new()));
    }
    let quota = |counter, option, limit| Quota { counter, option, limit };
    let bytes_quota =
        request.quotas.map(|quotas| quota("snapshot sourceBytes", "maxSourceBytes", quotas.max_source_bytes));
    let mut rules = IndexRules {
        root_path: &path,
        excluded,
        excluded_real: request.excluded_roots.iter().map(|excluded| canonical_path(excluded)).collect(),
        nodes: request.quotas.map(|quotas| quota("snapshot nodeCount", "maxFiles", quotas.max_files)),
        bytes: bytes_quota,
        node_count: 0,
        byte_count: 0,
    };
    control.begin(ProgressPhase::Snapshot, None);
    let mut entries = Vec::new();
    walk(root, &mut rules, control, &mut |entry| {
        entries.push(entry);
        control.advance(1, 0);
        Ok(())
    })?;
    control.begin(ProgressPhase::Verify, Some((entries.len() as u64, rules.byte_count)));
    // What is no file needs no reading.
    control.advance(entries.iter().filter(|entry| entry.kind != EntryKind::File).count() as u64, 0);
    let contents = hash_files(root, &entries, &Allowance::new(bytes_quota, rules.byte_count), control)?;
    let nodes = entries
        .into_iter()
        .zip(contents)
        .map(|(entry, content)| TreeEntry {
            node: SnapshotNode::of(&entry, content.as_ref()),
            relative_path: entry.path.into_vec(),
        })
        .collect();
    Ok(finish_index(nodes))
}

/// Opens the root of an index, which must be a directory and no link.
fn open_root(given: &Path, beneath: Beneath) -> Result<(PathBuf, Directory)> {
    let unsupported =
        || Failure::Checkpoint { code: CheckpointCode::UnsupportedNode, facts: crate::failure::Facts::at(b"") };
    if absolute::metadata(given, "lstat")?.node_type != NodeType::Directory {
        return Err(unsupported());
    }
    let path = absolute::real_path(given, "realpath")?;
    let directory = Directory::open_canonical(&path, beneath).map_err(|error| error.at(&path))?;
    Ok((path, directory))
}

fn hash_files(
    root: Root<'_>,
    entries: &[Entry],
    allowance: &Allowance,
    control: &Control<'_>,
) -> Result<Vec<Option<HexDigest>>> {
    let batches = batches(entries)?;
    let states = for_each_batch(
        &batches,
        thread_count(),
        || (Vec::<(u32, HexDigest)>::new(), vec![0; CHUNK]),
        |(hashed, buffer), batch, matters| {
            let Some(&first) = batch.files.first().filter(|first| matters(**first)) else { return Ok(()) };
            let directory = read::open_parent(root, entries, batch.parent).map_err(|failure| (first, failure))?;
            for &index in batch.files.iter().take_while(|index| matters(**index)) {
                let entry = &entries[index as usize];
                let content = control
                    .checkpoint()
                    .and_then(|()| {
                        hash_content(root, &directory, entry, read::Links::Single, buffer, control, Some(allowance))
                    })
                    .map_err(|failure| (index, failure))?;
                control.advance(1, 0);
                hashed.push((index, content));
            }
            Ok(())
        },
    )?;
    let mut contents = vec![None; entries.len()];
    for (index, content) in states.into_iter().flat_map(|(hashed, _)| hashed) {
        contents[index as usize] = Some(content);
    }
    Ok(contents)
}

/// Counts and hashes entries that are in order.
fn finish_index(entries: Vec<TreeEntry>) -> TreeIndex {
    let mut index = TreeIndex {
        version: 1,
        tree_hash: String::new(),
        file_count: 0,
        directory_count: 0,
        total_file_bytes: 0,
        entries,
    };
    let mut hasher = TreeHasher::default();
    for entry in &index.entries {
        hasher.add(&entry.relative_path, entry.node.hash());
        match entry.node {
            SnapshotNode::File { size, .. } => {
                index.file_count += 1;
                index.total_file_bytes += size;
            }
            SnapshotNode::Symlink { .. } => index.file_count += 1,
            SnapshotNode::Directory { .. } => index.directory_count += 1,
            SnapshotNode::Absent => {}
        }
    }
    hasher.finish().as_str().clone_into(&mut index.tree_hash);
    index
}

/// The tree hash of a walked tree whose files were hashed.
#[must_use]
pub fn tree_hash(entries: &[Entry], contents: &[Option<HexDigest>]) -> HexDigest {
    use super::hash::{hash_directory_node, hash_file_node, hash_symlink_target};
    let mut hasher = TreeHasher::default();
    for (entry, content) in entries.iter().zip(contents) {
        let hash = match &entry.kind {
            EntryKind::Directory => hash_directory_node(entry.identity.mode),
            EntryKind::File => hash_file_node(entry.identity.mode, content.as_ref().map_or("", HexDigest::as_str)),
            EntryKind::Symlink(target) => hash_symlink_target(target),
        };
        hasher.add(&entry.path, hash.as_str());
    }
    hasher.finish()
}
