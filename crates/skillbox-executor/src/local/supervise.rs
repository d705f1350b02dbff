//! Watching one sandbox from its start to the death of everything in it.
//!
//! One thread, one `poll`: both output pipes are drained as fast as the script writes, standard input is fed as
//! fast as it reads, and the run ends when the pid namespace is dead, never when a pipe closes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use skillbox_model::{OutputBytes, RunEvent, Stream};

use crate::{Cancel, Capture, EventSink};

/// Our ends of the script's standard streams.
pub(crate) struct Pipes {
    /// Where standard input is written to, with what is left to write.
    pub stdin: Option<(OwnedFd, Vec<u8>)>,
    /// Where standard output is read from.
    pub stdout: OwnedFd,
    /// Where standard error is read from.
    pub stderr: OwnedFd,
    /// The other ends of both, held until everything is dead: the last writer's going would only wake us, in the midst
    /// of that death, to learn of nothing that we wait for.
    pub held: [OwnedFd; 2],
}

/// What to watch, and for how long.
pub(crate) struct Supervision<'a, 'b> {
    /// Becomes readable when everything in the sandbox is dead.
    pub dead: BorrowedFd<'a>,
    /// Kills everything in the sandbox.
    pub kill: &'a dyn Fn() -> std::io::Result<()>,
    /// When to kill, whatever happens.
    pub deadline: Instant,
    /// The caller's switch.
    pub cancel: &'a Cancel,
    /// Looks after limits that the kernel does not enforce by itself.
    pub watchdog: &'a mut dyn FnMut() -> Verdict,
    /// How often it looks.
    pub watch_every: Duration,
    /// Bytes kept of each stream.
    pub output_cap: usize,
    /// Who listens.
    pub events: &'a mut EventSink<'b>,
}

/// What the watchdog says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Go on.
    Fine,
    /// The CPU time is used up.
    CpuUsedUp,
    /// The disk-backed workspace is over its quota.
    DiskFull,
}

/// Why we killed it, where we did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Killed {
    Deadline,
    Cancelled,
    Cpu,
    Disk,
}

/// What watching gave.
pub(crate) struct Supervised {
    pub stdout: Capture,
    pub stderr: Capture,
    pub killed: Option<Killed>,
}

/// After a kill, the kernel needs a moment for a large process tree; longer means that it is stuck.
const GRACE: Duration = Duration::from_secs(30);

/// Watches until everything is dead, then takes what is still in the pipes.
pub(crate) fn supervise(pipes: Pipes, how: Supervision<'_, '_>) -> std::io::Result<Supervised> {
    let Pipes {
        mut stdin,
        stdout,
        stderr,
        held,
    } = pipes;
    let mut streams = [
        Drain::new(Stream::Stdout, stdout, how.output_cap)?,
        Drain::new(Stream::Stderr, stderr, how.output_cap)?,
    ];
    if let Some((fd, _)) = &stdin {
        set_nonblocking(fd)?;
    }
    let mut buffer = vec![0; 64 << 10];
    let mut killed = None;
    let mut deadline = how.deadline;
    let mut next_watch = Instant::now() + how.watch_every;
    loop {
        let ready = wait(&streams, &stdin, &how, killed.is_some(), deadline.min(next_watch))?;
        for (drain, is_ready) in streams.iter_mut().zip(ready.streams) {
            if is_ready {
                drain.read_available(&mut buffer, how.events);
            }
        }
        if ready.stdin {
            feed(&mut stdin);
        }
        if ready.dead {
            break;
        }
        let now = Instant::now();
        let mut verdict = None;
        if killed.is_none() {
            if ready.cancelled {
                verdict = Some(Killed::Cancelled);
            } else if now >= deadline {
                verdict = Some(Killed::Deadline);
            } else if now >= next_watch {
                verdict = match (how.watchdog)() {
                    Verdict::Fine => None,
                    Verdict::CpuUsedUp => Some(Killed::Cpu),
                    Verdict::DiskFull => Some(Killed::Disk),
                };
            }
        } else if now >= deadline {
            return Err(std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                "the sandbox survived its kill",
            ));
        }
        if now >= next_watch {
            next_watch = now + how.watch_every;
        }
        if let Some(reason) = verdict {
            (how.kill)()?;
            killed = Some(reason);
            deadline = Instant::now() + GRACE;
        }
    }
    drop(held);
    for drain in &mut streams {
        drain.read_available(&mut buffer, how.events);
    }
    let [stdout, stderr] = streams.map(|drain| drain.capture);
    Ok(Supervised { stdout, stderr, killed })
}

