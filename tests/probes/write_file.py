"""Writes a text into an existing file of the kernel."""
import os
import sys

from probing import answer


def attempt():
    file = os.open(sys.argv[1], os.O_WRONLY)
    os.write(file, sys.argv[2].encode())
    os.close(file)


answer(attempt)
