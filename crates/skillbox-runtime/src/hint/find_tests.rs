//! Real messages of Python 3.11, Node 20, bash 5.2, curl 7.88 and git 2.39, and the hints for them.

use std::collections::BTreeMap;
use std::time::Duration;

use skillbox_model::{ByteSize, Enforcement, ExecutorKind, LayerState, Limits, ResourceUsage, RunOutcome, Tier};

use super::*;

fn limits() -> Limits {
    Limits {
        wall: Duration::from_secs(300),
        cpu: Duration::from_secs(300),
        cpu_quota_millis: None,
        memory: ByteSize::gib(1),
        pids: 256,
        open_files: 1024,
        file: ByteSize::mib(256),
        workspace: ByteSize::mib(512),
        workspace_inodes: 100_000,
        output: ByteSize::kib(64),
    }
}

fn enforcement(state: &LayerState) -> Enforcement {
    Enforcement {
        tier: Tier::T0,
        layers: Layer::ALL.map(|layer| (layer, state.clone())).into(),
    }
}

fn exit(code: i32) -> RunOutcome {
    RunOutcome {
        ended_by: EndedBy::Exit,
        exit_code: Some(code),
        signal: None,
    }
}

fn ended(ended_by: EndedBy) -> RunOutcome {
    RunOutcome {
        ended_by,
        exit_code: None,
        signal: Some(9),
    }
}

fn hint_of(change: impl FnOnce(&mut FinishedRun<'_>)) -> Option<Hint> {
    let (limits, enforcement) = (limits(), enforcement(&LayerState::Enforced));
    let mut run = FinishedRun {
        outcome: exit(1),
        stderr: "",
        program: None,
        output_bytes: 64 << 20,
        usage: ResourceUsage {
            cpu_ms: 300_400,
            peak_memory_bytes: Some(1 << 30),
        },
        limits: &limits,
        max_wall: Duration::from_secs(3600),
        profile: "default",
        executor: ExecutorKind::Local,
        enforcement: &enforcement,
        reaches_hosts: false,
    };
    change(&mut run);
    find_hint(&run)
}

fn text_of(outcome: RunOutcome, stderr: &'static str) -> String {
    let hint = hint_of(|run| (run.outcome, run.stderr) = (outcome, stderr));
    hint.map_or_else(String::new, |hint| hint.text)
}

/// Checks that the hint for a message contains all of these words.
fn check(outcome: RunOutcome, stderr: &'static str, words: &[&str]) {
    let text = text_of(outcome, stderr);
    for word in words {
        assert!(
            text.contains(word),
            "{word:?} is not in {text:?}, the hint for:\n{stderr}"
        );
    }
    assert!(text.len() < 400 && !text.contains('\n'), "{text}");
}

const NODE_REQUIRE: &str = "node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module 'xlsx'
Require stack:
- /workspace/skills/demo/[eval]
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at Module._load (node:internal/modules/cjs/loader:1038:27)
    at Module.require (node:internal/modules/cjs/loader:1289:19) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/workspace/skills/demo/[eval]' ]
}

Node.js v20.20.2
";

const NODE_IMPORT: &str = "node:internal/modules/esm/resolve:873
  throw new ERR_MODULE_NOT_FOUND(packageName, fileURLToPath(base), null);
        ^

Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@a/b' imported from /workspace/skills/demo/a.mjs
    at packageResolve (node:internal/modules/esm/resolve:873:9) {
  code: 'ERR_MODULE_NOT_FOUND'
}

Node.js v20.20.2
";

