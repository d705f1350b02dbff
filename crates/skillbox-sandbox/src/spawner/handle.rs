//! The server's side of the spawner: start it, ask it.
#![expect(
    unsafe_code,
    reason = "a fork before any thread exists, and the descriptor that a started spawner inherits"
)]

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use skillbox_model::ByteSize;

use super::beside::Processors;
use super::errors::{LaunchError, PATIENCE, SpawnerError};
use super::options::SpawnerOptions;
use super::process;
use super::protocol::{Answer, Encoded, Request, StepFailure, ask, next_answer};
use super::sandbox::Sandbox;
use crate::host::{HostFacts, MountApi};
use crate::kernel::socket;
use crate::kernel::wait::{Patience, reap};
use crate::plan::{Ids, LaunchPlan, Step};
use crate::root::new_workspace;

/// The first word of a spawner's command line. It carries nothing else.
const MARK: &str = "skillbox-spawner";

/// A handle on the spawner. Clones share it; the last one to go ends it, and with it every sandbox.
#[derive(Clone, Debug)]
pub struct Spawner {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    socket: Option<OwnedFd>,
    /// Where the answer to the first request comes.
    first_answer: Mutex<Option<OwnedFd>>,
    facts: OnceLock<HostFacts>,
    last_steps: Mutex<Option<SentSteps>>,
    process: Mutex<Option<Process>>,
}

/// The steps of a plan, and the bytes that say them.
#[derive(Debug)]
struct SentSteps {
    steps: Arc<[Step]>,
    bytes: Arc<[u8]>,
}

#[derive(Debug)]
enum Process {
    Started(Child),
    Forked(i32),
}

/// The descriptors of one launch. Pipes are the right thing for the three streams: a socket cannot be opened by name
/// inside, and a file of the host could be.
#[derive(Debug)]
pub struct LaunchFds<'a> {
    /// The workspace; not needed by a plan without a mount namespace.
    pub workspace: Option<BorrowedFd<'a>>,
    /// What the plan's binds mount, in their order.
    pub binds: Vec<BorrowedFd<'a>>,
    /// Standard input of the command.
    pub stdin: BorrowedFd<'a>,
    /// Its standard output.
    pub stdout: BorrowedFd<'a>,
    /// Its standard error.
    pub stderr: BorrowedFd<'a>,
}

/// Becomes the spawner if this process was started as one, and then does not return. To be called first thing in
/// `main`, before any thread and before anything is read.
#[expect(clippy::exit, reason = "a spawner's life ends here and not in the caller's main")]
pub fn become_spawner_if_asked() {
    if std::env::args_os().next().is_none_or(|word| word != MARK) {
        return;
    }
    // SAFETY: the descriptor is only looked at, and it stays open meanwhile.
    let stdin = unsafe { BorrowedFd::borrow_raw(0) };
    if !rustix::net::sockopt::socket_type(stdin).is_ok_and(|kind| kind == rustix::net::SocketType::SEQPACKET) {
        return;
    }
    // SAFETY: a started spawner inherits its socket as descriptor 0, and nothing else in this young process owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(0) };
    let code = i32::from(process::live(socket, None).is_err());
    std::process::exit(code)
}

impl Spawner {
    /// Starts a spawner by executing a program that calls [`become_spawner_if_asked`]: the path of our own binary,
    /// given explicitly, since the running one can be a test or a benchmark.
    pub fn start(program: &Path) -> Result<Self, SpawnerError> {
        Self::start_with(program, SpawnerOptions::default())
    }

