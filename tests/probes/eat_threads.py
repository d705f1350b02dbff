"""Starts threads and prints whether their number is limited: `capped` or `uncapped`."""
import sys
import threading

limit, stop = int(sys.argv[1]), threading.Event()
threading.stack_size(64 << 10)
count = 0
try:
    while count < limit:
        threading.Thread(target=stop.wait, daemon=True).start()
        count += 1
    word = "uncapped"
except RuntimeError:
    word = "capped"
stop.set()
print(word, flush=True)
