//! The command, from its start to the death of everything.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group};
use skillbox_model::Stream;
use skillbox_runner::{RunEnd, Frame, Frames, Job, KillCause, ToExecutor, ToRunner};
use skillbox_sandbox::container_init::{self, ChildSignals, ReapedChild, StartedCommand};

use super::conversation::WORKSPACE;
use super::line::Line;
use super::meters::Meters;

/// How often the CPU time is looked at.
const WATCH_EVERY: Duration = Duration::from_millis(50);
/// The kernel needs a moment for a large process tree; longer means that it is stuck.
const GRACE: Duration = Duration::from_secs(20);

/// A command that runs.
pub struct Running {
    command: StartedCommand,
    begin: Instant,
    signals: ChildSignals,
    stdin: Option<File>,
    outputs: [(Stream, Option<File>); 2],
}

/// Starts the command of a job.
pub fn start(job: &Job, oom: Option<File>) -> io::Result<Running> {
    let text = |bytes: &Vec<u8>| CString::new(bytes.clone()).map_err(io::Error::other);
    let argv: Vec<CString> = job.argv.iter().map(text).collect::<io::Result<_>>()?;
    let env: Vec<CString> = job
        .env
        .iter()
        .map(|(name, value)| text(&[name.as_slice(), b"=", value].concat()))
        .collect::<io::Result<_>>()?;
    let signals = container_init::watch_children()?;
    let (out_read, out_write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let (err_read, err_write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    // Nothing to read is an immediate end, not a terminal and not a wait.
    let (stdin_read, stdin_write) = if job.has_stdin {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        (read, Some(write))
    } else {
        (OwnedFd::from(File::open("/dev/null")?), None)
    };
    let null: OwnedFd = File::options().read(true).write(true).open("/dev/null")?.into();
    confine(job)?;
    rustix::process::chdir(std::ffi::OsStr::from_bytes(&job.cwd))?;
    container_init::replace_standard_streams(stdin_read, out_write, err_write)?;
    // When memory runs out the command goes first: without us nothing of the run would be told.
    let score = |value: &[u8]| oom.as_ref().map(|mut file| file.write_all(value));
    score(b"1000");
    let begin = Instant::now();
    let command = container_init::start_command(&argv, &env);
    score(b"0");
    container_init::replace_standard_streams(null.try_clone()?, null.try_clone()?, null)?;
    rustix::process::chdir("/")?;
    let outputs = [(Stream::Stdout, out_read), (Stream::Stderr, err_read)];
    for (_, pipe) in &outputs {
        set_nonblocking(pipe)?;
    }
    if let Some(pipe) = &stdin_write {
        set_nonblocking(pipe)?;
    }
    Ok(Running {
        command: command?,
        begin,
        signals,
        stdin: stdin_write.map(File::from),
        outputs: outputs.map(|(stream, pipe)| (stream, Some(File::from(pipe)))),
    })
}

/// What a container engine does not do; we need none of what it takes away.
fn confine(job: &Job) -> io::Result<()> {
    // The container's own limit is what the workspace can hold: a larger one would mean nothing, and is refused.
    let hard = rustix::process::getrlimit(Resource::Fsize).maximum;
    let bytes = hard.map_or(job.file_bytes, |hard| hard.min(job.file_bytes));
    let file = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    rustix::process::setrlimit(Resource::Fsize, file)?;
    let how = &job.confinement;
    if how.files.is_some() || how.refuse_tcp || how.scope {
        let abi = container_init::landlock_abi();
        container_init::restrict_self(abi, how.files.as_deref(), how.refuse_tcp, how.scope)?;
    }
    Ok(())
}

fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)?)
}

/// Standard input that the command has not read yet.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    is_last: bool,
}

