"""Profiled columns → which chart to draw, and of what."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .columns import Column

KINDS = ("auto", "line", "bar", "histogram", "scatter", "none")
AGGREGATES = ("sum", "mean", "median", "min", "max", "count")
MOST_SERIES = 6
AVERAGED_NAME = re.compile(r"rate|ratio|average|avg|mean|price|temp|score|percent|age\b|speed|%", re.IGNORECASE)


class PlanError(Exception):
    """The wanted chart does not fit the table; the text says why."""


@dataclass(frozen=True)
class Wish:
    """What the user asked for; None leaves the choice to us."""

    kind: str = "auto"
    x: str | None = None
    y: str | None = None
    group: str | None = None
    aggregate: str | None = None


@dataclass(frozen=True)
class ChartPlan:
    """A chart that the table can fill."""

    kind: str
    x: Column
    y: Column | None
    group: Column | None
    aggregate: str | None
    reason: str

    def describe(self) -> dict[str, object]:
        """The plan as the report shows it."""
        return {
            "kind": self.kind,
            "x": self.x.name,
            "y": self.y.name if self.y else None,
            "group": self.group.name if self.group else None,
            "aggregate": self.aggregate,
            "reason": self.reason,
        }


def find(columns: list[Column], name: str | None) -> Column | None:
    """Look up a named column."""
    if name is None:
        return None
    for column in columns:
        if column.name == name:
            return column
    known = ", ".join(column.name for column in columns)
    raise PlanError(f"there is no column {name!r}; the columns are: {known}")


def is_time(column: Column) -> bool:
    """Whether a column can be a time axis."""
    return column.kind == "date" or column.is_year


def is_label(column: Column) -> bool:
    """Whether a column names bars."""
    return column.kind in ("category", "boolean")


def default_aggregate(y: Column | None) -> str:
    """Amounts add up; rates, prices and the like are averaged."""
    if y is None:
        return "count"
    averaged = y.detail.get("unit") == "%" or AVERAGED_NAME.search(y.name)
    return "mean" if averaged else "sum"


def choose(columns: list[Column], wish: Wish) -> ChartPlan | None:
    """Choose a chart: the wish where there is one, otherwise the first that fits."""
    if wish.kind == "none":
        return None
    usable = [column for column in columns if column.values and column.kind != "empty"]
    x, y, group = (find(columns, name) for name in (wish.x, wish.y, wish.group))
    if y is not None and not y.numeric and wish.aggregate != "count":
        raise PlanError(f"column {y.name!r} is {y.kind}, not numeric")
    kind = wish.kind if wish.kind != "auto" else choose_kind(usable, x, y)
    if kind is None:
        return None
    plan = {"line": plan_line, "bar": plan_bar, "histogram": plan_histogram, "scatter": plan_scatter}[kind]
    return plan(usable, x, y, group, wish.aggregate)


def choose_kind(columns: list[Column], x: Column | None, y: Column | None) -> str | None:
    """Pick the kind of chart that says most about such columns."""
    pool = [x] if x else columns
    numeric = y or first(column for column in columns if column.numeric and not column.is_year and column is not x)
    if numeric and any(is_time(column) for column in pool):
        return "line"
    if any(is_label(column) for column in pool):
        return "bar"
    if x and x.numeric and y:
        return "scatter"
    if any(column.numeric for column in pool):
        return "histogram"
    return None


def first(candidates: Iterable[Column]) -> Column | None:
    """Return the first candidate, if there is one."""
    return next(iter(candidates), None)


def measure(columns: list[Column], x: Column) -> Column | None:
    """The first numeric column that is not the axis itself."""
    return first(column for column in columns if column.numeric and not column.is_year and column is not x)


def plan_line(
    columns: list[Column], x: Column | None, y: Column | None, group: Column | None, aggregate: str | None
) -> ChartPlan:
    """A value over time, one line for each group when there are few."""
    x = x or first(column for column in columns if is_time(column))
    if x is None:
        raise PlanError("a line chart needs a date, year or numeric column as x")
    if not (is_time(x) or x.numeric):
        raise PlanError(f"column {x.name!r} is {x.kind} and cannot be the x axis of a line chart")
    y = y or measure(columns, x)
    if y is None and aggregate not in (None, "count"):
        raise PlanError("there is no numeric column to draw")
    repeated = len({value for value in x.values if value is not None}) < sum(value is not None for value in x.values)
    if group is None and repeated:
        group = first(column for column in columns if is_label(column) and 2 <= distinct(column) <= MOST_SERIES)
    used = aggregate or (default_aggregate(y) if repeated or y is None else None)
    return ChartPlan("line", x, y, group, used, f"{x.name} orders the rows in time" if is_time(x) else "asked for")


def plan_bar(
    columns: list[Column], x: Column | None, y: Column | None, group: Column | None, aggregate: str | None
) -> ChartPlan:
    """An amount for each category."""
    if group is not None:
        raise PlanError("bar charts have no groups")
    x = x or first(column for column in columns if is_label(column) and distinct(column) > 1)
    x = x or first(column for column in columns if is_label(column) or column.kind == "text")
    if x is None:
        raise PlanError("a bar chart needs a category column as x")
    y = y or (None if aggregate == "count" else measure(columns, x))
    if y is None and aggregate not in (None, "count"):
        raise PlanError("there is no numeric column to draw")
    return ChartPlan("bar", x, y, None, aggregate or default_aggregate(y), f"{x.name} names {distinct(x)} categories")


def plan_histogram(
    columns: list[Column], x: Column | None, y: Column | None, group: Column | None, aggregate: str | None
) -> ChartPlan:
    """How the values of one numeric column are spread."""
    if group is not None or aggregate not in (None, "count"):
        raise PlanError("histograms count rows; they have no groups and no other aggregate")
    x = x or y or first(column for column in columns if column.numeric)
    if x is None or not x.numeric:
        raise PlanError("a histogram needs a numeric column")
    return ChartPlan("histogram", x, None, None, "count", f"{x.name} is numeric")


def plan_scatter(
    columns: list[Column], x: Column | None, y: Column | None, group: Column | None, aggregate: str | None
) -> ChartPlan:
    """One dot for each row."""
    if aggregate is not None:
        raise PlanError("scatter charts draw rows and do not aggregate")
    x = x or first(column for column in columns if column.numeric)
    y = y or (measure(columns, x) if x else None)
    if x is None or y is None or not x.numeric:
        raise PlanError("a scatter chart needs two numeric columns")
    return ChartPlan("scatter", x, y, group, None, "two numeric columns")


def distinct(column: Column) -> int:
    """How many different values a column has."""
    return len({value for value in column.values if value is not None})
