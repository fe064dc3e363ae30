//! The Node half: conversions only, and the only room that knows napi.
//!
//! Everything asynchronous is a job (`job`): it runs on a thread of the addon's own and tells JavaScript about it
//! through one callback. Structured values cross as JSON text, made and read off the event loop wherever it can be;
//! failures cross as records, since asynchronous native functions cannot carry a code (`js/errors.js` makes the errors).
//! A panic becomes a failure with the code `ERR_INTERNAL`; nothing unwinds into JavaScript.

mod failure;
mod git;
mod job;
mod lease;
mod queue;
mod requests;
mod sandbox;
mod tree;
