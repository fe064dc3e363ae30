//! The socket on which the launcher is given its plan and its descriptors, and tells why it failed.
//!
//! It is the launcher's standard input, which is the one descriptor that every way of starting a process can set.
//! The others come as a message: they are never open without close-on-exec in the parent, where another thread may be
//! starting a process of its own at any moment. Fails with what the system says.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use super::plan::{LARGEST_PLAN, LaunchPlan};

/// How many descriptors go with a plan: result and control.
const DESCRIPTORS: usize = 2;

/// A plan and the descriptors that came with it.
#[derive(Debug)]
pub struct Received {
    /// The plan.
    pub plan: LaunchPlan,
    /// The descriptor of the result.
    pub result: OwnedFd,
    /// The descriptor of the control pipe.
    pub control: OwnedFd,
}

/// Makes the two ends, both closed on exec.
///
/// # Errors
/// `socketpair`.
pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// Sends a plan with its descriptors: a length, then the JSON; the descriptors go with the first byte.
///
/// # Errors
/// `sendmsg`; `E2BIG` for a plan that the launcher would not read.
pub fn send(socket: BorrowedFd<'_>, plan: &[u8], result: BorrowedFd<'_>, control: BorrowedFd<'_>) -> Result<(), Errno> {
    let length = u32::try_from(plan.len()).ok().filter(|_| plan.len() <= LARGEST_PLAN).ok_or(Errno::TOOBIG)?;
    let message = [&length.to_be_bytes()[..], plan].concat();
    let descriptors = [result, control];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(Errno::NOBUFS);
    }
    let pieces = [IoSlice::new(&message)];
    let mut sent = retry_on_intr(|| sendmsg(socket, &pieces, &mut ancillary, SendFlags::NOSIGNAL))?;
    while sent < message.len() {
        match rustix::net::send(socket, &message[sent..], SendFlags::NOSIGNAL) {
            Ok(more) => sent += more,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Receives a plan with its descriptors.
///
/// # Errors
/// A sentence for a person: what did not come, or was not as it must be.
pub fn receive(socket: impl AsFd) -> Result<Received, String> {
    let socket = socket.as_fd();
    let mut buffer = vec![0; 4 + LARGEST_PLAN];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let receive = || recvmsg(socket, &mut [IoSliceMut::new(&mut buffer)], &mut ancillary, RecvFlags::CMSG_CLOEXEC);
    let first = retry_on_intr(receive).map_err(|errno| format!("the plan could not be received: {errno}"))?;
    let mut descriptors: Vec<OwnedFd> = ancillary
        .drain()
        .flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<_>>(),
            _ => Vec::new(),
        })
        .collect();
    let mut filled = first.bytes;
    let mut ended = filled == 0;
    while !ended && wanted(&buffer[..filled]).is_none_or(|wanted| filled < wanted) && filled < buffer.len() {
        match rustix::io::read(socket, &mut buffer[filled..]) {
            Ok(0) => ended = true,
            Ok(more) => filled += more,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(format!("the plan could not be received: {errno}")),
        }
    }
    let plan = parse(&buffer[..filled])?;
    match (descriptors.pop(), descriptors.pop(), descriptors.is_empty()) {
        (Some(control), Some(result), true) => Ok(Received { plan, result, control }),
        _ => Err("the plan came without its two descriptors".to_owned()),
    }
}

fn wanted(received: &[u8]) -> Option<usize> {
    let length: [u8; 4] = received.get(..4)?.try_into().ok()?;
    Some(4 + u32::from_be_bytes(length) as usize)
}

/// Reads the bytes of a plan: exactly a length and as many bytes of JSON.
///
/// # Errors
/// A sentence for a person.
pub fn parse(received: &[u8]) -> Result<LaunchPlan, String> {
    let wanted = wanted(received).ok_or("the plan ends within its length")?;
    if wanted > 4 + LARGEST_PLAN {
        return Err(format!("the plan is larger than {LARGEST_PLAN} bytes"));
    }
    if received.len() != wanted {
        return Err(format!("the plan has {} bytes of {wanted}", received.len()));
    }
    serde_json::from_slice(&received[4..]).map_err(|error| format!("the plan is no plan: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::plan::{LaunchTask, Layers, ResourceLimits};

    fn plan() -> LaunchPlan {
        LaunchPlan {
            parent: 1,
            task: LaunchTask::Become {
                program: "/bin/true".to_owned(),
                arguments: vec!["a b".to_owned(), "\u{e9}".to_owned()],
            },
            layers: Layers::default(),
            limits: ResourceLimits { cpu_seconds: Some(2), data_bytes: None },
        }
    }

    #[test]
    fn a_plan_arrives_with_its_descriptors() {
        let (here, there) = pair().unwrap();
        let (result_read, result) = rustix::pipe::pipe().unwrap();
        let (control, _control_write) = rustix::pipe::pipe().unwrap();
        send(here.as_fd(), &serde_json::to_vec(&plan()).unwrap(), result.as_fd(), control.as_fd()).unwrap();
        let received = receive(&there).unwrap();
        assert_eq!(received.plan, plan());
        rustix::io::write(&received.result, b"x").unwrap();
        assert_eq!(rustix::io::read(&result_read, &mut [0_u8; 2]).unwrap(), 1);
    }

    #[test]
    fn anything_else_is_told_apart() {
        let whole = [&3_u32.to_be_bytes()[..], b"{}x"].concat();
        for bad in [&b""[..], b"\0\0", b"\0\0\0\x05abc", &whole, &u32::MAX.to_be_bytes()] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        let (here, there) = pair().unwrap();
        drop(here);
        assert!(receive(&there).is_err());
    }
}
