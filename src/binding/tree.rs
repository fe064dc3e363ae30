//! The synchronous exports for hashes and indices. Conversions only; the rules are in [`crate::tree`].

#![allow(clippy::needless_pass_by_value, reason = "a value from JavaScript arrives owned")]
#![cfg_attr(test, allow(dead_code, reason = "napi registers no export in a test build"))]

use napi_derive::napi;
use serde::Deserialize;

use super::failure::internal;
use crate::tree::difference;
use crate::tree::hash;
use crate::tree::index::TreeEntry;
use crate::tree::snapshot::SnapshotNode;

/// Reads JSON that `js/` wrote after checking every field of it.
fn read<'a, T: Deserialize<'a>>(json: &'a str) -> napi::Result<T, String> {
    serde_json::from_str(json).map_err(internal)
}

/// The node hash of a file.
#[napi(catch_unwind)]
pub(crate) fn hash_file_node(mode: u32, content_hash: String) -> String {
    hash::hash_file_node(mode, &content_hash).as_str().to_owned()
}

/// The node hash of a directory.
#[napi(catch_unwind)]
pub(crate) fn hash_directory_node(mode: u32) -> String {
    hash::hash_directory_node(mode).as_str().to_owned()
}

/// The node hash of a symlink.
#[napi(catch_unwind)]
pub(crate) fn hash_symlink_target(target: String) -> String {
    hash::hash_symlink_target(target.as_bytes()).as_str().to_owned()
}

/// The tree hash of entries in any order, given as JSON.
#[napi(catch_unwind)]
pub(crate) fn compute_tree_hash(entries_json: String) -> napi::Result<String, String> {
    Ok(difference::compute_tree_hash(read(&entries_json)?))
}

/// The changes between two lists of entries, all as JSON.
#[napi(catch_unwind)]
pub(crate) fn diff_file_tree_indices(baseline_json: String, observed_json: String) -> napi::Result<String, String> {
    let baseline: Vec<TreeEntry> = read(&baseline_json)?;
    let observed: Vec<TreeEntry> = read(&observed_json)?;
    serde_json::to_string(&difference::diff_entries(baseline, observed)).map_err(internal)
}

/// Whether two nodes, given as JSON, are equal.
#[napi(catch_unwind)]
pub(crate) fn snapshot_nodes_equal(left_json: String, right_json: String) -> napi::Result<bool, String> {
    let (left, right): (SnapshotNode, SnapshotNode) = (read(&left_json)?, read(&right_json)?);
    Ok(left == right)
}
