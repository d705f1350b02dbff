//! The hints for limits: which limit, how much was used, and how to raise it.

use std::time::Duration;

use skillbox_model::ByteSize;

use super::finished_run::FinishedRun;

const SIGXFSZ: i32 = 25;
const SHELL_EXIT_CODE_SIGXFSZ: i32 = 128 + SIGXFSZ;

pub(super) fn wall(run: &FinishedRun<'_>) -> String {
    let limit = seconds(run.limits.wall);
    if run.limits.wall < run.max_wall {
        format!(
            "the run was stopped at its time limit of {limit}; raise it with `--timeout SECONDS` (`timeout` in a request), \
             at most {} in profile `{}`",
            seconds(run.max_wall),
            run.profile
        )
    } else {
        format!(
            "the run was stopped at {limit}, the longest time that profile `{}` allows; {}",
            run.profile,
            raise(run, "limits.wall_max")
        )
    }
}

pub(super) fn memory(run: &FinishedRun<'_>) -> String {
    let peak = run.usage.peak_memory_bytes.map_or_else(String::new, |bytes| {
        format!(" (peak {}, files in the workspace included)", ByteSize(bytes))
    });
    format!(
        "the processes of the run reached the memory limit of {}{peak}; process less at a time, or {}",
        run.limits.memory,
        raise(run, "limits.memory")
    )
}

pub(super) fn cpu(run: &FinishedRun<'_>) -> String {
    format!(
        "the run used {} of CPU time, and its limit is {}; {}",
        seconds(Duration::from_millis(run.usage.cpu_ms)),
        seconds(run.limits.cpu),
        raise(run, "limits.cpu")
    )
}

pub(super) fn processes(run: &FinishedRun<'_>) -> String {
    format!(
        "the run used all of its limit of {} processes and threads; start fewer at a time, or {}",
        run.limits.pids,
        raise(run, "limits.pids")
    )
}

pub(super) fn output(run: &FinishedRun<'_>) -> String {
    format!(
        "the run wrote {} of output and was stopped at the limit of {}; write large results to `out/`, or {}",
        ByteSize(run.output_bytes),
        run.limits.output,
        raise(run, "limits.output")
    )
}

/// The workspace was full, or a file reached the size limit. The kernel reports both as a failed write.
pub(super) fn disk(run: &FinishedRun<'_>, stderr: &str) -> String {
    let is_file_limit = run.outcome.signal == Some(SIGXFSZ)
        || run.outcome.exit_code == Some(SHELL_EXIT_CODE_SIGXFSZ)
        || stderr.contains("File too large");
    if is_file_limit { file(run) } else { workspace(run) }
}

pub(super) fn file(run: &FinishedRun<'_>) -> String {
    format!(
        "a file reached the limit of {} for one file; write smaller files, or {}",
        run.limits.file,
        raise(run, "limits.file")
    )
}

pub(super) fn workspace(run: &FinishedRun<'_>) -> String {
    format!(
        "the workspace reached its limit of {} or {} files; remove temporary files, or {} and `limits.workspace_inodes`",
        run.limits.workspace,
        run.limits.workspace_inodes,
        raise(run, "limits.workspace")
    )
}

pub(super) fn open_files(run: &FinishedRun<'_>) -> String {
    format!(
        "a process reached the limit of {} open files; close files after use, or {}",
        run.limits.open_files,
        raise(run, "limits.open_files")
    )
}

/// How to raise a limit that a request cannot raise.
fn raise(run: &FinishedRun<'_>, key: &str) -> String {
    format!("set `{key}` in a profile that extends `{}`", run.profile)
}

/// A duration in seconds, with a fraction only if it has one.
fn seconds(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{} s", duration.as_secs()),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}
