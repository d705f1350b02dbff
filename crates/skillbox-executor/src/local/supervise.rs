//! Supervises one sandbox from its start until its last process has ended.
//!
//! One thread waits in one `poll`. It reads both output pipes as fast as the script writes, and writes standard input
//! as fast as the script reads. The run ends when the pid namespace is empty, not when a pipe closes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use skillbox_model::Stream;

use crate::outcome::KillReason;
use crate::output_stream::OutputStream;
use crate::{CancelToken, EventSink, Redactor};

/// Our ends of the script's standard streams.
pub(crate) struct Pipes {
    /// The write end of standard input, with the bytes still to be written.
    pub stdin: Option<(OwnedFd, Vec<u8>)>,
    /// The read end of standard output.
    pub stdout: OwnedFd,
    /// The read end of standard error.
    pub stderr: OwnedFd,
    /// The write ends of both. They stay open until the sandbox has ended. Otherwise the hang-up of the last writer
    /// would wake this thread although the run has not ended.
    pub write_ends: [OwnedFd; 2],
}

/// The arguments of [`supervise`].
pub(crate) struct SupervisionParams<'a, 'b> {
    /// Becomes readable when the last process of the sandbox has ended.
    pub sandbox_pidfd: BorrowedFd<'a>,
    /// Kills all processes of the sandbox.
    pub kill: &'a dyn Fn() -> std::io::Result<()>,
    /// When the run is killed.
    pub deadline: Instant,
    /// Cancels the run.
    pub cancel: &'a CancelToken,
    /// Checks the limits that the kernel does not enforce; returns a reason to kill the run.
    pub check_limits: &'a mut dyn FnMut() -> Option<KillReason>,
    /// The interval between two checks.
    pub check_interval: Duration,
    /// The maximum number of captured bytes of each stream.
    pub output_capacity: usize,
    /// Removes the values of secrets from the output.
    pub redactor: &'a Redactor,
    /// Receives the events.
    pub events: &'a mut EventSink<'b>,
}

/// The result of [`supervise`].
pub(crate) struct SupervisionResult {
    pub stdout: OutputStream,
    pub stderr: OutputStream,
    /// Set if the run was killed.
    pub kill_reason: Option<KillReason>,
}

/// The kernel needs time to end a large process tree after a kill. After this time, supervision fails.
const KILL_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits until the sandbox has ended, then reads the rest of the pipes.
pub(crate) fn supervise(pipes: Pipes, params: SupervisionParams<'_, '_>) -> std::io::Result<SupervisionResult> {
    let Pipes {
        mut stdin,
        stdout,
        stderr,
        write_ends,
    } = pipes;
    let mut streams = [
        StreamReader::new(Stream::Stdout, stdout, &params)?,
        StreamReader::new(Stream::Stderr, stderr, &params)?,
    ];
    if let Some((fd, _)) = &stdin {
        set_nonblocking(fd)?;
    }
    let mut buffer = vec![0; 64 << 10];
    let mut kill_reason = None;
    let mut deadline = params.deadline;
    let mut next_check = Instant::now() + params.check_interval;
    loop {
        let ready = poll_ready(
            &streams,
            &stdin,
            &params,
            kill_reason.is_some(),
            deadline.min(next_check),
        )?;
        for (reader, is_ready) in streams.iter_mut().zip(ready.streams) {
            if is_ready {
                reader.read_available(&mut buffer, params.events);
            }
        }
        if ready.stdin {
            write_stdin(&mut stdin);
        }
        if ready.has_sandbox_ended {
            break;
        }
        let now = Instant::now();
        let mut new_reason = None;
        if kill_reason.is_none() {
            if ready.is_cancelled {
                new_reason = Some(KillReason::Cancelled);
            } else if now >= deadline {
                new_reason = Some(KillReason::Deadline);
            } else if now >= next_check {
                new_reason = (params.check_limits)();
            }
        } else if now >= deadline {
            return Err(std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                "the sandbox did not end after it was killed",
            ));
        }
        if now >= next_check {
            next_check = now + params.check_interval;
        }
        if let Some(reason) = new_reason {
            (params.kill)()?;
            kill_reason = Some(reason);
            deadline = Instant::now() + KILL_TIMEOUT;
        }
    }
    drop(write_ends);
    for reader in &mut streams {
        reader.read_available(&mut buffer, params.events);
    }
    let [stdout, stderr] = streams.map(|reader| reader.output);
    Ok(SupervisionResult {
        stdout,
        stderr,
        kill_reason,
    })
}

