"""Ninety-six operations that scripts of public skills do, each with its outcome in one word.

The same file runs on the host as an ordinary process and inside the sandbox. It prints one line for each operation:
`<id> <outcome>`. The outcome is `ok`, a short value, the name of an error, or `missing` if the host lacks the program.
"""
import asyncio
import contextlib
import ctypes
import errno
import fcntl
import mmap
import multiprocessing
import os
import pathlib
import resource
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import termios
import threading
import time

OPERATIONS = {}
OWN_FILE = os.path.abspath(__file__)
OWN_DIRECTORY = os.path.dirname(OWN_FILE)
TIMEOUT_SECONDS = 30
libc = ctypes.CDLL(None, use_errno=True)


class MissingProgram(Exception):
    """A program that this host does not have."""


def operation(name):
    """Registers an operation under its id."""
    def register(function):
        assert name not in OPERATIONS, name
        OPERATIONS[name] = function
        return function
    return register


def run(*words, **options):
    """Runs a program and returns what it prints; raises for a failure."""
    if "/" not in words[0] and shutil.which(words[0]) is None and words[0] != "python":
        raise MissingProgram
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, **options)
    if done.returncode != 0:
        raise RuntimeError(f"exit-{done.returncode}")
    return done.stdout.strip()


def write(name, content="content\n"):
    with open(name, "w") as file:
        file.write(content)
    return name


def read(name):
    with open(name) as file:
        return file.read()


def check(is_true):
    if not is_true:
        raise AssertionError


# Files.

@operation("file-write-read")
def _():
    check(read(write("a")) == "content\n")


@operation("file-append")
def _():
    write("a")
    with open("a", "a") as file:
        file.write("more")
    check(read("a") == "content\nmore")


@operation("file-replace")
def _():
    write("a"), write("b", "new")
    os.replace("b", "a")
    check(read("a") == "new")


@operation("file-hard-link")
def _():
    os.link(write("a"), "b")
    check(os.stat("a").st_nlink == 2)


@operation("file-symbolic-link")
def _():
    write("a")
    os.symlink("a", "b")
    check(read("b") == "content\n" and os.readlink("b") == "a")


@operation("file-truncate")
def _():
    os.truncate(write("a"), 3)
    check(read("a") == "con")


@operation("file-sparse")
def _():
    with open("a", "wb") as file:
        file.seek(50 << 20)
        file.write(b"x")
    check(os.stat("a").st_blocks * 512 < 1 << 20)


@operation("file-preallocate")
def _():
    with open("a", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 1 << 20)


@operation("file-mode")
def _():
    os.chmod(write("a"), 0o640)
    check(os.stat("a").st_mode & 0o777 == 0o640)


@operation("file-default-mode")
def _():
    return oct(os.stat(write("a")).st_mode & 0o777)


@operation("file-run-new-script")
def _():
    write("tool", "#!/bin/sh\necho ran\n")
    os.chmod("tool", 0o755)
    check(run("./tool") == "ran")


@operation("file-times")
def _():
    os.utime(write("a"), (1, 2))
    check(os.stat("a").st_mtime == 2)


@operation("file-extended-attribute")
def _():
    os.setxattr(write("a"), "user.note", b"x")
    check(os.getxattr("a", "user.note") == b"x")


@operation("file-mapped")
def _():
    write("a", "x" * 4096)
    with open("a", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:3] = b"new"
        mapped.flush()
    check(read("a").startswith("new"))


@operation("file-fifo")
def _():
    os.mkfifo("pipe")
    threading.Thread(target=write, args=("pipe", "through")).start()
    check(read("pipe") == "through")


@operation("file-copy")
def _():
    check(read(shutil.copy2(write("a"), "b")) == "content\n")


@operation("file-copy-tree")
def _():
    os.makedirs("tree/below")
    write("tree/below/a")
    shutil.copytree("tree", "copy")
    check(read("copy/below/a") == "content\n")


