//! Comparing two trees.
//!
//! Source: `contract/mirror.md`, "Tree index"; `ObservedFileChange` in `contract/surface.md`. [`diff_entries`] is pure;
//! [`read_observed_changes`] fails as reading a node does, and with `file_checkpoint_path_escape` for a path that is
//! none.

use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::control::Control;
use super::hash::TreeHasher;
use super::index::{PathForm, TreeEntry};
use super::relative_path::{compare_relative_paths, validate_relative_path};
use super::snapshot::{SnapshotNode, read_node_beneath};
use super::walk::Root;
use crate::failure::Result;
use crate::fs::directory::path_bytes;
use crate::fs::path::lexical_path;
use crate::fs::{Beneath, Directory, absolute};

/// What happened to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It differs.
    Modified,
}

/// One node that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedChange {
    /// The path relative to both roots.
    pub relative_path: Vec<u8>,
    /// What happened.
    pub kind: ChangeKind,
    /// The node in the first tree.
    pub before: SnapshotNode,
    /// The node in the second tree.
    pub after: SnapshotNode,
}

impl ObservedChange {
    /// The change between two nodes; nothing where they are equal.
    #[must_use]
    pub fn between(relative_path: &[u8], before: SnapshotNode, after: SnapshotNode) -> Option<Self> {
        let kind = match (&before, &after) {
            (before, after) if before == after => return None,
            (SnapshotNode::Absent, _) => ChangeKind::Added,
            (_, SnapshotNode::Absent) => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        };
        Some(Self { relative_path: relative_path.to_vec(), kind, before, after })
    }
}

impl Serialize for ObservedChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            #[serde(flatten)]
            path: PathForm<'a>,
            kind: ChangeKind,
            before: &'a SnapshotNode,
            after: &'a SnapshotNode,
        }
        let path = PathForm::from(self.relative_path.as_slice());
        Form { path, kind: self.kind, before: &self.before, after: &self.after }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TreeEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Form {
            relative_path: String,
            raw_path: Option<String>,
            node: SnapshotNode,
        }
        let form = Form::deserialize(deserializer)?;
        let relative_path = match form.raw_path {
            None => form.relative_path.into_bytes(),
            Some(hex) => bytes_of_hex(&hex).ok_or_else(|| D::Error::custom("rawPath is not hexadecimal"))?,
        };
        Ok(Self { relative_path, node: form.node })
    }
}

fn bytes_of_hex(hex: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = hex.chars().map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks_exact(2).map(|pair| (pair[0] << 4) | pair[1]).collect())
}

/// Puts entries into the order of the tree hash.
fn sorted(entries: &mut [TreeEntry]) {
    entries.sort_by(|left, right| compare_relative_paths(&left.relative_path, &right.relative_path));
}

/// The tree hash of entries in any order.
#[must_use]
pub fn compute_tree_hash(mut entries: Vec<TreeEntry>) -> String {
    sorted(&mut entries);
    let mut hasher = TreeHasher::default();
    for entry in &entries {
        hasher.add(&entry.relative_path, entry.node.hash());
    }
    hasher.finish().as_str().to_owned()
}

/// The changes from one tree to another, in path order.
#[must_use]
pub fn diff_entries(mut baseline: Vec<TreeEntry>, mut observed: Vec<TreeEntry>) -> Vec<ObservedChange> {
    sorted(&mut baseline);
    sorted(&mut observed);
    let mut changes = Vec::new();
    let (mut left, mut right) = (baseline.into_iter().peekable(), observed.into_iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return changes,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(left), Some(right)) => compare_relative_paths(&left.relative_path, &right.relative_path),
        };
        let before = if order.is_le() { left.next() } else { None };
        let after = if order.is_ge() { right.next() } else { None };
        let path = before.as_ref().or(after.as_ref()).map(|entry| entry.relative_path.clone()).unwrap_or_default();
        let node = |entry: Option<TreeEntry>| entry.map_or(SnapshotNode::Absent, |entry| entry.node);
        changes.extend(ObservedChange::between(&path, node(before), node(after)));
    }
}

/// Reads the named nodes in two trees and gives those that differ, in the order of the names. Links above a node are not
/// followed: a path that leads through one names nothing in the tree.
///
/// # Errors
/// See the module.
pub fn read_observed_changes(
    baseline_root: &Path,
    execution_root: &Path,
    relative_paths: &[Vec<u8>],
    control: &Control<'_>,
) -> Result<Vec<ObservedChange>> {
    let open = |given: &Path| -> Result<_> {
        let path = absolute::real_path(given, "realpath")?;
        let directory = Directory::open_canonical(&path, Beneath::detected()).map_err(|error| error.at(&path))?;
        Ok((path, directory))
    };
    for relative_path in relative_paths {
        validate_relative_path(relative_path)?;
    }
    let (baseline_path, baseline) = open(baseline_root)?;
    let (execution_path, execution) = open(execution_root)?;
    let mut changes = Vec::new();
    for relative_path in relative_paths {
        control.checkpoint()?;
        let clean = clean(relative_path);
        let before = read_node_beneath(Root { directory: &baseline, path: &baseline_path }, &clean, control)?;
        let after = read_node_beneath(Root { directory: &execution, path: &execution_path }, &clean, control)?;
        changes.extend(ObservedChange::between(relative_path, before, after));
    }
    Ok(changes)
}

/// A valid relative path without empty, `.` and `..` components.
fn clean(relative_path: &[u8]) -> Vec<u8> {
    let whole = lexical_path(&crate::fs::directory::join_bytes(Path::new("/"), relative_path));
    path_bytes(whole.strip_prefix("/").unwrap_or(&whole)).to_vec()
}
