"""Makes one system call with arguments that can do no harm.

`reached` means that the kernel examined the arguments; `EPERM` and `ENOSYS` mean that the call was refused before.
"""
import ctypes
import errno
import os
import sys

from probing import syscall

NOWHERE = b"/nonexistent/nothing"
BUFFER = ctypes.create_string_buffer(256)
CLONE_FLAGS = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x08000000,
               "uts": 0x04000000, "cgroup": 0x02000000, "time": 0x80}
BAD_TIME = (0).to_bytes(8, "little") + (2_000_000_000).to_bytes(8, "little")

CALLS = {
    "bpf": (321, -1, BUFFER, 0),
    "perf_event_open": (298, None, 0, -1, -1, 0),
    "userfaultfd": (323, 0x10000),
    "io_uring_setup": (425, 0, None),
    "io_uring_enter": (426, -1, 0, 0, 0, None, 0),
    "io_uring_register": (427, -1, 0, None, 0),
    "memfd_secret": (447, 0x1000),
    "kexec_load": (246, 0, 0, None, 0xFFFF),
    "kexec_file_load": (320, -1, -1, 0, None, 0xFFFF),
    "init_module": (175, None, 0, b""),
    "finit_module": (313, -1, b"", 0),
    "delete_module": (176, b"no-such-module", 0),
    "swapon": (167, NOWHERE, 0),
    "swapoff": (168, NOWHERE),
    "quotactl": (179, -1, NOWHERE, 0, None),
    "acct": (163, NOWHERE),
    "reboot": (169, 0, 0, 0, None),
    "iopl": (172, 77),
    "ioperm": (173, 0, 0, 0),
    "modify_ldt": (154, 0, BUFFER, 0),
    "lookup_dcookie": (212, 0, BUFFER, 0),
    "name_to_handle_at": (303, -1, b"x", BUFFER, None, 0),
    "open_by_handle_at": (304, -1, BUFFER, 0),
    "fanotify_init": (300, 0xFFFFF, 0),
    "fanotify_mark": (301, -1, 0, 0, -1, None),
    "add_key": (248, b"user", b"probe", b"x", 1, -2),
    "request_key": (249, b"user", b"no-such-key", None, 0),
    "keyctl": (250, 0, -2, 0),
    "ptrace": (101, 77, 0, None, None),
    "process_vm_readv": (310, 1, None, 0, None, 0, 0),
    "process_vm_writev": (311, 1, None, 0, None, 0, 0),
    "kcmp": (312, os.getpid(), os.getpid(), 77, 0, 0),
    "pidfd_getfd": (438, -1, 0, 0),
    "syslog": (103, 10, None, 0),
    "settimeofday": (164, BAD_TIME, None),
    "clock_settime": (227, 0, BAD_TIME),
    "adjtimex": (159, None),
    "clock_adjtime": (305, 0, None),
    "alarm_timer": (283, 8, 0),
    "sethostname": (170, BUFFER, -1),
    "setdomainname": (171, BUFFER, -1),
    "setns": (308, -1, 0),
    "clone3": (435, None, 0),
    "chroot": (161, NOWHERE),
    "pivot_root": (155, NOWHERE, NOWHERE),
    "mount": (165, NOWHERE, NOWHERE, b"no-such-filesystem", 0, None),
    "umount2": (166, NOWHERE, 0),
    "fsopen": (430, b"no-such-filesystem", 0),
    "fspick": (433, -1, b"x", 0),
    "open_tree": (428, -100, NOWHERE, 1),
    "move_mount": (429, -1, b"", -1, b"", 4),
    "mount_setattr": (442, -1, b"", 0, BUFFER, 0),
    "mbind": (237, 1, 0, 77, None, 0, 0),
    "move_pages": (279, os.getpid(), 0, None, None, None, 77),
    "process_madvise": (440, -1, None, 0, 0, 0),
    "personality_no_randomize": (135, 0x0040000),
    "personality_read_implies_exec": (135, 0x0400000),
}
CALLS.update({f"unshare_{name}": (272, flag) for name, flag in CLONE_FLAGS.items()})


def attempt(call):
    try:
        syscall(*call)
    except OSError as error:
        name = errno.errorcode.get(error.errno, str(error.errno))
        return name if name in ("EPERM", "ENOSYS", "EACCES") else "reached"
    return "reached"


if sys.argv[1].startswith("clone_"):
    # The child in a new namespace must not continue as a copy of this program.
    flag = CLONE_FLAGS[sys.argv[1][6:]]
    try:
        child = syscall(56, flag | 17, None, None, None, 0)
    except OSError as error:
        print(errno.errorcode[error.errno])
    else:
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        print("reached")
else:
    for name in sys.argv[1:]:
        print(attempt(CALLS[name]))
