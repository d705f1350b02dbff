#!/usr/bin/env python3
"""List, test and factor integers; every answer is proven, none is probable."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator

# Below this bound the thirteen bases decide primality without error
# (Sorenson and Webster, 2015).
PROVEN_BELOW = 3_317_044_064_679_887_385_961_981
BASES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
MAX_SPAN = 1_000_000


def is_prime(n: int) -> bool:
    """Decide primality by Miller and Rabin with bases that are proven to suffice."""
    if n < 2:
        return False
    for base in BASES:
        if n % base == 0:
            return n == base
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return not any(is_witness(base, odd, twos, n) for base in BASES)


def is_witness(base: int, odd: int, twos: int, n: int) -> bool:
    """Say whether `base` proves that n, with n - 1 = odd · 2^twos, is composite."""
    power = pow(base, odd, n)
    if power in (1, n - 1):
        return False
    for _ in range(twos - 1):
        power = power * power % n
        if power == n - 1:
            return False
    return True


def find_divisor(n: int) -> int:
    """Return a proper divisor of the composite n by Pollard's rho, in Brent's form."""
    if n % 2 == 0:
        return 2
    for increment in range(1, n):
        divisor = rho(n, increment)
        if divisor != n:
            return divisor
    raise AssertionError(f"{n} has no divisor")


def rho(n: int, increment: int) -> int:
    """Walk x → x² + increment (mod n) until two values share a factor with n."""
    tortoise = hare = resume = 2
    divisor = product = 1
    steps = 1
    while divisor == 1:
        tortoise = hare
        for _ in range(steps):
            hare = (hare * hare + increment) % n
        done = 0
        while done < steps and divisor == 1:
            resume = hare
            for _ in range(min(128, steps - done)):
                hare = (hare * hare + increment) % n
                product = product * abs(tortoise - hare) % n
            divisor = math.gcd(product, n)
            done += 128
        steps *= 2
    if divisor != n:
        return divisor
    # The batch swallowed the factor: walk it again one step at a time.
    divisor = 1
    while divisor == 1:
        resume = (resume * resume + increment) % n
        divisor = math.gcd(abs(tortoise - resume), n)
    return divisor


def factorise(n: int) -> list[tuple[int, int]]:
    """Return the prime factors of n ≥ 1 with their powers, ascending."""
    powers: dict[int, int] = {}
    pending = [n]
    while pending:
        part = pending.pop()
        if part == 1:
            continue
        if is_prime(part):
            powers[part] = powers.get(part, 0) + 1
        else:
            divisor = find_divisor(part)
            pending += [divisor, part // divisor]
    return sorted(powers.items())


def primes_between(low: int, high: int) -> Iterator[int]:
    """Yield the primes of [low, high] in order."""
    if high - low < 1000 or low > 10**12:
        yield from (n for n in range(low, high + 1) if is_prime(n))
        return
    low = max(low, 2)
    composite = bytearray(high - low + 1)
    for divisor in range(2, math.isqrt(high) + 1):
        start = max(divisor * divisor, -(-low // divisor) * divisor)
        composite[start - low :: divisor] = b"\1" * len(range(start, high + 1, divisor))
    yield from (low + offset for offset, hit in enumerate(composite) if not hit)


def parse_integer(text: str) -> int:
    """Parse one integer within the proven range."""
    try:
        n = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not 0 <= n < PROVEN_BELOW:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {PROVEN_BELOW - 1}")
    return n


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="primes.py", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="print the primes from LOW to HIGH, one per line")
    listing.add_argument("low", metavar="LOW", type=parse_integer)
    listing.add_argument("high", metavar="HIGH", type=parse_integer)
    for name, text in (("check", "say whether each N is prime"), ("factor", "factor each N")):
        command = commands.add_parser(name, help=f"{text}, one JSON object per line")
        command.add_argument("numbers", metavar="N", type=parse_integer, nargs="+")
    arguments = parser.parse_args(argv)
    if arguments.command == "list" and not 0 <= arguments.high - arguments.low <= MAX_SPAN:
        listing.error(f"HIGH must be at least LOW and at most LOW + {MAX_SPAN}")
    return arguments


def describe(command: str, n: int) -> dict[str, object]:
    """Build the JSON answer for one number."""
    if command == "check":
        return {"n": n, "prime": is_prime(n)}
    if n == 0:
        # Every number divides zero, so there is no list to give.
        return {"n": n, "factors": None}
    return {"n": n, "factors": [{"prime": prime, "power": power} for prime, power in factorise(n)]}


def main(argv: list[str]) -> int:
    """Answer and return the exit code."""
    arguments = parse_arguments(argv)
    if arguments.command == "list":
        for prime in primes_between(arguments.low, arguments.high):
            print(prime)
    else:
        for n in arguments.numbers:
            print(json.dumps(describe(arguments.command, n)))
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
