"""Lists the open descriptors of this process, with their kinds."""
import os
import stat

KINDS = {stat.S_IFIFO: "fifo", stat.S_IFCHR: "char", stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFSOCK: "socket"}
found = []
for number in range(1024):
    try:
        found.append(f"{number}:{KINDS.get(stat.S_IFMT(os.fstat(number).st_mode), 'other')}")
    except OSError:
        continue
print(",".join(found), flush=True)
