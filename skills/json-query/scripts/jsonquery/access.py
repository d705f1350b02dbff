"""Nodes of the syntax tree that reach into values; every node turns one input into a stream of outputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from .catalogue import Scope
from .values import EvaluationError, Json, is_number, kind, show, walk


class Node:
    """A part of a query."""

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Yield the outputs for one input."""
        raise NotImplementedError


@dataclass(frozen=True)
class Identity(Node):
    """`.`."""

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Yield the input."""
        yield value


@dataclass(frozen=True)
class Recurse(Node):
    """`..`: the value and everything inside it, the outer first."""

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Walk the value."""
        return walk(value)


@dataclass(frozen=True)
class Literal(Node):
    """A number, text, truth value or null."""

    value: Json

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Yield the literal."""
        yield self.value


@dataclass(frozen=True)
class Variable(Node):
    """`$name`."""

    name: str

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Yield what the name is bound to; the parser made sure that it is."""
        yield scope[self.name]


@dataclass(frozen=True)
class Index(Node):
    """`source[key]` and `source.name`."""

    source: Node
    key: Node

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Look every key up in every source."""
        for inner in self.source.run(value, scope):
            for key in self.key.run(value, scope):
                yield lookup(inner, key)


@dataclass(frozen=True)
class Slice(Node):
    """`source[from:to]`."""

    source: Node
    start: Node | None
    end: Node | None

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Cut every source at every pair of bounds."""
        for inner in self.source.run(value, scope):
            ends = list(self.end.run(value, scope)) if self.end else [None]
            starts = list(self.start.run(value, scope)) if self.start else [None]
            for end, start in itertools.product(ends, starts):
                yield cut(inner, start, end)


@dataclass(frozen=True)
class Iterate(Node):
    """`source[]`."""

    source: Node

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Yield the items of arrays and the values of objects."""
        for inner in self.source.run(value, scope):
            if isinstance(inner, (list, dict)):
                yield from list(inner.values()) if isinstance(inner, dict) else inner
            else:
                raise EvaluationError(f"cannot iterate over {kind(inner)} ({show(inner)})")


@dataclass(frozen=True)
class Optional(Node):
    """`source?`: errors end the stream silently."""

    source: Node

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Pass outputs on until the first error."""
        try:
            yield from self.source.run(value, scope)
        except EvaluationError:
            return


def lookup(value: Json, key: Json) -> Json:
    """`value[key]`; what is not there is null."""
    if value is None and (isinstance(key, str) or key is None or is_number(key)):
        return None
    if isinstance(value, dict) and isinstance(key, str):
        return value.get(key)
    if isinstance(value, list) and is_number(key):
        place = math.floor(float(key))
        return value[place] if -len(value) <= place < len(value) else None
    what = f'"{key}"' if isinstance(key, str) else kind(key)
    raise EvaluationError(f"cannot index {kind(value)} with {what}")


def cut(value: Json, start: Json, end: Json) -> Json:
    """`value[start:end]`."""
    if value is None:
        return None
    if not isinstance(value, (str, list)):
        raise EvaluationError(f"cannot slice {kind(value)}")
    if not all(bound is None or is_number(bound) for bound in (start, end)):
        raise EvaluationError("the bounds of a slice must be numbers")
    first = None if start is None else math.floor(float(start))
    last = None if end is None else math.ceil(float(end))
    return value[first:last]
