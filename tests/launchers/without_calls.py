#!/usr/bin/env python3
"""Runs a command on a kernel that lacks some system calls.

usage: without_calls.py NAME=ERRNO… -- COMMAND…

NAME may carry a condition on the flags in its first argument, `clone&0x10000000=EPERM`, or on its value,
`prctl:22=EINVAL`. A seccomp filter answers these calls, for the command and everything below it.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

CALLS = {
    "x86_64": (0xC000003E, {
        "clone": 56, "clone3": 435, "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155,
        "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "mount_setattr": 442,
        "openat2": 437, "landlock_create_ruleset": 444, "seccomp": 317, "prctl": 157, "pidfd_open": 434,
        "close_range": 436, "memfd_create": 319, "execveat": 322,
    }),
    "aarch64": (0xC00000B7, {
        "clone": 220, "clone3": 435, "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41,
        "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "mount_setattr": 442,
        "openat2": 437, "landlock_create_ruleset": 444, "seccomp": 277, "prctl": 167, "pidfd_open": 434,
        "close_range": 436, "memfd_create": 279, "execveat": 281,
    }),
}
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NUMBER_AT, ARCHITECTURE_AT, ARGUMENT_AT = 0, 4, 16


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, value)


def rule(text, numbers):
    name, error = text.rsplit("=", 1)
    test, bits = None, 0
    for mark, code in (("&", ANY_BIT), (":", EQUAL)):
        if mark in name:
            name, value = name.split(mark)
            test, bits = code, int(value, 0)
    answer = instruction(RETURN, ERRNO | getattr(errno, error))
    reload = instruction(LOAD, NUMBER_AT)
    if test is None:
        return instruction(EQUAL, numbers[name], 0, 1) + answer
    return (instruction(EQUAL, numbers[name], 0, 4) + instruction(LOAD, ARGUMENT_AT) + instruction(test, bits, 0, 1)
            + answer + reload)


def main():
    split = sys.argv.index("--")
    rules, command = sys.argv[1:split], sys.argv[split + 1:]
    architecture, numbers = CALLS[platform.machine()]
    code = instruction(LOAD, ARCHITECTURE_AT) + instruction(EQUAL, architecture, 1, 0) + instruction(RETURN, ALLOW)
    code += instruction(LOAD, NUMBER_AT)
    code += b"".join(rule(text, numbers) for text in rules)
    code += instruction(RETURN, ALLOW)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    # Without CAP_SYS_ADMIN a filter needs no_new_privs first.
    if os.geteuid() != 0:
        libc.prctl(38, 1, 0, 0, 0)
    if libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) != 0:
        libc.prctl(38, 1, 0, 0, 0)
        if libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) != 0:
            sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
    os.execvp(command[0], command)


main()
