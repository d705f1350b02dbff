"""Takes a lease on a file, which would block an open of the file on the host."""
import fcntl
import os
import sys

from probing import answer

KINDS = {"write": fcntl.F_WRLCK, "read": fcntl.F_RDLCK}
answer(lambda: fcntl.fcntl(os.open(sys.argv[2], os.O_RDONLY), fcntl.F_SETLEASE, KINDS[sys.argv[1]]) and None)
