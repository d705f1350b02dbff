"""Sends SIGKILL to every process: to all at once, to init, and to each pid by number."""
import os
import signal

for pid in [-1, 1, *range(2, 80_000)]:
    if pid == os.getpid():
        continue
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
print("alive", flush=True)
