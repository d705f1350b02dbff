//! One run from greeting to farewell.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::DumpableBehavior;
use skillbox_runner::{ToExecutor, ToRunner};

use super::line::Line;
use super::meters::Meters;
use super::{facts, receive, send, supervise};

/// Where everything of a run lies.
pub(super) const WORKSPACE: &str = "/workspace";

/// Talks to the executor until there is nothing left to say.
pub fn converse() -> io::Result<()> {
    // Out of the way of the command's streams, before anything else is opened.
    let mut line = Line::take_standard_streams()?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let meters = Meters::open();
    // The file belongs to root once we cannot be looked into.
    let oom = File::options().write(true).open("/proc/self/oom_score_adj").ok();
    // The command is of the same user: it must not reach into us.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    line.tell(&ToExecutor::Ready(Box::new(facts::gather(&meters))))?;

    let workspace: OwnedFd = File::open(WORKSPACE)?.into();
    let ready = match receive::receive(&mut line, &workspace) {
        Ok(ready) => ready,
        Err(receive::Failure::Line(error)) => return Err(error),
        Err(receive::Failure::Refused { reason, is_full }) => return refuse(&mut line, reason, is_full),
    };
    let job = match supervise::start(&ready, oom) {
        Ok(started) => started,
        Err(error) => return refuse(&mut line, format!("the command cannot be started: {error}"), false),
    };
    let end = job.supervise(&mut line, &ready, &meters)?;
    line.tell(&ToExecutor::Ended(end))?;
    send::send(&mut line, &workspace)?;
    wait_for_farewell(&mut line)
}

fn refuse(line: &mut Line, reason: String, is_full: bool) -> io::Result<()> {
    line.tell(&ToExecutor::Refused { reason, is_full })?;
    wait_for_farewell(line)
}

fn wait_for_farewell(line: &mut Line) -> io::Result<()> {
    loop {
        if let ToRunner::Close = line.next_message()? {
            return Ok(());
        }
    }
}
