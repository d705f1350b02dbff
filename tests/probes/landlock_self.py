"""Applies Landlock to itself repeatedly: `tightens` when that works and ends with E2BIG."""
import errno
import os
import struct

from probing import answer, checked, libc, syscall


def restrict():
    ruleset = syscall(444, struct.pack("Q", 1 << 2), 8, 0)
    try:
        syscall(446, ruleset, 0)
    finally:
        os.close(ruleset)


def attempt():
    checked(libc.prctl(38, 1, 0, 0, 0))
    os.close(os.open("/usr/bin/env", os.O_RDONLY))
    restrict()
    try:
        os.close(os.open("/usr/bin/env", os.O_RDONLY))
        return "loosened"
    except PermissionError:
        pass
    for _ in range(20):
        try:
            restrict()
        except OSError as error:
            return "tightens" if error.errno == errno.E2BIG else "strange"
    return "endless"


answer(attempt)
