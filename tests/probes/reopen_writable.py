"""Opens a file for reading, then the same descriptor for writing through /proc."""
import os
import sys

from probing import answer


def attempt():
    readable = os.open(sys.argv[1], os.O_RDONLY)
    os.close(os.open(f"/proc/self/fd/{readable}", os.O_WRONLY))


answer(attempt)