@operation("file-remove-tree")
def _():
    os.makedirs("tree/below/more")
    shutil.rmtree("tree")
    check(not os.path.exists("tree"))


@operation("file-long-name")
def _():
    write("n" * 255)


@operation("file-unicode-name")
def _():
    write("überblick-日本語.txt")
    check("überblick-日本語.txt" in os.listdir("."))


@operation("file-case-sensitive")
def _():
    write("a"), write("A", "other")
    check(read("a") != read("A"))


@operation("file-free-space")
def _():
    check(shutil.disk_usage(".").free > 1 << 20)


@operation("file-unnamed")
def _():
    os.close(os.open(".", os.O_TMPFILE | os.O_RDWR))


@operation("file-sendfile")
def _():
    with open(write("a")) as source, open("b", "w") as target:
        check(os.sendfile(target.fileno(), source.fileno(), 0, 100) == 8)


@operation("file-copy-range")
def _():
    with open(write("a")) as source, open("b", "w") as target:
        check(os.copy_file_range(source.fileno(), target.fileno(), 100) == 8)


@operation("file-sync")
def _():
    with open("a", "w") as file:
        file.write("x")
        file.flush()
        os.fsync(file.fileno())


@operation("file-own-group")
def _():
    os.chown(write("a"), os.getuid(), os.getgid())


@operation("file-change-owner")
def _():
    os.chown(write("a"), 0, 0)


# The script's own files.

@operation("own-read")
def _():
    check("OWN_FILE" in read(OWN_FILE))


@operation("own-copy-and-edit")
def _():
    for _ in range(2):
        shutil.copy(OWN_FILE, "copy.py")
        with open("copy.py", "a") as file:
            file.write("# edited\n")


@operation("own-write-beside")
def _():
    path = os.path.join(OWN_DIRECTORY, "report.md")
    write(path)
    os.remove(path)


@operation("own-change-in-place")
def _():
    with open(OWN_FILE, "a") as file:
        file.write("")


@operation("own-import-cache")
def _():
    os.makedirs(os.path.join(OWN_DIRECTORY, "__pycache__"), exist_ok=True)


# Temporary files.

@operation("temp-file")
def _():
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")


@operation("temp-directory")
def _():
    with tempfile.TemporaryDirectory() as directory:
        write(os.path.join(directory, "a"))


@operation("temp-slash-tmp")
def _():
    os.remove(write(f"/tmp/operation-{os.getpid()}"))


@operation("temp-var-tmp")
def _():
    os.remove(write(f"/var/tmp/operation-{os.getpid()}"))


@operation("temp-rename-to-work")
def _():
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(b"x")
    shutil.move(file.name, "moved")


@operation("temp-socket-directory")
def _():
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.join(directory, "s"))


# Locks.

@operation("lock-flock")
def _():
    with open(write("a")) as one, open("a") as two:
        fcntl.flock(one, fcntl.LOCK_EX)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB)
            raise AssertionError


@operation("lock-fcntl")
def _():
    with open(write("a"), "r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@operation("lock-lease")
def _():
    with open(write("a"), "r+") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)


# Sockets and names.

@operation("socket-pair")
def _():
    one, two = socket.socketpair()
    one.send(b"x")
    check(two.recv(1) == b"x")


@operation("socket-unix-path")
def _():
    server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    server.bind("s")
    server.listen()
    client.connect("s")


@operation("socket-unix-abstract")
def _():
    name = f"\0operation-{os.getpid()}"
    server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    client.connect(name)


@operation("socket-tcp-loopback")
def _():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


@operation("socket-own-name")
def _():
    check(socket.gethostbyname(socket.gethostname()))


@operation("socket-localhost")
def _():
    check(socket.gethostbyname("localhost") == "127.0.0.1")


@operation("socket-address-info")
def _():
    check(socket.getaddrinfo("localhost", 80))


