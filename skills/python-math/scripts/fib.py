#!/usr/bin/env python3
"""Print the first N Fibonacci numbers, one per line, starting at 0."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

MAX_COUNT = 20_000


def fibonacci(count: int) -> Iterator[int]:
    """Yield the first `count` Fibonacci numbers: 0, 1, 1, 2, 3, …"""
    current, following = 0, 1
    for _ in range(count):
        yield current
        current, following = following, current + following


def parse_count(text: str) -> int:
    """Parse N; argparse turns the error into exit code 2."""
    try:
        count = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not 0 <= count <= MAX_COUNT:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {MAX_COUNT}")
    return count


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="fib.py",
        description=__doc__,
        epilog="Example: python3 scripts/fib.py 10 > out/fib.txt",
    )
    parser.add_argument("count", metavar="N", type=parse_count, help=f"how many numbers, 0 to {MAX_COUNT}")
    parser.add_argument("--last", action="store_true", help="print only the N-th number")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Print the numbers and return the exit code."""
    arguments = parse_arguments(argv)
    last = arguments.count - 1
    for position, number in enumerate(fibonacci(arguments.count)):
        if position == last or not arguments.last:
            print(number)
    return 0


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed early, as `head` does; that is no failure of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)
