//! Each layer alone: the others are switched off, and the same script succeeds without it.

use std::net::TcpListener;
use std::path::Path;

use crate::fixture::{FinishedRun, TestRun, control, has, is_root, spawner, spawner_program};
use skillbox_model::{ByteSize, Layer, LayerState, Tier};
use skillbox_sandbox::{CommandEnd, PlanError, Spawner, SpawnerOptions, UnconfinedPolicy};

/// A directory of the host that every user can write to.
fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    directory
}

/// Runs the script with only these layers, in a directory of the host.
fn with_only(layers: &[Layer], directory: &Path, script: &str) -> FinishedRun {
    TestRun::bash(script)
        .only(layers)
        .in_directory(directory)
        .launch(&spawner())
}

/// The script succeeds without a sandbox and without the layers, and fails with the layers alone, with this complaint.
fn denies(layers: &[Layer], script: &str, complaint: &str) {
    let directory = open_directory();
    let free = control(script);
    assert!(
        free.status.success(),
        "the control fails: {}",
        String::from_utf8_lossy(&free.stderr)
    );
    let without = with_only(&[], directory.path(), script);
    assert_eq!(
        without.result.end,
        CommandEnd::Exited(0),
        "without the layer: {}",
        without.stderr
    );
    let done = with_only(layers, directory.path(), script);
    assert_ne!(
        done.result.end,
        CommandEnd::Exited(0),
        "{script} succeeded under {layers:?}"
    );
    assert!(
        done.stderr.contains(complaint),
        "{script} under {layers:?}: {}",
        done.stderr
    );
}

#[test]
fn seccomp_alone_blocks() {
    if !is_root() {
        return;
    }
    let seccomp = [Layer::NoNewPrivileges, Layer::Seccomp];
    for (script, complaint) in [
        ("unshare --mount true", "Operation not permitted"),
        ("unshare --user true", "Operation not permitted"),
        ("chroot / true", "Operation not permitted"),
        (
            "python3 -c 'import socket; socket.socket()'",
            "Address family not supported",
        ),
        (
            "python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); exit(l.syscall(250, 0, -3, 1) < 0 and print(ctypes.get_errno(), file=__import__(\"sys\").stderr) is None)'",
            "1",
        ),
        ("mkdir -p m && mount -t tmpfs none m && umount m", "permission denied"),
        ("hostname $(hostname)", "must be root"),
    ] {
        denies(&seccomp, script, complaint);
    }
}

/// No memory limit counts huge pages. A kernel without reserved pages refuses them with another error.
#[test]
fn huge_pages_are_refused_and_ordinary_ones_are_not() {
    let script = "import mmap, os, ctypes
libc = ctypes.CDLL(None, use_errno=True)
def errno_of(result):
    return ctypes.get_errno() if result < 0 else 0
for flags in (0, 0x40000):
    try:
        mmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | flags); print(0)
    except OSError as error:
        print(error.errno)
for flags in (0, 4):
    print(errno_of(libc.memfd_create(b'x', flags)))
for flags in (0o1600, 0o5600):
    print(errno_of(libc.shmget(0, ctypes.c_size_t(2 << 20), flags)))";
    let inside = TestRun::python(script).launch(&spawner());
    assert_eq!(inside.ok().replace('\n', " "), "0 1 0 1 0 1");
    let free = control(&format!("python3 -c \"{script}\""));
    let free = String::from_utf8(free.stdout).unwrap();
    assert!(
        !free.split_whitespace().any(|errno| errno == "1"),
        "the control: {free}"
    );
}

#[test]
fn foreign_system_calls_are_refused_and_not_a_way_around() {
    // getpid by its number in the x32 and the 32-bit interface, and mount by the latter.
    let script = r#"
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(0x40000000 | 39), ctypes.get_errno())
# mov eax, 20 (getpid); int 0x80; ret
code = bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3])
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print(call())
"#;
    let directory = open_directory();
    let run = |layers: &[Layer]| {
        TestRun::python(script)
            .only(layers)
            .in_directory(directory.path())
            .launch(&spawner())
            .ok()
            .to_owned()
    };
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    assert_eq!(
        run(&[Layer::NoNewPrivileges, Layer::Seccomp]),
        "-1 1\n-1",
        "EPERM twice"
    );
    let free = run(&[]);
    let last: i32 = free.lines().last().unwrap().parse().unwrap();
    assert!(
        last > 0 || last == -38,
        "without the filter the call works, or the kernel has no 32-bit calls: {free}"
    );
}

