"""Shared by all probes: raw system calls, and one word as the answer.

A probe makes one forbidden attempt. `allowed` means that it succeeded; otherwise the word is the name of the error.
"""
import ctypes
import errno
import platform

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

if platform.machine() != "x86_64":
    raise SystemExit("these probes support the system calls of x86_64 only")


def syscall(number, *arguments):
    """Makes one raw system call; integers, bytes and buffers are passed unchanged."""
    words = []
    for argument in arguments:
        if argument is None:
            words.append(ctypes.c_void_p(None))
        elif isinstance(argument, int):
            words.append(ctypes.c_long(argument))
        elif isinstance(argument, bytes):
            words.append(ctypes.c_char_p(argument))
        else:
            words.append(argument)
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *words)
    if result == -1:
        fail()
    return result


def fail():
    """Raises the error of the last call through ctypes."""
    number = ctypes.get_errno()
    raise OSError(number, errno.errorcode.get(number, str(number)))


def checked(result):
    """Returns the result of a libc function, or raises its error."""
    if result == -1:
        fail()
    return result


def word_of(attempt):
    """Makes an attempt and returns its outcome in one word."""
    try:
        result = attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    return result if isinstance(result, str) else "allowed"


def answer(attempt):
    """Makes an attempt and prints its outcome."""
    print(word_of(attempt), flush=True)
