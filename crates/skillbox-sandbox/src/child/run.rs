//! Applies the steps of a run, and executes the command.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rustix::fs::Mode;

use super::confine::{PreparedLandlock, confine_with_ruleset};
use super::exit::{EXEC_FAILED_EXIT_CODE, SETUP_FAILED_EXIT_CODE, exit};
use super::fds::{ChildFds, RunFds, SetupFds};
use super::op_error::{ClassifiedFailure, OpError};
use super::prepare::prepare;
use super::reaper::{self, Descendants};
use super::resource_limits::set_resource_limits;
use crate::kernel::spawn::{Program, exec, executable_candidates, spawn};
use crate::plan::{BindAccess, BindKind, ConfineOp, CopyMethod, RunOp, RunPhaseOp, run_phase_steps, run_steps};
use crate::profile::Need;
use crate::protocol::{Answer, ChildPlan, StepFailure, send_answer};
use crate::root;
use crate::signals::block_child_signals;

/// The umask of the script.
const SCRIPT_UMASK: u32 = 0o022;

/// The process that applies the steps of a run.
pub(super) enum Role {
    /// Pid 1 of a sandbox that was not parked: it starts the command as pid 2, and reaps.
    Reaper {
        /// The descendants to kill when the run ends; none in a pid namespace, where the kernel kills them.
        descendants: Option<Descendants>,
    },
    /// Pid 2 of a parked sandbox: it becomes the command, and the parked pid 1 reaps.
    Command {
        /// The Landlock ruleset that it created before the run, if the plan has one.
        landlock: Option<io::Result<PreparedLandlock>>,
        /// The result of joining the control groups before the run.
        cgroup_join_result: io::Result<()>,
    },
}

/// The state of a process that applies the steps of a run.
pub(super) struct RunSetup<'a> {
    plan: &'a ChildPlan<'a>,
    role: Role,
    answers: OwnedFd,
    tasks_fds: Vec<OwnedFd>,
    /// None after `RunOp::CloseDescriptors`.
    setup_fds: Option<SetupFds>,
}

/// Prepares the sandbox and runs the command, as pid 1. Does not return.
pub(crate) fn run_child(plan: &ChildPlan<'_>, fds: ChildFds, run_fds: RunFds) -> ! {
    let prepared = prepare(&plan.steps, &fds).unwrap_or_else(|failure| fail_launch(&run_fds.answers, failure));
    let role = Role::Reaper {
        descendants: prepared.descendants,
    };
    RunSetup::new(plan, role, fds, run_fds).apply(prepared.failed_preferred_steps)
}

/// Reports the failure that ends the launch, and ends this process.
pub(crate) fn fail_launch(answers: &OwnedFd, failure: StepFailure) -> ! {
    report(answers, &Answer::Failed(failure));
    exit(SETUP_FAILED_EXIT_CODE)
}

/// Sends an answer. A failure of the socket itself cannot be reported; the server then notices the end of the sandbox.
pub(super) fn report(answers: &OwnedFd, answer: &Answer) {
    let _: io::Result<()> = send_answer(answers.as_fd(), answer, &[]);
}

impl<'a> RunSetup<'a> {
    pub fn new(plan: &'a ChildPlan<'a>, role: Role, fds: ChildFds, run_fds: RunFds) -> Self {
        Self {
            plan,
            role,
            answers: run_fds.answers,
            tasks_fds: fds.tasks_fds,
            setup_fds: Some(SetupFds {
                mount_cloner: fds.mount_cloner,
                proc: fds.proc,
                spawner: fds.spawner,
                stdio: run_fds.stdio,
                mounts: run_fds.mounts,
                skill_layers: None,
            }),
        }
    }

    /// Reports the preferred steps that failed in the prepare phase, and applies the steps of the run phase. The last
    /// step executes the command.
    pub fn apply(mut self, failed_preferred_steps: Vec<StepFailure>) -> ! {
        for failure in failed_preferred_steps {
            self.report(&Answer::PreferredStepFailed(failure));
        }
        let plan = self.plan;
        for (step, op) in run_phase_steps(&plan.steps) {
            let result = match op {
                RunPhaseOp::Run(op) => self.apply_run_op(op),
                RunPhaseOp::Confine(op) => self.apply_confine_op(op),
            };
            if let Err(error) = result {
                self.report_failed_step(error.classify(step));
            }
        }
        exit(SETUP_FAILED_EXIT_CODE)
    }

    fn report(&self, answer: &Answer) {
        report(&self.answers, answer);
    }

    /// Reports a failed step. Returns only when the launch continues.
    fn report_failed_step(&self, failed: ClassifiedFailure) {
        match failed {
            ClassifiedFailure::LaunchContinues(failure) => self.report(&Answer::PreferredStepFailed(failure)),
            ClassifiedFailure::LaunchEnds(failure) => fail_launch(&self.answers, failure),
        }
    }

