//! What ended a run: one decision from all the evidence. Pure.

use skillbox_model::{EndedBy, Outcome};

use super::supervise::Killed;

/// What is known when everything is dead.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    /// Why we killed it, where we did.
    pub killed: Option<Killed>,
    /// The command's own exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// The kernel killed something in the sandbox for its memory.
    pub memory_hit: bool,
    /// The kernel refused a process for their number.
    pub pids_hit: bool,
    /// The workspace has no room left.
    pub workspace_full: bool,
}

const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;
/// How a shell tells that its last command was killed.
const SHELL_KILLED: i32 = 128 + SIGKILL;
const SHELL_XFSZ: i32 = 128 + SIGXFSZ;

/// Decides what ended the run, and what the caller should be told beside it.
pub(crate) fn decide(seen: &Evidence) -> (Outcome, Vec<String>) {
    let mut warnings = Vec::new();
    let ended_by = match seen.killed {
        Some(Killed::Deadline) => EndedBy::Timeout,
        Some(Killed::Cancelled) => EndedBy::Cancelled,
        Some(Killed::Cpu) => EndedBy::Cpu,
        Some(Killed::Disk) => EndedBy::Disk,
        None => by_itself(seen),
    };
    let limit = matches!(ended_by, EndedBy::Memory | EndedBy::Cpu);
    if seen.memory_hit && ended_by != EndedBy::Memory {
        warnings.push("the memory limit was hit: a process of the run was killed".to_owned());
    }
    if seen.pids_hit && ended_by != EndedBy::Pids {
        warnings.push("the limit of processes was hit".to_owned());
    }
    if seen.workspace_full && ended_by != EndedBy::Disk {
        warnings.push("the workspace was full when the run ended".to_owned());
    }
    let own_end = seen.killed.is_none() && !limit;
    let outcome = Outcome {
        ended_by,
        exit_code: if own_end { seen.exit_code } else { None },
        signal: seen.signal.or(if own_end { None } else { Some(SIGKILL) }),
    };
    (outcome, warnings)
}

/// A limit is the cause only where the command failed in the way that the limit makes it fail.
fn by_itself(seen: &Evidence) -> EndedBy {
    let was_killed = seen.signal == Some(SIGKILL) || seen.exit_code == Some(SHELL_KILLED);
    let failed = seen.signal.is_some() || seen.exit_code != Some(0);
    let too_large = seen.signal == Some(SIGXFSZ) || seen.exit_code == Some(SHELL_XFSZ);
    if seen.memory_hit && was_killed {
        EndedBy::Memory
    } else if seen.signal == Some(SIGXCPU) {
        EndedBy::Cpu
    } else if too_large || (seen.workspace_full && failed) {
        EndedBy::Disk
    } else if seen.pids_hit && failed {
        EndedBy::Pids
    } else if seen.signal.is_some() {
        EndedBy::Signal
    } else {
        EndedBy::Exit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(code: i32) -> Evidence {
        Evidence {
            exit_code: Some(code),
            ..Evidence::default()
        }
    }

    fn signal(number: i32) -> Evidence {
        Evidence {
            signal: Some(number),
            ..Evidence::default()
        }
    }

    #[test]
    fn causes_are_told_apart() {
        let check = |seen: Evidence, ended_by, exit_code, signal| {
            let (outcome, _) = decide(&seen);
            assert_eq!(
                (outcome.ended_by, outcome.exit_code, outcome.signal),
                (ended_by, exit_code, signal),
                "{seen:?}"
            );
        };
        check(exit(0), EndedBy::Exit, Some(0), None);
        check(exit(137), EndedBy::Exit, Some(137), None);
        check(signal(9), EndedBy::Signal, None, Some(9));
        check(signal(31), EndedBy::Signal, None, Some(31));
        check(
            Evidence {
                memory_hit: true,
                ..signal(9)
            },
            EndedBy::Memory,
            None,
            Some(9),
        );
        check(
            Evidence {
                memory_hit: true,
                ..exit(137)
            },
            EndedBy::Memory,
            None,
            Some(9),
        );
        check(
            Evidence {
                memory_hit: true,
                ..exit(0)
            },
            EndedBy::Exit,
            Some(0),
            None,
        );
        check(signal(24), EndedBy::Cpu, None, Some(24));
        check(
            Evidence {
                pids_hit: true,
                ..exit(254)
            },
            EndedBy::Pids,
            Some(254),
            None,
        );
        check(
            Evidence {
                pids_hit: true,
                ..exit(0)
            },
            EndedBy::Exit,
            Some(0),
            None,
        );
        check(
            Evidence {
                workspace_full: true,
                ..exit(1)
            },
            EndedBy::Disk,
            Some(1),
            None,
        );
        check(signal(25), EndedBy::Disk, None, Some(25));
        check(
            Evidence {
                killed: Some(Killed::Deadline),
                ..signal(9)
            },
            EndedBy::Timeout,
            None,
            Some(9),
        );
        check(
            Evidence {
                killed: Some(Killed::Cancelled),
                ..exit(0)
            },
            EndedBy::Cancelled,
            None,
            Some(9),
        );
        check(
            Evidence {
                killed: Some(Killed::Cpu),
                ..signal(9)
            },
            EndedBy::Cpu,
            None,
            Some(9),
        );
    }

    #[test]
    fn a_limit_that_was_not_the_cause_is_a_warning() {
        let (_, warnings) = decide(&Evidence {
            memory_hit: true,
            pids_hit: true,
            workspace_full: true,
            ..exit(0)
        });
        assert_eq!(warnings.len(), 3);
        let (_, warnings) = decide(&Evidence {
            memory_hit: true,
            ..signal(9)
        });
        assert!(warnings.is_empty());
    }
}