const PYTHON_SUBPROCESS: &str = "Traceback (most recent call last):
  File \"<string>\", line 1, in <module>
  File \"/usr/lib/python3.11/subprocess.py\", line 1024, in __init__
    self._execute_child(args, executable, preexec_fn, close_fds,
  File \"/usr/lib/python3.11/subprocess.py\", line 1901, in _execute_child
    raise child_exception_type(errno_num, err_msg, err_filename)
FileNotFoundError: [Errno 2] No such file or directory: 'pandoc'
";

const NODE_SPAWN: &str = "Error: spawn pandoc ENOENT
    at ChildProcess._handle.onexit (node:internal/child_process:285:19) {
  errno: -2,
  code: 'ENOENT',
  syscall: 'spawn pandoc',
  path: 'pandoc',
  spawnargs: []
}

Node.js v20.20.2
";

const NODE_EXEC: &str = "Error: Command failed: pandoc x
/bin/sh: 1: pandoc: not found

    at genericNodeError (node:internal/errors:984:15) {
  status: 127,
";

const PIP: &str = "WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection \
broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7fca04cf2850>: Failed to establish a \
new connection: [Errno -3] Temporary failure in name resolution')': /simple/six/
ERROR: Could not find a version that satisfies the requirement six (from versions: none)
ERROR: No matching distribution found for six
";

#[test]
fn missing_modules_name_their_package() {
    let python = "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nModuleNotFoundError: No module named 'yaml'\n";
    check(exit(1), python, &["`PyYAML`", "--with PyYAML", "`requirements.txt`"]);
    check(exit(1), "/usr/bin/python3: No module named pytest\n", &["`pytest`"]);
    check(
        exit(1),
        "ModuleNotFoundError: No module named 'utils'\n",
        &["module of the skill", "PYTHONPATH"],
    );
    check(
        exit(1),
        "ModuleNotFoundError: No module named 'tkinter'\n",
        &["belongs to Python"],
    );
    check(exit(1), NODE_REQUIRE, &["`xlsx`", "`dependencies`"]);
    check(exit(1), NODE_IMPORT, &["`@a/b`"]);
    assert_eq!(
        text_of(exit(1), "Error: Cannot find module '/workspace/skills/demo/x.js'\n"),
        ""
    );
    check(
        exit(1),
        "ImportError: libGL.so.1: cannot open shared object file: No such file or directory\n",
        &["`libGL.so.1`", "filesystem.visible"],
    );
    let hint = hint_of(|run| run.stderr = python).unwrap();
    assert!(hint.is_missing_package);
}

#[test]
fn missing_programs_are_named() {
    for stderr in [
        "bash: line 1: pandoc: command not found\n",
        "sh: 1: pandoc: not found\n",
        "env: ‘pandoc’: No such file or directory\n",
        "/usr/bin/env: ‘pandoc’: No such file or directory\n",
        "bash: line 1: pandoc: cannot execute: required file not found\n",
        PYTHON_SUBPROCESS,
        NODE_SPAWN,
        NODE_EXEC,
    ] {
        check(exit(127), stderr, &["`pandoc`", "host's /usr", "filesystem.visible"]);
    }
    let without_shell = |program| {
        hint_of(|run| (run.outcome, run.program) = (exit(127), program))
            .unwrap()
            .text
    };
    assert!(without_shell(Some("pandoc")).contains("`pandoc`"));
    assert!(without_shell(None).contains("or its interpreter"));
    let in_container = hint_of(|run| {
        (run.stderr, run.executor) = ("bash: line 1: pandoc: command not found\n", ExecutorKind::Docker);
    });
    assert!(in_container.unwrap().text.contains("docker_image"));
    check(
        exit(126),
        "bash: line 1: ./run.sh: Permission denied\n",
        &["`./run.sh`", "--script"],
    );
}

#[test]
fn read_only_paths_and_denied_paths_are_named() {
    for stderr in [
        "OSError: [Errno 30] Read-only file system: 'report.md'\n",
        "bash: line 1: report.md: Read-only file system\n",
        "touch: cannot touch 'report.md': Read-only file system\n",
        "fatal: cannot mkdir report.md: Read-only file system\n",
        "Error: EROFS: read-only file system, open 'report.md'\n    at Object.openSync (node:fs:573:18) {\n  errno: -30,\n  code: 'EROFS',\n",
        "  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0Warning: Failed to open the file report.md: Read-only file system\ncurl: (23) Failure writing output to destination\n",
    ] {
        check(exit(1), stderr, &["`report.md` is read-only", "`out/`", "$WORK_DIR"]);
    }
    for stderr in [
        "PermissionError: [Errno 13] Permission denied: '/etc/x'\n",
        "bash: line 1: /etc/x: Permission denied\n",
        "Error: EACCES: permission denied, open '/etc/x'\n    at Object.openSync (node:fs:573:18)\n",
    ] {
        check(exit(1), stderr, &["`/etc/x`", "skillbox profiles show default"]);
    }
    check(
        exit(1),
        "chown: changing ownership of 'x': Operation not permitted\n",
        &["without privileges"],
    );
    check(
        exit(1),
        "OSError: [Errno 38] Function not implemented\n",
        &["syscalls.allow"],
    );
    check(
        exit(1),
        "FileNotFoundError: [Errno 2] No such file or directory: '/home/me/data.csv'\n",
        &["--input /home/me/data.csv", "inputs/"],
    );
    assert_eq!(
        text_of(
            exit(1),
            "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'\n"
        ),
        ""
    );
    assert_eq!(
        text_of(exit(1), "cat: /workspace/out/x: No such file or directory\n"),
        ""
    );
}

#[test]
fn a_missing_network_is_recognised() {
    for (stderr, host) in [
        (
            "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>\n",
            "",
        ),
        (
            "urllib.error.URLError: <urlopen error [Errno 97] Address family not supported by protocol>\n",
            "",
        ),
        ("OSError: [Errno 101] Network is unreachable\n", ""),
        (
            "  [cause]: Error: getaddrinfo EAI_AGAIN example.com\n      at x {\n    hostname: 'example.com'\n",
            "example.com",
        ),
        ("Error: getaddrinfo ENOTFOUND example.com\n", "example.com"),
        (
            "Error: connect ENETUNREACH 1.1.1.1:80 - Local (0.0.0.0:0)\n",
            "1.1.1.1:80",
        ),
        (
            "  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0curl: (6) Could not resolve host: example.com\n",
            "example.com",
        ),
        (
            "curl: (7) Failed to connect to 1.1.1.1 port 80 after 0 ms: Couldn't connect to server\n",
            "1.1.1.1",
        ),
        (
            "fatal: unable to access 'https://example.com/x.git/': Could not resolve host: example.com\n",
            "example.com",
        ),
        (
            "npm error errno EAI_AGAIN\nnpm error request to https://r.example/x failed, reason: getaddrinfo EAI_AGAIN r.example\n",
            "r.example",
        ),
        (PIP, ""),
    ] {
        check(exit(1), stderr, &["no network", host, "--input", "--profile loopback"]);
    }
    let in_loopback = hint_of(|run| (run.stderr, run.profile) = ("Network is unreachable\n", "loopback"));
    assert!(!in_loopback.unwrap().text.contains("--profile"));
    let with_hosts = hint_of(|run| (run.stderr, run.reaches_hosts) = ("Network is unreachable\n", true));
    assert!(with_hosts.is_none(), "{with_hosts:?}");
}

#[test]
fn limits_name_the_limit_the_use_and_how_to_raise_it() {
    check(ended(EndedBy::Timeout), "", &["300 s", "--timeout SECONDS", "3600 s"]);
    check(ended(EndedBy::Memory), "", &["1 GiB", "peak", "`limits.memory`"]);
    check(ended(EndedBy::Cpu), "", &["300.4 s", "300 s", "`limits.cpu`"]);
    check(ended(EndedBy::Pids), "", &["256", "`limits.pids`"]);
    check(ended(EndedBy::Output), "", &["64 KiB", "`limits.output`"]);
    check(ended(EndedBy::Disk), "", &["512 MiB", "100000", "`limits.workspace`"]);
    let file_signal = RunOutcome {
        ended_by: EndedBy::Disk,
        exit_code: None,
        signal: Some(25),
    };
    check(file_signal, "", &["256 MiB", "`limits.file`"]);
    for (stderr, words) in [
        ("OSError: [Errno 27] File too large\n", ["256 MiB", "`limits.file`"]),
        ("Error: EFBIG: file too large, write\n", ["256 MiB", "`limits.file`"]),
        (
            "bash: line 1:  1950 File size limit exceededhead -c 5000 /dev/zero > big\n",
            ["256 MiB", "`limits.file`"],
        ),
        (
            "OSError: [Errno 24] Too many open files: '/dev/null'\n",
            ["1024", "`limits.open_files`"],
        ),
        (
            "Error: EMFILE: too many open files, open '/dev/null'\n",
            ["1024", "`limits.open_files`"],
        ),
        (
            "OSError: [Errno 28] No space left on device\n",
            ["512 MiB", "`limits.workspace`"],
        ),
        ("RuntimeError: can't start new thread\n", ["256", "`limits.pids`"]),
        (
            "bash: fork: Resource temporarily unavailable\n",
            ["256", "`limits.pids`"],
        ),
        ("MemoryError\n", ["1 GiB", "`limits.memory`"]),
        (
            "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n",
            ["1 GiB", "--max-old-space-size"],
        ),
    ] {
        check(exit(1), stderr, &words);
    }
    let at_maximum = hint_of(|run| (run.outcome, run.max_wall) = (ended(EndedBy::Timeout), Duration::from_secs(300)));
    assert!(at_maximum.unwrap().text.contains("`limits.wall_max`"));
}

#[test]
fn runs_without_a_failure_or_without_a_sandbox_have_no_hint() {
    let module = "ModuleNotFoundError: No module named 'yaml'\n";
    assert_eq!(text_of(exit(0), module), "");
    assert_eq!(text_of(exit(1), "usage: x [-h]\n"), "");
    assert_eq!(text_of(ended(EndedBy::Cancelled), module), "");
    let unconfined = enforcement(&LayerState::NotRequested);
    let (limits, enforcement) = (limits(), unconfined);
    let run = FinishedRun {
        outcome: exit(1),
        stderr: module,
        program: None,
        output_bytes: 0,
        usage: ResourceUsage::default(),
        limits: &limits,
        max_wall: limits.wall,
        profile: "unconfined",
        executor: ExecutorKind::Local,
        enforcement: &enforcement,
        reaches_hosts: false,
    };
    assert_eq!(find_hint(&run), None);
    let nothing_recorded = Enforcement {
        tier: Tier::T4,
        layers: BTreeMap::new(),
    };
    let run = FinishedRun {
        enforcement: &nothing_recorded,
        ..run
    };
    assert_eq!(find_hint(&run), None);
}

#[test]
fn only_the_end_of_a_long_output_is_searched() {
    let noise = "ä".repeat(SEARCHED_BYTES);
    let early = format!("ModuleNotFoundError: No module named 'yaml'\n{noise}");
    assert_eq!(hint_of(|run| run.stderr = Box::leak(early.into_boxed_str())), None);
    let late = format!("{noise}\nModuleNotFoundError: No module named 'yaml'\n");
    assert!(hint_of(|run| run.stderr = Box::leak(late.into_boxed_str())).is_some());
}
