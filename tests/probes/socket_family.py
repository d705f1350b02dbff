"""Creates a socket of one family and type."""
import socket
import sys

from probing import answer

KINDS = {"stream": socket.SOCK_STREAM, "dgram": socket.SOCK_DGRAM, "raw": socket.SOCK_RAW, "seqpacket": socket.SOCK_SEQPACKET}
answer(lambda: socket.socket(int(sys.argv[1]), KINDS[sys.argv[2]], int(sys.argv[3])).close())
