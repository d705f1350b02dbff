//! Starts the command, and supervises it until all its processes are dead.

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
use skillbox_runner::{CommandResult, Frame, FrameDecoder, Job, KillCause, ToExecutor, ToRunner};
use skillbox_sandbox::container_init::{self, ChildSignals, ReapedChild, StartedCommand};

use super::cgroup_files::CgroupFiles;
use super::connection::Connection;
use super::sent_skills::SentSkills;
use super::workspace::WORKSPACE;

/// The interval between two checks of the CPU time and of the space of changed skills.
const CPU_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The maximum time until all processes are dead after a kill. A large tree takes the kernel a moment; after this time
/// a process is stuck.
const KILL_TIMEOUT: Duration = Duration::from_secs(20);
/// The interval between two kills, unless a child ends earlier.
const KILL_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};
/// The maximum number of reads before the other streams get a turn.
const MAX_READS_PER_TURN: usize = 64;

/// A running command.
pub struct RunningCommand {
    command: StartedCommand,
    started_at: Instant,
    signals: ChildSignals,
    stdin: Option<File>,
    outputs: [(Stream, Option<File>); 2],
}

/// Starts the command of a job.
pub fn start_command(job: &Job, oom_score_file: Option<File>) -> io::Result<RunningCommand> {
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
    // Without input, the command reads from /dev/null.
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
    // The command inherits the high score, so that the kernel kills it before the runner if memory runs out: without
    // the runner the run has no report. If the container forbids the change, the kernel chooses.
    let set_oom_score = |value: &[u8]| oom_score_file.as_ref().map(|mut file| file.write_all(value));
    set_oom_score(b"1000");
    let started_at = Instant::now();
    let command = container_init::start_command(&argv, &env);
    set_oom_score(b"0");
    container_init::replace_standard_streams(null.try_clone()?, null.try_clone()?, null)?;
    rustix::process::chdir("/")?;
    let outputs = [(Stream::Stdout, out_read), (Stream::Stderr, err_read)];
    for (_, pipe) in &outputs {
        set_nonblocking(pipe)?;
    }
    if let Some(pipe) = &stdin_write {
        set_nonblocking(pipe)?;
    }
    Ok(RunningCommand {
        command: command?,
        started_at,
        signals,
        stdin: stdin_write.map(File::from),
        outputs: outputs.map(|(stream, pipe)| (stream, Some(File::from(pipe)))),
    })
}

/// Applies the isolation that container engines lack to this process, and so to the command. The runner itself needs
/// nothing that is denied.
fn confine(job: &Job) -> io::Result<()> {
    // The hard limit of the container is the size of the workspace. The kernel refuses to raise it.
    let hard = rustix::process::getrlimit(Resource::Fsize).maximum;
    let bytes = hard.map_or(job.max_file_bytes, |hard| hard.min(job.max_file_bytes));
    let file = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    rustix::process::setrlimit(Resource::Fsize, file)?;
    let confinement = &job.confinement;
    if confinement.files.is_some() || confinement.refuse_tcp || confinement.scope {
        let abi = container_init::landlock_abi();
        container_init::restrict_self(
            abi,
            confinement.files.as_deref(),
            confinement.refuse_tcp,
            confinement.scope,
        )?;
    }
    Ok(())
}

fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)?)
}

/// Received standard input that is not written to the command yet.
#[derive(Default)]
struct PendingStdin {
    bytes: Vec<u8>,
    is_complete: bool,
}

