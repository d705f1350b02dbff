"""Links a file into another directory and opens the link for writing."""
import os
import sys

from probing import answer


def attempt():
    os.link(sys.argv[1], sys.argv[2])
    os.close(os.open(sys.argv[2], os.O_WRONLY))


answer(attempt)
