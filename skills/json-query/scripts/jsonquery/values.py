"""JSON values: their kinds, their order, and arithmetic on them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

# What a JSON text can hold; the functions look at the kind of a value when they run.
Json = Any

MAX_TEXT = 64 * 1024 * 1024


class EvaluationError(Exception):
    """A value does not allow what the query asks of it."""


def kind(value: Json) -> str:
    """Name the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def is_number(value: Json) -> bool:
    """Whether a value is a number; truth values are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_true(value: Json) -> bool:
    """Everything but false and null is true."""
    return value is not None and value is not False


def show(value: Json) -> str:
    """Spell a value shortly for an error message."""
    text = dump(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def sort_key(value: Json) -> tuple[Any, ...]:
    """Order all values: null, false, true, numbers, strings, arrays, objects."""
    name = kind(value)
    if name == "boolean":
        return (2 if value else 1,)
    if isinstance(value, list):
        return (5, [sort_key(item) for item in value])
    if isinstance(value, dict):
        keys = sorted(value)
        return (6, keys, [sort_key(value[key]) for key in keys])
    return ({"null": 0, "number": 3, "string": 4}[name], *([] if value is None else [value]))


def equal(left: Json, right: Json) -> bool:
    """Compare as JSON does: true is not 1."""
    return sort_key(left) == sort_key(right)


def tidy(number: float) -> int | float:
    """Turn a float without fraction into an integer, and refuse what JSON cannot spell."""
    if isinstance(number, int):
        return number
    if not math.isfinite(number):
        raise EvaluationError("the result is not a finite number")
    return int(number) if number.is_integer() and abs(number) < 1e17 else number


def dump(value: Json, indent: int | None = None, *, sort: bool = False) -> str:
    """Spell a value as JSON; text stays readable in any script."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(tidy_deep(value), ensure_ascii=False, indent=indent, separators=separators, sort_keys=sort)
    # Half of a surrogate pair is no character and cannot be written as UTF-8.
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if has_surrogate(text) else text


def has_surrogate(text: str) -> bool:
    """Whether a text holds half of a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def tidy_deep(value: Json) -> Json:
    """Tidy every number inside a value."""
    if isinstance(value, float):
        return tidy(value)
    if isinstance(value, list):
        return [tidy_deep(item) for item in value]
    if isinstance(value, dict):
        return {key: tidy_deep(item) for key, item in value.items()}
    return value


def walk(value: Json) -> Iterator[Json]:
    """The value and everything inside it, the outer first, however deep."""
    pending = [value]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, (list, dict)):
            inside = current if isinstance(current, list) else list(current.values())
            pending.extend(reversed(inside))


def fail(verb: str, left: Json, right: Json) -> EvaluationError:
    """The error of an operation on unfitting kinds."""
    return EvaluationError(f"{kind(left)} ({show(left)}) and {kind(right)} ({show(right)}) cannot be {verb}")


def add(left: Json, right: Json) -> Json:
    """Sum of numbers, concatenation of texts and arrays, union of objects; null adds nothing."""
    if left is None:
        return right
    if right is None:
        return left
    if is_number(left) and is_number(right):
        return tidy(left + right)
    if kind(left) == kind(right) and isinstance(left, (str, list)):
        if len(left) + len(right) > MAX_TEXT:
            raise EvaluationError("the result is too long")
        return left + right
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **right}
    raise fail("added", left, right)


def subtract(left: Json, right: Json) -> Json:
    """Difference of numbers, or an array without the items of another."""
    if is_number(left) and is_number(right):
        return tidy(left - right)
    if isinstance(left, list) and isinstance(right, list):
        return [item for item in left if not any(equal(item, other) for other in right)]
    raise fail("subtracted", left, right)


def multiply(left: Json, right: Json) -> Json:
    """Product of numbers, repetition of a text, deep union of objects."""
    if is_number(left) and is_number(right):
        return checked_product(left, right)
    if isinstance(right, str) and is_number(left):
        left, right = right, left
    if isinstance(left, str) and is_number(right):
        if len(left) * right > MAX_TEXT:
            raise EvaluationError("the result is too long")
        return left * max(1, math.ceil(right)) if right > 0 else None
    if isinstance(left, dict) and isinstance(right, dict):
        return merge(left, right)
    raise fail("multiplied", left, right)


def checked_product(left: float, right: float) -> int | float:
    """Multiply; integers stay exact up to a size that nobody needs to exceed."""
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > 10_000:
            raise EvaluationError("the result is too large")
        return left * right
    return tidy(float(left) * float(right))


def merge(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Union of objects that also unites objects inside."""
    result = dict(left)
    for key, value in right.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merge(result[key], value) if both else value
    return result


def divide(left: Json, right: Json) -> Json:
    """Quotient of numbers, or the pieces of a text."""
    if is_number(left) and is_number(right):
        if right == 0:
            raise EvaluationError(f"{show(left)} cannot be divided by zero")
        if isinstance(left, int) and isinstance(right, int) and left % right == 0:
            return left // right
        return tidy(left / right)
    if isinstance(left, str) and isinstance(right, str):
        return left.split(right) if right else list(left)
    raise fail("divided", left, right)


def remainder(left: Json, right: Json) -> Json:
    """Remainder of whole parts, with the sign of the left side."""
    if not (is_number(left) and is_number(right)):
        raise fail("divided", left, right)
    whole, divisor = int(left), abs(int(right))
    if divisor == 0:
        raise EvaluationError(f"{show(left)} cannot be divided by zero")
    return -(-whole % divisor) if whole < 0 else whole % divisor
