"""Listens on loopback and connects to itself."""
import socket

from probing import answer


def attempt():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with socket.create_connection(server.getsockname(), timeout=2) as client:
            peer, _ = server.accept()
            peer.send(b"hello")
            return None if client.recv(5) == b"hello" else "garbled"


answer(attempt)
