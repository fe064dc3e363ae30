//! The synchronous exports of the sandbox. Conversions only; the rules are in [`crate::sandbox`].

#![allow(clippy::needless_pass_by_value, reason = "a value from JavaScript arrives owned")]
#![cfg_attr(test, allow(dead_code, reason = "napi registers no export in a test build"))]

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use napi_derive::napi;
use serde::Deserialize;

use super::failure::internal;
use crate::isolation::plan::Layer;
use crate::sandbox::classify::{Boundary, ErrorType, RawError, classify};
use crate::sandbox::driver::{DriverTask, TrustedModules, generate_driver};

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> napi::Result<T, String> {
    serde_json::from_str(json).map_err(internal)
}

/// The text of the driver for a task; both arguments are JSON.
#[napi(catch_unwind)]
pub(crate) fn generate_driver_source(task_json: String, modules_json: String) -> napi::Result<String, String> {
    let task: DriverTask = read(&task_json)?;
    let modules: TrustedModules = read(&modules_json)?;
    Ok(generate_driver(&task, &modules))
}

/// An error that was described as JSON, in the words of a person, as JSON.
#[napi(catch_unwind)]
pub(crate) fn classify_error(file: String, raw_json: String, fallback_json: String) -> napi::Result<String, String> {
    let raw: RawError<'_> = read(&raw_json)?;
    let fallback: ErrorType = read(&fallback_json)?;
    // What is classified outside of a run may have met the kernel's layers; no directory of it is known to be readable.
    let boundary = Boundary::new(Vec::new(), vec![Layer::Landlock, Layer::Seccomp]);
    serde_json::to_string(&classify(&file, &raw, fallback, &boundary)).map_err(internal)
}

/// What was told once already.
static TOLD: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// Whether something is told for the first time in this process.
#[napi(catch_unwind)]
pub(crate) fn is_told_first(what: String) -> bool {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(HashSet::new).insert(what)
}

/// Where external packages were found, misses too. It is here and not in a module of JavaScript so that it survives a
/// test runner that evaluates those again.
static EXTERNAL_PACKAGES: Mutex<Option<HashMap<String, String>>> = Mutex::new(None);

/// What was found before under this key.
#[napi(catch_unwind)]
pub(crate) fn external_package_cache_get(key: String) -> Option<String> {
    EXTERNAL_PACKAGES.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(&key).cloned()
}

/// Keeps what was found under this key for the process.
#[napi(catch_unwind)]
pub(crate) fn external_package_cache_set(key: String, json: String) {
    EXTERNAL_PACKAGES.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(HashMap::new).insert(key, json);
}

/// Bounds the private memory of a process that this one started, in bytes.
#[napi(catch_unwind)]
pub(crate) fn limit_process_memory(pid: u32, bytes: f64) -> napi::Result<(), String> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a constant of this package")]
    let bytes = bytes as u64;
    crate::isolation::service::limit_memory(pid, bytes).map_err(internal)?;
    Ok(())
}
