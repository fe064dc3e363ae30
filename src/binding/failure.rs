//! The failure table for JavaScript, where the constants and classes are made from it.

#![cfg_attr(test, allow(dead_code, reason = "napi registers no export in a test build"))]

use napi_derive::napi;
use serde::Serialize;

use crate::failure::{
    APPROVAL_FALLBACK_REASONS, CheckpointCode, ContainedCode, Disposition, Failure, Phase, Remediation, SandboxCode,
};

/// A fault of this package as the error that JavaScript gets, with the code of all such faults. napi's own would be
/// `GenericFailure`.
pub(super) fn internal(reason: impl std::fmt::Display) -> napi::Error<String> {
    napi::Error::new("ERR_INTERNAL".to_owned(), Failure::Internal(reason.to_string()).to_string())
}

#[derive(Serialize)]
struct Row {
    code: &'static str,
    phase: Phase,
    disposition: Disposition,
    remediation: Remediation,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    codes: Vec<Row>,
    approval_fallback_reasons: Vec<&'static str>,
    checkpoint_codes: Vec<&'static str>,
    sandbox_codes: Vec<&'static str>,
}

/// Every code with its phase, disposition and remediation, as JSON.
#[napi(catch_unwind)]
pub(crate) fn failure_table() -> napi::Result<String, String> {
    let row = |code: &ContainedCode| Row {
        code: code.as_str(),
        phase: code.phase(),
        disposition: code.disposition(),
        remediation: code.remediation(),
    };
    let table = Table {
        codes: ContainedCode::ALL.iter().map(row).collect(),
        approval_fallback_reasons: APPROVAL_FALLBACK_REASONS.iter().map(|code| code.as_str()).collect(),
        checkpoint_codes: CheckpointCode::ALL.iter().map(|code| code.as_str()).collect(),
        sandbox_codes: SandboxCode::ALL.iter().map(|code| code.as_str()).collect(),
    };
    serde_json::to_string(&table).map_err(internal)
}
