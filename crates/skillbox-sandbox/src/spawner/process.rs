//! The spawner's life: take requests, launch, reap, and end with the server.
#![expect(
    unsafe_code,
    reason = "a clone is safe only in a process of one thread, which this one is"
)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CapabilitiesSecureBits, set_capabilities_secure_bits};

use super::SpawnerOptions;
use super::launch::{Descriptors, Launched, launch};
use super::protocol::{Answer, Orders, Reaped, Request, StepFailure, answer, decode, from_file};
use super::sanitize::sanitize;
use super::stage::Stage;
use crate::cgroup::{Group, Groups, Layout};
use crate::host::{Availability, HostFacts};
use crate::kernel::clone::{Cloned, clone_process};
use crate::kernel::mount::{self, FsOption, NO_DEVICES, NO_SUID};
use crate::kernel::socket;
use crate::kernel::wait::{Patience, reap};

/// What launches draw on.
pub(super) struct Spawning {
    pub facts: HostFacts,
    pub stage: Option<Stage>,
    pub groups: Option<Groups>,
}

/// A sandbox that lives.
struct Running {
    pid: i32,
    pidfd: OwnedFd,
    answers: OwnedFd,
    group: Option<Group>,
}

/// Lives as the spawner behind `socket` until the other end closes.
pub(super) fn live(socket: OwnedFd) -> io::Result<()> {
    let socket = sanitize(socket)?;
    let mut buffer = vec![0; socket::MAX_MESSAGE];
    let first = socket::receive(socket.as_fd(), &mut buffer)?;
    let Ok(Request::Begin(options)) = decode(&buffer[..first.length]) else {
        return Err(io::Error::from_raw_os_error(libc::EPROTO));
    };
    let mut spawning = Spawning::set_up(&options);
    if let Some(answers) = first.descriptors.first() {
        tell(answers, &Answer::Facts(Box::new(spawning.facts.clone())), &[]);
    }
    drop(first);
    let mut running: Vec<Running> = Vec::new();
    loop {
        let mut watched = vec![PollFd::new(&socket, PollFlags::IN)];
        watched.extend(running.iter().map(|run| PollFd::new(&run.pidfd, PollFlags::IN)));
        match poll(&mut watched, None) {
            Err(rustix::io::Errno::INTR) => continue,
            result => result?,
        };
        let asked = !watched[0].revents().is_empty();
        let ended: Vec<usize> = (0..running.len())
            .rev()
            .filter(|index| !watched[index + 1].revents().is_empty())
            .collect();
        drop(watched);
        for index in ended {
            running.swap_remove(index).bury();
        }
        if asked {
            let received = socket::receive(socket.as_fd(), &mut buffer)?;
            if received.length == 0 {
                break;
            }
            if let Some(run) = spawning.serve(&buffer[..received.length], received.descriptors) {
                running.push(run);
            }
        }
    }
    for run in &running {
        run.kill();
    }
    for run in running {
        run.bury();
    }
    Ok(())
}

/// Clones the spawner.
pub(super) fn clone_single_threaded(flags: u64, birthplace: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
    // SAFETY: the spawner has one thread: it is a fresh process, started by exec or by a fork before any thread
    // existed, and nothing in this crate starts one.
    unsafe { clone_process(flags, birthplace) }
}

