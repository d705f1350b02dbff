"""Allocates memory without end, in one way: heap, memfd, file (of the workspace), shm, pipes."""
import os
import sys

way, kept = sys.argv[1], []
block = b"x" * (1 << 20)
if way == "heap":
    while True:
        kept.append(bytearray(block))
if way == "pipes":
    while True:
        out, into = os.pipe2(os.O_NONBLOCK)
        import fcntl
        fcntl.fcntl(into, 1031, 1 << 20)
        os.write(into, block)
        kept.append((out, into))
place = {
    "memfd": lambda: os.memfd_create("eaten"),
    "file": lambda: os.open("/workspace/work/eaten", os.O_RDWR | os.O_CREAT),
    "shm": lambda: os.open("/dev/shm/eaten", os.O_RDWR | os.O_CREAT),
}[way]()
try:
    while True:
        os.write(place, block)
except OSError as error:
    import errno
    print(errno.errorcode[error.errno], flush=True)
    sys.exit(1)
