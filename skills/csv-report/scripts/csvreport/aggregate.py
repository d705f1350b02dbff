"""A chart plan → the points it shows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from .columns import Column, Value
from .plan import MOST_SERIES, ChartPlan
from .summary import exact_sum, quantile

MOST_BARS = 15
MOST_DOTS = 4000
MOST_BINS = 40
OTHERS = "all others"

EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Series:
    """Points of one line or one cloud, with its name."""

    name: str
    points: list[tuple[float, float]]


@dataclass(frozen=True)
class Bin:
    """One bar of a histogram."""

    low: float
    high: float
    count: int


def combine(numbers: list[float], how: str | None) -> float:
    """Reduce the numbers of one place to one."""
    if how == "count":
        return len(numbers)
    if how == "mean":
        return exact_sum(numbers) / len(numbers)
    if how == "median":
        return quantile(sorted(numbers), 0.5)
    if how == "min":
        return min(numbers)
    if how == "max":
        return max(numbers)
    return exact_sum(numbers)


def position(value: Value) -> float | None:
    """Place a value on a numeric axis; dates become seconds since 1970."""
    if isinstance(value, datetime):
        return (value - EPOCH).total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return None


def label(value: Value) -> str:
    """Name a category."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.date().isoformat() if isinstance(value, datetime) else str(value)


def rows(plan: ChartPlan) -> Iterable[tuple[Value, float, str]]:
    """Yield x, y and group of every row that has them; without y each row counts one."""
    length = len(plan.x.values)
    ys: list[Value] = plan.y.values if plan.y else [1] * length
    groups: list[Value] = plan.group.values if plan.group else [""] * length
    for x, y, group in zip(plan.x.values, ys, groups):
        counted = 1.0 if plan.aggregate == "count" and y is not None else position(y)
        if x is not None and counted is not None and group is not None:
            yield x, y if isinstance(y, int) else counted, label(group)


def line_series(plan: ChartPlan) -> list[Series]:
    """One series for each group, points in order of x; the smallest groups are left out."""
    places: dict[str, dict[float, list[float]]] = {}
    for x, y, group in rows(plan):
        place = position(x)
        if place is not None:
            places.setdefault(group, {}).setdefault(place, []).append(y)
    largest = sorted(places, key=lambda name: (-sum(map(len, places[name].values())), name))[:MOST_SERIES]
    return [
        Series(name, [(x, combine(numbers, plan.aggregate)) for x, numbers in sorted(places[name].items())])
        for name in sorted(largest)
    ]


def bars(plan: ChartPlan) -> list[tuple[str, float]]:
    """Name and amount of each bar, the largest first; a long tail is put together where that makes sense."""
    groups: dict[str, list[float]] = {}
    for x, y, _ in rows(plan):
        groups.setdefault(label(x), []).append(y)
    found = sorted(
        ((name, combine(numbers, plan.aggregate)) for name, numbers in groups.items()),
        key=lambda bar: (-bar[1], bar[0]),
    )
    if len(found) <= MOST_BARS:
        return found
    shown, tail = found[: MOST_BARS - 1], found[MOST_BARS - 1 :]
    rest = [number for name, _ in tail for number in groups[name]]
    return [*shown, (f"{OTHERS} ({len(tail)})", combine(rest, plan.aggregate))]


def dots(plan: ChartPlan) -> tuple[list[Series], int]:
    """The clouds of a scatter chart, thinned evenly, and how many rows they stand for."""
    found: dict[str, list[tuple[float, float]]] = {}
    total = 0
    for x, y, group in rows(plan):
        place = position(x)
        if place is not None:
            total += 1
            found.setdefault(group, []).append((place, y))
    step = total // MOST_DOTS + 1
    largest = sorted(found, key=lambda name: (-len(found[name]), name))[:MOST_SERIES]
    return [Series(name, found[name][::step]) for name in sorted(largest)], total


def bins(column: Column) -> list[Bin]:
    """Cut the range of a column into bins of a round width, by Freedman and Diaconis or by Sturges."""
    numbers = sorted(map(float, column.numbers))
    low, high = numbers[0], numbers[-1]
    if is_flat(low, high):
        pad = max(0.5, abs(low) / 20)
        return [Bin(low - pad, high + pad, len(numbers))]
    spread = quantile(numbers, 0.75) - quantile(numbers, 0.25)
    sturges = (high - low) / (math.log2(len(numbers)) + 1)
    wanted = min(2 * spread / len(numbers) ** (1 / 3), sturges) if spread else sturges
    width = round_near(max(wanted, (high - low) / MOST_BINS))
    if column.kind == "integer":
        width = max(1.0, math.ceil(width))
    start = math.floor(low / width)
    count = math.floor(high / width) - start + 1
    totals = [0] * count
    for number in numbers:
        totals[min(math.floor(number / width) - start, count - 1)] += 1
    return [Bin((start + index) * width, (start + index + 1) * width, total) for index, total in enumerate(totals)]


def is_flat(low: float, high: float) -> bool:
    """Whether a range is too narrow for floating point to divide."""
    return high - low <= 1e-9 * max(abs(low), abs(high))


def round_near(width: float) -> float:
    """The nearest of 1, 2, 5 times a power of ten."""
    power: float = 10.0 ** math.floor(math.log10(width))
    return min((step * power for step in (1, 2, 5, 10)), key=lambda step: abs(math.log(step / width)))


def round_up(width: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    power: float = 10.0 ** math.floor(math.log10(width))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= width * 0.999)
