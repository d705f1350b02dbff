"""Searches /proc for a word: `seen` or `unseen`."""
import glob
import os
import sys

from probing import answer


def attempt():
    word = sys.argv[2].encode()
    for path in glob.glob(f"/proc/[0-9]*/{sys.argv[1]}"):
        # This probe has the word among its own arguments.
        if path.split("/")[2] == str(os.getpid()):
            continue
        try:
            with open(path, "rb") as file:
                if word in file.read():
                    return "seen"
        except OSError:
            continue
    return "unseen"


answer(attempt)