impl Running {
    /// Passes bytes both ways until the command ends or has to; then ends everything else too.
    pub fn supervise(mut self, line: &mut Line, job: &Job, meters: &Meters) -> io::Result<RunEnd> {
        let (cpu_before, kills_before, refused_before) = (
            meters.cpu().unwrap_or_default(),
            meters.memory_kills(),
            meters.refused_processes(),
        );
        let exec_error = self.command.exec_error;
        line.tell(&ToExecutor::Started { exec_error })?;
        let cpu_limit = Duration::from_millis(job.cpu_ms);
        let mut buffer = vec![0; 64 << 10];
        let mut pending = Pending::default();
        let mut ended: Option<ReapedChild> = None;
        let mut killed_by = None;
        let mut next_watch = Instant::now() + WATCH_EVERY;
        while ended.is_none() && killed_by.is_none() {
            let ready = self.wait(line, &pending, next_watch)?;
            for (index, is_ready) in ready.outputs.into_iter().enumerate() {
                if is_ready {
                    self.pass_on(index, line, &mut buffer)?;
                }
            }
            if ready.stdin {
                self.feed(&mut pending, line)?;
            }
            if ready.line {
                line.read_more()?;
                while let Some(frame) = line.frame_at_hand()? {
                    match self.obey(frame, &mut pending, line)? {
                        Order::GoOn => {}
                        Order::Kill => killed_by = Some(KillCause::Executor),
                    }
                }
            }
            self.signals.clear();
            while let Ok(Some(child)) = container_init::reap_child() {
                if child.pid == self.command.pid {
                    ended = Some(child);
                }
            }
            let now = Instant::now();
            if now >= next_watch {
                next_watch = now + WATCH_EVERY;
                let used = meters.cpu().unwrap_or_default().saturating_sub(cpu_before);
                if ended.is_none() && killed_by.is_none() && used > cpu_limit {
                    killed_by = Some(KillCause::Cpu);
                }
            }
        }
        let last = self.end_everything()?;
        let ended = ended.or(last);
        let micros = u64::try_from(self.begin.elapsed().as_micros()).unwrap_or(u64::MAX);
        for index in 0..self.outputs.len() {
            self.pass_on(index, line, &mut buffer)?;
        }
        let cpu = meters.cpu().unwrap_or_default().saturating_sub(cpu_before);
        Ok(RunEnd {
            exit_code: ended.and_then(|child| child.exit_code),
            signal: ended.and_then(|child| child.signal),
            killed_by,
            micros,
            cpu_micros: u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX),
            peak_memory: meters.memory_peak(),
            memory_hit: meters.memory_kills() > kills_before,
            pids_hit: meters.refused_processes() > refused_before,
            workspace_full: workspace_is_full(),
        })
    }

    fn wait(&self, line: &Line, pending: &Pending, until: Instant) -> io::Result<Ready> {
        let mut fds = vec![
            PollFd::from_borrowed_fd(line.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
        ];
        // An ended stream keeps its place and asks for nothing.
        for (_, pipe) in &self.outputs {
            fds.push(match pipe {
                Some(pipe) => PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN),
                None => PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::empty()),
            });
        }
        if let (Some(pipe), false) = (&self.stdin, pending.bytes.is_empty()) {
            fds.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT));
        }
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => fds.iter_mut().for_each(PollFd::clear_revents),
            Err(error) => return Err(error.into()),
        }
        let fired = |index: usize| fds.get(index).is_some_and(|fd: &PollFd<'_>| !fd.revents().is_empty());
        Ok(Ready {
            line: fired(0),
            outputs: [2, 3].map(|index| fired(index) && self.outputs[index - 2].1.is_some()),
            stdin: fired(4),
        })
    }

    /// Passes on what a pipe holds, a bounded number of times.
    fn pass_on(&mut self, index: usize, line: &mut Line, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..64 {
            let (stream, pipe) = &mut self.outputs[index];
            let Some(file) = pipe else { return Ok(()) };
            match file.read(buffer) {
                Ok(0) => *pipe = None,
                Ok(count) => {
                    line.output(*stream, &buffer[..count])?;
                    if count < buffer.len() {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => *pipe = None,
            }
        }
        Ok(())
    }

    fn obey(&mut self, frame: Frame, pending: &mut Pending, line: &mut Line) -> io::Result<Order> {
        match frame {
            Frame::Data(data) => {
                // The executor sends no more than was taken, so this stays small.
                pending.bytes.extend_from_slice(&data);
                self.feed(pending, line)?;
            }
            Frame::Message(bytes) => match Frames::decode(&bytes).map_err(io::Error::other)? {
                ToRunner::StdinEnd => {
                    pending.is_last = true;
                    self.feed(pending, line)?;
                }
                ToRunner::Kill => return Ok(Order::Kill),
                other => return Err(io::Error::other(format!("{other:?} during a run"))),
            },
            Frame::Output(..) => {}
        }
        Ok(Order::GoOn)
    }

    /// Writes as much as the command takes; one that does not read wanted no more.
    fn feed(&mut self, pending: &mut Pending, line: &mut Line) -> io::Result<()> {
        let taken = match &mut self.stdin {
            None => pending.bytes.len(),
            Some(_) if pending.bytes.is_empty() => 0,
            Some(pipe) => match pipe.write(&pending.bytes) {
                Ok(count) => count,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
                Err(_) => {
                    self.stdin = None;
                    pending.bytes.len()
                }
            },
        };
        pending.bytes.drain(..taken);
        if taken > 0 {
            line.tell(&ToExecutor::StdinConsumed(u32::try_from(taken).unwrap_or(u32::MAX)))?;
        }
        if pending.is_last && pending.bytes.is_empty() {
            self.stdin = None;
        }
        Ok(())
    }

    /// Kills whatever lives beside us, until nothing does; gives the command's own end, if it was among them.
    fn end_everything(&mut self) -> io::Result<Option<ReapedChild>> {
        let deadline = Instant::now() + GRACE;
        let mut command = None;
        loop {
            // With pid 1 this means every process but ourselves.
            let _nobody_left = kill_process_group(Pid::INIT, Signal::KILL);
            loop {
                match container_init::reap_child() {
                    Ok(Some(child)) if child.pid == self.command.pid => command = Some(child),
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    // No child is left: every orphan was ours.
                    Err(_) => return Ok(command),
                }
            }
            if Instant::now() >= deadline {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "a process survived its kill"));
            }
            let mut fds = [PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
            let moment = Timespec {
                tv_sec: 0,
                tv_nsec: 5_000_000,
            };
            let _woken = rustix::event::poll(&mut fds, Some(&moment));
            self.signals.clear();
        }
    }
}

enum Order {
    GoOn,
    Kill,
}

struct Ready {
    line: bool,
    outputs: [bool; 2],
    stdin: bool,
}

fn workspace_is_full() -> bool {
    match rustix::fs::statvfs(WORKSPACE) {
        Ok(space) => space.f_bavail == 0 || (space.f_files > 0 && space.f_favail == 0),
        Err(_) => false,
    }
}
