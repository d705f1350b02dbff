"""Opens an existing file for writing, without writing."""
import os
import sys

from probing import answer

answer(lambda: os.close(os.open(sys.argv[1], os.O_WRONLY)))
