"""Reads a byte of a file, or lists a directory."""
import os
import sys

from probing import answer


def attempt():
    path = sys.argv[1]
    if os.path.isdir(path):
        os.listdir(path)
        return None
    with open(path, "rb") as file:
        return None if file.read(1) else "empty"


answer(attempt)
