//! How a run ended. A failing script is an outcome, never an error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ExitCode;

/// What ended the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The command ended by itself.
    Exit,
    /// A signal that was not ours ended it.
    Signal,
    /// The wall-clock deadline passed.
    Timeout,
    /// The memory limit was hit.
    Memory,
    /// The CPU time was used up.
    Cpu,
    /// The command failed at the limit of processes.
    Pids,
    /// The workspace was full.
    Disk,
    /// More output than the profile tolerates.
    Output,
    /// The caller cancelled.
    Cancelled,
}

/// The end of the command itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What ended the run.
    pub ended_by: EndedBy,
    /// The command's own exit code; none when a signal, a limit or a deadline ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it, ours or not.
    pub signal: Option<i32>,
}

impl Outcome {
    /// The exit code that the command line gives for this outcome.
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

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// CPU time of everything in the sandbox, in milliseconds.
    pub cpu_ms: u64,
    /// The most memory in use at once, where the host can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_follow_the_documented_table() {
        let outcome = |ended_by, exit_code, signal| {
            Outcome {
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
        // A script that fails by itself at a limit keeps its own code.
        assert_eq!(outcome(EndedBy::Pids, Some(1), None), 1);
    }
}
