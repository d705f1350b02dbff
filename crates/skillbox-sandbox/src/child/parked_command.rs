//! Pid 2 of a parked sandbox: it waits for the run and becomes its command.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::confine::PreparedLandlock;
use super::exit::{SETUP_FAILED_EXIT_CODE, exit};
use super::fds::{ChildFds, RunFds};
use super::landlock::PendingRuleset;
use super::parking_failure::abandon_parking;
use super::prepare::PreparedSandbox;
use super::run::{Role, RunSetup, fail_launch};
use crate::kernel::socket;
use crate::kernel::spawn::executable_candidates;
use crate::plan::{
    Command, ConfineOp, LandlockRule, Phase, RunOp, RunPhaseOp, Step, TemplateOp, run_phase_steps, template_steps,
};
use crate::protocol::{ChildPlan, RunMessage, RunMessageStep, StepFailure, decode, encode};

/// The number of bytes at the start of the receive buffer that the message of most runs fills.
const TYPICAL_MESSAGE_BYTES: usize = 8 << 10;

/// The number of stack bytes that the steps of a run use.
const RUN_STACK_BYTES: usize = 24 << 10;

/// Waits for the run that is sent through `run_socket`, and becomes its command. Does not return.
///
/// Pid 1 writes to `confined` when it has confined itself. Pid 2 waits for that before it receives the descriptors of
/// the run, because the two processes share their descriptor table.
pub(super) fn wait_for_run(
    steps: &[Step],
    prepared: PreparedSandbox,
    mut fds: ChildFds,
    run_socket: OwnedFd,
    confined: &OwnedFd,
) -> ! {
    let failed =
        |what: &str, error: io::Error| -> ! { abandon_parking(&run_socket, &StepFailure::outside_steps(what, &error)) };
    let role = prepare_without_run(steps, &mut fds).unwrap_or_else(|error| failed("setsid", error));
    match rustix::io::read(confined, &mut [0]) {
        Ok(1) => {}
        // Pid 1 has ended and reported the failure.
        Ok(_) => exit(SETUP_FAILED_EXIT_CODE),
        Err(errno) => failed("wait for pid 1", errno.into()),
    }
    let known = known_steps(steps);
    let mut buffer = vec![0; socket::MAX_MESSAGE_BYTES];
    buffer[..TYPICAL_MESSAGE_BYTES].fill(1);
    prefault_memory(&known).unwrap_or_else(|error| failed("read a sample run", error));
    let received = socket::receive(run_socket.as_fd(), &mut buffer)
        .and_then(socket::ReceivedMessage::require_complete)
        .unwrap_or_else(|error| failed("receive the run", error));
    if received.length == 0 {
        // The spawner has closed the socket: it discards this sandbox.
        exit(0)
    }
    let plan = match read_plan(&buffer[..received.length], known) {
        Ok(plan) => plan,
        Err(error) => {
            let failure = StepFailure::outside_steps("read the run", &error);
            match received.descriptors.first() {
                Some(answers) => fail_launch(answers, failure),
                None => exit(SETUP_FAILED_EXIT_CODE),
            }
        }
    };
    let Ok(run_fds) = RunFds::from_message(&plan.steps, received.descriptors, run_socket) else {
        exit(SETUP_FAILED_EXIT_CODE)
    };
    // The prepared steps have the same numbers in every plan that this sandbox can serve, so the numbers of its failed
    // steps are valid.
    RunSetup::new(&plan, role, fds, run_fds).apply(prepared.failed_preferred_steps)
}

/// The steps of the run phase that are the same for every run that this sandbox can serve.
fn known_steps(steps: &[Step]) -> Vec<Step> {
    let run_phase = steps.iter().filter(|step| step.phase() == Phase::Run);
    run_phase.filter(|step| !step.op.depends_on_job()).cloned().collect()
}

fn read_plan(message: &[u8], known: Vec<Step>) -> io::Result<ChildPlan<'static>> {
    decode::<RunMessage<'static>>(message)?.into_plan(known)
}

