//! The identity of a process, which distinguishes it from earlier and later processes with the same pid.

use std::fs;

/// Whether the process behind an identity still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    /// It runs.
    Alive,
    /// It has ended.
    Dead,
    /// It belongs to another host, boot or pid namespace.
    Unknown,
}

/// Returns the identity of this process: boot id, pid namespace, pid and start time.
pub(crate) fn current_process_identity() -> String {
    let pid = std::process::id();
    let start = start_time(pid).unwrap_or_default();
    format!("{}/{pid}/{start}", boot_and_pid_namespace())
}

/// Looks up the process behind an identity.
pub(crate) fn process_state(identity: &str) -> ProcessState {
    let mut parts = identity.rsplitn(3, '/');
    let (Some(start), Some(pid), Some(boot_and_namespace)) = (parts.next(), parts.next(), parts.next()) else {
        return ProcessState::Unknown;
    };
    if boot_and_namespace != boot_and_pid_namespace() {
        return ProcessState::Unknown;
    }
    let Ok(pid) = pid.parse() else {
        return ProcessState::Unknown;
    };
    match start_time(pid) {
        Some(found) if found == start => ProcessState::Alive,
        _ => ProcessState::Dead,
    }
}

fn boot_and_pid_namespace() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{}/{}", boot.trim(), namespace.display())
}

/// The start time of a process in clock ticks since boot; none if it does not exist or is a zombie (proc_pid_stat(5)).
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name in parentheses may contain any character, spaces and parentheses included.
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    let start = fields.nth(18)?.to_owned();
    (!has_ended).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_and_ended_processes_are_distinguished() {
        let own = current_process_identity();
        assert_eq!(process_state(&own), ProcessState::Alive);
        let (head, start) = own.rsplit_once('/').unwrap();
        let other_start = format!("{head}/{}", start.parse::<u64>().unwrap() + 1);
        assert_eq!(process_state(&other_start), ProcessState::Dead);
        assert_eq!(process_state("another-boot/pid:[1]/1/1"), ProcessState::Unknown);
        assert_eq!(process_state("nonsense"), ProcessState::Unknown);
    }
}