    /// The same, with options.
    pub fn start_with(program: &Path, options: SpawnerOptions) -> Result<Self, SpawnerError> {
        let failed = |source| SpawnerError::Start {
            program: program.to_owned(),
            source,
        };
        let (ours, theirs) = socket::pair().map_err(failed)?;
        #[expect(
            clippy::disallowed_methods,
            reason = "the spawner is our own program; scripts go through it"
        )]
        let child = Command::new(program)
            .arg0(MARK)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        Self::begin(ours, Process::Started(child), options)
    }

    /// Forks a spawner off this process, which must not have started a thread yet: cheaper than [`Self::start`] for a
    /// program that makes one run.
    pub fn fork_here(options: SpawnerOptions) -> Result<Self, SpawnerError> {
        let threads = std::fs::read_dir("/proc/self/task")
            .map_err(SpawnerError::Fork)?
            .count();
        if threads != 1 {
            let message = format!("this process has {threads} threads already");
            return Err(SpawnerError::Fork(io::Error::other(message)));
        }
        let (ours, theirs) = socket::pair().map_err(SpawnerError::Fork)?;
        let processors = options.one_shot.then(Processors::own).flatten();
        // SAFETY: this process has one thread, as was just checked, so its copy can go on like any process.
        match unsafe { nix::unistd::fork() } {
            Ok(nix::unistd::ForkResult::Child) => {
                drop(ours);
                // The end of the socket tells of the parent's death; this is the second way, and as orderly.
                let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
                let code = i32::from(process::live(theirs, processors).is_err());
                // SAFETY: ending the process has no preconditions; destructors of the parent's state must not run.
                unsafe { libc::_exit(code) }
            }
            Ok(nix::unistd::ForkResult::Parent { child }) => {
                if let (Some(processors), Some(child)) = (processors, Pid::from_raw(child.as_raw())) {
                    processors.send_elsewhere(child);
                }
                Self::begin(ours, Process::Forked(child.as_raw()), options)
            }
            Err(error) => Err(SpawnerError::Fork(error.into())),
        }
    }

    fn begin(socket: OwnedFd, process: Process, options: SpawnerOptions) -> Result<Self, SpawnerError> {
        let (ours, theirs) = socket::pair().map_err(SpawnerError::Socket)?;
        ask(socket.as_fd(), &Request::Begin(options), theirs.as_fd(), &[]).map_err(not_heard)?;
        let inner = Inner {
            socket: Some(socket),
            first_answer: Mutex::new(Some(ours)),
            facts: OnceLock::new(),
            last_steps: Mutex::new(None),
            process: Mutex::new(Some(process)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What this host gives, as the spawner found by doing. The first call waits for the spawner to be ready.
    pub fn facts(&self) -> Result<&HostFacts, SpawnerError> {
        if let Some(facts) = self.inner.facts.get() {
            return Ok(facts);
        }
        let mut first = self
            .inner
            .first_answer
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(from) = first.as_ref() {
            let Answer::Facts(facts) = wait_for_answer(from)?.0 else {
                return Err(SpawnerError::Gone);
            };
            let _ = self.inner.facts.set(*facts);
            *first = None;
        }
        self.inner.facts.get().ok_or(SpawnerError::Gone)
    }

    /// The ids on the host that own what scripts write.
    pub fn script_ids(&self) -> Result<Ids, SpawnerError> {
        Ok(self.facts()?.script)
    }

    /// The directory of a fresh filesystem in memory, owned by the script's user, with hard limits. It can be filled
    /// before the launch, mounted once, and read after everything in the sandbox is dead; closing it frees it.
    pub fn create_workspace(&self, size: ByteSize, inodes: u64) -> Result<OwnedFd, SpawnerError> {
        let facts = self.facts()?;
        if facts.privileged && facts.mount_api != MountApi::Paths {
            // Whoever has the rights needs no messenger.
            return new_workspace(size.bytes(), inodes, facts.script).map_err(|source| SpawnerError::Refused {
                what: "make a workspace".to_owned(),
                source,
            });
        }
        let (ours, theirs) = socket::pair().map_err(SpawnerError::Socket)?;
        self.ask(
            &Request::CreateWorkspace {
                bytes: size.bytes(),
                inodes,
            },
            &theirs,
            &[],
        )?;
        drop(theirs);
        match wait_for_answer(&ours)? {
            (Answer::Workspace, mut descriptors) => descriptors.pop().ok_or(SpawnerError::Gone),
            (Answer::Failed(StepFailure { what, errno, .. }), _) => Err(SpawnerError::Refused {
                what,
                source: io::Error::from_raw_os_error(errno),
            }),
            _ => Err(SpawnerError::Gone),
        }
    }

    /// Says how many sandboxes may be kept parked from now on; with 0 each is made when it is asked for.
    pub fn keep_slots(&self, limit: u8) -> Result<(), SpawnerError> {
        let (_, theirs) = socket::pair().map_err(SpawnerError::Socket)?;
        self.ask(&Request::KeepSlots { limit }, &theirs, &[])
    }

    /// Has a sandbox made ahead for a launch of a plan like this one. Nothing is promised: a launch that finds none
    /// ready makes its own.
    pub fn prepare(&self, plan: &LaunchPlan) -> Result<(), SpawnerError> {
        let (_, theirs) = socket::pair().map_err(SpawnerError::Socket)?;
        let encoded = self.encoded(&plan.steps)?;
        let steps = Encoded(Cow::Borrowed(&encoded));
        self.ask(&Request::Prepare { steps }, &theirs, &[])
    }

    /// Applies a plan. Returns when the command runs, or could not be executed; a step that fails is an error. Where a
    /// sandbox was parked for it, it returns when that has its orders, and what fails is told by [`Sandbox::finish`].
    pub fn launch(&self, plan: &LaunchPlan, fds: &LaunchFds<'_>) -> Result<Sandbox, LaunchError> {
        let (ours, theirs) = socket::pair().map_err(SpawnerError::Socket)?;
        let mut descriptors = vec![fds.stdin, fds.stdout, fds.stderr];
        descriptors.extend(fds.workspace);
        descriptors.extend_from_slice(&fds.binds);
        let encoded = self.encoded(&plan.steps)?;
        self.ask(
            &Request::Launch {
                steps: Encoded(Cow::Borrowed(&encoded)),
                command: Cow::Borrowed(&plan.command),
            },
            &theirs,
            &descriptors,
        )?;
        drop(theirs);
        Sandbox::started(plan, ours)
    }

    /// The steps as bytes. Those of the last plan are kept: the next one is mostly the same.
    fn encoded(&self, steps: &Arc<[Step]>) -> Result<Arc<[u8]>, SpawnerError> {
        let mut last = self
            .inner
            .last_steps
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match last.as_ref() {
            Some(sent) if Arc::ptr_eq(&sent.steps, steps) => Ok(Arc::clone(&sent.bytes)),
            _ => {
                let bytes: Arc<[u8]> = Encoded::of(steps).map_err(SpawnerError::Socket)?.0.into();
                *last = Some(SentSteps {
                    steps: Arc::clone(steps),
                    bytes: Arc::clone(&bytes),
                });
                Ok(bytes)
            }
        }
    }

    fn ask(
        &self,
        request: &Request<'_>,
        answers: &OwnedFd,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), SpawnerError> {
        let socket = self.inner.socket.as_ref().ok_or(SpawnerError::Gone)?;
        ask(socket.as_fd(), request, answers.as_fd(), descriptors).map_err(not_heard)
    }

    /// Whether it is there to be asked.
    pub fn is_alive(&self) -> bool {
        let Some(socket) = &self.inner.socket else { return false };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Nothing comes on this socket but its end.
        matches!(poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&now)), Ok(0))
    }

    /// The spawner's process id, for whoever watches it.
    pub fn pid(&self) -> Option<i32> {
        let process = self
            .inner
            .process
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match process.as_ref()? {
            Process::Started(child) => i32::try_from(child.id()).ok(),
            Process::Forked(pid) => Some(*pid),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The end of the socket is the spawner's sign to kill everything and end.
        self.socket = None;
        let process = self
            .process
            .get_mut()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match process.take() {
            Some(Process::Started(mut child)) => {
                let _ = child.wait();
            }
            // Not left to whoever inherits it: a container's first process is often no reaper.
            Some(Process::Forked(pid)) => {
                let _ = reap(Some(pid), Patience::Wait);
            }
            None => {}
        }
    }
}

fn not_heard(error: io::Error) -> SpawnerError {
    match error.raw_os_error() {
        Some(libc::EPIPE | libc::ECONNRESET) => SpawnerError::Gone,
        _ => SpawnerError::Socket(error),
    }
}

/// Waits for one answer, but not for ever.
pub(super) fn wait_for_answer(from: &OwnedFd) -> Result<(Answer, Vec<OwnedFd>), SpawnerError> {
    let mut watched = [PollFd::new(from, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: PATIENCE.as_secs().cast_signed(),
        tv_nsec: 0,
    };
    loop {
        match poll(&mut watched, Some(&patience)) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) => return Err(SpawnerError::Silent),
            Ok(_) => break,
            Err(error) => return Err(SpawnerError::Socket(error.into())),
        }
    }
    match next_answer(from.as_fd()) {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(SpawnerError::Gone),
        Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => Err(SpawnerError::Gone),
        Err(error) => Err(SpawnerError::Socket(error)),
    }
}
