"""Takes a place in a table of the kernel that the whole host, or all programs of a user, share."""
import ctypes
import mmap
import os
import resource
import signal
import socket
import struct
import sys

from probing import answer, checked, libc, syscall

SETRLIMIT, SECCOMP, IO_SETUP, MQ_OPEN, PRLIMIT64 = 160, 317, 206, 240, 302
RLIMIT_CORE, SIG_BLOCK = 4, 0
ZERO_LIMIT = struct.pack("QQ", 0, 0)
ALLOW, LOG = 0x7FFF0000, 0x7FFC0000


def one_instruction(action):
    """A filter that returns the same for every call, as `struct sock_fprog`."""
    code = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, action))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(code)))
    program.code = code
    return program


def asynchronous_requests():
    syscall(IO_SETUP, 128, ctypes.byref(ctypes.c_ulong(0)))


def message_queue():
    syscall(MQ_OPEN, b"skillbox-probe", os.O_CREAT | os.O_RDWR, 0o600, None)
    syscall(MQ_OPEN + 1, b"skillbox-probe")


def core_limit(way):
    if way == "setrlimit":
        syscall(SETRLIMIT, RLIMIT_CORE, ZERO_LIMIT)
    elif way == "prlimit64":
        syscall(PRLIMIT64, 0, RLIMIT_CORE, ZERO_LIMIT, None)
    elif way == "library":
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        except ValueError as error:
            raise OSError(22, "EINVAL") from error
    elif way == "low_half_is_null":
        # The lower 32 bits of this pointer are zero, as those of a null pointer.
        address = 1 << 32
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        fixed = 0x100000
        mapped = libc.mmap(address, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | fixed, -1, 0)
        if mapped != address:
            return "not mapped"
        ctypes.memmove(address, ZERO_LIMIT, len(ZERO_LIMIT))
        syscall(PRLIMIT64, 0, RLIMIT_CORE, address, None)
    elif way == "read":
        return str(resource.getrlimit(resource.RLIMIT_CORE)[0])
    elif way == "other_limit":
        resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
    return None


def seccomp_filter(way):
    checked(libc.prctl(38, 1, 0, 0, 0))
    if way == "prctl":
        checked(libc.prctl(22, 2, one_instruction(ALLOW), 0, 0))
    elif way == "strict_mode":
        # Afterwards only read, write and exit are possible.
        checked(libc.prctl(22, 1, 0, 0, 0))
        os.write(1, b"allowed\n")
        libc.syscall(60, 0)
    else:
        # `logged` returns SECCOMP_RET_LOG for every call, and `flag` asks for a record of every refusal.
        action, flags = {"logged": (LOG, 0), "flag": (ALLOW, 2), "harmless": (ALLOW, 0)}[way]
        syscall(SECCOMP, 1, flags, one_instruction(action))
        os._exit(os.write(1, b"allowed\n") - 8)


def socket_option(way):
    if way == "ipv6_only":
        # This option of another level has the number of SO_ATTACH_FILTER.
        socket.socket(socket.AF_INET6, socket.SOCK_STREAM).setsockopt(41, 26, 1)
        return
    pair = socket.socketpair()
    if way == "buffer":
        pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    else:
        program = one_instruction(0xFFFF)
        pair[0].setsockopt(socket.SOL_SOCKET, 26, program.raw[:16])


def count_until_error(attempt, at_most):
    for count in range(at_most):
        try:
            attempt()
        except OSError:
            return count
    return at_most


def pending_signals(_):
    libc.sigqueue.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
    return str(count_until_error(lambda: checked(libc.sigqueue(os.getpid(), signal.SIGRTMIN, None)), 2000))


def timers(_):
    return str(count_until_error(lambda: syscall(222, 1, None, ctypes.byref(ctypes.c_int())), 2000))


TABLES = {
    "asynchronous_requests": lambda _: asynchronous_requests(),
    "message_queue": lambda _: message_queue(),
    "core_limit": core_limit,
    "seccomp_filter": seccomp_filter,
    "socket_option": socket_option,
    "pending_signals": pending_signals,
    "timers": timers,
}

answer(lambda: TABLES[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else ""))
