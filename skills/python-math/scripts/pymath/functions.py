"""The functions and constants of the calculator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from decimal import Overflow as DecimalOverflow
from fractions import Fraction

from .numbers import MAX_BITS, CalculationError, Number, checked, to_decimal

GUARD_DIGITS = 15
MAX_FACTORIAL = 10_000
MAX_CHOICE = 100_000
MANY = 1000


@dataclass(frozen=True)
class Function:
    """A callable and how many arguments it takes."""

    fewest: int
    most: int
    apply: Callable[[list[Number], int], Number]


def working(digits: int) -> Context:
    """Return a context with guard digits."""
    return Context(prec=digits + GUARD_DIGITS, Emax=100_000, Emin=-100_000, traps=[DecimalOverflow])


def approximate(value: Decimal) -> Number:
    """Wrap a rounded result."""
    if not value.is_finite():
        raise CalculationError("the result is not a finite number")
    return Number(checked(Fraction(value)), exact=False)


def integer(number: Number, name: str) -> int:
    """Demand a whole number that is not negative."""
    if number.value.denominator != 1 or number.value < 0:
        raise CalculationError(f"{name} needs whole numbers that are not negative")
    return number.value.numerator


def exact_root(value: Fraction, degree: int) -> Fraction | None:
    """Return the rational root of a value that is not negative, if there is one."""
    parts = [integer_root(part, degree) for part in (value.numerator, value.denominator)]
    if None in parts:
        return None
    return Fraction(parts[0] or 0, parts[1] or 1)


def integer_root(n: int, degree: int) -> int | None:
    """Return the exact integer root by bisection, if there is one."""
    low, high = 0, 1 << (n.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree < n:
            low = middle + 1
        else:
            high = middle
    return low if low**degree == n else None


def power(base: Number, exponent: Number, digits: int) -> Number:
    """Raise exactly where the result is rational, and approximate otherwise."""
    if base.value == 0 and exponent.value < 0:
        raise ZeroDivisionError
    exact = base.exact and exponent.exact
    degree = exponent.value.denominator
    root: Fraction | None = base.value
    if degree != 1:
        if base.value < 0:
            raise CalculationError("a root of a negative number is not real")
        root = exact_root(base.value, degree) if exact and degree <= MANY else None
    if root is not None:
        return Number(whole_power(root, exponent.value.numerator), exact)
    context = working(digits)
    try:
        return approximate(context.power(to_decimal(base.value, context), to_decimal(exponent.value, context)))
    except DecimalOverflow as error:
        raise CalculationError("the result is too large") from error


def whole_power(base: Fraction, exponent: int) -> Fraction:
    """Raise to a whole power after estimating the size of the result."""
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(base) != 1 and base != 0 and bits * abs(exponent) > MAX_BITS + bits:
        raise CalculationError(f"a number grew beyond {MAX_BITS} bits")
    if abs(base) == 1:
        return base if exponent % 2 else Fraction(1)
    return checked(base**exponent)


def square_root(arguments: list[Number], digits: int) -> Number:
    """sqrt(x)."""
    return power(arguments[0], Number(Fraction(1, 2)), digits)


def root_of(arguments: list[Number], digits: int) -> Number:
    """root(x, n); an odd root of a negative number is negative."""
    base, degree = arguments[0], integer(arguments[1], "root")
    if degree == 0:
        raise ZeroDivisionError
    exponent = Number(Fraction(1, degree))
    if base.value < 0 and degree % 2:
        positive = power(Number(-base.value, base.exact), exponent, digits)
        return Number(-positive.value, positive.exact)
    return power(base, exponent, digits)


def by_decimal(method: str) -> Callable[[list[Number], int], Number]:
    """Wrap one of decimal's own correctly rounded functions."""

    def apply(arguments: list[Number], digits: int) -> Number:
        context = working(digits)
        value = to_decimal(arguments[0].value, context)
        if method != "exp" and value <= 0:
            raise CalculationError("a logarithm needs a positive number")
        try:
            result: Decimal = getattr(context, method)(value)
        except DecimalOverflow as error:
            raise CalculationError("the result is too large") from error
        return approximate(result)

    return apply


def logarithm(arguments: list[Number], digits: int) -> Number:
    """log(x, base); exact when the base's power hits x."""
    if len(arguments) == 1:
        return by_decimal("ln")(arguments, digits)
    top, bottom = (by_decimal("ln")([argument], digits).value for argument in arguments)
    if bottom == 0:
        raise CalculationError("a logarithm's base cannot be 1")
    quotient = top / bottom
    nearest = round(quotient)
    exact = all(argument.exact for argument in arguments)
    if exact and abs(nearest) <= MANY and arguments[1].value ** nearest == arguments[0].value:
        return Number(Fraction(nearest))
    return Number(quotient, exact=False)


def pi(digits: int) -> Number:
    """Machin's formula in whole-number arithmetic."""
    one = 10 ** (digits + GUARD_DIGITS)

    def arctangent_of_inverse(x: int) -> int:
        term: int = one // x
        total = term
        divisor, sign = 1, 1
        while term:
            term //= x * x
            divisor, sign = divisor + 2, -sign
            total += sign * (term // divisor)
        return total

    value = 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))
    return Number(Fraction(value, one), exact=False)


