"""Takes a lease on a file, which would make the host's own opening of it wait."""
import fcntl
import os
import sys

from probing import answer

KINDS = {"write": fcntl.F_WRLCK, "read": fcntl.F_RDLCK}
answer(lambda: fcntl.fcntl(os.open(sys.argv[2], os.O_RDONLY), fcntl.F_SETLEASE, KINDS[sys.argv[1]]) and None)