struct Ready {
    streams: [bool; 2],
    stdin: bool,
    dead: bool,
    cancelled: bool,
}

fn wait(
    streams: &[Drain; 2],
    stdin: &Option<(OwnedFd, Vec<u8>)>,
    how: &Supervision<'_, '_>,
    is_killed: bool,
    until: Instant,
) -> std::io::Result<Ready> {
    const STREAMS: [usize; 2] = [2, 3];
    const STDIN: usize = 4;
    // A thrown switch stays readable: once it has done its work it is left out, or the loop would spin.
    let cancel_events = if is_killed { PollFlags::empty() } else { PollFlags::IN };
    let mut fds = Vec::with_capacity(5);
    fds.push(PollFd::from_borrowed_fd(how.dead, PollFlags::IN));
    fds.push(PollFd::from_borrowed_fd(how.cancel.as_fd(), cancel_events));
    for drain in streams {
        // An ended stream keeps its place but asks for nothing.
        let fd = drain.fd.as_ref().map_or(how.dead, AsFd::as_fd);
        let events = if drain.fd.is_some() {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        fds.push(PollFd::from_borrowed_fd(fd, events));
    }
    if let Some((fd, _)) = stdin {
        fds.push(PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::OUT));
    }
    let left = until.saturating_duration_since(Instant::now());
    let timeout = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    };
    match rustix::event::poll(&mut fds, Some(&timeout)) {
        Ok(_) => {}
        // Nothing is ready; the next round computes the time that is left.
        Err(Errno::INTR) => fds.iter_mut().for_each(PollFd::clear_revents),
        Err(error) => return Err(error.into()),
    }
    let fired = |index: usize| fds.get(index).is_some_and(|fd| !fd.revents().is_empty());
    Ok(Ready {
        streams: STREAMS.map(|index| fired(index) && streams[index - 2].fd.is_some()),
        stdin: fired(STDIN),
        dead: fds[0].revents().contains(PollFlags::IN),
        cancelled: fds[1].revents().contains(PollFlags::IN),
    })
}

/// Writes as much as the pipe takes; a reader that went away wanted no more.
fn feed(stdin: &mut Option<(OwnedFd, Vec<u8>)>) {
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

/// One output stream on its way into its capture.
struct Drain {
    stream: Stream,
    fd: Option<OwnedFd>,
    capture: Capture,
}

impl Drain {
    fn new(stream: Stream, fd: OwnedFd, cap: usize) -> std::io::Result<Self> {
        set_nonblocking(&fd)?;
        Ok(Self {
            stream,
            fd: Some(fd),
            capture: Capture::new(cap),
        })
    }

    /// Takes what is there, a bounded number of times, so that one flood cannot starve the rest.
    fn read_available(&mut self, buffer: &mut [u8], events: &mut EventSink<'_>) {
        for _ in 0..64 {
            let Some(fd) = &self.fd else { return };
            match rustix::io::read(fd, &mut *buffer) {
                Ok(0) => self.fd = None,
                Ok(count) => {
                    let offset = self.capture.total();
                    self.capture.push(&buffer[..count]);
                    events.emit(|| RunEvent::Output {
                        stream: self.stream,
                        text: OutputBytes(buffer[..count].to_vec()),
                        offset,
                    });
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
