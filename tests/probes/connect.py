"""Connects to an address: `tcp HOST PORT`, `udp HOST PORT` (and sends), `unix PATH`, `abstract NAME`, `name HOST`."""
import socket
import sys

from probing import answer


def attempt():
    way, target = sys.argv[1], sys.argv[2]
    if way == "name":
        try:
            socket.getaddrinfo(target, 80)
        except socket.gaierror:
            return "refused"
        return None
    if way in ("unix", "abstract"):
        with socket.socket(socket.AF_UNIX) as end:
            end.settimeout(2)
            end.connect("\0" + target if way == "abstract" else target)
        return None
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    kind = socket.SOCK_STREAM if way == "tcp" else socket.SOCK_DGRAM
    with socket.socket(family, kind) as end:
        end.settimeout(2)
        end.connect((target, int(sys.argv[3])))
        end.send(b"x")
    return None


answer(attempt)
