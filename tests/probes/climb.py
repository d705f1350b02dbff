"""Tries to leave the root by `..`, by a saved descriptor or by chroot, and looks for a path of the host."""
import os
import sys

from probing import answer


def look(canary):
    return "outside" if os.path.exists(canary.lstrip("/")) else "inside"


def dots(canary):
    os.chdir("../" * 64)
    return look(canary)


def descriptor(canary):
    saved = os.open(".", os.O_RDONLY)
    os.chdir("/")
    os.fchdir(saved)
    for _ in range(64):
        os.chdir("..")
    return look(canary)


def chroot(canary):
    # The classic escape: with a root below the working directory, `..` is not stopped at the root.
    os.makedirs("/tmp/jail", exist_ok=True)
    os.chroot("/tmp/jail")
    return dots(canary)


answer(lambda: {"dots": dots, "descriptor": descriptor, "chroot": chroot}[sys.argv[1]](sys.argv[2]))
