"""Exact numbers, their size bound and their decimal spelling."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, Inexact
from fractions import Fraction

MAX_BITS = 200_000


class CalculationError(Exception):
    """An expression that cannot be evaluated; the text says why."""


@dataclass(frozen=True)
class Number:
    """A value, and whether it is exact or an approximation that was rounded."""

    value: Fraction
    exact: bool = True


def checked(value: Fraction) -> Fraction:
    """Refuse a value whose size has run away."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise CalculationError(f"a number grew beyond {MAX_BITS} bits")
    return value


def to_decimal(value: Fraction, context: Context) -> Decimal:
    """Round a fraction to the context's precision."""
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def finite_places(denominator: int) -> int | None:
    """Return how many decimal places 1/denominator needs, or None when it never ends."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else None


def decimal_text(value: Fraction, digits: int) -> tuple[str, bool]:
    """Spell a value in decimal; the flag says whether rounding was needed.

    Integers and short finite decimals are written out in full, whatever `digits` says.
    """
    if value.denominator == 1:
        return str(value.numerator), False
    places = finite_places(value.denominator)
    if places is not None and places <= max(digits, 30):
        scaled = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
        sign = "-" if value < 0 else ""
        return f"{sign}{scaled[:-places]}.{scaled[-places:]}", False
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emax=10**6, Emin=-(10**6))
    text = str(to_decimal(value, context))
    return text, bool(context.flags[Inexact])
