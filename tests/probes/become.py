"""Tries to take another identity, in one way."""
import os
import sys

from probing import answer

WAYS = {
    "setuid": lambda: os.setuid(0),
    "setgid": lambda: os.setgid(0),
    "setresuid": lambda: os.setresuid(0, 0, 0),
    "setreuid_unmapped": lambda: os.setresuid(54_321, 54_321, 54_321),
    "setgroups": lambda: os.setgroups([0, 4, 24]),
    "setfsuid": lambda: os.setegid(0),
}
answer(WAYS[sys.argv[1]])
