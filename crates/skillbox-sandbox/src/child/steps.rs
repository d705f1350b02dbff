//! How each step of the plan is done, in the order that the plan gives.
#![expect(unsafe_code, reason = "the child ends without running destructors")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::{confine, identity, landlock};
use crate::kernel::mount::Copying;
use crate::plan::{BindKind, Ids, LandlockRule, Op, Phase, Step};
use crate::profile::Need;
use crate::root;
use crate::spawner::protocol::{Answer, Orders, StepFailure, answer};
use crate::spawner::write_id_maps;

/// Our own failure, should anyone look at the exit code instead of the answer.
pub(super) const SETUP_FAILED: i32 = 125;

/// The exit code of a command that could not be executed.
pub(super) const NOT_EXECUTED: i32 = 127;

/// The descriptors that a child is born with.
pub(crate) struct Belongings {
    /// What each step mounts, by the step's index.
    pub mounts: Vec<Option<OwnedFd>>,
    /// How they are mounted; none where nothing is.
    pub copying: Option<Copying>,
    /// The `tasks` files of the run's control groups.
    pub doors: Vec<OwnedFd>,
    /// Standard input, output and error of the command.
    pub stdio: Option<[OwnedFd; 3]>,
    /// The outer `/proc`, through which the id maps are written.
    pub proc: Option<OwnedFd>,
    /// The spawner itself, to see whether it still lives once its death would be told.
    pub spawner: Option<OwnedFd>,
    /// Where answers go, and what tells that nobody waits for them any more.
    pub answers: Option<OwnedFd>,
}

impl Belongings {
    pub fn new(mounts: Vec<Option<OwnedFd>>) -> Self {
        Self {
            mounts,
            copying: None,
            doors: Vec::new(),
            stdio: None,
            answers: None,
            proc: None,
            spawner: None,
        }
    }
}

/// The child while it confines itself.
pub(super) struct Child<'a> {
    pub(super) orders: &'a Orders<'a>,
    pub(super) belongings: Belongings,
    /// Whether the command's process still has to join the control group, and must succeed in it.
    pub(super) join: Option<Need>,
    /// Whether descendants have to be hunted down one by one at the end.
    pub(super) hunts: Option<super::reaper::Hunt>,
    /// What failed and was only preferred, while there was nobody to tell.
    pub(super) untold: Vec<StepFailure>,
    /// Rules of Landlock that were made ahead, with those grants that have to wait for a mount.
    pub(super) rules: Option<(landlock::Rules, Vec<LandlockRule>)>,
    /// Why a control group could not be joined ahead.
    pub(super) join_error: Option<io::Error>,
    /// Whether this process becomes the command itself, since another one reaps.
    pub(super) is_the_command: bool,
}

/// Lives as the child. Does not return.
pub(crate) fn run(orders: &Orders<'_>, belongings: Belongings) -> ! {
    let mut child = Child::new(orders, belongings);
    match child.prepare() {
        Ok(()) => child.release(),
        Err(failure) => child.tell(&Answer::Failed(failure)),
    }
    exit(SETUP_FAILED)
}

/// Ends the process at once, running no destructor of the spawner's copied state.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: ending the process has no preconditions.
    unsafe { libc::_exit(code) }
}

impl<'a> Child<'a> {
    pub(super) fn new(orders: &'a Orders<'a>, belongings: Belongings) -> Self {
        Self {
            orders,
            belongings,
            join: None,
            hunts: None,
            untold: Vec::new(),
            rules: None,
            join_error: None,
            is_the_command: false,
        }
    }

    /// Everything that depends on the profile and the limits alone.
    pub(super) fn prepare(&mut self) -> Result<(), StepFailure> {
        self.apply(Phase::Prepare)
    }

