"""Makes a device node and reads from it."""
import os
import stat
import sys

from probing import answer


def attempt():
    directory, kind, major, minor = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    path = os.path.join(directory, "device")
    os.mknod(path, 0o600 | (stat.S_IFCHR if kind == "char" else stat.S_IFBLK), os.makedev(major, minor))
    try:
        with open(path, "rb", buffering=0) as device:
            device.read(1)
    finally:
        os.unlink(path)


answer(attempt)
