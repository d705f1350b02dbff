"""Makes a system call by another calling convention: `int80` (32 bit) or `x32`."""
import ctypes
import mmap
import sys

from probing import answer, fail, syscall


def int80(number):
    # mov eax, number; xor ebx, ebx; int 0x80; ret
    code = b"\xb8" + number.to_bytes(4, "little") + b"\x53\x31\xdb\xcd\x80\x5b\xc3"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    result = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    if result < 0:
        ctypes.set_errno(-result)
        fail()
    return None


# 20 is getpid for 32-bit programs, 39 the same for 64-bit ones.
answer(lambda: int80(20) if sys.argv[1] == "int80" else syscall(0x40000000 | 39) and None)