#[test]
fn landlock_alone_blocks_files() {
    let canary = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(canary.path(), "canary").unwrap();
    let path = canary.path().display();
    let files = [Layer::NoNewPrivileges, Layer::LandlockFiles];
    denies(&files, &format!("cat {path}"), "Permission denied");
    denies(&files, &format!("echo changed >> {path}"), "Permission denied");
    let directory = open_directory();
    let done = with_only(
        &files,
        directory.path(),
        "echo fine > here; cat here; mkfifo f; ln -s / l; mkdir d; mv here d",
    );
    assert_eq!(done.ok(), "fine");
}

#[test]
fn landlock_alone_blocks_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'");
    denies(
        &[Layer::NoNewPrivileges, Layer::LandlockNetwork],
        &connect,
        "Permission denied",
    );
    let bind = "python3 -c 'import socket; socket.socket().bind((\"127.0.0.1\", 0))'";
    denies(
        &[Layer::NoNewPrivileges, Layer::LandlockNetwork],
        bind,
        "Permission denied",
    );
}

#[test]
fn landlock_alone_blocks_signals_and_abstract_sockets() {
    let scope = [Layer::NoNewPrivileges, Layer::LandlockScope];
    denies(
        &scope,
        &format!("kill -0 {}", std::process::id()),
        "Operation not permitted",
    );
    let name = format!("skillbox-test-{}", std::process::id());
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let connect = format!("python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{name}\")'");
    denies(&scope, &connect, "Operation not permitted");
}

#[test]
fn mounts_alone_hide() {
    let canary = tempfile::NamedTempFile::new().unwrap();
    let script = format!("cat {}", canary.path().display());
    assert!(control(&script).status.success());
    let mounts = [Layer::UserNamespace, Layer::MountNamespace];
    let done = TestRun::bash(&script).only(&mounts).launch(&spawner());
    assert_eq!(done.result.end, CommandEnd::Exited(1));
    assert!(done.stderr.contains("No such file or directory"), "{}", done.stderr);
    let done = TestRun::bash("touch /usr/x").only(&mounts).launch(&spawner());
    assert!(done.stderr.contains("Read-only file system"), "{}", done.stderr);
}

#[test]
fn a_pid_namespace_alone_keeps_signals_in() {
    let mut host = spawned_sleep();
    let script = format!("kill -0 {}", host.id());
    denies(&[Layer::UserNamespace, Layer::PidNamespace], &script, "No such process");
    host.kill().unwrap();
    host.wait().unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a canary process of the host")]
fn spawned_sleep() -> std::process::Child {
    std::process::Command::new("sleep").arg("60").spawn().unwrap()
}

#[test]
fn a_network_namespace_alone_has_no_route() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'");
    denies(
        &[Layer::UserNamespace, Layer::NetworkNamespace],
        &connect,
        "Network is unreachable",
    );
}

#[test]
fn namespaces_for_messages_and_names_are_private() {
    let script = "ipcmk -Q > /dev/null; ipcs -q | grep -c 0x; hostname";
    let done = TestRun::bash(script).only(&[Layer::UserNamespace, Layer::IpcNamespace, Layer::UtsNamespace]);
    let directory = open_directory();
    let done = done.in_directory(directory.path()).launch(&spawner());
    assert_eq!(done.ok(), "1\nskillbox");
}

#[test]
fn dropped_capabilities_alone_remove_the_rights_of_root() {
    if !is_root() {
        return;
    }
    denies(
        &[Layer::Capabilities],
        "cat /etc/shadow > /dev/null",
        "Permission denied",
    );
    denies(
        &[Layer::Capabilities],
        "chown 1:1 . && chown 0:0 .",
        "Operation not permitted",
    );
}

