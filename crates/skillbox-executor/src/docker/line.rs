//! Our end of the line to a runner: frames in and out of one socket, with a deadline and a cancel on every wait.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use serde::Serialize;
use skillbox_model::Stream;
use skillbox_runner::{Frame, Frames, ToExecutor, write_data, write_message};

use super::DockerError;
use crate::Cancel;

/// So much may wait to be sent before more is made.
const QUEUE: usize = 256 << 10;

/// One runner, spoken to.
#[derive(Debug)]
pub(super) struct Line {
    socket: OwnedFd,
    frames: Frames,
    queue: Vec<u8>,
    sent: usize,
    buffer: Vec<u8>,
    is_closed: bool,
}

/// What a wait ended with.
#[derive(Debug)]
pub(super) enum Heard {
    Message(ToExecutor),
    Data(Vec<u8>),
    Output(Stream, Vec<u8>),
    /// The time is over.
    Nothing,
    /// The caller's switch was thrown.
    Cancelled,
    /// The other side is gone.
    Closed,
}

impl Line {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            frames: Frames::default(),
            queue: Vec::new(),
            sent: 0,
            buffer: vec![0; 64 << 10],
            is_closed: false,
        }
    }

    /// Whether the other side is still there.
    pub(super) fn is_alive(&mut self) -> bool {
        // The end of the line stands behind what was said before it; whatever has come is kept.
        (0..3).all(|_| self.exchange(Some(Instant::now()), None).is_ok() && !self.is_closed)
    }

    /// Says something; it goes out with the next wait.
    pub(super) fn tell<T: Serialize>(&mut self, message: &T) -> Result<(), DockerError> {
        write_message(&mut self.queue, message).map_err(DockerError::io("encode a message"))
    }

    /// Sends data; it goes out with the next wait.
    pub(super) fn data(&mut self, data: &[u8]) -> Result<(), DockerError> {
        write_data(&mut self.queue, data).map_err(DockerError::io("encode data"))
    }

    /// Waits until there is room for more; false when the other side is gone or does not take anything.
    pub(super) fn make_room(&mut self, patience: Duration) -> Result<bool, DockerError> {
        let mut deadline = Instant::now() + patience;
        while self.queue.len() - self.sent > QUEUE {
            let before = self.sent;
            self.exchange(Some(deadline), None)?;
            if self.is_closed || Instant::now() >= deadline {
                return Ok(false);
            }
            if self.sent != before {
                deadline = Instant::now() + patience;
            }
        }
        Ok(true)
    }

    /// The next thing that is heard.
    pub(super) fn hear(&mut self, deadline: Instant, cancel: Option<&Cancel>) -> Result<Heard, DockerError> {
        loop {
            match self.frames.next_frame()? {
                Some(Frame::Message(bytes)) => return Ok(Heard::Message(Frames::decode(&bytes)?)),
                Some(Frame::Data(data)) => return Ok(Heard::Data(data)),
                Some(Frame::Output(stream, data)) => return Ok(Heard::Output(stream, data)),
                None => {}
            }
            if self.is_closed {
                return Ok(Heard::Closed);
            }
            if self.exchange(Some(deadline), cancel)? {
                return Ok(Heard::Cancelled);
            }
            if Instant::now() >= deadline {
                // What came at the last moment still counts.
                self.exchange(Some(Instant::now()), None)?;
                return match self.frames.next_frame()? {
                    Some(Frame::Message(bytes)) => Ok(Heard::Message(Frames::decode(&bytes)?)),
                    Some(Frame::Data(data)) => Ok(Heard::Data(data)),
                    Some(Frame::Output(stream, data)) => Ok(Heard::Output(stream, data)),
                    None => Ok(Heard::Nothing),
                };
            }
        }
    }

    /// Writes and reads what can be, waiting once; tells whether the switch was thrown.
    fn exchange(&mut self, until: Option<Instant>, cancel: Option<&Cancel>) -> Result<bool, DockerError> {
        let mut interest = PollFlags::IN;
        if self.sent < self.queue.len() {
            interest |= PollFlags::OUT;
        }
        let mut fds = vec![PollFd::from_borrowed_fd(self.socket.as_fd(), interest)];
        if let Some(cancel) = cancel {
            fds.push(PollFd::from_borrowed_fd(cancel.as_fd(), PollFlags::IN));
        }
        let timeout = until.map(|until| {
            let left = until.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(DockerError::io("wait for the container")(error.into())),
        }
        let ready = fds[0].revents();
        let is_cancelled = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        drop(fds);
        if ready.contains(PollFlags::OUT) {
            self.write_some();
        }
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.read_some();
        }
        Ok(is_cancelled)
    }

    fn write_some(&mut self) {
        while self.sent < self.queue.len() {
            match rustix::net::send(&self.socket, &self.queue[self.sent..], rustix::net::SendFlags::NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    // The reading side tells what is still to be heard, and then the end.
                    self.sent = self.queue.len();
                }
            }
        }
        if self.sent == self.queue.len() {
            self.queue.clear();
            self.sent = 0;
        } else if self.sent > QUEUE {
            self.queue.drain(..self.sent);
            self.sent = 0;
        }
    }

    fn read_some(&mut self) {
        match rustix::io::read(&self.socket, &mut self.buffer) {
            Ok(0) => self.is_closed = true,
            Ok(count) => self.frames.push(&self.buffer[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.is_closed = true,
        }
    }
}
