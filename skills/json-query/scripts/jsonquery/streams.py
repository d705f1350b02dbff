"""Functions on streams of outputs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from .catalogue import FUNCTIONS, Query, Scope, items_of, need, on_queries, on_values
from .values import EvaluationError, Json, dump, is_number, is_true, walk


@on_queries("empty")
def empty(_arguments: list[Query], _value: Json, _scope: Scope) -> Iterator[Json]:
    """Nothing."""
    return iter(())


@on_queries("select", 1)
def select(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
    """The input, for each true output of the condition."""
    return (value for verdict in arguments[0].run(value, scope) if is_true(verdict))


@on_queries("recurse")
def recurse(_arguments: list[Query], value: Json, _scope: Scope) -> Iterator[Json]:
    """The value and everything inside it."""
    return walk(value)


@on_queries("limit", 2)
def limit(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
    """The first so many outputs."""
    for count in arguments[0].run(value, scope):
        yield from itertools.islice(arguments[1].run(value, scope), max(0, int(need(count, "number", "limit"))))


@on_queries("first", 1)
def first_of(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
    """The first output, if there is one."""
    return itertools.islice(arguments[0].run(value, scope), 1)


@on_queries("last", 1)
def last_of(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
    """The last output, if there is one."""
    found: list[Json] = []
    for output in arguments[0].run(value, scope):
        found = [output]
    yield from found


@on_queries("isempty", 1)
def is_empty(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
    """Whether there is no output."""
    yield next((False for _ in arguments[0].run(value, scope)), True)


@on_values("error")
def raise_input(value: Json) -> Json:
    """End with the input as the error."""
    raise EvaluationError(value if isinstance(value, str) else dump(value))


@on_values("error", 1)
def raise_error(_value: Json, message: Json) -> Json:
    """End with an error."""
    raise EvaluationError(message if isinstance(message, str) else dump(message))


def register_quantifier(name: str, *, one_suffices: bool) -> None:
    """Register any and all, over the items or over a condition on them."""

    def run(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
        items = items_of(value, name)
        verdicts = (v for item in items for v in (arguments[0].run(item, scope) if arguments else (item,)))
        yield any(map(is_true, verdicts)) if one_suffices else all(map(is_true, verdicts))

    FUNCTIONS[name, 0] = FUNCTIONS[name, 1] = run


register_quantifier("any", one_suffices=True)
register_quantifier("all", one_suffices=False)


def count_up(value: Json, scope: Scope, start: Query | None, end: Query, step: Query | None) -> Iterator[Json]:
    """Count from each start to each end by each step."""
    starts: list[Any] = list(start.run(value, scope)) if start else [0]
    steps: list[Any] = list(step.run(value, scope)) if step else [1]
    for first, last, stride in itertools.product(starts, list(end.run(value, scope)), steps):
        if not all(map(is_number, (first, last, stride))):
            raise EvaluationError("range needs numbers")
        current: Any = first
        while (stride > 0 and current < last) or (stride < 0 and current > last):
            yield current
            current += stride


FUNCTIONS["range", 1] = lambda queries, value, scope: count_up(value, scope, None, queries[0], None)
FUNCTIONS["range", 2] = lambda queries, value, scope: count_up(value, scope, queries[0], queries[1], None)
FUNCTIONS["range", 3] = lambda queries, value, scope: count_up(value, scope, *queries)
