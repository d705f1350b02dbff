//! Starting programs from tests. Every program has a deadline, and this process adopts the orphans of its children.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, waitpid};

use super::machine_load::is_overdue;

/// Children that a test waits for itself; any other child of this process is an orphan of one of them.
static TRACKED_CHILDREN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// How long the pipes of an ended program may stay open on an idle machine.
const PIPE_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The exit status and the output of a program.
#[derive(Debug)]
pub struct ProcessOutput {
    /// Exit code or signal.
    pub status: ExitStatus,
    /// Bytes on standard output.
    pub stdout: Vec<u8>,
    /// Bytes on standard error.
    pub stderr: Vec<u8>,
    /// Time from start to end.
    pub wall: Duration,
    /// The peak memory that was observed, in bytes.
    pub peak_memory: u64,
}

/// A program to start. Tests are the one place besides the executor that may.
#[expect(
    clippy::disallowed_methods,
    reason = "a test starts the program under test and its controls"
)]
pub fn program(path: impl AsRef<OsStr>) -> Command {
    Command::new(path)
}

/// Starts a program. The caller waits for it with [`wait_with_deadline`] or kills it with [`kill_and_reap`].
pub fn spawn_tracked(command: &mut Command) -> Child {
    adopt_orphans();
    let mut tracked = TRACKED_CHILDREN.lock().unwrap();
    let child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    tracked.insert(child.id());
    child
}

/// Runs a program to its end. Past the deadline the program is killed and the test fails.
pub fn run_to_completion(command: &mut Command, stdin: &[u8], deadline: Duration) -> ProcessOutput {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let begin = Instant::now();
    let mut child = spawn_tracked(command);
    let description = format!("{command:?}");
    let mut pipe = child.stdin.take().unwrap();
    let bytes = stdin.to_vec();
    // The program may leave its input unread.
    let writer = thread::spawn(move || drop(pipe.write_all(&bytes)));
    let mut out = child.stdout.take().unwrap();
    let mut err = child.stderr.take().unwrap();
    let stdout = thread::spawn(move || read_all(&mut out));
    let stderr = thread::spawn(move || read_all(&mut err));
    let (status, wall, peak_memory) = wait_with_deadline(&mut child, begin, deadline).unwrap_or_else(|| {
        panic!("{description} did not end within {deadline:?}");
    });
    // A leaked process that holds the pipes open must not hang the test.
    let ended = Instant::now();
    while !(stdout.is_finished() && stderr.is_finished()) {
        assert!(
            !is_overdue(ended, PIPE_CLOSE_TIMEOUT),
            "{description} ended, but another process still holds its output"
        );
        thread::sleep(Duration::from_millis(1));
    }
    drop(writer);
    ProcessOutput {
        status,
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
        wall,
        peak_memory,
    }
}

/// Waits for the end of a child. Returns its status, wall time and peak memory, or `None` when it was killed at the
/// deadline.
pub fn wait_with_deadline(
    child: &mut Child,
    begin: Instant,
    deadline: Duration,
) -> Option<(ExitStatus, Duration, u64)> {
    let mut peak_memory = 0;
    loop {
        peak_memory = peak_memory.max(peak_memory_of(child.id()));
        if let Some(status) = child.try_wait().expect("a child of this process") {
            TRACKED_CHILDREN.lock().unwrap().remove(&child.id());
            return Some((status, begin.elapsed(), peak_memory));
        }
        if begin.elapsed() > deadline {
            kill_and_reap(child);
            return None;
        }
        thread::sleep(Duration::from_millis(if begin.elapsed().as_millis() < 200 {
            1
        } else {
            5
        }));
    }
}

/// Kills a child that was started and not waited for.
pub fn kill_and_reap(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
    TRACKED_CHILDREN.lock().unwrap().remove(&child.id());
}

fn read_all(from: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).expect("a pipe");
    bytes
}

fn peak_memory_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Makes this process the parent of every descendant that loses its own.
fn adopt_orphans() {
    static ONCE: LazyLock<()> = LazyLock::new(|| {
        set_child_subreaper(Some(rustix::process::getpid())).expect("a subreaper");
    });
    LazyLock::force(&ONCE);
}

/// Children that no test started: the program under test left them behind. Dead ones are reaped and not returned.
pub fn orphans() -> Vec<i32> {
    // The lock keeps a child that is just being started from being taken for an orphan.
    let tracked = TRACKED_CHILDREN.lock().unwrap();
    let own = i64::from(std::process::id());
    let mut found = Vec::new();
    for (pid, parent, state) in all_processes() {
        if parent != own || tracked.contains(&u32::try_from(pid).unwrap_or(0)) {
            continue;
        }
        if state == 'Z' {
            let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
        } else {
            found.push(pid);
        }
    }
    found
}

/// Reaps the dead orphans.
pub fn reap_orphans() {
    orphans();
}

/// Kills an orphan that a failing test found, so that it does not disturb the next test.
pub fn kill_orphan(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
        let _ = waitpid(Some(pid), WaitOptions::empty());
    }
}

/// Every process that /proc shows: pid, parent, state.
pub fn all_processes() -> Vec<(i32, i64, char)> {
    let entries = std::fs::read_dir("/proc").expect("a /proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may contain anything, parentheses too.
        let rest = stat.rsplit_once(") ")?.1;
        let mut fields = rest.split(' ');
        let state = fields.next()?.chars().next()?;
        Some((pid, fields.next()?.parse().ok()?, state))
    })
    .collect()
}

/// Pids of the processes with this word among their arguments, except this process.
pub fn pids_with_argument(word: &str) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap();
    let has_argument = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|argument| argument == word.as_bytes())
    };
    let all = all_processes().into_iter().map(|(pid, ..)| pid);
    all.filter(|pid| *pid != own && has_argument(pid)).collect()
}
