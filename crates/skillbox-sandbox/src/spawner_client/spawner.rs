//! A handle to the spawner: starts it, and sends requests to it.
#![expect(unsafe_code, reason = "a fork before any other thread exists")]

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
use crate::host::{HostFacts, MountApi, UidGid};
use crate::kernel::socket;
use crate::kernel::wait::{WaitMode, reap};
use crate::plan::LaunchPlan;
use crate::protocol::{Answer, EncodedSteps, Request, StepFailure, send_request};
use crate::root::create_workspace_tmpfs;
use crate::spawner::{CpuAffinity, SPAWNER_ARG0, run_forked_spawner};
use crate::spawner_options::SpawnerOptions;

/// A handle to a spawner process. Clones share the process. Dropping the last handle ends the spawner and every
/// sandbox.
#[derive(Clone, Debug)]
pub struct Spawner {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    socket: Option<OwnedFd>,
    /// The answer socket of the first request; none once its answer was received.
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

/// The descriptors of one launch. The three streams should be pipes: a script cannot open a socket through
/// `/dev/stdout`, and could reopen a file of the host with other access.
#[derive(Debug)]
pub struct LaunchFds<'a> {
    /// The directory of the workspace; not needed for a plan without a mount namespace.
    pub workspace: Option<BorrowedFd<'a>>,
    /// The files and directories that the plan binds, in the order of its binds.
    pub binds: Vec<BorrowedFd<'a>>,
    /// Standard input of the command.
    pub stdin: BorrowedFd<'a>,
    /// Its standard output.
    pub stdout: BorrowedFd<'a>,
    /// Its standard error.
    pub stderr: BorrowedFd<'a>,
}

impl Spawner {
    /// Starts a spawner with default options. `program` is executed and must call [`crate::run_spawner_if_requested`].
    /// It is usually the skillbox binary; the path is explicit, because the current executable can be a test or a
    /// benchmark.
    pub fn start(program: &Path) -> Result<Self, SpawnerError> {
        Self::start_with_options(program, SpawnerOptions::default())
    }

    /// Starts a spawner as [`Self::start`] does, with these options.
    pub fn start_with_options(program: &Path, options: SpawnerOptions) -> Result<Self, SpawnerError> {
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
        Self::initialize(ours, SpawnerProcess::Executed(child), options)
    }

    /// Starts a spawner as a fork of this process, which must have a single thread. For a program with a single run
    /// this is cheaper than [`Self::start`].
    pub fn fork_this_process(options: SpawnerOptions) -> Result<Self, SpawnerError> {
        let threads = std::fs::read_dir("/proc/self/task")
            .map_err(SpawnerError::Fork)?
            .count();
        if threads != 1 {
            let message = format!("this process has {threads} threads already");
            return Err(SpawnerError::Fork(io::Error::other(message)));
        }
        let (ours, theirs) = socket::pair().map_err(SpawnerError::Fork)?;
        let affinity = if options.is_single_run {
            CpuAffinity::of_this_process().map_err(SpawnerError::Fork)?
        } else {
            None
        };
        // SAFETY: this process has one thread, as was just checked, so no lock of another thread stays locked in the
        // child.
        match unsafe { nix::unistd::fork() } {
            Ok(nix::unistd::ForkResult::Child) => {
                drop(ours);
                run_forked_spawner(theirs, affinity)
            }
            Ok(nix::unistd::ForkResult::Parent { child }) => {
                if let (Some(affinity), Some(child)) = (affinity, Pid::from_raw(child.as_raw())) {
                    // After a failure the spawner stays on the processor that the kernel chose, which is only slower.
                    let _ = affinity.move_child_to_other_cpu(child);
                }
                Self::initialize(ours, SpawnerProcess::Forked(child.as_raw()), options)
            }
            Err(error) => Err(SpawnerError::Fork(error.into())),
        }
    }

    fn initialize(socket: OwnedFd, process: SpawnerProcess, options: SpawnerOptions) -> Result<Self, SpawnerError> {
        let (ours, theirs) = socket::pair().map_err(SpawnerError::Socket)?;
        send_request(socket.as_fd(), &Request::Initialize(options), theirs.as_fd(), &[]).map_err(send_error)?;
        let inner = Inner {
            socket: Some(socket),
            first_answer: Mutex::new(Some(ours)),
            facts: OnceLock::new(),
            encoded_steps: EncodedStepCache::default(),
            process: Mutex::new(Some(process)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The facts that the spawner found about this host. The first call waits until the spawner is ready.
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

    /// The user and group id on the host under which scripts run.
    pub fn script_ids(&self) -> Result<UidGid, SpawnerError> {
        Ok(self.facts()?.script_ids)
    }

    /// Creates an empty tmpfs with hard limits, which belongs to the script's user, and returns its root directory. It
    /// can be filled before the launch, mounted in one sandbox, and read after the sandbox is dead. Closing the
    /// directory frees it.
    pub fn create_workspace(&self, size: ByteSize, inodes: u64) -> Result<OwnedFd, SpawnerError> {
        let facts = self.facts()?;
        if facts.privileged && facts.mount_api != MountApi::MountByPath {
            // A privileged process can create it without the spawner.
            return create_workspace_tmpfs(size.bytes(), inodes, facts.script_ids).map_err(|source| {
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
            (Answer::WorkspaceCreated, mut descriptors) => descriptors.pop().ok_or(SpawnerError::Exited),
            (Answer::Failed(failure), _) => Err(refused(failure)),
            _ => Err(SpawnerError::Exited),
        }
    }

    /// Sets the maximum number of parked sandboxes; with 0 the spawner creates each sandbox when it is needed.
    pub fn set_max_parked(&self, limit: u8) -> Result<(), SpawnerError> {
        let (_, theirs) = socket::pair().map_err(SpawnerError::Socket)?;
        self.send(&Request::SetMaxParked { limit }, &theirs, &[])
    }

    /// Asks the spawner to park a sandbox for launches that differ from this plan only in the run. This is only an
    /// optimisation: a launch without a parked sandbox creates a new one, and reports why parking failed
    /// ([`Sandbox::parking_failure`]).
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

    /// Applies a plan. Returns when the command was executed or could not be executed; a failed step is an error. If a
    /// parked sandbox serves the run, this returns when the run was sent to it, and [`Sandbox::finish`] reports a
    /// failed step.
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
        Sandbox::wait_for_launch(plan, ours)
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

    /// Whether the spawner is running.
    pub fn is_alive(&self) -> bool {
        let Some(socket) = &self.inner.socket else { return false };
        let no_wait = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The spawner sends nothing on this socket, so it becomes readable only when the spawner has ended.
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
            // Reaped here, because pid 1 of a container often does not reap orphans.
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
