"""Axes: round ticks, their labels, and the way from data to pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from .aggregate import EPOCH, is_flat, round_up

DAY = 86_400
EARLIEST = (datetime.min - EPOCH).total_seconds()
LATEST = (datetime.max.replace(microsecond=0) - EPOCH).total_seconds()


@dataclass(frozen=True)
class Axis:
    """A linear axis with its ticks."""

    low: float
    high: float
    start: float
    end: float
    ticks: list[tuple[float, str]]

    def place(self, value: float) -> float:
        """Map a value to a pixel."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def compact(value: float) -> str:
    """Spell a number for people: 1,234 or 1.2M, without needless digits."""
    size = abs(value)
    if size >= 1e15 or 0 < size < 1e-4:
        return f"{value:.3g}"
    for limit, divisor, suffix in ((1e12, 1e12, "T"), (1e9, 1e9, "B"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= limit:
            return trim(f"{value / divisor:,.4g}" if size / divisor < 1000 else f"{value / divisor:,.0f}") + suffix
    if size >= 1000:
        return trim(f"{value:,.1f}")
    return trim(f"{value:.4g}") if size >= 1 else trim(f"{value:.4f}")


def trim(text: str) -> str:
    """Drop zeros that end a fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def number_axis(low: float, high: float, start: float, end: float, *, wanted: int = 5, whole: bool = False) -> Axis:
    """An axis over numbers that begins and ends on a tick."""
    if is_flat(low, high):
        pad = max(0.5, abs(low) / 20)
        low, high = low - pad, high + pad
    step = round_up((high - low) / wanted)
    if whole:
        step = max(1.0, math.ceil(step))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    marks = [index * step for index in range(first, last + 1)]
    return Axis(marks[0], marks[-1], start, end, list(zip(marks, tick_texts(marks, step))))


def tick_texts(marks: list[float], step: float) -> list[str]:
    """Label ticks with as many decimals as their distance needs."""
    if step >= 1000 or max(map(abs, marks)) >= 10_000:
        return [compact(mark) for mark in marks]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) + (1 if step < 10 and is_quarter(step) else 0)
    if decimals > 6:
        return [f"{mark:.3g}" for mark in marks]
    return [f"{mark + 0.0:,.{decimals}f}" for mark in marks]


def is_quarter(step: float) -> bool:
    """Whether the step is 2.5 times a power of ten."""
    return abs(step / 10.0 ** math.floor(math.log10(step) + 1e-9) - 2.5) < 1e-6


def year_axis(low: float, high: float, start: float, end: float) -> Axis:
    """An axis over calendar years, written without separators."""
    if low == high:
        low, high = low - 1, high + 1
    step = max(1, math.ceil(round_up((high - low) / 8)))
    marks = range(-(-int(low) // step) * step, int(high) + 1, step)
    return Axis(low, high, start, end, [(float(mark), str(mark)) for mark in marks])


def date_axis(low: float, high: float, start: float, end: float) -> Axis:
    """An axis over seconds since 1970, with ticks on calendar boundaries."""
    if low == high:
        low, high = max(low - DAY, EARLIEST), min(high + DAY, LATEST)
    first, last = (EPOCH + timedelta(seconds=value) for value in (low, high))
    span = high - low
    if span > 6 * 365 * DAY:
        marks, pattern = year_marks(first, last, span), "%Y"
    elif span > 60 * DAY:
        marks, pattern = month_marks(first, last, span), "%b %Y"
    elif span > 3 * DAY:
        marks, pattern = even_marks(first, last, span, DAY), "%d %b"
    else:
        marks, pattern = even_marks(first, last, span, 3600), "%d %b %H:%M"
    ticks = [((mark - EPOCH).total_seconds(), mark.strftime(pattern).lstrip("0")) for mark in marks]
    return Axis(low, high, start, end, ticks)


def year_marks(first: datetime, last: datetime, span: float) -> list[datetime]:
    """The first of January of every so many years."""
    step = max(1, math.ceil(round_up(span / (365 * DAY) / 8)))
    years = range(-(-first.year // step) * step, last.year + 1, step)
    return [mark for mark in (datetime(year, 1, 1) for year in years if 1 <= year <= 9999) if first <= mark <= last]


def month_marks(first: datetime, last: datetime, span: float) -> list[datetime]:
    """The first of every so many months."""
    months = span / (30.44 * DAY)
    step = next((step for step in (1, 2, 3, 6, 12) if months / step <= 8), 12)
    counted = range(first.year * 12, last.year * 12 + 12, step)
    marks = (datetime(month // 12, month % 12 + 1, 1) for month in counted)
    return [mark for mark in marks if first <= mark <= last]


def even_marks(first: datetime, last: datetime, span: float, unit: int) -> list[datetime]:
    """Ticks that are a whole number of days or hours apart."""
    steps = (1, 2, 3, 6, 12, 24) if unit == 3600 else (1, 2, 3, 5, 7, 14)
    step = next((step for step in steps if span / (step * unit) <= 8), steps[-1]) * unit
    origin = (datetime(first.year, first.month, first.day) - EPOCH).total_seconds()
    places = (origin + step * index for index in range(int(span / step) + 26))
    low, high = ((moment - EPOCH).total_seconds() for moment in (first, last))
    return [EPOCH + timedelta(seconds=place) for place in places if low <= place <= high]
