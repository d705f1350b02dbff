"""Writes a text to an existing file."""
import os
import sys

from probing import answer


def attempt():
    file = os.open(sys.argv[1], os.O_WRONLY)
    os.write(file, sys.argv[2].encode())
    os.close(file)


answer(attempt)
