"""Cells of one column → its kind and its parsed values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Optional, Union

from .values import (
    AMBIGUOUS_PAIR,
    DATE_FORMATS,
    IDENTIFIER,
    NUMBER_STYLES,
    is_missing,
    parse_date,
    parse_number,
    parse_truth,
    split_unit,
)

Value = Optional[Union[int, float, bool, str, datetime]]

ENOUGH = 0.9
SAMPLED = 500
CATEGORY_VALUES = 24
CATEGORY_SHARE = 0.1
CATEGORY_LENGTH = 40
MAX_LISTED = 5
YEAR_NAME = re.compile(r"year|jahr|année|año|anno|ano|年", re.IGNORECASE)


@dataclass
class Column:
    """One column, its values aligned with the table's rows; absent and unusable ones are None."""

    name: str
    kind: str
    values: list[Value]
    missing: int
    detail: dict[str, object] = field(default_factory=dict)
    invalid: list[dict[str, object]] = field(default_factory=list)
    invalid_count: int = 0

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers."""
        return self.kind in ("integer", "number")

    @property
    def numbers(self) -> list[float]:
        """The usable numbers."""
        return [value for value in self.values if isinstance(value, (int, float)) and not isinstance(value, bool)]

    @property
    def is_year(self) -> bool:
        """Whether these integers are calendar years."""
        return (
            self.kind == "integer"
            and bool(YEAR_NAME.search(self.name))
            and all(1500 <= number <= 2200 for number in self.numbers)
        )


@dataclass(frozen=True)
class Reading:
    """One way of reading a column: its kind, its parser and what to report about it."""

    kind: str
    parse: Callable[[str], Value]
    detail: dict[str, object]


def profile(name: str, cells: list[str], lines: list[int], *, month_first: bool = False) -> Column:
    """Decide what a column holds, and parse it."""
    present = [cell for cell in cells if not is_missing(cell)]
    missing = len(cells) - len(present)
    if not present:
        return Column(name, "empty", [None] * len(cells), missing)
    reading = choose_reading(present, month_first)
    parsed: dict[str, Value] = {cell: reading.parse(cell) for cell in set(present)}
    values = [None if is_missing(cell) else parsed[cell] for cell in cells]
    column = Column(name, reading.kind, values, missing, reading.detail)
    for line, cell, value in zip(lines, cells, values):
        if value is None and not is_missing(cell):
            column.invalid_count += 1
            if len(column.invalid) < MAX_LISTED:
                column.invalid.append({"line": line, "value": cell[:80]})
    if reading.kind == "number" and all(isinstance(number, int) for number in column.numbers):
        column.kind = "integer"
    return column


def choose_reading(present: list[str], month_first: bool) -> Reading:
    """Try truth values, numbers and dates, and fall back to words."""
    counts = Counter(present)
    if len(counts) <= 4 and all(parse_truth(cell) is not None for cell in counts):
        return Reading("boolean", parse_truth, {})
    reading = number_reading(counts) or date_reading(counts, month_first)
    return reading or word_reading(counts)


def number_reading(counts: Counter[str]) -> Reading | None:
    """Read as numbers when nearly all cells are, and none looks like an identifier."""
    if any(IDENTIFIER.fullmatch(cell) for cell in counts):
        return None
    total = sum(counts.values())
    scores = {
        style: sum(count for cell, count in counts.items() if parse_number(cell, style) is not None)
        for style in NUMBER_STYLES
    }
    style = "comma" if scores["comma"] > scores["point"] else "point"
    if scores[style] < ENOUGH * total:
        return None
    units = {split_unit(cell)[1] for cell in counts}
    detail: dict[str, object] = {"decimal_sign": style}
    if len(units) == 1 and units != {""}:
        detail["unit"] = units.pop()
    return Reading("number", lambda cell: parse_number(cell, style), detail)


def date_reading(counts: Counter[str], month_first: bool) -> Reading | None:
    """Read as dates when one format fits nearly all cells."""
    ordered = sorted(counts)
    sample = ordered[:: len(ordered) // SAMPLED + 1]
    if not any(character.isdigit() for character in sample[0] + sample[-1]):
        return None
    formats = list(DATE_FORMATS)
    if month_first:
        formats.sort(key=lambda pattern: pattern != "%m/%d/%Y")
    hits = {pattern: sum(parse_date(cell, pattern) is not None for cell in sample) for pattern in formats}
    pattern = max(formats, key=lambda candidate: hits[candidate])
    if hits[pattern] < ENOUGH * len(sample):
        return None
    detail: dict[str, object] = {"format": pattern}
    if pattern in AMBIGUOUS_PAIR:
        first, second = (hits[candidate] for candidate in AMBIGUOUS_PAIR)
        detail["ambiguous"] = first == second
    return Reading("date", lambda cell: parse_date(cell, pattern), detail)


def word_reading(counts: Counter[str]) -> Reading:
    """Tell categories, which repeat or are few, from free text."""
    total, distinct = sum(counts.values()), len(counts)
    length = sum(len(cell) * count for cell, count in counts.items()) / total
    few = distinct <= CATEGORY_VALUES or distinct <= CATEGORY_SHARE * total
    return Reading("category" if few and length <= CATEGORY_LENGTH else "text", lambda cell: cell, {})
