"""Tries to change the cached pages of a read-only file: through a pipe, and through mappings."""
import mmap
import os
import sys

from probing import word_of

path = sys.argv[1]
readable = os.open(path, os.O_RDONLY)


def through_pipe():
    out, into = os.pipe()
    os.splice(readable, into, 1, offset_src=0)
    os.write(into, b"OVERWRITTEN")
    other_out, other_in = os.pipe()
    os.splice(out, other_in, 12)
    os.read(other_out, 12)


def through_mapping():
    with mmap.mmap(readable, 1, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) as view:
        view[0:1] = b"X"


def private_then_advised():
    with mmap.mmap(readable, 1, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as view:
        for _ in range(1000):
            view[0:1] = b"X"
            view.madvise(mmap.MADV_DONTNEED)


before = open(path, "rb").read()
for way in (through_pipe, through_mapping, private_then_advised):
    word_of(way)
print("unchanged" if open(path, "rb").read() == before else "changed", flush=True)
