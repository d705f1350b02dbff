"""The registry of functions, filled by the modules scalars, texts, containers, streams and paths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from .values import EvaluationError, Json, kind, show

Scope = dict[str, Any]


class Query(Protocol):
    """A sub-query that has not been evaluated yet."""

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Yield the outputs for one input."""


Implementation = Callable[[list[Any], Any, Scope], Iterator[Json]]
FUNCTIONS: dict[tuple[str, int], Implementation] = {}


def on_values(name: str, arity: int = 0) -> Callable[[Callable[..., Json]], Callable[..., Json]]:
    """Register a function of the input and of evaluated arguments, one output for each combination."""

    def register(function: Callable[..., Json]) -> Callable[..., Json]:
        def run(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
            streams = [list(argument.run(value, scope)) for argument in arguments]
            for combination in itertools.product(*streams):
                yield function(value, *combination)

        FUNCTIONS[name, arity] = run
        return function

    return register


def on_queries(name: str, arity: int = 0) -> Callable[[Implementation], Implementation]:
    """Register a function that runs its arguments itself."""

    def register(function: Implementation) -> Implementation:
        FUNCTIONS[name, arity] = function
        return function

    return register


def need(value: Any, wanted: str, name: str) -> Any:
    """Demand a kind of value."""
    if kind(value) != wanted:
        raise EvaluationError(f"{name} needs {wanted}, not {kind(value)} ({show(value)})")
    return value


def items_of(value: Any, name: str) -> list[Any]:
    """The items of an array, or the values of an object."""
    return list(value.values()) if isinstance(value, dict) else need(value, "array", name)
