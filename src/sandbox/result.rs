//! The shapes that a result may have, and putting what the child reported into the words of the caller.
//!
//! A frame that is no JSON or has another shape is a failed run with a clear message, in the same form as a child that
//! ended without one. Source: `contract/sandbox.md`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::child::{ChildEnd, Fault};
use super::classify::{Boundary, ClassifiedError, ErrorType, RawError, classify, cut, denied_write};
use super::frame::{FrameError, bound};
use super::output::harmless;
use super::shape::{ListText, TextsText, first};
use crate::failure::SandboxCode;

/// What kind of result is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expected {
    /// Entities of a run.
    Run,
    /// A value.
    Value,
}

#[derive(Deserialize)]
struct ReportedError<'a> {
    #[serde(borrow)]
    file: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(rename = "type")]
    error_type: ErrorType,
    /// Read when it is put into words.
    #[serde(borrow)]
    raw: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunFrame<'a> {
    #[serde(borrow)]
    entity_set: EntitySet<'a>,
    #[serde(borrow, deserialize_with = "first::<{ MOST_ERRORS + 1 }, _, _>")]
    errors: Vec<ReportedError<'a>>,
    #[serde(borrow)]
    provenance_by_name: TextsText<'a>,
    #[serde(default)]
    incomplete: bool,
}

/// As the child wrote it.
#[derive(Serialize, Deserialize)]
pub struct EntitySet<'a> {
    #[serde(borrow)]
    entities: ListText<'a>,
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

#[derive(Deserialize)]
struct ValueFrame<'a> {
    /// What gives `undefined` has no JSON.
    #[serde(borrow, default, deserialize_with = "present")]
    value: Option<&'a RawValue>,
}

/// A field that is there, `null` included.
fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct RefusedFrame {
    #[serde(deserialize_with = "first::<MOST_ERRORS, _, _>")]
    list: Vec<Refusal>,
}

/// A value that is not data, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The path from the root of the value.
    path: String,
    /// What is there.
    found: String,
}

#[derive(Deserialize)]
struct UnusableFrame {
    module: String,
    name: String,
}

#[derive(Deserialize)]
struct FailedFrame<'a> {
    #[serde(borrow)]
    error: ReportedError<'a>,
    #[serde(default)]
    incomplete: bool,
}

/// The result as the caller's side reads it.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Report<'a> {
    /// A run was made.
    Run {
        /// The entities.
        entity_set: EntitySet<'a>,
        /// The errors, classified.
        errors: Vec<ClassifiedError>,
        /// Where each entity was declared.
        provenance_by_name: TextsText<'a>,
    },
    /// A value was made.
    Value {
        /// The value; none for `undefined`.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<&'a RawValue>,
    },
    /// The value is not data.
    Refused {
        /// What is not.
        list: Vec<Refusal>,
    },
    /// The file threw.
    Failed {
        /// What it threw, classified.
        error: ClassifiedError,
    },
    /// A trusted module does not export what it must.
    Unusable {
        /// The path of the module.
        module: String,
        /// The export that it lacks.
        name: String,
    },
    /// There is no result.
    Broken {
        /// Why, in a sentence.
        message: String,
        /// What kind of error that is.
        #[serde(rename = "type")]
        error_type: ErrorType,
        /// Why, for a program; none where it is a denial.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<SandboxCode>,
    },
}

/// The most errors, and the most values that are not data, that are handed on.
const MOST_ERRORS: usize = 1000;

/// After how many bytes of text no more of them are. What is told harmlessly is up to three times as long as what came,
/// and all of it has to fit into one string of JavaScript beside the largest result.
const MOST_TEXT: usize = 16 * 1024 * 1024;

/// Counts the text that is handed on.
struct Room(usize);

impl Room {
    /// Whether there is room for more. What is asked for then is handed on whole.
    fn take(&mut self, texts: [&str; 2]) -> bool {
        let is_left = self.0 > 0;
        self.0 = self.0.saturating_sub(texts.map(str::len).iter().sum());
        is_left
    }
}

fn parse<'a, T: Deserialize<'a>>(frame: &'a [u8]) -> Result<T, (String, SandboxCode)> {
    serde_json::from_slice(frame).map_err(|error| (error.to_string(), SandboxCode::ResultInvalid))
}

fn words(error: &ReportedError<'_>, boundary: &Boundary) -> Result<ClassifiedError, (String, SandboxCode)> {
    let classified = match error.raw {
        Some(raw) => {
            let raw: RawError<'_> = parse(raw.get().as_bytes())?;
            classify(&error.file, &raw, error.error_type, boundary)
        }
        None => ClassifiedError { file: cut(&error.file), message: cut(&error.message), error_type: error.error_type },
    };
    // Its texts are the project's, and may end on a terminal.
    Ok(ClassifiedError { file: harmless(&classified.file), message: harmless(&classified.message), ..classified })
}

