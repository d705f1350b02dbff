"""Sends a signal to a process in one way: kill, tgkill, pidfd, queue."""
import os
import signal
import sys

from probing import answer, syscall

way, pid, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def pidfd():
    target = os.pidfd_open(pid)
    signal.pidfd_send_signal(target, number)


WAYS = {
    "kill": lambda: os.kill(pid, number),
    "tgkill": lambda: syscall(234, pid, pid, number),
    "tkill": lambda: syscall(200, pid, number),
    "pidfd": pidfd,
    "group": lambda: os.killpg(pid, number),
}
answer(WAYS[way])
