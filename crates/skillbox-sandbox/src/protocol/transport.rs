//! Sends and receives the messages of the protocol.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::answer::{Answer, StepFailure};
use super::codec::{decode, encode};
use super::request::Request;
use crate::kernel::socket;

/// The size of the buffer for one answer; the facts of the host are the largest.
const MAX_ANSWER_BYTES: usize = 16 << 10;

/// Sends a request with its answer socket and its other descriptors. A request that does not fit into a message is sent
/// in a memory file.
pub(crate) fn send_request(
    spawner: BorrowedFd<'_>,
    request: &Request<'_>,
    answers: BorrowedFd<'_>,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut bytes = encode(request)?;
    let mut all = vec![answers];
    let file;
    if bytes.len() > socket::MAX_MESSAGE_BYTES {
        file = write_to_memfd(&bytes)?;
        all.push(file.as_fd());
        let length = bytes.len() as u64;
        bytes = encode(&Request::InMemfd { length })?;
    }
    all.extend_from_slice(descriptors);
    socket::send(spawner, &bytes, &all)
}

/// Reads a request that was sent as [`Request::InMemfd`].
pub(crate) fn read_request_from_memfd(file: &OwnedFd, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::pread(file, &mut bytes[filled..], filled as u64)? {
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            count => filled += count,
        }
    }
    Ok(bytes)
}

fn write_to_memfd(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("skillbox-plan", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    Ok(file)
}

/// Sends an answer. It is no error if the server has closed its end: the spawner notices that, and ends the sandbox.
pub(crate) fn send_answer(to: BorrowedFd<'_>, answer: &Answer, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    match socket::send(to, &encode(answer)?, descriptors) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET)) => Ok(()),
        result => result,
    }
}

/// Waits for an answer. Returns none once the spawner and the child have closed their ends.
pub(crate) fn receive_answer(from: BorrowedFd<'_>) -> io::Result<Option<(Answer, Vec<OwnedFd>)>> {
    let mut buffer = vec![0; MAX_ANSWER_BYTES];
    let received = socket::receive(from, &mut buffer)?.require_complete()?;
    if received.length == 0 {
        return Ok(None);
    }
    Ok(Some((decode(&buffer[..received.length])?, received.descriptors)))
}

/// Reports to the spawner why a sandbox cannot be parked.
pub(crate) fn send_parking_failure(run_socket: BorrowedFd<'_>, failure: &StepFailure) -> io::Result<()> {
    socket::send(run_socket, &encode(failure)?, &[])
}

/// The report of a dead parked sandbox; none if it sent none. Blocks if the sandbox is alive.
pub(crate) fn receive_parking_failure(run_socket: BorrowedFd<'_>) -> io::Result<Option<StepFailure>> {
    let mut buffer = [0; 1024];
    match socket::receive(run_socket, &mut buffer) {
        Ok(received) if received.length > 0 => Ok(Some(decode(&buffer[..received.length])?)),
        Ok(_) => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_a_dead_sandbox_is_received_and_a_killed_one_has_none() {
        let failure = StepFailure::outside_steps("clone pid 2", &io::Error::from_raw_os_error(libc::EAGAIN));
        let (spawner, sandbox) = socket::pair().unwrap();
        send_parking_failure(sandbox.as_fd(), &failure).unwrap();
        drop(sandbox);
        assert_eq!(receive_parking_failure(spawner.as_fd()).unwrap(), Some(failure));
        assert_eq!(receive_parking_failure(spawner.as_fd()).unwrap(), None);
    }

    #[test]
    fn an_answer_to_a_server_that_is_closed_is_no_error_but_a_message_that_is_too_long_is() {
        let (server, spawner) = socket::pair().unwrap();
        let failure = StepFailure::outside_steps(&"x".repeat(1 << 20), &io::Error::from_raw_os_error(libc::EIO));
        assert!(send_answer(spawner.as_fd(), &Answer::Failed(failure), &[]).is_err());
        drop(server);
        send_answer(spawner.as_fd(), &Answer::CommandStarted, &[]).unwrap();
    }
}