@operation("socket-interfaces")
def _():
    check(socket.if_nameindex() is not None)


@operation("socket-service-names")
def _():
    return str(socket.getservbyname("https"))


@operation("node-interfaces")
def _():
    check(run("node", "-p", "typeof require('os').networkInterfaces()") == "object")


# Processes.

@operation("process-run")
def _():
    check(run("echo", "x") == "x")


@operation("process-pipeline")
def _():
    check(run("bash", "-c", "printf 'b\\na\\n' | sort | head -n 1") == "a")


@operation("process-substitution")
def _():
    check(run("bash", "-c", "cat <(echo x) <<< y") == "x")


@operation("process-standard-paths")
def _():
    check(run("bash", "-c", "echo x > /dev/stdout; echo y > /dev/stderr; cat /dev/null") == "x")


@operation("process-python")
def _():
    check(run("python", "-c", "print(1)") == "1")


@operation("process-env-python")
def _():
    write("tool", "#!/usr/bin/env python\nprint(1)\n")
    os.chmod("tool", 0o755)
    check(run("./tool") == "1")


@operation("process-fork")
def _():
    child = os.fork()
    if child == 0:
        os._exit(7)
    check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7)


@operation("process-group")
def _():
    child = subprocess.Popen(["sleep", "20"], start_new_session=True)
    os.killpg(child.pid, signal.SIGTERM)
    check(child.wait(10) == -signal.SIGTERM)


@operation("process-nice")
def _():
    os.nice(1)


@operation("process-priority-up")
def _():
    os.nice(-1)


@operation("process-limits")
def _():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 128), hard))


@operation("process-own-status")
def _():
    check("Name:" in read("/proc/self/status"))


@operation("process-list")
def _():
    check(run("ps", "-e", "-o", "pid="))


@operation("process-trace")
def _():
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.ptrace(0, 0, None, None) == 0 else ctypes.get_errno())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 0:
        raise OSError(code, "ptrace")


@operation("process-user-namespace")
def _():
    run("unshare", "--user", "true")


@operation("process-asyncio")
def _():
    async def main():
        child = await asyncio.create_subprocess_exec("echo", "x", stdout=asyncio.subprocess.PIPE)
        return (await child.communicate())[0]
    check(asyncio.run(main()) == b"x\n")


# Signals.

@operation("signal-handler")
def _():
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    os.kill(os.getpid(), signal.SIGUSR1)
    check(seen == [1])


@operation("signal-alarm")
def _():
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    signal.pause()
    check(seen == [1])


@operation("signal-wait")
def _():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    os.kill(os.getpid(), signal.SIGUSR1)
    check(signal.sigtimedwait([signal.SIGUSR1], 5).si_signo == signal.SIGUSR1)


# Terminals.

@operation("terminal-open")
def _():
    one, two = os.openpty()
    os.write(two, b"x\n")
    check(os.read(one, 10) == b"x\r\n")


@operation("terminal-fork")
def _():
    pid, end = os.forkpty()
    if pid == 0:
        with contextlib.suppress(OSError):
            os.write(os.open("/dev/tty", os.O_RDWR), b"typed")
        os._exit(0)
    check(os.read(end, 10) == b"typed")
    os.waitpid(pid, 0)


@operation("terminal-script")
def _():
    check("yes" in run("script", "-qec", "test -t 0 && echo yes", "/dev/null"))


@operation("terminal-size")
def _():
    one, two = os.openpty()
    termios.tcsetwinsize(two, (40, 100))
    check(termios.tcgetwinsize(one) == (40, 100))


@operation("terminal-none-inherited")
def _():
    os.close(os.open("/dev/tty", os.O_RDWR))


# Language, time, fonts.

@operation("locale-default")
def _():
    import locale
    locale.setlocale(locale.LC_ALL, "")
    return locale.getpreferredencoding().lower()


