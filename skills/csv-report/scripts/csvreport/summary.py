"""Profiled columns → the JSON report."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime

from .columns import Column
from .reading import Table

QUANTILES = (("p05", 0.05), ("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p95", 0.95))
TOP_VALUES = 10
CORRELATED_COLUMNS = 12
CORRELATED_ROWS = 3


def tidy(value: float) -> float | int:
    """Round to ten significant digits, so that every platform prints the same."""
    if isinstance(value, int):
        return value
    rounded = float(f"{value:.10g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def exact_sum(numbers: list[float]) -> float:
    """Add integers exactly and everything else without accumulating error."""
    return sum(numbers) if all(isinstance(number, int) for number in numbers) else math.fsum(numbers)


def quantile(ordered: list[float], share: float) -> float:
    """Interpolate linearly between the two nearest ranks."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def describe_numbers(numbers: list[float]) -> dict[str, object]:
    """Count, spread and quantiles of numbers."""
    ordered = sorted(numbers)
    count = len(ordered)
    # Distances from the smallest keep the digits that huge integers lose as floats.
    shifted = [number - ordered[0] for number in ordered]
    middle = exact_sum(shifted) / count
    deviation = math.sqrt(math.fsum((number - middle) ** 2 for number in shifted) / (count - 1)) if count > 1 else None
    low, high = quantile(shifted, 0.25), quantile(shifted, 0.75)
    reach = 1.5 * (high - low)
    return {
        "min": tidy(ordered[0]),
        "max": tidy(ordered[-1]),
        "sum": tidy(exact_sum(ordered)),
        "mean": tidy(exact_sum(ordered) / count),
        "stdev": None if deviation is None else tidy(deviation),
        "quantiles": {name: tidy(quantile(ordered, share)) for name, share in QUANTILES},
        "zeros": sum(number == 0 for number in ordered),
        "negatives": sum(number < 0 for number in ordered),
        "outliers": sum(number < low - reach or number > high + reach for number in shifted),
    }


def describe_dates(dates: list[datetime], pattern: str) -> dict[str, object]:
    """First, last and span of dates, with the time of day only when the column has one."""
    first, last = min(dates), max(dates)
    shown = [moment.isoformat() if "%H" in pattern else moment.date().isoformat() for moment in (first, last)]
    return {"min": shown[0], "max": shown[1], "span_days": (last - first).days}


def describe_words(words: list[str], *, lengths: bool) -> dict[str, object]:
    """The most frequent words, and how long they are when they are free text."""
    counts = Counter(words)
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:TOP_VALUES]
    result: dict[str, object] = {"top": [{"value": value[:200], "count": count} for value, count in top]}
    if lengths:
        sizes = [len(word) for word in words]
        result["length"] = {"min": min(sizes), "max": max(sizes), "mean": tidy(sum(sizes) / len(sizes))}
    return result


def describe_column(column: Column) -> dict[str, object]:
    """The report on one column."""
    values = [value for value in column.values if value is not None]
    report: dict[str, object] = {
        "name": column.name,
        "kind": column.kind,
        "count": len(values),
        "missing": column.missing,
        "invalid": column.invalid_count,
        "distinct": len(set(values)),
        **column.detail,
    }
    if column.numeric:
        report |= describe_numbers(column.numbers)
    elif column.kind == "date":
        report |= describe_dates(
            [value for value in values if isinstance(value, datetime)], str(column.detail["format"])
        )
    elif column.kind == "boolean":
        report |= {"true": sum(value is True for value in values), "false": sum(value is False for value in values)}
    elif values:
        report |= describe_words([str(value) for value in values], lengths=column.kind == "text")
    if column.invalid:
        report["invalid_examples"] = column.invalid
    return report


def correlation(left: Column, right: Column) -> dict[str, object] | None:
    """Pearson's r over the rows where both columns have a number."""
    both = [
        (a, b) for a, b in zip(left.values, right.values) if isinstance(a, (int, float)) and isinstance(b, (int, float))
    ]
    if len(both) < CORRELATED_ROWS:
        return None
    pairs = [(a - both[0][0], b - both[0][1]) for a, b in both]
    mean_a = math.fsum(a for a, _ in pairs) / len(pairs)
    mean_b = math.fsum(b for _, b in pairs) / len(pairs)
    spread_a = math.fsum((a - mean_a) ** 2 for a, _ in pairs)
    spread_b = math.fsum((b - mean_b) ** 2 for _, b in pairs)
    if spread_a <= 0 or spread_b <= 0:
        return None
    shared = math.fsum((a - mean_a) * (b - mean_b) for a, b in pairs)
    r = shared / math.sqrt(spread_a) / math.sqrt(spread_b)
    return {"columns": [left.name, right.name], "r": round(r, 4) + 0.0, "rows": len(pairs)}


def correlations(columns: list[Column]) -> list[dict[str, object]]:
    """All pairs of numeric columns, the strongest first."""
    numeric = [column for column in columns if column.numeric][:CORRELATED_COLUMNS]
    found = [correlation(a, b) for index, a in enumerate(numeric) for b in numeric[index + 1 :]]
    return sorted((pair for pair in found if pair), key=lambda pair: -abs(float(str(pair["r"]))))


def build_report(
    source: dict[str, object], table: Table, columns: list[Column], chart: dict[str, object] | None
) -> dict[str, object]:
    """Assemble the report; references/report.md describes it field by field."""
    return {
        "source": {
            **source,
            "encoding": table.encoding,
            "delimiter": table.delimiter,
        },
        "rows": {"used": len(table.lines), "bad": table.bad_count, "blank": table.blank_count},
        "bad_rows": [{"line": row.line, "reason": row.reason, "text": row.text} for row in table.bad_rows],
        "columns": [describe_column(column) for column in columns],
        "correlations": correlations(columns),
        "chart": chart,
    }
