"""Accesses another process in one way."""
import ctypes
import os
import sys

from probing import answer, syscall

PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_DETACH, PTRACE_TRACEME = 16, 0x4206, 17, 0


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def attach(pid):
    syscall(101, PTRACE_ATTACH, pid, None, None)
    os.waitpid(pid, 0x40000000)
    syscall(101, PTRACE_DETACH, pid, None, None)


def traceme(_):
    # In a child: a traced process stops at every signal until its parent resumes it.
    volunteer = os.fork()
    if volunteer == 0:
        try:
            syscall(101, PTRACE_TRACEME, 0, None, None)
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    _, status = os.waitpid(volunteer, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise OSError(os.waitstatus_to_exitcode(status), "refused")


def vector(buffer):
    return ctypes.byref(Vector(ctypes.addressof(buffer), 1))


def memory(number, pid):
    # The child is a fork of this program: the same address means the same thing there.
    here, there = ctypes.create_string_buffer(b"x"), BUFFER
    syscall(number, pid, vector(here), 1, vector(there), 1, 0)


def proc_memory(pid):
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        file.seek(ctypes.addressof(BUFFER))
        file.read(1)


def descriptor(pid):
    os.close(syscall(438, os.pidfd_open(pid), 0, 0))


BUFFER = ctypes.create_string_buffer(b"y")
WAYS = {
    "attach": attach,
    "seize": lambda pid: syscall(101, PTRACE_SEIZE, pid, None, None),
    "traceme": traceme,
    "readv": lambda pid: memory(310, pid),
    "writev": lambda pid: memory(311, pid),
    "kcmp": lambda pid: syscall(312, os.getpid(), pid, 0, 0, 0),
    "getfd": descriptor,
    "mem": proc_memory,
}

child = os.fork()
if child == 0:
    import time
    time.sleep(20)
    os._exit(0)
target = {"child": child, "init": 1}[sys.argv[2]]
answer(lambda: WAYS[sys.argv[1]](target))
os.kill(child, 9)
