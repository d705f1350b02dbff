//! The connection to a runner: frames over one socket. Every wait has a deadline.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use serde::Serialize;
use skillbox_model::Stream;
use skillbox_runner::{Frame, FrameDecoder, ToExecutor, write_data, write_message};

use super::DockerError;
use crate::CancelToken;

/// The sender waits while more than this number of bytes is queued.
const SEND_QUEUE_LIMIT_BYTES: usize = 256 << 10;

/// The connection to one runner.
#[derive(Debug)]
pub(super) struct RunnerConnection {
    socket: OwnedFd,
    frames: FrameDecoder,
    send_queue: Vec<u8>,
    /// The number of bytes of `send_queue` that are already sent.
    sent: usize,
    buffer: Vec<u8>,
    is_closed: bool,
}

/// What ended a wait: a received frame, or one of the conditions below.
#[derive(Debug)]
pub(super) enum ConnectionEvent {
    Message(ToExecutor),
    Data(Vec<u8>),
    Output(Stream, Vec<u8>),
    /// The deadline has passed.
    Timeout,
    /// The caller cancelled.
    Cancelled,
    /// The runner closed the connection.
    Closed,
}

impl RunnerConnection {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            frames: FrameDecoder::default(),
            send_queue: Vec::new(),
            sent: 0,
            buffer: vec![0; 64 << 10],
            is_closed: false,
        }
    }

    /// Whether the runner is still connected.
    pub(super) fn is_alive(&mut self) -> bool {
        // Unread data precedes the end of the stream, so several reads may be needed to reach it. Received frames are
        // kept.
        (0..3).all(|_| self.poll_once(Some(Instant::now()), None).is_ok() && !self.is_closed)
    }

    /// Queues a message. The next wait sends it.
    pub(super) fn queue_message<T: Serialize>(&mut self, message: &T) -> Result<(), DockerError> {
        write_message(&mut self.send_queue, message).map_err(DockerError::io("encode a message"))
    }

    /// Queues data. The next wait sends it.
    pub(super) fn queue_data(&mut self, data: &[u8]) -> Result<(), DockerError> {
        write_data(&mut self.send_queue, data).map_err(DockerError::io("encode data"))
    }

    /// Sends until the queue is below its limit. Returns false if the connection closed, or if nothing was sent for
    /// `stall_timeout`.
    pub(super) fn flush_below_limit(&mut self, stall_timeout: Duration) -> Result<bool, DockerError> {
        let mut deadline = Instant::now() + stall_timeout;
        while self.send_queue.len() - self.sent > SEND_QUEUE_LIMIT_BYTES {
            let before = self.sent;
            self.poll_once(Some(deadline), None)?;
            if self.is_closed || Instant::now() >= deadline {
                return Ok(false);
            }
            if self.sent != before {
                deadline = Instant::now() + stall_timeout;
            }
        }
        Ok(true)
    }

    /// Waits for the next event.
    pub(super) fn next_event(
        &mut self,
        deadline: Instant,
        cancel: Option<&CancelToken>,
    ) -> Result<ConnectionEvent, DockerError> {
        loop {
            if let Some(event) = self.next_frame_event()? {
                return Ok(event);
            }
            if self.is_closed {
                return Ok(ConnectionEvent::Closed);
            }
            if self.poll_once(Some(deadline), cancel)? {
                return Ok(ConnectionEvent::Cancelled);
            }
            if Instant::now() >= deadline {
                // Data that arrived at the last moment still counts.
                self.poll_once(Some(Instant::now()), None)?;
                return Ok(self.next_frame_event()?.unwrap_or(ConnectionEvent::Timeout));
            }
        }
    }

    /// The next received frame.
    fn next_frame_event(&mut self) -> Result<Option<ConnectionEvent>, DockerError> {
        Ok(match self.frames.next_frame()? {
            Some(Frame::Message(bytes)) => Some(ConnectionEvent::Message(FrameDecoder::decode_message(&bytes)?)),
            Some(Frame::Data(data)) => Some(ConnectionEvent::Data(data)),
            Some(Frame::Output(stream, data)) => Some(ConnectionEvent::Output(stream, data)),
            None => None,
        })
    }

    /// Waits once, then writes and reads what is possible. Returns whether the caller cancelled.
    fn poll_once(&mut self, until: Option<Instant>, cancel: Option<&CancelToken>) -> Result<bool, DockerError> {
        let mut interest = PollFlags::IN;
        if self.sent < self.send_queue.len() {
            interest |= PollFlags::OUT;
        }
        let mut fds = vec![PollFd::from_borrowed_fd(self.socket.as_fd(), interest)];
        if let Some(cancel) = cancel {
            fds.push(PollFd::from_borrowed_fd(cancel.as_fd(), PollFlags::IN));
        }
        let timeout = until.map(|until| {
            let remaining = until.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: i64::try_from(remaining.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: remaining.subsec_nanos().into(),
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
        while self.sent < self.send_queue.len() {
            match rustix::net::send(
                &self.socket,
                &self.send_queue[self.sent..],
                rustix::net::SendFlags::NOSIGNAL,
            ) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    // The rest is discarded. Reading reports the remaining frames, and then the closed connection.
                    self.sent = self.send_queue.len();
                }
            }
        }
        if self.sent == self.send_queue.len() {
            self.send_queue.clear();
            self.sent = 0;
        } else if self.sent > SEND_QUEUE_LIMIT_BYTES {
            self.send_queue.drain(..self.sent);
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
