#!/usr/bin/env python3
"""Describe a list of numbers as JSON, computed exactly and rounded only for print."""

from __future__ import annotations

import argparse
import json
import re
import sys
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
SEPARATORS = re.compile(r"[\s,;]+")
LARGEST = Decimal("1e300")
MAX_LISTED = 20


class UnreadableInputError(Exception):
    """The input file cannot be read as UTF-8 text."""


def split_words(text: str) -> list[tuple[int, str]]:
    """Return each word with its line number; `#` starts a comment."""
    words: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0]
        words += [(number, word) for word in SEPARATORS.split(content) if word]
    return words


def parse_numbers(words: list[tuple[int, str]]) -> tuple[list[Fraction], list[dict[str, object]]]:
    """Split the words into exact numbers and rejected words."""
    numbers: list[Fraction] = []
    rejected: list[dict[str, object]] = []
    for line, word in words:
        if NUMBER.fullmatch(word) and abs(Decimal(word)) < LARGEST:
            numbers.append(Fraction(Decimal(word)))
        else:
            rejected.append({"line": line, "word": word[:80]})
    return numbers, rejected


def quantile(ordered: list[Fraction], share: Fraction) -> Fraction:
    """Interpolate linearly between the two nearest ranks."""
    place = share * (len(ordered) - 1)
    index = int(place)
    if index + 1 == len(ordered):
        return ordered[index]
    return ordered[index] + (ordered[index + 1] - ordered[index]) * (place - index)


def modes(ordered: list[Fraction]) -> list[Fraction]:
    """Return the values that occur most often, or nothing when all occur once."""
    counts: dict[Fraction, int] = {}
    for number in ordered:
        counts[number] = counts.get(number, 0) + 1
    most = max(counts.values())
    return [number for number, count in counts.items() if count == most > 1]


class Rounding:
    """Turns exact results into JSON numbers of a fixed number of significant digits."""

    def __init__(self, digits: int) -> None:
        self.context = Context(prec=digits)
        self.inner = Context(prec=digits + 15)

    def decimal(self, value: Fraction) -> Decimal:
        """Divide with guard digits."""
        return self.inner.divide(Decimal(value.numerator), Decimal(value.denominator))

    def number(self, value: Fraction) -> float | int:
        """Round one result."""
        return self.tidy(self.decimal(value))

    def root(self, value: Fraction) -> float | int:
        """Round the square root of one result."""
        return self.tidy(self.inner.sqrt(self.decimal(value)))

    def tidy(self, value: Decimal) -> float | int:
        """Print whole numbers without a fraction."""
        rounded = self.context.plus(value)
        whole = rounded.to_integral_value()
        return int(whole) if rounded == whole and abs(whole) < 10**15 else float(rounded)


def describe(numbers: list[Fraction], rounding: Rounding) -> dict[str, object]:
    """Compute every statistic of a non-empty list."""
    ordered = sorted(numbers)
    count, total = len(ordered), sum(ordered, Fraction(0))
    mean = total / count
    squares = sum(((number - mean) ** 2 for number in ordered), Fraction(0))
    quartiles = {
        name: rounding.number(quantile(ordered, Fraction(share, 4)))
        for name, share in (("q1", 1), ("median", 2), ("q3", 3))
    }
    return {
        "count": count,
        "sum": rounding.number(total),
        "min": rounding.number(ordered[0]),
        "max": rounding.number(ordered[-1]),
        "range": rounding.number(ordered[-1] - ordered[0]),
        "mean": rounding.number(mean),
        **quartiles,
        "modes": [rounding.number(mode) for mode in modes(ordered)],
        "population_stdev": rounding.root(squares / count),
        "sample_stdev": rounding.root(squares / (count - 1)) if count > 1 else None,
    }


def parse_digits(text: str) -> int:
    """Parse the number of significant digits."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 17:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 1 and 17")
    return int(text)


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="stats.py",
        description=__doc__,
        epilog="Numbers in a file are separated by blanks, commas, semicolons or line ends; # starts a comment.",
    )
    parser.add_argument("file", metavar="FILE", help="text file with numbers, or - for standard input")
    parser.add_argument("--digits", type=parse_digits, default=12, metavar="D", help="significant digits, default 12")
    return parser.parse_args(argv)


def read_text(name: str) -> str:
    """Read the file, or standard input for a dash."""
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableInputError(f"cannot read {name}: {error}") from error


def main(argv: list[str]) -> int:
    """Print the description and return the exit code."""
    arguments = parse_arguments(argv)
    try:
        words = split_words(read_text(arguments.file))
    except UnreadableInputError as error:
        print(f"stats.py: {error}", file=sys.stderr)
        return 2
    numbers, rejected = parse_numbers(words)
    report = describe(numbers, Rounding(arguments.digits)) if numbers else {"count": 0}
    report |= {"rejected_count": len(rejected), "rejected": rejected[:MAX_LISTED]}
    print(json.dumps(report, indent=2, ensure_ascii=False))
    if not numbers:
        print("stats.py: the input holds no numbers", file=sys.stderr)
    return 1 if rejected or not numbers else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
