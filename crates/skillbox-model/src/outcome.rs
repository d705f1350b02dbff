//! The outcome of a run. A failing script is an outcome, not an error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ExitCode;

/// What ended the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The command exited by itself.
    Exit,
    /// A signal that skillbox did not send ended the command.
    Signal,
    /// The wall-clock deadline passed.
    Timeout,
    /// The memory limit was reached.
    Memory,
    /// The CPU time limit was reached.
    Cpu,
    /// The command failed at the limit of processes and threads.
    Pids,
    /// The workspace was full.
    Disk,
    /// The command wrote more output than the profile allows.
    Output,
    /// The caller cancelled the run.
    Cancelled,
}

impl EndedBy {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Signal => "signal",
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Pids => "pids",
            Self::Disk => "disk",
            Self::Output => "output",
            Self::Cancelled => "cancelled",
        }
    }
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOutcome {
    /// What ended the run.
    pub ended_by: EndedBy,
    /// The exit code of the command; `None` if a signal, a limit or a timeout ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended the command, whether skillbox sent it or not.
    pub signal: Option<i32>,
}

impl RunOutcome {
    /// The exit code of `skillbox run` for this outcome.
    pub fn process_exit_code(&self) -> u8 {
        match (self.ended_by, self.exit_code, self.signal) {
            (EndedBy::Timeout, ..) => ExitCode::TIMED_OUT,
            (_, Some(code), _) => u8::try_from(code & 0xff).unwrap_or(ExitCode::REFUSED),
            (EndedBy::Signal, None, Some(signal)) => {
                ExitCode::SIGNAL_BASE.saturating_add(u8::try_from(signal).unwrap_or(0))
            }
            _ => ExitCode::LIMIT,
        }
    }
}

/// The resources that a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Usage")]
pub struct ResourceUsage {
    /// CPU time of all processes in the sandbox, in milliseconds.
    pub cpu_ms: u64,
    /// Peak memory use, if the host can measure it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_follow_the_documented_table() {
        let outcome = |ended_by, exit_code, signal| {
            RunOutcome {
                ended_by,
                exit_code,
                signal,
            }
            .process_exit_code()
        };
        assert_eq!(outcome(EndedBy::Exit, Some(0), None), 0);
        assert_eq!(outcome(EndedBy::Exit, Some(127), None), 127);
        assert_eq!(outcome(EndedBy::Timeout, None, Some(9)), 124);
        assert_eq!(outcome(EndedBy::Signal, None, Some(11)), 139);
        assert_eq!(outcome(EndedBy::Memory, None, Some(9)), 137);
        assert_eq!(outcome(EndedBy::Cancelled, None, None), 137);
        // A script that fails at a limit and then exits keeps its exit code.
        assert_eq!(outcome(EndedBy::Pids, Some(1), None), 1);
    }
}