    fn apply_run_op(&mut self, op: &RunOp) -> Result<(), OpError> {
        match op {
            RunOp::MountWorkspace { target, .. } => self
                .mount(target, BindKind::Directory, BindAccess::ReadWrite)
                .map_err(OpError::during("mount the workspace")),
            RunOp::BindDescriptor {
                target, kind, access, ..
            } => self.mount(target, *kind, *access).map_err(OpError::during("mount")),
            RunOp::OpenSkillLayers { directory } => self
                .open_skill_layers(directory)
                .map_err(OpError::during("open the layers of the skill")),
            RunOp::MakeSkillWritable {
                target,
                name,
                method,
                max_copy_bytes,
            } => self
                .make_skill_writable(target, name, *method, *max_copy_bytes)
                .map_err(OpError::during("make the skill writable")),
            RunOp::WorkingDirectory { path } => {
                rustix::process::chdir(path.as_str()).map_err(OpError::during("enter the working directory"))
            }
            RunOp::ResourceLimits(limits) => {
                set_resource_limits(limits).map_err(OpError::during("set resource limits"))
            }
            RunOp::CloseDescriptors => self.close_descriptors().map_err(OpError::during("close descriptors")),
            RunOp::EnterCgroup => match &mut self.role {
                // Pid 2 joins between its clone and the exec: see `spawn_and_reap`.
                Role::Reaper { .. } => Ok(()),
                Role::Command { cgroup_join_result, .. } => {
                    std::mem::replace(cgroup_join_result, Ok(())).map_err(OpError::during("join the control group"))
                }
            },
            RunOp::Exec => match self.role {
                Role::Reaper { .. } => self.spawn_and_reap(),
                Role::Command { .. } => self.exec_command(),
            }
            .map_err(OpError::during("start the command")),
        }
    }

    fn apply_confine_op(&mut self, op: &ConfineOp) -> Result<(), OpError> {
        let landlock = match (op, &mut self.role) {
            (ConfineOp::Landlock { .. }, Role::Command { landlock, .. }) => landlock.take(),
            _ => None,
        };
        confine_with_ruleset(op, landlock)
    }

    /// Attaches the next mount of the run.
    fn mount(&mut self, target: &str, kind: BindKind, access: BindAccess) -> io::Result<()> {
        let fds = self.setup_fds.as_mut();
        let next = fds.and_then(|fds| Some((fds.mounts.pop_front()?, fds.mount_cloner?)));
        let (mount, mount_cloner) = next.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        let target = root::open_mount_target(target, kind)?;
        mount_cloner.attach(mount.as_fd(), target.as_fd(), root::run_mount_attributes(access))
    }

    fn open_skill_layers(&mut self, directory: &str) -> io::Result<()> {
        let layers = root::open_mount_target(directory, BindKind::Directory)?;
        if let Some(fds) = &mut self.setup_fds {
            fds.skill_layers = Some(layers);
        }
        Ok(())
    }

    fn make_skill_writable(&mut self, target: &str, name: &str, method: CopyMethod, max_bytes: u64) -> io::Result<()> {
        let layers = self.setup_fds.as_mut().and_then(|fds| fds.skill_layers.take());
        let layers = layers.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        root::make_skill_writable(layers.as_fd(), target, name, method, max_bytes)
    }

    fn close_descriptors(&mut self) -> io::Result<()> {
        let fds = self.setup_fds.take();
        let fds = fds.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        let mut kept: Vec<RawFd> = self.tasks_fds.iter().map(AsRawFd::as_raw_fd).collect();
        kept.push(self.answers.as_raw_fd());
        if let Role::Reaper { descendants } = &self.role {
            kept.extend(descendants.iter().map(Descendants::fd));
        }
        fds.set_stdio_and_close_others(kept)
    }

    /// Starts the command as pid 2, reaps until it ends, and exits. Returns only if the command could not be started.
    fn spawn_and_reap(&mut self) -> io::Result<()> {
        rustix::process::umask(Mode::from_raw_mode(SCRIPT_UMASK));
        block_child_signals()?;
        let plan = self.plan;
        let command = &plan.command;
        let name = command.argv.first().ok_or(io::ErrorKind::InvalidInput)?;
        let join_step = run_steps(&plan.steps).find_map(|(step, op)| matches!(op, RunOp::EnterCgroup).then_some(step));
        let tasks_fds = match join_step {
            Some(_) => self.tasks_fds.iter().map(AsFd::as_fd).collect(),
            None => Vec::new(),
        };
        let program = Program {
            paths: &executable_candidates(name, &command.env),
            argv: &command.argv,
            env: &command.env,
            tasks_fds: &tasks_fds,
            is_join_required: join_step.is_some_and(|step| step.need == Need::Required),
        };
        let spawned = spawn(&program)?;
        self.tasks_fds.clear();
        reaper::close_stdio();
        if let (Some(errno), Some(step)) = (spawned.join_error, join_step) {
            let error = io::Error::from_raw_os_error(errno);
            self.report_failed_step(OpError::during("join the control group")(error).classify(step));
        }
        self.report(&match spawned.exec_error {
            Some(errno) => Answer::CommandNotExecuted { errno },
            None => Answer::CommandStarted,
        });
        let status = reaper::reap_until_command_ends(spawned.pid, Some(&self.answers));
        if let Role::Reaper {
            descendants: Some(descendants),
        } = &self.role
            && let Err(error) = descendants.kill_all()
        {
            let failure = StepFailure::outside_steps("kill the remaining processes", &error);
            self.report(&Answer::Failed(failure));
        }
        if let Some(status) = status {
            self.report(&Answer::CommandEnded { status });
        }
        exit(0)
    }

    /// Executes the command in this process. Returns only if the command line is empty.
    fn exec_command(&self) -> io::Result<()> {
        rustix::process::umask(Mode::from_raw_mode(SCRIPT_UMASK));
        let command = &self.plan.command;
        let name = command.argv.first().ok_or(io::ErrorKind::InvalidInput)?;
        let errno = exec(&executable_candidates(name, &command.env), &command.argv, &command.env);
        self.report(&Answer::CommandNotExecuted { errno });
        exit(EXEC_FAILED_EXIT_CODE)
    }
}
