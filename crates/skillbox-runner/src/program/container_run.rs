//! The run of a container, from the first message to the last.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::DumpableBehavior;
use skillbox_runner::{ToExecutor, ToRunner};

use super::cgroup_files::CgroupFiles;
use super::connection::Connection;
use super::sent_skills::SentSkills;
use super::workspace::WORKSPACE;
use super::{facts, receive_job, send_outputs, supervise};

/// Serves one run for the executor.
pub fn run_container() -> io::Result<()> {
    // Moves the standard streams away from the numbers of the command's streams, before anything else is opened.
    let mut connection = Connection::take_standard_streams()?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let cgroup = CgroupFiles::open();
    // Opened now, because the file belongs to root once this process is undumpable.
    let oom_score_file = File::options().write(true).open("/proc/self/oom_score_adj").ok();
    // The command has the same user and must not trace this process.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    connection.send(&ToExecutor::Ready(Box::new(facts::gather_container_facts(&cgroup))))?;

    let workspace: OwnedFd = File::open(WORKSPACE)?.into();
    let job = match receive_job::receive_job(&mut connection, &workspace) {
        Ok(job) => job,
        Err(receive_job::ReceiveError::Connection(error)) => return Err(error),
        Err(receive_job::ReceiveError::Refused {
            reason,
            is_workspace_full,
        }) => return refuse(&mut connection, reason, is_workspace_full),
    };
    let skills = SentSkills::record(&job, &workspace)?;
    let command = match supervise::start_command(&job, oom_score_file) {
        Ok(command) => command,
        Err(error) => {
            return refuse(
                &mut connection,
                format!("the command cannot be started: {error}"),
                false,
            );
        }
    };
    let end = command.supervise(&mut connection, &job, &cgroup, &skills)?;
    connection.send(&ToExecutor::Ended(end))?;
    send_outputs::send_outputs(&mut connection, &workspace, &skills)?;
    wait_for_close(&mut connection)
}

fn refuse(connection: &mut Connection, reason: String, is_workspace_full: bool) -> io::Result<()> {
    connection.send(&ToExecutor::Refused {
        reason,
        is_workspace_full,
    })?;
    wait_for_close(connection)
}

fn wait_for_close(connection: &mut Connection) -> io::Result<()> {
    loop {
        if let ToRunner::Close = connection.next_message()? {
            return Ok(());
        }
    }
}
