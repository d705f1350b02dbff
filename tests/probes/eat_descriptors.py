"""Opens descriptors until an error, in one way, and prints `few` for up to 1,024 of them."""
import os
import sys

from probing import checked, libc

WAYS = {
    "file": lambda: os.open("/dev/null", os.O_RDONLY),
    "epoll": lambda: checked(libc.epoll_create1(0)),
    "inotify": lambda: checked(libc.inotify_init1(0)),
    "timer": lambda: checked(libc.timerfd_create(1, 0)),
    "event": lambda: checked(libc.eventfd(0, 0)),
    "memfd": lambda: os.memfd_create("x"),
}
count = 0
try:
    while count < 5000:
        WAYS[sys.argv[1]]()
        count += 1
except OSError:
    pass
print("few" if count <= 1024 else "many", flush=True)
