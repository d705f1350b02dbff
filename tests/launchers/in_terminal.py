#!/usr/bin/env python3
"""Runs a command with a terminal of its own, and prints the input that was injected into this terminal.

usage: in_terminal.py COMMAND…

stdout: one JSON object with `output` (the output on the terminal) and `typed` (the input that a reader of the terminal
gets after the command has ended).
"""
import fcntl
import json
import os
import pty
import select
import sys
import termios
import time


def main():
    pid, terminal = pty.fork()
    if pid == 0:
        # The terminal stays the controlling one of this process, so that injected input has a reader.
        child = os.fork()
        if child == 0:
            os.execvp(sys.argv[1], sys.argv[1:])
        _, status = os.waitpid(child, 0)
        attributes = termios.tcgetattr(0)
        attributes[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(0, termios.TCSANOW, attributes)
        fcntl.fcntl(0, fcntl.F_SETFL, os.O_NONBLOCK)
        try:
            typed = os.read(0, 4096)
        except BlockingIOError:
            typed = b""
        print(f"\nTYPED {typed.hex() or '-'}\n", flush=True)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    shown, deadline = b"", time.monotonic() + 100
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                piece = os.read(terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
    os.waitpid(pid, 0)
    before, _, after = shown.rpartition(b"TYPED ")
    word = after.split()[0].decode() if after.split() else "-"
    typed = "" if word == "-" else bytes.fromhex(word).decode(errors="replace")
    print(json.dumps({"output": before.decode(errors="replace"), "typed": typed}))


main()
