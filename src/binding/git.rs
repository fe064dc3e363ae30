//! The synchronous exports for Git boundaries and paths. Conversions only; the rules are in [`crate::git`] and
//! [`crate::tree::relative_path`].
//!
//! `js/` has checked the arguments and made the paths absolute. Structured answers cross as JSON, failures as a record
//! inside it; what is thrown from here is a fault of this crate.

#![allow(clippy::needless_pass_by_value, reason = "a value from JavaScript arrives owned")]
#![cfg_attr(test, allow(dead_code, reason = "napi registers no export in a test build"))]

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use napi_derive::napi;
use serde::Serialize;

use super::failure::internal;
use crate::failure::FailureRecord;
use crate::tree::relative_path;
use crate::{fs, git};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Answer {
    Value(String),
    Failure(Box<FailureRecord>),
}

fn json(value: &impl Serialize) -> napi::Result<String, String> {
    serde_json::to_string(value).map_err(internal)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn paths(paths: Vec<String>) -> Vec<PathBuf> {
    paths.into_iter().map(PathBuf::from).collect()
}

/// The inspection of the boundary that an absolute path is in, as JSON.
#[napi(catch_unwind)]
pub(crate) fn inspect_git_resource_identity(target_path: String) -> napi::Result<String, String> {
    json(&git::inspect(Path::new(&target_path)))
}

/// Whether two absolute paths are in the same repository.
#[napi(catch_unwind)]
pub(crate) fn same_git_resource_identity(left_path: String, right_path: String) -> bool {
    git::same(Path::new(&left_path), Path::new(&right_path))
}

/// Whether an absolute path is Git's own data, of the boundary it is in or of the one that the second path is in.
#[napi(catch_unwind)]
pub(crate) fn is_git_metadata_path(target_path: String, repository_path: Option<String>) -> bool {
    git::is_metadata_path(Path::new(&target_path), repository_path.as_deref().map(Path::new))
}

/// The canonical form of an absolute path.
#[napi(catch_unwind)]
pub(crate) fn canonical_path(target_path: String) -> String {
    text(&fs::path::canonical_path(Path::new(&target_path)))
}

/// Whether a relative path lies outside its root.
#[napi(catch_unwind)]
pub(crate) fn is_path_outside_root(path: String) -> bool {
    relative_path::is_path_outside_root(Path::new(&path))
}

/// Whether an absolute path is at or within an absolute root, both canonicalised.
#[napi(catch_unwind)]
pub(crate) fn path_within_root(root: String, target_path: String) -> bool {
    fs::path::relative_within(Path::new(&root), Path::new(&target_path)).is_some()
}

/// An absolute path relative to an absolute root, both canonicalised; null outside it.
#[napi(catch_unwind)]
pub(crate) fn relative_within_repo(repo_root: String, target_path: String) -> Option<String> {
    fs::path::relative_within(Path::new(&repo_root), Path::new(&target_path)).as_deref().map(text)
}

/// The directory of the boundary that an absolute path is in; null where there is none.
#[napi(catch_unwind)]
pub(crate) fn containing_git_root(target_path: String) -> Option<String> {
    git::containing_root(Path::new(&target_path)).as_deref().map(text)
}

/// The root of a workspace that an absolute path belongs to, as JSON; null where there is none.
#[napi(catch_unwind)]
pub(crate) fn resolve_workspace_root_match(
    repo_root: String,
    trusted_roots: Option<Vec<String>>,
    target_path: String,
) -> napi::Result<Option<String>, String> {
    let trusted_roots = paths(trusted_roots.unwrap_or_default());
    git::workspace_root_match(Path::new(&repo_root), &trusted_roots, Path::new(&target_path))
        .as_ref()
        .map(json)
        .transpose()
}

/// The order of two relative paths: negative, zero or positive.
#[napi(catch_unwind)]
pub(crate) fn compare_relative_paths_bytewise(left: String, right: String) -> i32 {
    match relative_path::compare_relative_paths(left.as_bytes(), right.as_bytes()) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

/// The record of the failure of an unfit relative path, as JSON; null for a fit one.
#[napi(catch_unwind)]
pub(crate) fn validate_relative_path(path: String) -> napi::Result<Option<String>, String> {
    match relative_path::validate_relative_path(path.as_bytes()) {
        Ok(()) => Ok(None),
        Err(failure) => json(&FailureRecord::from(&failure)).map(Some),
    }
}

/// A relative path beneath an absolute root, as JSON: `value` or `failure`.
#[napi(catch_unwind)]
pub(crate) fn join_relative_path(root: String, path: String) -> napi::Result<String, String> {
    json(&match relative_path::join_relative_path(Path::new(&root), path.as_bytes()) {
        Ok(joined) => Answer::Value(text(&joined)),
        Err(failure) => Answer::Failure(Box::new(FailureRecord::from(&failure))),
    })
}

/// Whether a relative path is the root's `.git` or below it.
#[napi(catch_unwind)]
pub(crate) fn is_root_git_metadata_path(path: String) -> bool {
    relative_path::is_root_git_metadata_path(path.as_bytes())
}

/// Whether a relative path has a `.git` segment that is not its first.
#[napi(catch_unwind)]
pub(crate) fn is_nested_git_path(path: String) -> bool {
    relative_path::is_nested_git_path(path.as_bytes())
}

/// Whether a tree index leaves out a relative path; all roots are absolute.
#[napi(catch_unwind)]
pub(crate) fn is_excluded_tree_path(path: String, excluded_roots: Vec<String>, resource_root: String) -> bool {
    relative_path::is_excluded_tree_path(path.as_bytes(), &paths(excluded_roots), Path::new(&resource_root))
}
