"""Installs a filter that allows everything, then tries a refused call: `tightens` or `loosened`."""
import ctypes
import struct
import sys

from probing import answer, checked, libc, syscall


def attempt():
    code = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(code)))
    checked(libc.prctl(38, 1, 0, 0, 0))
    if sys.argv[1] == "prctl":
        checked(libc.prctl(22, 2, program, 0, 0))
    else:
        syscall(317, 1, {"filter": 0, "listener": 8}[sys.argv[1]], program)
    # CLONE_NEWUSER needs no privileges outside.
    try:
        syscall(272, 0x10000000)
    except OSError:
        return "tightens"
    return "loosened"


answer(attempt)
