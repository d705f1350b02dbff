"""Prints `none` when all capability sets are empty, or tries to gain a capability."""
import ctypes
import struct
import sys

from probing import answer, checked, libc, syscall


def held():
    with open("/proc/self/status") as status:
        lines = [line.split() for line in status if line.startswith("Cap")]
    return "none" if all(int(value, 16) == 0 for _, value in lines) else "some"


def capset():
    header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    everything = ctypes.create_string_buffer(struct.pack("IIIIII", 1 << 21, 1 << 21, 0, 0, 0, 0))
    syscall(126, header, everything)


def ambient():
    # Raising needs the capability in the inheritable set first.
    header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    data = ctypes.create_string_buffer(24)
    syscall(125, header, data)
    words = list(struct.unpack("IIIIII", data.raw))
    words[2] |= 1 << 21
    syscall(126, header, ctypes.create_string_buffer(struct.pack("IIIIII", *words)))
    checked(libc.prctl(47, 2, 21, 0, 0))


WAYS = {"held": held, "capset": capset, "ambient": ambient, "bounding": lambda: checked(libc.prctl(24, 21, 0, 0, 0)) and None}
answer(WAYS[sys.argv[1]])