impl Spawning {
    fn set_up(options: &SpawnerOptions) -> Self {
        let mut facts = HostFacts::gather(options);
        let family = [
            rustix::process::getpid(),
            rustix::process::getppid().unwrap_or(Pid::INIT),
        ];
        let layout = Layout::discover(&family.map(|pid| pid.as_raw_nonzero().get()));
        let groups = match layout.as_ref().map(Groups::open) {
            Ok(Ok(groups)) => {
                facts.cgroup = Layout::facts(&layout);
                Some(groups)
            }
            Ok(Err(error)) => {
                let reason = format!("control groups cannot be made: {error}");
                facts.cgroup = crate::host::CgroupFacts::none(&reason, "see `skillbox doctor`");
                None
            }
            Err(_) => {
                facts.cgroup = Layout::facts(&layout);
                None
            }
        };
        if facts.privileged {
            // The ids change around each clone, and the capabilities stay.
            let _ = set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP);
            let _ = rustix::thread::set_thread_groups(&[]);
        }
        let stage = if facts.namespaces.is_available() {
            match Stage::set_up(&facts) {
                Ok(stage) => Some(stage),
                Err(error) => {
                    facts.namespaces = Availability::missing(
                        format!("namespaces and mounts cannot be made: {error}"),
                        "see `skillbox doctor`",
                    );
                    None
                }
            }
        } else {
            None
        };
        Self { facts, stage, groups }
    }

    fn serve(&mut self, message: &[u8], mut descriptors: Vec<OwnedFd>) -> Option<Running> {
        if descriptors.is_empty() {
            return None;
        }
        let request = match decode(message) {
            Ok(Request::LaunchFromFile { length }) if descriptors.len() > 1 => {
                let file = descriptors.remove(1);
                from_file(&file, length)
            }
            request => request,
        };
        match request {
            Ok(Request::CreateWorkspace { bytes, inodes }) => {
                match self.create_workspace(bytes, inodes) {
                    Ok(workspace) => tell(&descriptors[0], &Answer::Workspace, &[workspace.as_fd()]),
                    Err(error) => tell(
                        &descriptors[0],
                        &Answer::Failed(plain_failure("make a workspace", &error)),
                        &[],
                    ),
                }
                None
            }
            Ok(Request::Launch(orders)) => self.serve_launch(&orders, descriptors),
            Ok(Request::LaunchFromFile { .. } | Request::Begin(_)) => {
                let error = io::Error::from_raw_os_error(libc::EBADMSG);
                tell(
                    &descriptors[0],
                    &Answer::Failed(plain_failure("read the request", &error)),
                    &[],
                );
                None
            }
            Err(error) => {
                tell(
                    &descriptors[0],
                    &Answer::Failed(plain_failure("read the request", &error)),
                    &[],
                );
                None
            }
        }
    }

    fn serve_launch(&mut self, orders: &Orders<'_>, descriptors: Vec<OwnedFd>) -> Option<Running> {
        let answers = descriptors[0].try_clone().ok()?;
        let Some(descriptors) = Descriptors::from_message(descriptors, orders) else {
            let error = io::Error::from_raw_os_error(libc::EBADMSG);
            tell(
                &answers,
                &Answer::Failed(plain_failure("count the descriptors", &error)),
                &[],
            );
            return None;
        };
        match launch(self, orders, descriptors) {
            Ok(Launched {
                pid,
                pidfd,
                answers,
                group,
                degraded,
            }) => {
                for failure in degraded {
                    tell(&answers, &Answer::Degraded(failure), &[]);
                }
                let clock = group.as_ref().and_then(Group::cpu_clock);
                let mut given = vec![pidfd.as_fd()];
                given.extend(clock.as_ref().map(AsFd::as_fd));
                tell(&answers, &Answer::Launched { pid }, &given);
                Some(Running {
                    pid,
                    pidfd,
                    answers,
                    group,
                })
            }
            Err(failure) => {
                tell(&answers, &Answer::Failed(failure), &[]);
                None
            }
        }
    }

    fn create_workspace(&self, bytes: u64, inodes: u64) -> io::Result<OwnedFd> {
        let script = self.facts.script;
        mount::new_filesystem(
            "tmpfs",
            &[
                FsOption::Text("size", &bytes.to_string()),
                FsOption::Text("nr_inodes", &inodes.to_string()),
                FsOption::Text("mode", "0755"),
                FsOption::Text("uid", &script.uid.to_string()),
                FsOption::Text("gid", &script.gid.to_string()),
            ],
            NO_SUID | NO_DEVICES,
        )
    }
}

impl Running {
    fn kill(&self) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Waits for the end, tells what the run used, and lets go of its control group.
    fn bury(self) {
        let mut reaped = Reaped::default();
        if let Ok(Some(ended)) = reap(Some(self.pid), Patience::Wait) {
            reaped.cpu = ended.cpu;
            reaped.peak_memory = Some(ended.peak_bytes);
        }
        if let Some(group) = &self.group {
            group.account(&mut reaped);
        }
        tell(&self.answers, &Answer::Reaped(reaped), &[]);
    }
}

fn plain_failure(what: &str, error: &io::Error) -> StepFailure {
    StepFailure {
        step: 0,
        what: what.to_owned(),
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Answers go to a server that may be gone by now; its sandbox then ends by itself.
fn tell(to: &OwnedFd, what: &Answer, descriptors: &[BorrowedFd<'_>]) {
    let _: io::Result<()> = answer(to.as_fd(), what, descriptors);
}
