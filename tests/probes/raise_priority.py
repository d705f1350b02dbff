"""Requests a higher priority, in one way."""
import os
import struct
import sys

from probing import answer, syscall

WAYS = {
    "nice": lambda: os.setpriority(os.PRIO_PROCESS, 0, -20),
    "fifo": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10)),
    "deadline": lambda: syscall(314, 0, struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**7, 10**8, 10**8), 0),
    "io": lambda: syscall(251, 1, 0, 1 << 13),
}
answer(WAYS[sys.argv[1]])
