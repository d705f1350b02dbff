//! Starting programs from tests: every one has a deadline, and orphans come to us instead of being lost.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, waitpid};

/// Children that a test waits for itself; any other child of this process is an orphan of one of them.
static AWAITED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// How a program ended and what it said.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it said.
    pub stderr: Vec<u8>,
    /// From start to end.
    pub wall: Duration,
    /// The most memory it was seen to hold, in bytes.
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

/// Starts a program that is waited for by [`finish`] or killed by the caller.
pub fn start(command: &mut Command) -> Child {
    adopt_orphans();
    let mut awaited = AWAITED.lock().unwrap();
    let child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    awaited.insert(child.id());
    child
}

/// Runs a program to its end; past the deadline it is killed and the test fails.
pub fn run_to_end(command: &mut Command, stdin: &[u8], deadline: Duration) -> Finished {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let begin = Instant::now();
    let mut child = start(command);
    let told = format!("{command:?}");
    let mut pipe = child.stdin.take().unwrap();
    let bytes = stdin.to_vec();
    // The program may leave its input unread.
    let writing = thread::spawn(move || drop(pipe.write_all(&bytes)));
    let mut out = child.stdout.take().unwrap();
    let mut err = child.stderr.take().unwrap();
    let stdout = thread::spawn(move || read_all(&mut out));
    let stderr = thread::spawn(move || read_all(&mut err));
    let (status, wall, peak_memory) = finish(&mut child, begin, deadline).unwrap_or_else(|| {
        panic!("{told} did not end within {deadline:?}");
    });
    // A leaked holder of the pipes would keep them open: that, too, must not hang the test.
    let patience = Instant::now() + Duration::from_secs(2);
    while !(stdout.is_finished() && stderr.is_finished()) {
        assert!(
            Instant::now() < patience,
            "{told} ended, but somebody still holds its output"
        );
        thread::sleep(Duration::from_millis(1));
    }
    drop(writing);
    Finished {
        status,
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
        wall,
        peak_memory,
    }
}

/// Waits for the end of a child; `None` when it had to be killed at the deadline.
pub fn finish(child: &mut Child, begin: Instant, deadline: Duration) -> Option<(ExitStatus, Duration, u64)> {
    let mut peak_memory = 0;
    loop {
        peak_memory = peak_memory.max(peak_memory_of(child.id()));
        if let Some(status) = child.try_wait().expect("a child of ours") {
            AWAITED.lock().unwrap().remove(&child.id());
            return Some((status, begin.elapsed(), peak_memory));
        }
        if begin.elapsed() > deadline {
            reap(child);
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
pub fn reap(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
    AWAITED.lock().unwrap().remove(&child.id());
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

/// From now on whatever loses its parent below us becomes our child.
fn adopt_orphans() {
    static ONCE: LazyLock<()> = LazyLock::new(|| {
        set_child_subreaper(Some(rustix::process::getpid())).expect("a subreaper");
    });
    LazyLock::force(&ONCE);
}

/// Children of ours that no test started: the program under test left them behind. The dead ones are reaped first.
pub fn orphans() -> Vec<i32> {
    // Held while looking, so that a child that is being started is not taken for an orphan.
    let awaited = AWAITED.lock().unwrap();
    let own = i64::from(std::process::id());
    let mut found = Vec::new();
    for (pid, parent, state) in all_processes() {
        if parent != own || awaited.contains(&u32::try_from(pid).unwrap_or(0)) {
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

/// Takes leave of the dead among them.
pub fn reap_orphans() {
    orphans();
}

/// Ends an orphan that a failing test has found, so that it does not disturb the next one.
pub fn end(pid: i32) {
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
