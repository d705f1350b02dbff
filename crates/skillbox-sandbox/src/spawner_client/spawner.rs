//! A handle of the spawner: start it, and send it requests.
#![expect(unsafe_code, reason = "a fork before any thread exists")]

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use skillbox_model::ByteSize;

use super::answers::wait_for_answer;
use super::errors::{LaunchError, SpawnerError};
use super::sandbox::Sandbox;
use super::step_cache::EncodedStepCache;
use crate::host::{HostFacts, Ids, MountApi};
use crate::kernel::socket;
use crate::kernel::wait::{WaitMode, reap};
use crate::plan::LaunchPlan;
use crate::protocol::{Answer, EncodedSteps, Request, StepFailure, send_request};
use crate::root::create_workspace_filesystem;
use crate::spawner::{CpuAffinity, SPAWNER_ARG0, fork_entry};
use crate::spawner_options::SpawnerOptions;

/// A handle of the spawner. Clones share the spawner. Dropping the last one ends it, and with it every sandbox.
#[derive(Clone, Debug)]
pub struct Spawner {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    socket: Option<OwnedFd>,
    /// The socket for the answer to the first request, until the answer is read.
    first_answer: Mutex<Option<OwnedFd>>,
    facts: OnceLock<HostFacts>,
    encoded_steps: EncodedStepCache,
    process: Mutex<Option<SpawnerProcess>>,
}

#[derive(Debug)]
enum SpawnerProcess {
    Executed(Child),
    Forked(i32),
}

/// The descriptors of one launch. The three streams should be pipes: the sandbox cannot open a socket by name, and it
/// could open a file of the host.
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