/// The errors of a run in words, as many as are handed on; where there are more, the last one says so.
fn all_words(errors: &[ReportedError<'_>], boundary: &Boundary) -> Result<Vec<ClassifiedError>, (String, SandboxCode)> {
    let mut room = Room(MOST_TEXT);
    let mut told = Vec::new();
    for error in errors {
        let error = words(error, boundary)?;
        if told.len() == MOST_ERRORS || !room.take([&error.file, &error.message]) {
            let message = format!("more errors were reported than are handed on; these are the first {}", told.len());
            told.push(ClassifiedError { file: String::new(), message, error_type: ErrorType::Import });
            break;
        }
        told.push(error);
    }
    Ok(told)
}

/// Turns the end of a child into a report.
#[must_use]
pub fn report<'a>(end: &'a ChildEnd, expected: Expected, boundary: &Boundary, label: &str) -> Report<'a> {
    match &end.frame {
        Err(fault) => {
            let (message, code) = broken(fault, end, label);
            let error_type = if code.is_some() { ErrorType::Import } else { ErrorType::Permission };
            Report::Broken { message, error_type, code }
        }
        Ok(frame) => read(frame, end, expected, boundary).unwrap_or_else(|(reason, code)| Report::Broken {
            // The reason quotes the frame.
            message: with_stderr(
                &format!("{label} sent a result that cannot be read: {}", harmless(&cut(&reason))),
                end,
            ),
            error_type: ErrorType::Import,
            code: Some(code),
        }),
    }
}

/// The report of a frame; or why it is none, for a person and for a program.
fn read<'a>(
    frame: &'a [u8],
    end: &ChildEnd,
    expected: Expected,
    boundary: &Boundary,
) -> Result<Report<'a>, (String, SandboxCode)> {
    bound(frame).map_err(|error| (error.to_string(), SandboxCode::ResultLimit))?;
    let Kind { kind } = parse(frame)?;
    match (expected, kind.as_str()) {
        (Expected::Run, "run") => {
            let run: RunFrame<'_> = parse(frame)?;
            let mut errors = all_words(&run.errors, boundary)?;
            if run.incomplete
                && let Some(last) = errors.last_mut()
            {
                last.message = with_stderr(&last.message, end);
            }
            Ok(Report::Run { entity_set: run.entity_set, errors, provenance_by_name: run.provenance_by_name })
        }
        (_, "unusable") => {
            let UnusableFrame { module, name } = parse(frame)?;
            Ok(Report::Unusable { module: cut(&module), name: harmless(&cut(&name)) })
        }
        (Expected::Value, "value") => Ok(Report::Value { value: parse::<ValueFrame<'_>>(frame)?.value }),
        (Expected::Value, "refused") => {
            let mut list = parse::<RefusedFrame>(frame)?.list;
            for refusal in &mut list {
                (refusal.path, refusal.found) = (harmless(&cut(&refusal.path)), harmless(&cut(&refusal.found)));
            }
            let mut room = Room(MOST_TEXT);
            list.retain(|refusal| room.take([&refusal.path, &refusal.found]));
            Ok(Report::Refused { list })
        }
        (Expected::Value, "failed") => {
            let FailedFrame { error, incomplete } = parse::<FailedFrame<'_>>(frame)?;
            let mut error = words(&error, boundary)?;
            if incomplete {
                error.message = with_stderr(&error.message, end);
            }
            Ok(Report::Failed { error })
        }
        _ => Err((format!("it is of the kind {:?}", cut(&kind)), SandboxCode::ResultInvalid)),
    }
}

/// Why there is no result: for a person, and for a program where it is no denial.
fn broken(fault: &Fault, end: &ChildEnd, label: &str) -> (String, Option<SandboxCode>) {
    let (sentence, code) = match (fault, end.exit) {
        (Fault::TimedOut(timeout), _) => {
            (format!("{label} timed out after {} ms and was killed", timeout.as_millis()), SandboxCode::Timeout)
        }
        (Fault::Launch(failure), _) => {
            let sentence = format!("{label} could not be started: {}: {}", failure.step, failure.reason);
            return (sentence, Some(SandboxCode::LaunchFailed));
        }
        (Fault::TraceFile(file), _) => return (denied_write(file), None),
        (Fault::Memory, _) => {
            let sentence = format!("{label} used more memory than memoryLimitMb allows and was killed");
            (sentence, SandboxCode::MemoryLimit)
        }
        (Fault::ProcessorTime, _) => {
            let sentence = format!("{label} used up its processor time (cpuSeconds, SIGXCPU) before reporting");
            (sentence, SandboxCode::CpuLimit)
        }
        (Fault::Frame(FrameError::Missing), Some(exit)) if end.stderr_tail.contains("heap out of memory") => {
            let sentence = format!("{label} ran out of memory (memoryLimitMb) before reporting ({exit})");
            (sentence, SandboxCode::MemoryLimit)
        }
        (Fault::Frame(FrameError::Missing), Some(exit)) if !end.began => {
            let sentence = format!(
                "{label} ended before any of its files was evaluated ({exit}): this Node does not start here, or a layer \
                 of the sandbox refuses what it needs. `npx sallyport doctor --node <program>` tells what holds it"
            );
            (sentence, SandboxCode::Exited)
        }
        (Fault::Frame(FrameError::Missing), Some(exit)) => {
            (format!("{label} exited before reporting ({exit})"), SandboxCode::Exited)
        }
        (Fault::Frame(FrameError::Missing), None) => {
            let sentence = format!("{label} closed its result descriptor before reporting and was killed");
            (sentence, SandboxCode::Exited)
        }
        (Fault::Frame(error), exit) => {
            let exit = exit.map_or_else(String::new, |exit| format!(" ({exit})"));
            let code = match error {
                FrameError::TooLarge { .. } | FrameError::TooDeep { .. } | FrameError::TooMany { .. } => {
                    SandboxCode::ResultLimit
                }
                _ => SandboxCode::ResultInvalid,
            };
            (format!("{label}: {error}{exit}"), code)
        }
    };
    (with_stderr(&sentence, end), Some(code))
}

fn with_stderr(sentence: &str, end: &ChildEnd) -> String {
    let tail = end.stderr_tail.trim_end();
    if tail.is_empty() { sentence.to_owned() } else { format!("{sentence}\n{tail}") }
}