struct ReadyFds {
    streams: [bool; 2],
    stdin: bool,
    has_sandbox_ended: bool,
    is_cancelled: bool,
}

fn poll_ready(
    streams: &[StreamReader; 2],
    stdin: &Option<(OwnedFd, Vec<u8>)>,
    params: &SupervisionParams<'_, '_>,
    is_killed: bool,
    until: Instant,
) -> std::io::Result<ReadyFds> {
    const STREAMS: [usize; 2] = [2, 3];
    const STDIN: usize = 4;
    // A cancelled token stays readable. It is not polled after the kill, because the loop would spin.
    let cancel_events = if is_killed { PollFlags::empty() } else { PollFlags::IN };
    let mut fds = Vec::with_capacity(5);
    fds.push(PollFd::from_borrowed_fd(params.sandbox_pidfd, PollFlags::IN));
    fds.push(PollFd::from_borrowed_fd(params.cancel.as_fd(), cancel_events));
    for reader in streams {
        // The entry of a closed stream stays in the list, so that the indices do not change. It waits for no event.
        let fd = reader.fd.as_ref().map_or(params.sandbox_pidfd, AsFd::as_fd);
        let events = if reader.fd.is_some() {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        fds.push(PollFd::from_borrowed_fd(fd, events));
    }
    if let Some((fd, _)) = stdin {
        fds.push(PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::OUT));
    }
    let remaining = until.saturating_duration_since(Instant::now());
    let timeout = Timespec {
        tv_sec: i64::try_from(remaining.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: remaining.subsec_nanos().into(),
    };
    match rustix::event::poll(&mut fds, Some(&timeout)) {
        Ok(_) => {}
        // No descriptor is ready. The next iteration computes the remaining time.
        Err(Errno::INTR) => fds.iter_mut().for_each(PollFd::clear_revents),
        Err(error) => return Err(error.into()),
    }
    let is_ready = |index: usize| fds.get(index).is_some_and(|fd| !fd.revents().is_empty());
    Ok(ReadyFds {
        streams: STREAMS.map(|index| is_ready(index) && streams[index - 2].fd.is_some()),
        stdin: is_ready(STDIN),
        has_sandbox_ended: fds[0].revents().contains(PollFlags::IN),
        is_cancelled: fds[1].revents().contains(PollFlags::IN),
    })
}

/// Writes as much as the pipe accepts. If the script has closed the pipe, the rest is discarded.
fn write_stdin(stdin: &mut Option<(OwnedFd, Vec<u8>)>) {
    let Some((fd, rest)) = stdin else { return };
    match rustix::io::write(&*fd, rest) {
        Ok(count) => {
            rest.drain(..count);
            if rest.is_empty() {
                *stdin = None;
            }
        }
        Err(Errno::AGAIN | Errno::INTR) => {}
        Err(_) => *stdin = None,
    }
}

fn set_nonblocking(fd: &OwnedFd) -> std::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)?)
}

/// Reads one output stream.
struct StreamReader {
    fd: Option<OwnedFd>,
    output: OutputStream,
}

impl StreamReader {
    fn new(stream: Stream, fd: OwnedFd, params: &SupervisionParams<'_, '_>) -> std::io::Result<Self> {
        set_nonblocking(&fd)?;
        Ok(Self {
            fd: Some(fd),
            output: OutputStream::new(stream, params.output_capacity, params.redactor),
        })
    }

    /// Reads what is available, in a bounded number of reads, so that one stream cannot starve the others.
    fn read_available(&mut self, buffer: &mut [u8], events: &mut EventSink<'_>) {
        for _ in 0..64 {
            let Some(fd) = &self.fd else { return };
            match rustix::io::read(fd, &mut *buffer) {
                Ok(0) => self.fd = None,
                Ok(count) => {
                    self.output.push(&buffer[..count], events);
                    if count < buffer.len() {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.fd = None,
            }
        }
    }
}
