"""Creates kernel objects that outlive a process (`leave`), looks for them (`look`), or removes them (`clear`)."""
import ctypes
import os
import sys

from probing import libc

KEY = 0x5B0C5


def leave():
    made = [libc.shmget(KEY, 4096, 0o1666), libc.msgget(KEY, 0o1666), libc.semget(KEY, 1, 0o1666)]
    # A POSIX queue may be refused; otherwise it must be removed as well.
    ctypes.CDLL("librt.so.1").mq_open(b"/skillbox-probe", os.O_CREAT | os.O_RDWR, 0o666, None)
    with open("/dev/shm/skillbox-probe", "w") as file:
        file.write("x")
    return "left" if all(number >= 0 for number in made) else "failed"


def look():
    found = [libc.shmget(KEY, 4096, 0), libc.msgget(KEY, 0), libc.semget(KEY, 1, 0)]
    found.append(ctypes.CDLL("librt.so.1").mq_open(b"/skillbox-probe", os.O_RDWR))
    there = any(number >= 0 for number in found) or os.path.exists("/dev/shm/skillbox-probe")
    return "found" if there else "nothing"


def clear():
    libc.shmctl(libc.shmget(KEY, 4096, 0), 0, None)
    libc.msgctl(libc.msgget(KEY, 0), 0, None)
    libc.semctl(libc.semget(KEY, 1, 0), 0, 0)
    ctypes.CDLL("librt.so.1").mq_unlink(b"/skillbox-probe")
    os.unlink("/dev/shm/skillbox-probe")
    return "cleared"


print({"leave": leave, "look": look, "clear": clear}[sys.argv[1]](), flush=True)
