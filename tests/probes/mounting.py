"""Mounts in one way: bind, remount, unmount, pivot, tmpfs, proc, overlay, cgroup, fsopen, open_tree, mount_setattr."""
import os
import sys

from probing import answer, checked, libc, syscall

MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
AT_FDCWD, OPEN_TREE_CLONE, MNT_DETACH = -100, 1, 2


def mount(source, target, kind, flags, data=None):
    checked(libc.mount(source, target, kind, flags, data))


def bind(target):
    mount(target, target, None, MS_BIND)


def remount(target):
    # Outside, the target has to be a read-only mount first.
    if len(sys.argv) > 3:
        bind(target)
        mount(None, target, None, MS_BIND | MS_REMOUNT | MS_RDONLY)
    mount(None, target, None, MS_BIND | MS_REMOUNT)
    os.close(os.open(os.path.join(target, b"remounted"), os.O_WRONLY | os.O_CREAT))


def unmount(target):
    if len(sys.argv) > 3:
        bind(target)
    checked(libc.umount2(target, MNT_DETACH))


def pivot(target):
    if len(sys.argv) > 3:
        mount(None, b"/", None, MS_REC | MS_PRIVATE)
        bind(target)
    os.chdir(target)
    syscall(155, b".", b".")


def open_tree(target):
    os.close(syscall(428, AT_FDCWD, target, OPEN_TREE_CLONE))


def move_mount(target):
    tree = syscall(428, AT_FDCWD, target, OPEN_TREE_CLONE) if len(sys.argv) > 3 else 0
    syscall(429, tree, b"", AT_FDCWD, target, 4)


def fsopen(_):
    context = syscall(430, b"tmpfs", 0)
    syscall(431, context, 6, None, None, 0)
    os.close(syscall(432, context, 0, 0))


def mount_setattr(target):
    if len(sys.argv) > 3:
        bind(target)
    attributes = (1).to_bytes(8, "little") + bytes(24)
    syscall(442, AT_FDCWD, target, 0, attributes, len(attributes))


def overlay(target):
    mount(b"overlay", target, b"overlay", 0, b"lowerdir=/usr:/etc")


WAYS = {
    "bind": bind, "remount": remount, "unmount": unmount, "pivot": pivot, "open_tree": open_tree,
    "move_mount": move_mount, "fsopen": fsopen, "mount_setattr": mount_setattr, "overlay": overlay,
    "tmpfs": lambda target: mount(b"none", target, b"tmpfs", 0),
    "proc": lambda target: mount(b"none", target, b"proc", 0),
    "cgroup": lambda target: mount(b"none", target, b"cgroup2", 0),
}
answer(lambda: WAYS[sys.argv[1]](os.fsencode(sys.argv[2])))
