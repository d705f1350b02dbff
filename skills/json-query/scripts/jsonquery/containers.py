"""Functions on arrays and objects."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from .catalogue import FUNCTIONS, Query, Scope, items_of, need, on_queries, on_values
from .formats import text_of
from .values import EvaluationError, Json, add, equal, is_number, kind, show, sort_key


@on_values("keys")
def keys(value: Json) -> Json:
    """Sorted keys of an object, or indices of an array."""
    return sorted(value) if isinstance(value, dict) else list(range(len(need(value, "array", "keys"))))


@on_values("keys_unsorted")
def keys_unsorted(value: Json) -> Json:
    """Keys of an object in their own order."""
    return list(value) if isinstance(value, dict) else list(range(len(need(value, "array", "keys_unsorted"))))


@on_values("has", 1)
def has(value: Json, key: Json) -> Json:
    """Whether a key or an index is there."""
    if isinstance(value, dict) and isinstance(key, str):
        return key in value
    if isinstance(value, list) and is_number(key):
        return 0 <= key < len(value)
    raise EvaluationError(f"cannot check whether {kind(value)} has a key of type {kind(key)}")


@on_values("contains", 1)
def contains(value: Json, other: Json) -> Json:
    """Whether the other value is a part of the input, at any depth."""
    if kind(value) != kind(other):
        raise EvaluationError(f"{kind(value)} and {kind(other)} cannot be checked for containment")
    return holds(value, other)


def holds(value: Json, other: Json) -> bool:
    """Containment; between unlike kinds inside there is none."""
    if kind(value) != kind(other):
        return False
    if isinstance(other, dict):
        return all(key in value and holds(value[key], inner) for key, inner in other.items())
    if isinstance(other, list):
        return all(any(holds(item, inner) for item in value) for inner in other)
    return other in value if isinstance(other, str) else equal(value, other)


@on_values("inside", 1)
def inside(value: Json, other: Json) -> Json:
    """Whether the input is a part of the other value."""
    return contains(other, value)


@on_values("index", 1)
def index(value: Json, other: Json) -> Json:
    """First place of a text in a text, or of an item in an array; null when absent."""
    if isinstance(value, list):
        return next((place for place, item in enumerate(value) if equal(item, other)), None)
    place = need(value, "string", "index").find(need(other, "string", "index"))
    return place if place >= 0 else None


@on_values("add")
def add_all(value: Json) -> Json:
    """Sum of all items; null for none."""
    total: Json = None
    for item in items_of(value, "add"):
        total = add(total, item)
    return total


@on_values("reverse")
def reverse(value: Json) -> Json:
    """Items in opposite order."""
    if value is None:
        return []
    return value[::-1] if isinstance(value, str) else need(value, "array", "reverse")[::-1]


@on_values("first")
def first(value: Json) -> Json:
    """First item, or null."""
    return next(iter(need(value, "array", "first")), None)


@on_values("last")
def last(value: Json) -> Json:
    """Last item, or null."""
    return need(value, "array", "last")[-1] if value else None


def flat(items: list[Any], depth: float) -> Iterator[Json]:
    """Open arrays inside arrays."""
    for item in items:
        if isinstance(item, list) and depth > 0:
            yield from flat(item, depth - 1)
        else:
            yield item


@on_values("flatten")
def flatten(value: Json) -> Json:
    """All arrays inside opened."""
    return list(flat(items_of(value, "flatten"), float("inf")))


@on_values("flatten", 1)
def flatten_to(value: Json, depth: Json) -> Json:
    """Arrays opened to a depth."""
    if need(depth, "number", "flatten") < 0:
        raise EvaluationError("the depth of flatten must not be negative")
    return list(flat(items_of(value, "flatten"), depth))


@on_values("transpose")
def transpose(value: Json) -> Json:
    """Rows to columns; short rows are filled with null."""
    rows = [need(row, "array", "transpose") for row in need(value, "array", "transpose")]
    return [list(column) for column in itertools.zip_longest(*rows)]


@on_values("to_entries")
def to_entries(value: Json) -> Json:
    """An object or array as an array of `{key, value}`."""
    pairs = enumerate(value) if isinstance(value, list) else need(value, "object", "to_entries").items()
    return [{"key": key, "value": inner} for key, inner in pairs]


@on_values("from_entries")
def from_entries(value: Json) -> Json:
    """An array of `{key, value}` (or `{name, value}`) as an object."""
    made: dict[str, Any] = {}
    for entry in need(value, "array", "from_entries"):
        need(entry, "object", "from_entries")
        key = next((entry[name] for name in ("key", "k", "name") if entry.get(name) is not None), None)
        if isinstance(key, (list, dict)):
            raise EvaluationError(f"{kind(key)} ({show(key)}) cannot be a key of an object")
        made["null" if key is None else text_of(key)] = entry.get("value", entry.get("v"))
    return made


def keyed(arguments: list[Query], value: Json, scope: Scope, name: str) -> list[tuple[Any, Json]]:
    """Pair each item with the order of what the query says about it."""
    items = need(value, "array", name)
    if not arguments:
        return [(sort_key(item), item) for item in items]
    return [(sort_key(list(arguments[0].run(item, scope))), item) for item in items]


def register_ordering(name: str, pick: Json) -> None:
    """Register `name` over the items themselves, and `name_by` over a query on them."""

    def run(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
        yield pick(keyed(arguments, value, scope, name))

    if name != "group":
        FUNCTIONS[name, 0] = run
    FUNCTIONS[f"{name}_by", 1] = run


def in_order(pairs: list[tuple[Any, Json]]) -> list[list[Json]]:
    """Items of equal order together, in ascending order."""
    ordered = sorted(pairs, key=lambda pair: pair[0])
    return [[item for _, item in group] for _, group in itertools.groupby(ordered, key=lambda pair: pair[0])]


register_ordering("sort", lambda pairs: [item for group in in_order(pairs) for item in group])
register_ordering("group", in_order)
register_ordering("unique", lambda pairs: [group[0] for group in in_order(pairs)])
register_ordering("min", lambda pairs: min(pairs, key=lambda pair: pair[0])[1] if pairs else None)
register_ordering("max", lambda pairs: max(reversed(pairs), key=lambda pair: pair[0])[1] if pairs else None)


@on_queries("map", 1)
def map_items(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
    """All outputs for all items, in one array."""
    yield [output for item in items_of(value, "map") for output in arguments[0].run(item, scope)]


@on_queries("map_values", 1)
def map_values(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
    """Each value replaced by the first output for it, or dropped without one."""
    nothing = object()
    if isinstance(value, dict):
        outputs = {key: next(arguments[0].run(inner, scope), nothing) for key, inner in value.items()}
        yield {key: output for key, output in outputs.items() if output is not nothing}
    else:
        items = [next(arguments[0].run(inner, scope), nothing) for inner in need(value, "array", "map_values")]
        yield [item for item in items if item is not nothing]


@on_queries("with_entries", 1)
def with_entries(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
    """Rewrite an object through its entries."""
    entries: Any = to_entries(value)
    yield from_entries([output for entry in entries for output in arguments[0].run(entry, scope)])
