"""Starts a daemon in one way, and exits: `plain`, `subreaper`, `deaf` (ignores signals), `holding` (keeps the output open),
`mapping`, `growing`.
"""
import ctypes
import mmap
import os
import signal
import sys
import time

way, path = sys.argv[1], sys.argv[2]
libc = ctypes.CDLL(None)
# The daemon closes its end when it is running.
is_running, running = os.pipe()


def run_daemon():
    if way == "mapping":
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.ftruncate(file, 4096)
        os.close(running)
        with mmap.mmap(file, 4096) as view:
            for number in range(1 << 30):
                view[0:8] = number.to_bytes(8, "little")
    elif way == "growing":
        with open(path, "ab", buffering=0) as file:
            file.write(b"more\n")
            os.close(running)
            for number in range(1 << 30):
                file.write(b"more\n")
                if number % 1000 == 999:
                    file.truncate(0)
    else:
        os.close(running)
        time.sleep(float(sys.argv[3]))
        with open(path, "w") as file:
            file.write("written by the daemon\n")


if os.fork() == 0:
    os.setsid()
    libc.prctl(1, 0)
    if way == "subreaper":
        libc.prctl(36, 1)
    if os.fork() == 0:
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        if way != "holding":
            for end in (0, 1, 2):
                os.close(end)
        run_daemon()
        os._exit(0)
    os._exit(0)
os.close(running)
os.read(is_running, 1)
print("left", flush=True)
