"""Nodes of the syntax tree that combine other nodes: pipes, conditions, operators and construction."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from . import values
from .access import Node, Optional
from .catalogue import FUNCTIONS, Scope
from .formats import apply_format
from .values import EvaluationError, Json, is_number, is_true, kind, show


@dataclass(frozen=True)
class Pipe(Node):
    """`left | right`."""

    left: Node
    right: Node

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Feed each output of the left into the right."""
        for inner in self.left.run(value, scope):
            yield from self.right.run(inner, scope)


@dataclass(frozen=True)
class Comma(Node):
    """`left, right`."""

    left: Node
    right: Node

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Yield the outputs of both."""
        yield from self.left.run(value, scope)
        yield from self.right.run(value, scope)


@dataclass(frozen=True)
class Bind(Node):
    """`source as $name | body`."""

    source: Node
    name: str
    body: Node

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Run the body once for each output of the source."""
        for inner in self.source.run(value, scope):
            yield from self.body.run(value, {**scope, self.name: inner})


@dataclass(frozen=True)
class Reduce(Node):
    """`reduce source as $name (start; update)`."""

    source: Node
    name: str
    start: Node
    update: Node

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Fold the outputs of the source; an update without output leaves null."""
        for state in self.start.run(value, scope):
            current = state
            for inner in self.source.run(value, scope):
                last: Json = None
                for last in self.update.run(current, {**scope, self.name: inner}):  # noqa: B007
                    pass
                current = last
            yield current


@dataclass(frozen=True)
class Condition(Node):
    """`if test then yes else no end`."""

    test: Node
    yes: Node
    no: Node

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Choose a branch for each output of the test."""
        for verdict in self.test.run(value, scope):
            yield from (self.yes if is_true(verdict) else self.no).run(value, scope)


@dataclass(frozen=True)
class Logic(Node):
    """`left and right`, `left or right`; the right side is left alone when the left decides."""

    operator: str
    left: Node
    right: Node

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Yield truth values."""
        decided = self.operator == "or"
        for left in self.left.run(value, scope):
            if is_true(left) == decided:
                yield decided
            else:
                yield from (is_true(right) for right in self.right.run(value, scope))


@dataclass(frozen=True)
class Alternative(Node):
    """`left // right`: the true outputs of the left, or else those of the right."""

    left: Node
    right: Node

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Errors of the left count as no output."""
        found = False
        for inner in Optional(self.left).run(value, scope):
            if is_true(inner):
                found = True
                yield inner
        if not found:
            yield from self.right.run(value, scope)


OPERATIONS: dict[str, Callable[[Json, Json], Json]] = {
    "+": values.add,
    "-": values.subtract,
    "*": values.multiply,
    "/": values.divide,
    "%": values.remainder,
    "==": values.equal,
    "!=": lambda left, right: not values.equal(left, right),
    "<": lambda left, right: values.sort_key(left) < values.sort_key(right),
    "<=": lambda left, right: values.sort_key(left) <= values.sort_key(right),
    ">": lambda left, right: values.sort_key(left) > values.sort_key(right),
    ">=": lambda left, right: values.sort_key(left) >= values.sort_key(right),
}


@dataclass(frozen=True)
class Operation(Node):
    """Arithmetic and comparison."""

    operator: str
    left: Node
    right: Node

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Combine every pair of outputs; the right side varies slowest."""
        operation = OPERATIONS[self.operator]
        for right in self.right.run(value, scope):
            for left in self.left.run(value, scope):
                yield operation(left, right)


@dataclass(frozen=True)
class Negation(Node):
    """`-source`."""

    source: Node

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Negate numbers."""
        for inner in self.source.run(value, scope):
            if not is_number(inner):
                raise EvaluationError(f"{kind(inner)} ({show(inner)}) cannot be negated")
            yield -inner


@dataclass(frozen=True)
class MakeArray(Node):
    """`[body]`."""

    body: Node | None

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Collect all outputs of the body."""
        yield list(self.body.run(value, scope)) if self.body else []


@dataclass(frozen=True)
class MakeObject(Node):
    """`{key: value, …}`."""

    entries: list[tuple[Node, Node]] = field(default_factory=list)

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Yield one object for each combination of keys and values."""
        yield from self.extend({}, 0, value, scope)

    def extend(self, made: dict[str, Any], place: int, value: Json, scope: Scope) -> Iterator[Json]:
        """Add the entries from `place` on."""
        if place == len(self.entries):
            yield dict(made)
            return
        key_node, value_node = self.entries[place]
        for key in key_node.run(value, scope):
            if not isinstance(key, str):
                raise EvaluationError(f"{kind(key)} ({show(key)}) cannot be a key of an object")
            for inner in value_node.run(value, scope):
                yield from self.extend({**made, key: inner}, place + 1, value, scope)


@dataclass(frozen=True)
class Template(Node):
    """A string with interpolations, each spelled by the format in force."""

    pieces: list[str | Node]
    style: str = "@text"

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Yield one text for each combination of outputs."""
        streams = [
            [piece] if isinstance(piece, str) else [apply_format(self.style, out) for out in piece.run(value, scope)]
            for piece in self.pieces
        ]
        for combination in itertools.product(*reversed(streams)):
            yield "".join(reversed(combination))


@dataclass(frozen=True)
class Call(Node):
    """A function of the catalogue."""

    name: str
    arguments: list[Node]

    def run(self, value: Json, scope: Scope) -> Iterator[Json]:
        """Hand the unevaluated arguments to the function."""
        return FUNCTIONS[self.name, len(self.arguments)](self.arguments, value, scope)
