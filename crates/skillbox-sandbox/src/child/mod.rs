//! The child: confines itself step by step, starts the command, and stays as its reaper.
//!
//! The order of confinement, with the numbers that the tests name:
//!
//!  1. a new session without a terminal
//!  2. id maps, setgroups denied; then the script's ids, and death together with the spawner
//!  3. host name and, where the profile has one, the private loopback
//!  4. private mounts; an empty root; the profile's entries, read-only, nosuid, nodev; a minimal /dev; a private shm
//!  5. a fresh, masked /proc; never the outer one
//!  6. pivot into the new root; the old one is let go
//!  7. resource limits
//!  8. not dumpable
//!     — up to here nothing of the run itself is used: a child can be prepared ahead and wait here —
//!  9. workspace and binds of the run; the root becomes read-only; the working directory
//! 10. every capability set empty, securebits locked
//! 11. no new privileges
//! 12. Landlock: files, TCP, signals and abstract sockets
//! 13. every descriptor closed but the standard ones and the reaper's own
//! 14. seccomp, last, for the reaper and the command alike
//! 15. pid 2 joins its control group and starts the command; pid 1 reaps
//!
//! The steps come from the plan in this order; this module only knows how each is done.
#![expect(unsafe_code, reason = "the child ends without running destructors")]

mod confine;
mod descriptors;
mod exec;
mod identity;
mod landlock;
mod reaper;
mod root;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::plan::{Op, Phase, Step};
use crate::profile::Need;
use crate::spawner::protocol::{Answer, Orders, StepFailure, answer};

/// Our own failure, should anyone look at the exit code instead of the answer.
const SETUP_FAILED: i32 = 125;

/// The descriptors that a child is born with.
pub(crate) struct Belongings {
    /// What each step mounts, by the step's index.
    pub mounts: Vec<Option<OwnedFd>>,
    /// The `tasks` files of the run's control groups.
    pub doors: Vec<OwnedFd>,
    /// Standard input, output and error of the command.
    pub stdio: Option<[OwnedFd; 3]>,
    /// Where answers go, and what tells that nobody waits for them any more.
    pub answers: Option<OwnedFd>,
}

impl Belongings {
    pub fn new(steps: usize) -> Self {
        Self {
            mounts: std::iter::repeat_with(|| None).take(steps).collect(),
            doors: Vec::new(),
            stdio: None,
            answers: None,
        }
    }
}

/// The child while it confines itself.
struct Child<'a> {
    orders: &'a Orders<'a>,
    belongings: Belongings,
    /// The new root, once it is made.
    root: Option<OwnedFd>,
    /// Whether the command's process still has to join the control group, and must succeed in it.
    join: Option<Need>,
    /// Whether descendants have to be hunted down one by one at the end.
    hunts: Option<reaper::Hunt>,
}

/// Lives as the child. Does not return.
pub(crate) fn run(orders: &Orders<'_>, belongings: Belongings) -> ! {
    let mut child = Child {
        orders,
        belongings,
        root: None,
        join: None,
        hunts: None,
    };
    let result = child.prepare().and_then(|()| child.release());
    if let Err(failure) = result {
        child.tell(&Answer::Failed(failure));
    }
    exit(SETUP_FAILED)
}

/// Ends the process at once, running no destructor of the spawner's copied state.
fn exit(code: i32) -> ! {
    // SAFETY: ending the process has no preconditions.
    unsafe { libc::_exit(code) }
}

impl Child<'_> {
    /// Everything that depends on the profile and the limits alone.
    fn prepare(&mut self) -> Result<(), StepFailure> {
        self.apply(Phase::Prepare)
    }

    /// Everything that belongs to this run. Ends by starting the command.
    fn release(&mut self) -> Result<(), StepFailure> {
        self.apply(Phase::Release)
    }

    fn apply(&mut self, phase: Phase) -> Result<(), StepFailure> {
        let orders = self.orders;
        for (index, step) in orders.steps.iter().enumerate().filter(|(_, step)| step.phase == phase) {
            if let Err((what, error)) = self.step(index, step) {
                let errno = error.raw_os_error().unwrap_or(libc::EIO);
                let failure = StepFailure {
                    step: step.number,
                    what: what.to_owned(),
                    errno,
                };
                match step.need {
                    Need::Preferred => self.tell(&Answer::Degraded(failure)),
                    Need::Required | Need::Off => return Err(failure),
                }
            }
        }
        Ok(())
    }

    /// Does one step; a failure says in a few words what was tried.
    fn step(&mut self, index: usize, step: &Step) -> Result<(), (&'static str, io::Error)> {
        let during = |what: &'static str| move |error: io::Error| (what, error);
        match &step.op {
            Op::CreateCgroup(_) | Op::Clone { .. } => Ok(()),
            Op::NewSession => identity::new_session().map_err(during("setsid")),
            Op::MapIds { inside, outside } => identity::map(*inside, *outside).map_err(during("write the id maps")),
            Op::BecomeUser(ids) => identity::become_user(*ids).map_err(during("set the ids")),
            Op::DieWithSpawner => identity::die_with_parent().map_err(during("set the parent-death signal")),
            Op::RootCgroupNamespace => {
                identity::root_cgroup_namespace().map_err(during("unshare the cgroup namespace"))
            }
            Op::Hostname(name) => {
                rustix::system::sethostname(name.as_bytes()).map_err(|error| ("set the host name", error.into()))
            }
            Op::LoopbackUp => crate::kernel::loopback::bring_up().map_err(during("bring up loopback")),
            Op::HostView => self.enter_host_mounts(index).map_err(during("enter the host's mounts")),
            Op::AdoptOrphans => self.adopt_orphans().map_err(during("adopt orphans")),
            Op::PrivateMounts
            | Op::NewRoot { .. }
            | Op::Directory { .. }
            | Op::Link { .. }
            | Op::File { .. }
            | Op::BindHost { .. }
            | Op::Devices { .. }
            | Op::SharedMemory { .. }
            | Op::Proc
            | Op::Mask { .. }
            | Op::EnterRoot
            | Op::MountWorkspace { .. }
            | Op::BindDescriptor { .. }
            | Op::SealRoot => self.build_root(index, &step.op).map_err(during("build the root")),
            Op::ResourceLimits(limits) => confine::limit_resources(limits).map_err(during("set resource limits")),
            Op::WorkingDirectory { path } => {
                rustix::process::chdir(path.as_str()).map_err(|error| ("enter the working directory", error.into()))
            }
            Op::DropCapabilities => confine::drop_capabilities().map_err(during("drop capabilities")),
            Op::Undumpable => confine::undumpable().map_err(during("become undumpable")),
            Op::NoNewPrivileges => confine::no_new_privileges().map_err(during("set no_new_privs")),
            Op::Landlock {
                abi,
                files,
                refuse_tcp,
                scope,
            } => landlock::restrict(*abi, files.as_deref(), *refuse_tcp, *scope).map_err(during("apply Landlock")),
            Op::CloseDescriptors => self.arrange_descriptors().map_err(during("close descriptors")),
            Op::Seccomp { program, .. } => crate::seccomp::load(program).map_err(during("load the filter")),
            Op::EnterCgroup => {
                self.join = Some(step.need);
                Ok(())
            }
            Op::Exec => self.start_and_reap().map_err(during("start the command")),
        }
    }

    /// Tells the server. One that is gone is noticed by the reaper.
    fn tell(&self, what: &Answer) {
        if let Some(answers) = &self.belongings.answers {
            let _: io::Result<()> = answer(answers.as_fd(), what, &[]);
        }
    }
}