/// Does the part of the run phase that does not need the run: starts the session, joins the control groups, and creates
/// the Landlock ruleset with the rules for paths that exist already. A failure of the last two is reported when the run
/// reaches the step.
fn prepare_without_run(steps: &[Step], fds: &mut ChildFds) -> io::Result<Role> {
    rustix::process::setsid()?;
    let mut prepared_landlock = None;
    let mut cgroup_join_result = Ok(());
    for (_, op) in run_phase_steps(steps) {
        match op {
            RunPhaseOp::Run(RunOp::EnterCgroup) => {
                cgroup_join_result = join_cgroups(std::mem::take(&mut fds.tasks_fds))
            }
            RunPhaseOp::Confine(ConfineOp::Landlock {
                abi,
                files,
                refuse_tcp,
                tcp_ports,
                scope,
            }) => {
                let (run_mount_rules, other_rules): (Vec<_>, Vec<_>) = files
                    .iter()
                    .flatten()
                    .cloned()
                    .partition(|rule| is_mounted_by_run(rule, steps));
                let ruleset = PendingRuleset::new(
                    *abi,
                    files.is_some(),
                    refuse_tcp.then_some(tcp_ports.as_slice()),
                    *scope,
                )
                .and_then(|ruleset| ruleset.add_rules(&other_rules));
                prepared_landlock = Some(ruleset.map(|ruleset| PreparedLandlock {
                    ruleset,
                    run_mount_rules,
                }));
            }
            RunPhaseOp::Run(_) | RunPhaseOp::Confine(_) => {}
        }
    }
    Ok(Role::Command {
        landlock: prepared_landlock,
        cgroup_join_result,
    })
}

/// Joins every control group, even after a failure. Returns the last failure.
fn join_cgroups(tasks_fds: Vec<OwnedFd>) -> io::Result<()> {
    let mut result = Ok(());
    for tasks in tasks_fds {
        if let Err(errno) = rustix::io::write(&tasks, b"0") {
            result = Err(errno.into());
        }
    }
    result
}

/// Whether a rule is about a path that the run mounts.
fn is_mounted_by_run(rule: &LandlockRule, steps: &[Step]) -> bool {
    template_steps(steps).any(|(_, op)| match op {
        TemplateOp::MountPoint { path, .. } => rule
            .path
            .strip_prefix(path.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        _ => false,
    })
}

/// Decodes a message like that of a run, and discards it. After a fork the kernel maps or copies each page at its first
/// access. This moves the page faults from the run to the parking.
fn prefault_memory(known: &[Step]) -> io::Result<()> {
    let variable = c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned();
    let command = Command {
        argv: vec![c"bash".to_owned(), c"-c".to_owned(), variable.clone()],
        env: vec![variable; 8],
    };
    let message = RunMessage {
        steps: known
            .iter()
            .map(|step| RunMessageStep::New(Cow::Borrowed(step)))
            .collect(),
        command: Cow::Owned(command),
    };
    let plan = read_plan(&encode(&message)?, Vec::new())?;
    std::hint::black_box(executable_candidates(&plan.command.argv[0], &plan.command.env));
    prefault_stack();
    Ok(())
}

#[inline(never)]
fn prefault_stack() {
    std::hint::black_box(&mut [1_u8; RUN_STACK_BYTES]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BindKind, FileRights};
    use crate::profile::Need;

    #[test]
    fn rules_below_a_mount_of_the_run_are_late() {
        let step = Step {
            number: 1,
            layers: Vec::new(),
            need: Need::Required,
            op: TemplateOp::MountPoint {
                path: "/workspace".to_owned(),
                kind: BindKind::Directory,
            }
            .into(),
        };
        let is_late = |path: &str| {
            let rule = LandlockRule {
                path: path.to_owned(),
                rights: FileRights::Read,
            };
            is_mounted_by_run(&rule, std::slice::from_ref(&step))
        };
        assert!(is_late("/workspace") && is_late("/workspace/out"));
        assert!(!is_late("/workspaces") && !is_late("/") && !is_late("/usr"));
    }
}
