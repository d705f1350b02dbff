#!/usr/bin/env python3
"""Evaluate arithmetic exactly: fractions stay fractions, decimals stay decimals."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

# The skill's tree may be read-only, and its digest must not change by use.
sys.dont_write_bytecode = True

from pymath.evaluate import CalculationError, Evaluator  # noqa: E402
from pymath.numbers import Number, decimal_text  # noqa: E402

MAX_DIGITS = 2000


def answer(expression: str, digits: int) -> dict[str, object]:
    """Evaluate one expression into its JSON object."""
    try:
        number = Evaluator(digits).evaluate(expression)
        decimal, rounded = decimal_text(number.value, digits)
    except CalculationError as error:
        return {"expression": expression, "error": str(error)}
    return {
        "expression": expression,
        "exact": exact_text(number),
        "decimal": decimal,
        "rounded": rounded or not number.exact,
    }


def exact_text(number: Number) -> str | None:
    """Spell an exact value as an integer or a fraction in lowest terms."""
    return str(number.value) if number.exact else None


def parse_digits(text: str) -> int:
    """Parse the number of significant digits."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_DIGITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 1 and {MAX_DIGITS}")
    return int(text)


def protect_signs(argv: list[str]) -> list[str]:
    """Keep argparse from taking an expression such as `-1+2` for an option."""
    return [
        f" {word}" if word.startswith("-") and not word.startswith("--") and word not in ("-", "-h") else word
        for word in argv
    ]


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="calc.py",
        description=__doc__,
        epilog="Operators + - * / // %% **, parentheses, and the functions of references/calc.md.",
    )
    parser.add_argument("expressions", metavar="EXPRESSION", nargs="*", help="what to evaluate; quote it")
    parser.add_argument("--file", help="read one expression per line from FILE, or - for standard input")
    parser.add_argument(
        "--digits", type=parse_digits, default=30, metavar="D", help="significant digits of rounded results, default 30"
    )
    arguments = parser.parse_args(protect_signs(argv))
    if bool(arguments.expressions) == bool(arguments.file):
        parser.error("give expressions, or --file, but not both")
    return arguments


def read_expressions(arguments: argparse.Namespace) -> list[str]:
    """Collect the expressions from the command line or the file."""
    if not arguments.file:
        return [expression.strip() for expression in arguments.expressions]
    raw = sys.stdin.buffer.read() if arguments.file == "-" else Path(arguments.file).read_bytes()
    lines = (line.partition("#")[0].strip() for line in raw.decode("utf-8-sig").splitlines())
    return [line for line in lines if line]


def main(argv: list[str]) -> int:
    """Print one JSON object per expression and return the exit code."""
    arguments = parse_arguments(argv)
    if hasattr(sys, "set_int_max_str_digits"):
        # Sizes are bounded by the evaluator itself.
        sys.set_int_max_str_digits(0)
    try:
        expressions = read_expressions(arguments)
    except (OSError, UnicodeDecodeError) as error:
        print(f"calc.py: cannot read {arguments.file}: {error}", file=sys.stderr)
        return 2
    failed = 0
    for expression in expressions:
        result = answer(expression, arguments.digits)
        failed += "error" in result
        print(json.dumps(result, ensure_ascii=False))
    if failed:
        print(f"calc.py: {failed} of {len(expressions)} expressions failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
