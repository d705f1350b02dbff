"""Functions on kinds, conversions and numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator

from .catalogue import FUNCTIONS, Query, Scope, need, on_values
from .values import EvaluationError, Json, dump, is_number, is_true, kind, show, tidy

NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
SELECTORS = {
    "arrays": ("array",),
    "objects": ("object",),
    "iterables": ("array", "object"),
    "booleans": ("boolean",),
    "numbers": ("number",),
    "strings": ("string",),
    "nulls": ("null",),
    "values": ("boolean", "number", "string", "array", "object"),
    "scalars": ("null", "boolean", "number", "string"),
}


def register_selector(name: str, accepted: tuple[str, ...]) -> None:
    """Register a function that passes the input on when it is of the right kind."""

    def select_kind(_arguments: list[Query], value: Json, _scope: Scope) -> Iterator[Json]:
        if kind(value) in accepted:
            yield value

    FUNCTIONS[name, 0] = select_kind


for selector, kinds in SELECTORS.items():
    register_selector(selector, kinds)


@on_values("length")
def length(value: Json) -> Json:
    """Characters, items, entries, or the absolute value of a number; null has none."""
    if value is None:
        return 0
    if isinstance(value, bool):
        raise EvaluationError(f"boolean ({show(value)}) has no length")
    return abs(value) if is_number(value) else len(value)


@on_values("not")
def negate(value: Json) -> Json:
    """Whether the input is false or null."""
    return not is_true(value)


@on_values("type")
def type_of(value: Json) -> Json:
    """Name of the JSON type."""
    return kind(value)


@on_values("tostring")
def to_string(value: Json) -> Json:
    """Text as it is, anything else as JSON."""
    return value if isinstance(value, str) else dump(value)


@on_values("tojson")
def to_json(value: Json) -> Json:
    """JSON text of a value."""
    return dump(value)


@on_values("fromjson")
def from_json(value: Json) -> Json:
    """Value of a JSON text."""
    try:
        return json.loads(need(value, "string", "fromjson"), parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise EvaluationError(f"{show(value)} is not JSON") from error


def refuse_constant(word: str) -> Json:
    """NaN and Infinity are not JSON."""
    raise ValueError(word)


@on_values("tonumber")
def to_number(value: Json) -> Json:
    """Number of a text."""
    if is_number(value):
        return value
    text = need(value, "string", "tonumber").strip()
    if not NUMBER.fullmatch(text) or len(text) > 1000:
        raise EvaluationError(f"{show(value)} is not a number")
    return int(text) if text.lstrip("-").isdigit() else tidy(float(text))


def register_rounding(name: str, function: Callable[[float], float]) -> None:
    """Register a function of one number; integers need no rounding."""

    def apply(value: Json) -> Json:
        number = need(value, "number", name)
        return number if isinstance(number, int) else tidy(function(number))

    on_values(name)(apply)


register_rounding("floor", math.floor)
register_rounding("ceil", math.ceil)
register_rounding("round", lambda number: math.copysign(math.floor(abs(number) + 0.5), number))


@on_values("abs")
def absolute(value: Json) -> Json:
    """Absolute value."""
    return abs(need(value, "number", "abs"))


@on_values("sqrt")
def square_root(value: Json) -> Json:
    """Square root of a number that is not negative."""
    if need(value, "number", "sqrt") < 0:
        raise EvaluationError(f"{show(value)} has no square root")
    return tidy(math.sqrt(value))
