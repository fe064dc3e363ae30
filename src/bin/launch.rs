//! The launcher: confines itself by the plan that it is given on its standard input, and becomes the child.
//!
//! It is started by the addon with an environment that is the child's, and writes nothing but a [`LaunchFailure`] as
//! JSON to the socket if it cannot do what it was told; then it ends with 1. Started by hand it says so.

#![allow(clippy::print_stderr, reason = "a program that was started by hand must say what it is")]

use std::process::ExitCode;

use sallyport::isolation::plan::LaunchFailure;
use sallyport::isolation::{channel, confine};

fn main() -> ExitCode {
    let stdin = std::io::stdin();
    let socket = match rustix::io::fcntl_dupfd_cloexec(&stdin, 64) {
        Ok(socket) => socket,
        Err(errno) => {
            eprintln!("sallyport-launch: no standard input: {errno}");
            return ExitCode::FAILURE;
        }
    };
    let failure = match channel::receive(&socket) {
        Ok(received) => confine::confine_and_become(received, &socket),
        Err(reason) => LaunchFailure { step: "receiving its plan".to_owned(), reason },
    };
    let told = serde_json::to_vec(&failure).is_ok_and(|text| rustix::io::write(&socket, &text).is_ok());
    if !told {
        eprintln!("sallyport-launch: it is started by sallyport, not by hand ({}: {})", failure.step, failure.reason);
    }
    ExitCode::FAILURE
}
