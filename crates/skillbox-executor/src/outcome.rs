//! Decides what ended a run: a pure function of the evidence.

use skillbox_model::{EndedBy, RunOutcome};

/// The reason why skillbox killed the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillReason {
    Deadline,
    Cancelled,
    Cpu,
    Disk,
}

/// Everything that is known after the last process has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunEvidence {
    /// Set if skillbox killed the run.
    pub kill_reason: Option<KillReason>,
    /// The exit code of the command.
    pub exit_code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// The kernel killed a process of the sandbox because of the memory limit.
    pub memory_limit_hit: bool,
    /// The kernel refused to create a process because of the process limit.
    pub pids_limit_hit: bool,
    /// The workspace has no space left.
    pub workspace_full: bool,
}

const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;
/// The exit code of a shell whose last command was killed by SIGKILL.
const SHELL_EXIT_CODE_SIGKILL: i32 = 128 + SIGKILL;
const SHELL_EXIT_CODE_SIGXFSZ: i32 = 128 + SIGXFSZ;

/// Decides what ended the run, and which warnings the caller gets.
pub(crate) fn decide_outcome(evidence: &RunEvidence) -> (RunOutcome, Vec<String>) {
    let mut warnings = Vec::new();
    let ended_by = match evidence.kill_reason {
        Some(KillReason::Deadline) => EndedBy::Timeout,
        Some(KillReason::Cancelled) => EndedBy::Cancelled,
        Some(KillReason::Cpu) => EndedBy::Cpu,
        Some(KillReason::Disk) => EndedBy::Disk,
        None => infer_cause(evidence),
    };
    let is_memory_or_cpu_limit = matches!(ended_by, EndedBy::Memory | EndedBy::Cpu);
    if evidence.memory_limit_hit && ended_by != EndedBy::Memory {
        warnings.push("the memory limit was reached: a process of the run was killed".to_owned());
    }
    if evidence.pids_limit_hit && ended_by != EndedBy::Pids {
        warnings.push("the process limit was reached".to_owned());
    }
    if evidence.workspace_full && ended_by != EndedBy::Disk {
        warnings.push("the workspace was full when the run ended".to_owned());
    }
    let ended_by_itself = evidence.kill_reason.is_none() && !is_memory_or_cpu_limit;
    let outcome = RunOutcome {
        ended_by,
        exit_code: if ended_by_itself { evidence.exit_code } else { None },
        signal: evidence.signal.or(if ended_by_itself { None } else { Some(SIGKILL) }),
    };
    (outcome, warnings)
}

/// Infers the cause if skillbox did not kill the run. A limit counts as the cause only if the command failed in the way
/// that this limit makes commands fail.
fn infer_cause(evidence: &RunEvidence) -> EndedBy {
    let is_sigkill = evidence.signal == Some(SIGKILL) || evidence.exit_code == Some(SHELL_EXIT_CODE_SIGKILL);
    let has_failed = evidence.signal.is_some() || evidence.exit_code != Some(0);
    let is_file_too_large = evidence.signal == Some(SIGXFSZ) || evidence.exit_code == Some(SHELL_EXIT_CODE_SIGXFSZ);
    if evidence.memory_limit_hit && is_sigkill {
        EndedBy::Memory
    } else if evidence.signal == Some(SIGXCPU) {
        EndedBy::Cpu
    } else if is_file_too_large || (evidence.workspace_full && has_failed) {
        EndedBy::Disk
    } else if evidence.pids_limit_hit && has_failed {
        EndedBy::Pids
    } else if evidence.signal.is_some() {
        EndedBy::Signal
    } else {
        EndedBy::Exit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(code: i32) -> RunEvidence {
        RunEvidence {
            exit_code: Some(code),
            ..RunEvidence::default()
        }
    }

    fn signal(number: i32) -> RunEvidence {
        RunEvidence {
            signal: Some(number),
            ..RunEvidence::default()
        }
    }

    #[test]
    fn each_cause_is_recognised() {
        let check = |evidence: RunEvidence, ended_by, exit_code, signal| {
            let (outcome, _) = decide_outcome(&evidence);
            assert_eq!(
                (outcome.ended_by, outcome.exit_code, outcome.signal),
                (ended_by, exit_code, signal),
                "{evidence:?}"
            );
        };
        check(exit(0), EndedBy::Exit, Some(0), None);
        check(exit(137), EndedBy::Exit, Some(137), None);
        check(signal(9), EndedBy::Signal, None, Some(9));
        check(signal(31), EndedBy::Signal, None, Some(31));
        check(
            RunEvidence {
                memory_limit_hit: true,
                ..signal(9)
            },
            EndedBy::Memory,
            None,
            Some(9),
        );
        check(
            RunEvidence {
                memory_limit_hit: true,
                ..exit(137)
            },
            EndedBy::Memory,
            None,
            Some(9),
        );
        check(
            RunEvidence {
                memory_limit_hit: true,
                ..exit(0)
            },
            EndedBy::Exit,
            Some(0),
            None,
        );
        check(signal(24), EndedBy::Cpu, None, Some(24));
        check(
            RunEvidence {
                pids_limit_hit: true,
                ..exit(254)
            },
            EndedBy::Pids,
            Some(254),
            None,
        );
        check(
            RunEvidence {
                pids_limit_hit: true,
                ..exit(0)
            },
            EndedBy::Exit,
            Some(0),
            None,
        );
        check(
            RunEvidence {
                workspace_full: true,
                ..exit(1)
            },
            EndedBy::Disk,
            Some(1),
            None,
        );
        check(signal(25), EndedBy::Disk, None, Some(25));
        check(
            RunEvidence {
                kill_reason: Some(KillReason::Deadline),
                ..signal(9)
            },
            EndedBy::Timeout,
            None,
            Some(9),
        );
        check(
            RunEvidence {
                kill_reason: Some(KillReason::Cancelled),
                ..exit(0)
            },
            EndedBy::Cancelled,
            None,
            Some(9),
        );
        check(
            RunEvidence {
                kill_reason: Some(KillReason::Cpu),
                ..signal(9)
            },
            EndedBy::Cpu,
            None,
            Some(9),
        );
    }

    #[test]
    fn a_limit_that_was_not_the_cause_is_a_warning() {
        let (_, warnings) = decide_outcome(&RunEvidence {
            memory_limit_hit: true,
            pids_limit_hit: true,
            workspace_full: true,
            ..exit(0)
        });
        assert_eq!(warnings.len(), 3);
        let (_, warnings) = decide_outcome(&RunEvidence {
            memory_limit_hit: true,
            ..signal(9)
        });
        assert!(warnings.is_empty());
    }
}