impl RunningCommand {
    /// Forwards input and output until the command ends or is to be killed, and then kills every remaining process.
    pub fn supervise(
        mut self,
        connection: &mut Connection,
        job: &Job,
        cgroup: &CgroupFiles,
        skills: &SentSkills,
    ) -> io::Result<CommandResult> {
        let cpu_time_before = cgroup.cpu_time();
        let (kills_before, refused_before) = (cgroup.oom_kill_count(), cgroup.failed_fork_count());
        let exec_error = self.command.exec_error;
        connection.send(&ToExecutor::Started { exec_error })?;
        let cpu_limit = Duration::from_millis(job.cpu_limit_ms);
        let mut buffer = vec![0; 64 << 10];
        let mut pending = PendingStdin::default();
        let mut ended: Option<ReapedChild> = None;
        let mut killed_by = None;
        let mut next_cpu_check = Instant::now() + CPU_CHECK_INTERVAL;
        while ended.is_none() && killed_by.is_none() {
            let ready = self.wait(connection, &pending, next_cpu_check)?;
            for (index, is_ready) in ready.outputs.into_iter().enumerate() {
                if is_ready {
                    self.forward_output(index, connection, &mut buffer)?;
                }
            }
            if ready.stdin {
                self.write_stdin(&mut pending, connection)?;
            }
            if ready.connection {
                connection.read_more()?;
                while let Some(frame) = connection.buffered_frame()? {
                    match self.apply_frame(frame, &mut pending, connection)? {
                        FrameEffect::Continue => {}
                        FrameEffect::Kill => killed_by = Some(KillCause::Executor),
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
            if now >= next_cpu_check {
                next_cpu_check = now + CPU_CHECK_INTERVAL;
                let used = cpu_time_since(cpu_time_before, cgroup)?;
                if ended.is_none() && killed_by.is_none() && used > cpu_limit {
                    killed_by = Some(KillCause::CpuLimit);
                }
                if ended.is_none() && killed_by.is_none() && skills.exceed_limits(job) {
                    killed_by = Some(KillCause::WorkspaceLimit);
                }
            }
        }
        let last = self.kill_everything()?;
        let ended = ended.or(last);
        let duration_micros = u64::try_from(self.started_at.elapsed().as_micros()).map_err(io::Error::other)?;
        for index in 0..self.outputs.len() {
            self.forward_output(index, connection, &mut buffer)?;
        }
        let cpu = cpu_time_since(cpu_time_before, cgroup)?;
        Ok(CommandResult {
            exit_code: ended.and_then(|child| child.exit_code),
            signal: ended.and_then(|child| child.signal),
            killed_by,
            duration_micros,
            cpu_micros: u64::try_from(cpu.as_micros()).map_err(io::Error::other)?,
            peak_memory: cgroup.memory_peak(),
            memory_limit_hit: has_grown(kills_before, cgroup.oom_kill_count()),
            pids_limit_hit: has_grown(refused_before, cgroup.failed_fork_count()),
            workspace_full: workspace_is_full() || skills.exceed_limits(job),
        })
    }

    fn wait(&self, connection: &Connection, pending: &PendingStdin, until: Instant) -> io::Result<ReadyStreams> {
        let mut fds = vec![
            PollFd::from_borrowed_fd(connection.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
        ];
        // A closed stream keeps its index, but is not polled.
        for (_, pipe) in &self.outputs {
            fds.push(match pipe {
                Some(pipe) => PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN),
                None => PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::empty()),
            });
        }
        if let (Some(pipe), false) = (&self.stdin, pending.bytes.is_empty()) {
            fds.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT));
        }
        let remaining = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(remaining.as_secs()).map_err(io::Error::other)?,
            tv_nsec: remaining.subsec_nanos().into(),
        };
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => fds.iter_mut().for_each(PollFd::clear_revents),
            Err(error) => return Err(error.into()),
        }
        let has_event = |index: usize| fds.get(index).is_some_and(|fd: &PollFd<'_>| !fd.revents().is_empty());
        Ok(ReadyStreams {
            connection: has_event(0),
            outputs: [2, 3].map(|index| has_event(index) && self.outputs[index - 2].1.is_some()),
            stdin: has_event(4),
        })
    }

    /// Forwards the available content of an output pipe, with a limited number of reads.
    fn forward_output(&mut self, index: usize, connection: &mut Connection, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..MAX_READS_PER_TURN {
            let (stream, pipe) = &mut self.outputs[index];
            let Some(file) = pipe else { return Ok(()) };
            match file.read(buffer) {
                Ok(0) => *pipe = None,
                Ok(count) => {
                    connection.send_output(*stream, &buffer[..count])?;
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

    fn apply_frame(
        &mut self,
        frame: Frame,
        pending: &mut PendingStdin,
        connection: &mut Connection,
    ) -> io::Result<FrameEffect> {
        match frame {
            Frame::Data(data) => {
                // The executor limits the unacknowledged bytes, so this buffer stays small.
                pending.bytes.extend_from_slice(&data);
                self.write_stdin(pending, connection)?;
            }
            Frame::Message(bytes) => match FrameDecoder::decode_message(&bytes).map_err(io::Error::other)? {
                ToRunner::StdinEnd => {
                    pending.is_complete = true;
                    self.write_stdin(pending, connection)?;
                }
                ToRunner::Kill => return Ok(FrameEffect::Kill),
                other => return Err(io::Error::other(format!("{other:?} during the run"))),
            },
            Frame::Output(..) => {}
        }
        Ok(FrameEffect::Continue)
    }

    /// Writes as much pending input as the pipe takes. If the command has closed its input, the rest is discarded.
    fn write_stdin(&mut self, pending: &mut PendingStdin, connection: &mut Connection) -> io::Result<()> {
        let consumed = match &mut self.stdin {
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
        pending.bytes.drain(..consumed);
        if consumed > 0 {
            let consumed = u32::try_from(consumed).map_err(io::Error::other)?;
            connection.send(&ToExecutor::StdinConsumed(consumed))?;
        }
        if pending.is_complete && pending.bytes.is_empty() {
            self.stdin = None;
        }
        Ok(())
    }

    /// Kills all other processes until none is left. Returns the command if it was reaped here.
    fn kill_everything(&mut self) -> io::Result<Option<ReapedChild>> {
        let deadline = Instant::now() + KILL_TIMEOUT;
        let mut command = None;
        loop {
            // This is kill(-1): it signals every process of the container except pid 1.
            let _ = kill_process_group(Pid::INIT, Signal::KILL);
            loop {
                match container_init::reap_child() {
                    Ok(Some(child)) if child.pid == self.command.pid => command = Some(child),
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    // No child is left, so no process is left: every orphan becomes a child of pid 1.
                    Err(_) => return Ok(command),
                }
            }
            if Instant::now() >= deadline {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "a process survived its kill"));
            }
            let mut fds = [PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
            let _ = rustix::event::poll(&mut fds, Some(&KILL_INTERVAL));
            self.signals.clear();
        }
    }
}

/// The effect of a frame on the command.
enum FrameEffect {
    Continue,
    Kill,
}

/// The streams that can be read or written without blocking.
struct ReadyStreams {
    connection: bool,
    outputs: [bool; 2],
    stdin: bool,
}

/// The CPU time that the command has used. Zero where the container has no counter, which its facts say; an error where the
/// counter existed when the command started, because the CPU limit would be lost without a word.
fn cpu_time_since(before: Option<Duration>, cgroup: &CgroupFiles) -> io::Result<Duration> {
    let Some(before) = before else {
        return Ok(Duration::ZERO);
    };
    let now = cgroup.cpu_time();
    let now = now.ok_or_else(|| io::Error::other("the counter of CPU time cannot be read any more"))?;
    Ok(now.saturating_sub(before))
}

/// Whether a counter has grown; false if the container does not have the counter.
fn has_grown(before: Option<u64>, after: Option<u64>) -> bool {
    before.zip(after).is_some_and(|(before, after)| after > before)
}

fn workspace_is_full() -> bool {
    match rustix::fs::statvfs(WORKSPACE) {
        Ok(space) => space.f_bavail == 0 || (space.f_files > 0 && space.f_favail == 0),
        Err(_) => false,
    }
}
