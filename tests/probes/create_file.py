"""Creates a file in a directory, and removes it again."""
import os
import sys

from probing import answer


def attempt():
    path = os.path.join(sys.argv[1], "probe-was-here")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.unlink(path)


answer(attempt)
