"""Tests in one way whether standard input is a file of the host."""
import os
import sys

from probing import answer


def read_all():
    size = 0
    while piece := os.read(0, 65536):
        size += len(piece)
    return str(size)


def past_end():
    read_all()
    return "empty" if os.read(0, 1) == b"" else "more"


def reopen():
    for path in ("/dev/stdin", "/proc/self/fd/0"):
        again = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        kind = os.fstat(again).st_mode & 0o170000
        os.close(again)
        if kind == 0o100000:
            return "file"
    return "pipe"


WAYS = {
    "read": read_all,
    "past_end": past_end,
    "write": lambda: os.write(0, b"x") and None,
    "seek": lambda: os.lseek(0, 0, os.SEEK_END) and None,
    "reopen": reopen,
}
answer(WAYS[sys.argv[1]])
