"""Listens on an abstract socket, `NAME SECONDS`: `met` after a connection, `alone` without one."""
import socket
import sys

from probing import answer


def attempt():
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("\0" + sys.argv[1])
        end.listen()
        end.settimeout(float(sys.argv[2]))
        print("listening", flush=True)
        try:
            end.accept()
        except socket.timeout:
            return "alone"
        return "met"


answer(attempt)