#[test]
fn without_new_privileges_a_setuid_program_has_none() {
    if !is_root() {
        return;
    }
    let directory = open_directory();
    let program = directory.path().join("id");
    std::fs::copy("/usr/bin/id", &program).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
    let id = |layers: &[Layer]| with_only(layers, directory.path(), "./id -u").ok().to_owned();
    assert_eq!(id(&[Layer::Capabilities]), "0", "the control must gain the id");
    let script_id = SpawnerOptions::DEFAULT_SCRIPT_ID.to_string();
    assert_eq!(id(&[Layer::Capabilities, Layer::NoNewPrivileges]), script_id);
}

#[test]
fn resource_limits_alone_bound_one_process() {
    let directory = open_directory();
    let run = |layers: &[Layer], script: &str| {
        let mut run = TestRun::bash(script).only(layers).in_directory(directory.path());
        run.profile.limits.default.file = ByteSize::kib(64);
        run.profile.limits.default.open_files = 64;
        run.launch(&spawner())
    };
    let write = "head -c 1M /dev/zero > big";
    run(&[], write).ok();
    let done = run(&[Layer::ResourceLimits], write);
    assert_eq!(
        done.result.end,
        CommandEnd::Exited(128 + libc::SIGXFSZ),
        "{}",
        done.stderr
    );
    assert_eq!(
        run(&[Layer::ResourceLimits], "ulimit -n; ulimit -Hn; ulimit -c").ok(),
        "64\n64\n0"
    );
}

#[test]
fn control_groups_alone_bound_memory_and_processes() {
    let spawner = spawner();
    let groups = &spawner.facts().unwrap().cgroup;
    if !is_root()
        || !has(
            "control groups",
            groups.memory.is_available() && groups.pids.is_available(),
        )
    {
        return;
    }
    let directory = open_directory();
    let script = "x = bytearray(300 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1";
    let run = |layers: &[Layer]| {
        let mut run = TestRun::python(script).only(layers).in_directory(directory.path());
        run.profile.limits.default.memory = ByteSize::mib(100);
        run.launch(&spawner)
    };
    run(&[]).ok();
    let done = run(&[Layer::Memory]);
    assert_eq!(done.result.end, CommandEnd::Signaled(9));
    assert!(done.result.limit_hits.memory);

    let run = |layers: &[Layer]| {
        let mut run = TestRun::bash("for i in $(seq 30); do sleep 1 & done; wait")
            .only(layers)
            .in_directory(directory.path());
        run.profile.limits.default.pids = 10;
        run.launch(&spawner)
    };
    run(&[]).ok();
    let done = run(&[Layer::Pids]);
    assert!(
        done.result.limit_hits.pids && done.stderr.contains("Resource temporarily unavailable"),
        "{}",
        done.stderr
    );
}

#[test]
fn an_unconfined_run_needs_the_permission_of_the_host() {
    let directory = open_directory();
    let spawner = Spawner::start_with_options(&spawner_program(), SpawnerOptions::unconfined()).unwrap();
    let run = || {
        TestRun::bash("id -u; setsid sleep 60 & echo $!")
            .profile("unconfined")
            .in_directory(directory.path())
    };
    assert!(matches!(run().plan(&spawner), Err(PlanError::UnconfinedRefused(_))));

    let mut allowed = run();
    allowed.job.unconfined = UnconfinedPolicy::Allow;
    let done = allowed.launch(&spawner);
    let lines: Vec<&str> = done.ok().lines().collect();
    assert_eq!(lines[0], rustix::process::geteuid().as_raw().to_string());
    assert_eq!(done.result.enforcement.tier, Tier::T4);
    for (layer, state) in &done.result.enforcement.layers {
        let expected = if *layer == Layer::WallClock {
            LayerState::Enforced
        } else {
            LayerState::NotRequested
        };
        assert_eq!(*state, expected, "{layer}");
    }
    // No process outlives an unconfined run.
    assert!(!Path::new("/proc").join(lines[1]).exists(), "{} is alive", lines[1]);
    assert_eq!(done.took.as_secs(), 0);

    let mut allowed = TestRun::bash("setsid sleep 60 & sleep 60")
        .profile("unconfined")
        .in_directory(directory.path());
    allowed.job.unconfined = UnconfinedPolicy::Allow;
    let started = allowed.start(&spawner).unwrap();
    started.sandbox.kill().unwrap();
    assert_eq!(started.wait().result.end, CommandEnd::Killed);
}
