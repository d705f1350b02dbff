"""Opens a file by its handle, which bypasses mounts: `make PATH` prints a handle, `open MOUNT HANDLE` uses one."""
import ctypes
import os
import struct
import sys

from probing import answer, syscall


def make(path):
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    syscall(303, -100, os.fsencode(path), handle, ctypes.byref(mount), 0)
    size, kind = struct.unpack_from("Ii", handle.raw)
    return f"{kind}:{handle.raw[8:8 + size].hex()}"


def use(mount, handle):
    kind, identity = handle.split(":")
    identity = bytes.fromhex(identity)
    place = os.open(mount, os.O_RDONLY | os.O_DIRECTORY)
    packed = ctypes.create_string_buffer(struct.pack("Ii", len(identity), int(kind)) + identity)
    file = syscall(304, place, packed, os.O_RDONLY)
    return os.read(file, 7).decode(errors="replace")


answer(lambda: make(*sys.argv[2:]) if sys.argv[1] == "make" else use(*sys.argv[2:]))