def sine(angle: Fraction, digits: int) -> Number:
    """Sum the series of the sine, after bringing the angle into one turn."""
    extra = len(str(abs(angle.numerator) // angle.denominator))
    turn = 2 * pi(digits + extra).value
    reduced = angle - turn * round(angle / turn)
    one = 10 ** (digits + GUARD_DIGITS)
    x = int(reduced * one)
    term = total = x
    n = 1
    while term:
        term = -term * x // one * x // one // ((n + 1) * (n + 2))
        n += 2
        total += term
        if abs(term) <= 1:
            break
    return Number(Fraction(total, one), exact=False)


def cosine(angle: Fraction, digits: int) -> Number:
    """The sine a quarter turn ahead."""
    extra = len(str(abs(angle.numerator) // angle.denominator))
    return sine(angle + pi(digits + extra).value / 2, digits)


def tangent(angle: Fraction, digits: int) -> Number:
    """Sine over cosine."""
    return Number(sine(angle, digits).value / cosine(angle, digits).value, exact=False)


def trigonometric(function: Callable[[Fraction, int], Number]) -> Callable[[list[Number], int], Number]:
    """Give a function of an angle the common shape; zero is kept exact."""

    def apply(arguments: list[Number], digits: int) -> Number:
        angle = arguments[0].value
        if angle == 0 and arguments[0].exact:
            return Number(Fraction(1 if function is cosine else 0))
        if abs(angle) > 10**50:
            raise CalculationError("the angle is beyond 10**50")
        return function(angle, digits)

    return apply


def rounding(arguments: list[Number], _digits: int) -> Number:
    """round(x) or round(x, places), halves to even."""
    places = integer(arguments[1], "round") if len(arguments) == 2 else 0
    if places > MANY:
        raise CalculationError(f"round takes at most {MANY} places")
    return Number(Fraction(round(arguments[0].value, places)), arguments[0].exact)


def factorial(arguments: list[Number], _digits: int) -> Number:
    """The product of 1 to n, for a bounded n."""
    n = integer(arguments[0], "factorial")
    if n > MAX_FACTORIAL:
        raise CalculationError(f"factorial takes at most {MAX_FACTORIAL}")
    return Number(checked(Fraction(math.factorial(n))))


def choice(name: str, count: Callable[[int, int], int]) -> Callable[[list[Number], int], Number]:
    """Wrap comb and perm with a bound."""

    def apply(arguments: list[Number], _digits: int) -> Number:
        n, k = (integer(argument, name) for argument in arguments)
        if n > MAX_CHOICE or (name == "perm" and k * n.bit_length() > 2 * MAX_BITS):
            raise CalculationError(f"the arguments of {name} are too large")
        return Number(checked(Fraction(count(n, k))))

    return apply


def folding(function: Callable[..., int]) -> Callable[[list[Number], int], Number]:
    """Wrap gcd and lcm."""

    def apply(arguments: list[Number], _digits: int) -> Number:
        return Number(checked(Fraction(function(*(integer(argument, function.__name__) for argument in arguments)))))

    return apply


def picking(pick: Callable[..., Number]) -> Callable[[list[Number], int], Number]:
    """Wrap min and max."""
    return lambda arguments, _digits: pick(arguments, key=lambda number: number.value)


def simple(function: Callable[[Fraction], Fraction | int]) -> Callable[[list[Number], int], Number]:
    """Wrap a function of one exact value."""
    return lambda arguments, _digits: Number(Fraction(function(arguments[0].value)), arguments[0].exact)


def total(arguments: list[Number], _digits: int) -> Number:
    """sum(a, b, …)."""
    value = sum((argument.value for argument in arguments), Fraction(0))
    return Number(checked(value), all(argument.exact for argument in arguments))


FUNCTIONS: dict[str, Function] = {
    "abs": Function(1, 1, simple(abs)),
    "ceil": Function(1, 1, simple(math.ceil)),
    "comb": Function(2, 2, choice("comb", math.comb)),
    "cos": Function(1, 1, trigonometric(cosine)),
    "exp": Function(1, 1, by_decimal("exp")),
    "factorial": Function(1, 1, factorial),
    "floor": Function(1, 1, simple(math.floor)),
    "gcd": Function(1, MANY, folding(math.gcd)),
    "lcm": Function(1, MANY, folding(math.lcm)),
    "ln": Function(1, 1, by_decimal("ln")),
    "log": Function(1, 2, logarithm),
    "log10": Function(1, 1, by_decimal("log10")),
    "max": Function(1, MANY, picking(max)),
    "min": Function(1, MANY, picking(min)),
    "perm": Function(2, 2, choice("perm", math.perm)),
    "root": Function(2, 2, root_of),
    "round": Function(1, 2, rounding),
    "sin": Function(1, 1, trigonometric(sine)),
    "sqrt": Function(1, 1, square_root),
    "sum": Function(1, MANY, total),
    "tan": Function(1, 1, trigonometric(tangent)),
}

CONSTANTS: dict[str, Callable[[int], Number]] = {
    "e": lambda digits: approximate(working(digits).exp(Decimal(1))),
    "pi": pi,
    "tau": lambda digits: Number(2 * pi(digits).value, exact=False),
}