    /// Everything that belongs to this run. Ends by starting the command, or tells why it was not started.
    pub(super) fn release(&mut self) {
        if let Err(failure) = self.apply(Phase::Release) {
            self.tell(&Answer::Failed(failure));
        }
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
                    Need::Preferred if self.belongings.answers.is_none() => self.untold.push(failure),
                    Need::Preferred => self.tell(&Answer::Degraded(failure)),
                    Need::Required | Need::Off => return Err(failure),
                }
            }
        }
        Ok(())
    }

    /// Does one step; a failure says in a few words what was tried.
    pub(super) fn step(&mut self, index: usize, step: &Step) -> Result<(), (&'static str, io::Error)> {
        let during = |what: &'static str| move |error: io::Error| (what, error);
        match &step.op {
            Op::NewSession => identity::new_session().map_err(during("setsid")),
            Op::MapIds { inside, outside } => self.map_ids(*inside, *outside).map_err(during("write the id maps")),
            Op::BecomeUser(ids) => identity::become_user(*ids).map_err(during("set the ids")),
            Op::DieWithSpawner => identity::die_with_parent(self.belongings.spawner.as_ref())
                .map_err(during("set the parent-death signal")),
            Op::RootCgroupNamespace => {
                identity::root_cgroup_namespace().map_err(during("unshare the cgroup namespace"))
            }
            Op::Hostname(name) => {
                rustix::system::sethostname(name.as_bytes()).map_err(|error| ("set the host name", error.into()))
            }
            Op::AdoptOrphans => self.adopt_orphans().map_err(during("adopt orphans")),
            Op::SharedMemory { bytes } => root::shared_memory(*bytes).map_err(during("mount /dev/shm")),
            Op::Proc => self.fresh_proc().map_err(during("mount a fresh /proc")),
            Op::Mask { path } => root::mask(path).map_err(during("mask")),
            Op::MountWorkspace { target, .. } => self
                .mount(index, &step.op, target, BindKind::Directory)
                .map_err(during("mount the workspace")),
            Op::BindDescriptor { target, kind, .. } => {
                self.mount(index, &step.op, target, *kind).map_err(during("mount"))
            }
            Op::ResourceLimits(limits) => confine::limit_resources(limits).map_err(during("set resource limits")),
            Op::WorkingDirectory { path } => {
                rustix::process::chdir(path.as_str()).map_err(|error| ("enter the working directory", error.into()))
            }
            Op::DropCapabilities => confine::drop_capabilities().map_err(during("drop capabilities")),
            Op::EmptyBoundingSet => confine::empty_bounding_set().map_err(during("empty the bounding set")),
            Op::Undumpable => confine::undumpable().map_err(during("become undumpable")),
            Op::NoNewPrivileges => confine::no_new_privileges().map_err(during("set no_new_privs")),
            Op::Landlock {
                abi,
                files,
                refuse_tcp,
                scope,
            } => match self.rules.take() {
                Some((rules, late)) => rules.grant(&late).and_then(landlock::Rules::enforce),
                None => landlock::restrict(*abi, files.as_deref(), *refuse_tcp, *scope),
            }
            .map_err(during("apply Landlock")),
            Op::CloseDescriptors => self.arrange_descriptors().map_err(during("close descriptors")),
            Op::Seccomp { program, .. } => crate::seccomp::load(program).map_err(during("load the filter")),
            Op::EnterCgroup if self.is_the_command => match self.join_error.take() {
                Some(error) => Err(("join the control group", error)),
                None => Ok(()),
            },
            Op::EnterCgroup => {
                self.join = Some(step.need);
                Ok(())
            }
            Op::Exec if self.is_the_command => self.become_the_command().map_err(during("start the command")),
            Op::Exec => self.start_and_reap().map_err(during("start the command")),
            // The spawner's own steps, which never have a phase of the child.
            Op::PrivateMounts
            | Op::NewRoot { .. }
            | Op::Directory { .. }
            | Op::MountPoint { .. }
            | Op::Link { .. }
            | Op::File { .. }
            | Op::BindHost { .. }
            | Op::Devices { .. }
            | Op::OuterProc
            | Op::SealRoot
            | Op::EnterRoot
            | Op::CreateCgroup(_)
            | Op::Network { .. }
            | Op::HostView
            | Op::Clone { .. } => Err(("find the step's place", io::Error::from_raw_os_error(libc::EINVAL))),
        }
    }

    fn map_ids(&self, inside: Ids, outside: Ids) -> io::Result<()> {
        let proc = self
            .belongings
            .proc
            .as_ref()
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        write_id_maps(proc.as_fd(), inside, outside)
    }

    /// A fresh `/proc`, or none: what must never stay in view is the outer one.
    fn fresh_proc(&self) -> io::Result<()> {
        root::fresh_proc().inspect_err(|_| {
            if let Err(error) = root::cover_proc() {
                let errno = error.raw_os_error().unwrap_or(libc::EIO);
                self.tell(&Answer::Failed(StepFailure {
                    step: 0,
                    what: "cover the outer /proc".to_owned(),
                    errno,
                }));
                exit(SETUP_FAILED);
            }
        })
    }

    fn mount(&mut self, index: usize, op: &Op, target: &str, kind: BindKind) -> io::Result<()> {
        let mount = self.belongings.mounts[index].take();
        let (Some(mount), Some(copying)) = (mount, self.belongings.copying) else {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        };
        let target = root::mount_point(target, kind)?;
        copying.attach(mount.as_fd(), target.as_fd(), root::attributes_of(op))
    }

    /// Tells the server. One that is gone is noticed by the reaper.
    pub(super) fn tell(&self, what: &Answer) {
        if let Some(answers) = &self.belongings.answers {
            let _: io::Result<()> = answer(answers.as_fd(), what, &[]);
        }
    }
}