@operation("time-zone-local")
def _():
    return time.strftime("%Z")


@operation("time-zone-named")
def _():
    import zoneinfo
    check(zoneinfo.ZoneInfo("Europe/Berlin").key)


@operation("time-zone-variable")
def _():
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()
    return time.strftime("%Z")


@operation("fonts-list")
def _():
    check(run("fc-list") is not None)


# Several processes and threads of Python.

@operation("parallel-fork")
def _():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        check(pool.map(abs, [-1, 2]) == [1, 2])


@operation("parallel-spawn")
def _():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        check(pool.map(abs, [-1, 2]) == [1, 2])


@operation("parallel-threads")
def _():
    threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(20)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]


@operation("parallel-shared-memory")
def _():
    from multiprocessing import shared_memory
    block = shared_memory.SharedMemory(create=True, size=1 << 20)
    block.buf[0] = 7
    block.close()
    block.unlink()


@operation("parallel-processor-count")
def _():
    return str(os.cpu_count())


# Databases.

@operation("database-journal")
def _():
    with sqlite3.connect("a.db") as database:
        database.execute("create table t (x)")
        database.execute("insert into t values (1)")
    check(sqlite3.connect("a.db").execute("select x from t").fetchall() == [(1,)])


@operation("database-write-ahead")
def _():
    database = sqlite3.connect("a.db")
    check(database.execute("pragma journal_mode=wal").fetchone() == ("wal",))
    database.execute("create table t (x)")
    database.commit()


# Interfaces of the kernel.

@operation("kernel-shared-memory-file")
def _():
    os.remove(write(f"/dev/shm/operation-{os.getpid()}"))


@operation("kernel-inotify")
def _():
    watch = libc.inotify_init1(0)
    check(libc.inotify_add_watch(watch, b".", 0x100) >= 0)
    write("a")
    check(select.select([watch], [], [], 5)[0])


@operation("kernel-memory-file")
def _():
    os.write(os.memfd_create("x"), b"x")


@operation("kernel-cpu-files")
def _():
    check(read("/sys/devices/system/cpu/online"))


# The user and the system.

@operation("user-name")
def _():
    import getpass
    import pwd
    check(getpass.getuser() == pwd.getpwuid(os.getuid()).pw_name)


@operation("user-home-writable")
def _():
    path = pathlib.Path.home() / f".operation-{os.getpid()}"
    write(path)
    path.unlink()


@operation("user-not-root")
def _():
    check(os.getuid() != 0 and os.geteuid() != 0)


@operation("system-release")
def _():
    import platform
    return platform.freedesktop_os_release()["ID"]


def outcome_of(function, directory):
    """Makes the attempt in a directory of its own and returns its outcome."""
    os.makedirs(directory)
    os.chdir(directory)
    try:
        return function() or "ok"
    except MissingProgram:
        return "missing"
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    except subprocess.TimeoutExpired:
        return "timeout"
    except RuntimeError as error:
        return str(error) if str(error).startswith("exit-") else type(error).__name__
    except Exception as error:
        return type(error).__name__


def run_in_child(name, function, directory):
    """Runs an operation in a process of its own, so that none changes the next one."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        word = outcome_of(function, os.path.join(directory, name))
        os.write(writer, word.encode())
        os._exit(0)
    os.close(writer)
    word = b"timeout"
    if select.select([reader], [], [], TIMEOUT_SECONDS)[0]:
        word = os.read(reader, 200) or b"died"
    os.close(reader)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return word.decode().replace(" ", "-")


def main():
    if len(OPERATIONS) != 96:
        sys.exit(f"{len(OPERATIONS)} operations, not 96")
    base = tempfile.mkdtemp(dir=os.environ.get("OPERATIONS_DIR", "."))
    base = os.path.abspath(base)
    for name, function in OPERATIONS.items():
        print(name, run_in_child(name, function, base), flush=True)


if __name__ == "__main__":
    main()
