"""Where in the input a query points to, and what is left without it: paths and del."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .access import Identity, Index, Iterate, Node, Optional, Recurse, lookup
from .catalogue import Scope, on_queries
from .flow import Call, Comma, Condition, Pipe
from .scalars import SELECTORS
from .values import EvaluationError, Json, is_number, is_true, kind, sort_key

Path = tuple[Any, ...]


def paths(node: Node, value: Json, scope: Scope) -> Iterator[tuple[Path, Json]]:
    """Yield the places that a query selects, with the values there."""
    if isinstance(node, Identity):
        yield (), value
    elif isinstance(node, Recurse):
        yield from walk_paths((), value)
    elif isinstance(node, Index):
        for path, inner in paths(node.source, value, scope):
            for key in node.key.run(value, scope):
                yield (*path, key), lookup(inner, key)
    elif isinstance(node, Iterate):
        for path, inner in paths(node.source, value, scope):
            yield from children(path, inner)
    elif isinstance(node, Pipe):
        for path, inner in paths(node.left, value, scope):
            yield from ((path + rest, found) for rest, found in paths(node.right, inner, scope))
    elif isinstance(node, Comma):
        yield from paths(node.left, value, scope)
        yield from paths(node.right, value, scope)
    else:
        yield from filtered_paths(node, value, scope)


def filtered_paths(node: Node, value: Json, scope: Scope) -> Iterator[tuple[Path, Json]]:
    """Paths through conditions; anything that computes has none."""
    if isinstance(node, Optional):
        try:
            yield from paths(node.source, value, scope)
        except EvaluationError:
            return
    elif isinstance(node, Condition):
        for verdict in node.test.run(value, scope):
            yield from paths(node.yes if is_true(verdict) else node.no, value, scope)
    elif isinstance(node, Call) and node.name == "select":
        yield from (((), value) for verdict in node.arguments[0].run(value, scope) if is_true(verdict))
    elif isinstance(node, Call) and node.name in SELECTORS:
        if kind(value) in SELECTORS[node.name]:
            yield (), value
    elif isinstance(node, Call) and node.name == "empty":
        return
    elif isinstance(node, Call) and node.name == "recurse" and not node.arguments:
        yield from walk_paths((), value)
    else:
        raise EvaluationError("del needs a path such as .a, .a[0] or .[] | select(…)")


def children(path: Path, value: Json) -> Iterator[tuple[Path, Json]]:
    """The places one level down."""
    if isinstance(value, dict):
        yield from (((*path, key), inner) for key, inner in value.items())
    elif isinstance(value, list):
        yield from (((*path, place), inner) for place, inner in enumerate(value))
    else:
        raise EvaluationError(f"cannot iterate over {kind(value)}")


def walk_paths(path: Path, value: Json) -> Iterator[tuple[Path, Json]]:
    """The place itself and all below it."""
    yield path, value
    if isinstance(value, (dict, list)):
        for inner_path, inner in children(path, value):
            yield from walk_paths(inner_path, inner)


@on_queries("del", 1)
def delete(arguments: list[Any], value: Json, scope: Scope) -> Iterator[Json]:
    """The input without the places that the query selects."""
    found = {tuple(normal(value, path)) for path, _ in paths(arguments[0], value, scope)}
    # The last places go first, so that indices stay true.
    result = value
    for path in sorted(found, key=lambda path: sort_key(list(path)), reverse=True):
        result = without(result, path)
    yield result


def normal(value: Json, path: Path) -> Iterator[Any]:
    """Count negative indices from the front."""
    for key in path:
        whole = int(key) if is_number(key) else key
        yield whole + len(value) if is_number(key) and whole < 0 and isinstance(value, list) else whole
        value = lookup(value, key)


def without(value: Json, path: Path) -> Json:
    """A copy of the value that lacks one place."""
    if not path or value is None:
        return None
    key, rest = path[0], path[1:]
    if isinstance(value, dict) and key in value:
        return {**value, key: without(value[key], rest)} if rest else {k: v for k, v in value.items() if k != key}
    if isinstance(value, list) and is_number(key) and 0 <= key < len(value):
        middle = [without(value[key], rest)] if rest else []
        return [*value[:key], *middle, *value[key + 1 :]]
    return value


@on_queries("paths")
def all_paths(_arguments: list[Any], value: Json, _scope: Scope) -> Iterator[Json]:
    """The paths of everything inside the input."""
    return (list(path) for path, _ in walk_paths((), value) if path)


@on_queries("paths", 1)
def paths_where(arguments: list[Any], value: Json, scope: Scope) -> Iterator[Json]:
    """The paths of what fulfils a condition."""
    for path, inner in walk_paths((), value):
        if path and any(map(is_true, arguments[0].run(inner, scope))):
            yield list(path)


@on_queries("getpath", 1)
def get_path(arguments: list[Any], value: Json, scope: Scope) -> Iterator[Json]:
    """The value at a path that is given as an array."""
    for path in arguments[0].run(value, scope):
        if not isinstance(path, list):
            raise EvaluationError("getpath needs an array")
        inner = value
        for key in path:
            inner = lookup(inner, key)
        yield inner
