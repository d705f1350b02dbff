"""Changes settings of the pipe behind standard output, then writes a megabyte to it."""
import fcntl
import os

for command, value in [(fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC), (fcntl.F_SETOWN, 1), (1031, 4096), (1031, 1 << 20)]:
    try:
        fcntl.fcntl(1, command, value)
    except OSError:
        pass
fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK)
left = b"x" * (1 << 20)
while left:
    try:
        left = left[os.write(1, left):]
    except BlockingIOError:
        pass
