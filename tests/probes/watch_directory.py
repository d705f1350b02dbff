"""Watches a directory with inotify and prints whether another process uses it: `seen` or `quiet`."""
import os
import select
import sys

from probing import answer, checked, libc

IN_ACCESS, IN_OPEN = 1, 0x20


def attempt():
    watch = checked(libc.inotify_init1(0))
    checked(libc.inotify_add_watch(watch, os.fsencode(sys.argv[1]), IN_ACCESS | IN_OPEN))
    print("watching", flush=True)
    return "seen" if select.select([watch], [], [], float(sys.argv[2]))[0] else "quiet"


answer(attempt)
