//! sallyport: the native core for tools that touch workspaces they do not trust.
//!
//! It makes verified private mirrors of a workspace, hashes trees, and runs a project's own source in a confined child. The rooms, and which of them may know which:
//!
//! | room | what it does | may use |
//! | --- | --- | --- |
//! | [`failure`] | the one table of codes, phases and dispositions; the crate's error type | nothing |
//! | [`fs`] | the only room that makes file system calls | `failure` |
//! | [`tree`] | node hashes, entries and their order, index, diff | `fs`, `failure` |
//! | [`git`] | finding a Git boundary without running Git | `fs`, `failure` |
//! | [`mirror`] | plan, copy, verify, dispose | `tree`, `git`, `fs`, `failure` |
//! | [`isolation`] | what the kernel holds the child to; the launcher's plan | `fs` |
//! | [`sandbox`] | driver text, spawning, result frame, output, classification | `isolation`, `fs`, `failure` |
//! | `binding` | conversions to and from Node; the only room that knows napi | all of them |

#![warn(missing_docs)]

pub mod failure;
pub mod fs;
pub mod git;
pub mod isolation;
pub mod mirror;
pub mod sandbox;
pub mod tree;

#[cfg(feature = "binding")]
mod binding;
