//! The launcher: confines itself by the plan that it is given on its standard input, and becomes the child.
//!
//! It is started by the addon with an environment that is the child's, and writes nothing but [`LaunchLine`]s as JSON to
//! the socket; where it cannot do what it was told, that is the last of them, and it ends with 1. Started by hand it says
//! so.

#![allow(clippy::print_stderr, reason = "a program that was started by hand must say what it is")]

use std::process::ExitCode;

use sallyport::isolation::plan::{LaunchFailure, LaunchLine};
use sallyport::isolation::{channel, confine};

fn main() -> ExitCode {
    let stdin = std::io::stdin();
    let socket = match rustix::io::fcntl_dupfd_cloexec(&stdin, 5) {
        Ok(socket) => socket,
        Err(errno) => {
            eprintln!("sallyport-launch: no standard input: {errno}");
            return ExitCode::FAILURE;
        }
    };
    let last = match channel::receive(&socket) {
        Ok(received) => confine::confine_and_do(received, &socket),
        Err(reason) => LaunchLine::Failed(LaunchFailure { step: "receiving its plan".to_owned(), reason }),
    };
    if !confine::tell(&socket, &last) {
        eprintln!("sallyport-launch: it is started by sallyport, not by hand ({last:?})");
    }
    if matches!(last, LaunchLine::Probed(_)) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