impl Spawner {
    /// Starts a spawner by executing a program that calls [`crate::become_spawner_if_asked`]: the path of our own
    /// binary, given explicitly, because the running one can be a test or a benchmark.
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
            .arg0(SPAWNER_ARG0)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        Self::begin(ours, SpawnerProcess::Executed(child), options)
    }

    /// Forks a spawner off this process, which must not have started a thread yet. This costs less than [`Self::start`]
    /// for a program with a single run.
    pub fn fork_here(options: SpawnerOptions) -> Result<Self, SpawnerError> {
        let threads = std::fs::read_dir("/proc/self/task")
            .map_err(SpawnerError::Fork)?
            .count();
        if threads != 1 {
            let message = format!("this process has {threads} threads already");
            return Err(SpawnerError::Fork(io::Error::other(message)));
        }
        let (ours, theirs) = socket::pair().map_err(SpawnerError::Fork)?;
        let affinity = if options.one_shot {
            CpuAffinity::of_this_process().map_err(SpawnerError::Fork)?
        } else {
            None
        };
        // SAFETY: this process has one thread, as was just checked, so its copy can continue like any process.
        match unsafe { nix::unistd::fork() } {
            Ok(nix::unistd::ForkResult::Child) => {
                drop(ours);
                fork_entry(theirs, affinity)
            }
            Ok(nix::unistd::ForkResult::Parent { child }) => {
                if let (Some(affinity), Some(child)) = (affinity, Pid::from_raw(child.as_raw())) {
                    // Without it the spawner starts where the kernel put it, which only may be slower.
                    let _ = affinity.move_off_current(child);
                }
                Self::begin(ours, SpawnerProcess::Forked(child.as_raw()), options)
            }
            Err(error) => Err(SpawnerError::Fork(error.into())),
        }
    }

    fn begin(socket: OwnedFd, process: SpawnerProcess, options: SpawnerOptions) -> Result<Self, SpawnerError> {
        let (ours, theirs) = socket::pair().map_err(SpawnerError::Socket)?;
        send_request(socket.as_fd(), &Request::Begin(options), theirs.as_fd(), &[]).map_err(send_error)?;
        let inner = Inner {
            socket: Some(socket),
            first_answer: Mutex::new(Some(ours)),
            facts: OnceLock::new(),
            encoded_steps: EncodedStepCache::default(),
            process: Mutex::new(Some(process)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The facts about this host that the spawner found. The first call waits until the spawner is ready.
    pub fn facts(&self) -> Result<&HostFacts, SpawnerError> {
        if let Some(facts) = self.inner.facts.get() {
            return Ok(facts);
        }
        let mut first = lock(&self.inner.first_answer);
        if let Some(from) = first.as_ref() {
            let facts = match wait_for_answer(from)?.0 {
                Answer::Facts(facts) => *facts,
                Answer::Failed(failure) => return Err(refused(failure)),
                _ => return Err(SpawnerError::Exited),
            };
            let _ = self.inner.facts.set(facts);
            *first = None;
        }
        self.inner.facts.get().ok_or(SpawnerError::Exited)
    }

    /// The ids on the host that own the files of scripts.
    pub fn script_ids(&self) -> Result<Ids, SpawnerError> {
        Ok(self.facts()?.script)
    }

    /// Creates an empty filesystem in memory with hard limits, owned by the script's user, and returns its directory. It
    /// can be filled before the launch, mounted once, and read after the sandbox is dead; closing it frees it.
    pub fn create_workspace(&self, size: ByteSize, inodes: u64) -> Result<OwnedFd, SpawnerError> {
        let facts = self.facts()?;
        if facts.privileged && facts.mount_api != MountApi::Paths {
            // A privileged process does not have to ask the spawner.
            return create_workspace_filesystem(size.bytes(), inodes, facts.script).map_err(|source| {
                SpawnerError::Refused {
                    what: "create a workspace".to_owned(),
                    source,
                }
            });
        }
        let (ours, theirs) = socket::pair().map_err(SpawnerError::Socket)?;
        let request = Request::CreateWorkspace {
            bytes: size.bytes(),
            inodes,
        };
        self.send(&request, &theirs, &[])?;
        drop(theirs);
        match wait_for_answer(&ours)? {
            (Answer::Workspace, mut descriptors) => descriptors.pop().ok_or(SpawnerError::Exited),
            (Answer::Failed(failure), _) => Err(refused(failure)),
            _ => Err(SpawnerError::Exited),
        }
    }

    /// Sets the number of slots; with 0 the spawner creates each sandbox when it is needed.
    pub fn set_slot_limit(&self, limit: u8) -> Result<(), SpawnerError> {
        let (_, theirs) = socket::pair().map_err(SpawnerError::Socket)?;
        self.send(&Request::SetSlotLimit { limit }, &theirs, &[])
    }

    /// Asks the spawner to park a sandbox for a launch of a plan like this one. There is no guarantee: a launch without a
    /// parked sandbox creates its own, and reports why parking failed ([`Sandbox::parking_failure`]).
    pub fn park_sandbox(&self, plan: &LaunchPlan) -> Result<(), SpawnerError> {
        let (_, theirs) = socket::pair().map_err(SpawnerError::Socket)?;
        let encoded = self
            .inner
            .encoded_steps
            .encode(&plan.steps)
            .map_err(SpawnerError::Socket)?;
        let steps = EncodedSteps(Cow::Borrowed(&encoded));
        self.send(&Request::Park { steps }, &theirs, &[])
    }

    /// Applies a plan. Returns when the command runs, or could not be executed; a step that fails is an error. With a
    /// parked sandbox it returns when the sandbox has the run, and [`Sandbox::finish`] reports a step that fails.
    pub fn launch(&self, plan: &LaunchPlan, fds: &LaunchFds<'_>) -> Result<Sandbox, LaunchError> {
        let (ours, theirs) = socket::pair().map_err(SpawnerError::Socket)?;
        let mut descriptors = vec![fds.stdin, fds.stdout, fds.stderr];
        descriptors.extend(fds.workspace);
        descriptors.extend_from_slice(&fds.binds);
        let encoded = self
            .inner
            .encoded_steps
            .encode(&plan.steps)
            .map_err(SpawnerError::Socket)?;
        let request = Request::Launch {
            steps: EncodedSteps(Cow::Borrowed(&encoded)),
            command: Cow::Borrowed(&plan.command),
        };
        self.send(&request, &theirs, &descriptors)?;
        drop(theirs);
        Sandbox::start(plan, ours)
    }

    fn send(
        &self,
        request: &Request<'_>,
        answers: &OwnedFd,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), SpawnerError> {
        let socket = self.inner.socket.as_ref().ok_or(SpawnerError::Exited)?;
        send_request(socket.as_fd(), request, answers.as_fd(), descriptors).map_err(send_error)
    }

    /// Whether the spawner lives.
    pub fn is_alive(&self) -> bool {
        let Some(socket) = &self.inner.socket else { return false };
        let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The spawner sends nothing on this socket, so only its end is readable.
        matches!(poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&no_wait)), Ok(0))
    }

    /// The process id of the spawner.
    pub fn pid(&self) -> Option<i32> {
        match lock(&self.inner.process).as_ref()? {
            SpawnerProcess::Executed(child) => i32::try_from(child.id()).ok(),
            SpawnerProcess::Forked(pid) => Some(*pid),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The spawner kills everything and exits when the socket closes.
        self.socket = None;
        match lock(&self.process).take() {
            Some(SpawnerProcess::Executed(mut child)) => {
                let _ = child.wait();
            }
            // Reaped here, because the first process of a container often reaps nothing.
            Some(SpawnerProcess::Forked(pid)) => {
                let _ = reap(Some(pid), WaitMode::Block);
            }
            None => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(failure: StepFailure) -> SpawnerError {
    SpawnerError::Refused {
        what: failure.what,
        source: io::Error::from_raw_os_error(failure.errno),
    }
}

fn send_error(error: io::Error) -> SpawnerError {
    match error.raw_os_error() {
        Some(libc::EPIPE | libc::ECONNRESET) => SpawnerError::Exited,
        _ => SpawnerError::Socket(error),
    }
}
