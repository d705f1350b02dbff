"""Changes the network: `up` brings the loopback interface up, `address` gives it another address."""
import fcntl
import socket
import struct
import sys

from probing import answer

SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCSIFADDR, IFF_UP = 0x8913, 0x8914, 0x8916, 1


def attempt():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        if sys.argv[1] == "up":
            fcntl.ioctl(end, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP) + bytes(14))
        else:
            address = struct.pack("16sHH4s", b"lo", socket.AF_INET, 0, socket.inet_aton("10.9.8.7"))
            fcntl.ioctl(end, SIOCSIFADDR, address + bytes(8))


answer(attempt)
