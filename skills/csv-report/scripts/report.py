#!/usr/bin/env python3
"""Profile a CSV file: a JSON report of every column, and one SVG chart."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

# The skill's tree may be read-only, and its digest must not change by use.
sys.dont_write_bytecode = True

from csvreport.charts import EmptyChartError, draw  # noqa: E402
from csvreport.columns import Column, profile  # noqa: E402
from csvreport.plan import AGGREGATES, KINDS, ChartPlan, PlanError, Wish, choose  # noqa: E402
from csvreport.reading import CsvError, Table, read_table  # noqa: E402
from csvreport.summary import build_report  # noqa: E402
from csvreport.svg import PaletteError, load_palette  # noqa: E402

PALETTE = Path(__file__).resolve().parent.parent / "assets" / "palette.json"
NAMED_DELIMITERS = {"auto": None, "comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
MEBIBYTE = 1024 * 1024


class UsageError(Exception):
    """The command line asks for something that cannot be done."""


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="report.py",
        description=__doc__,
        epilog="Example: python3 scripts/report.py work/inputs/sales.csv --json out/report.json --svg out/chart.svg",
    )
    parser.add_argument("file", metavar="FILE", help="the CSV file, or - for standard input")
    parser.add_argument("--json", metavar="FILE", help="write the report here instead of to standard output")
    parser.add_argument("--svg", metavar="FILE", help="write the chart here")
    parser.add_argument("--delimiter", choices=NAMED_DELIMITERS, default="auto", help="default: found by looking")
    parser.add_argument("--encoding", help="default: byte-order mark, then UTF-8, then Windows-1252")
    parser.add_argument("--no-header", action="store_true", help="the first row is data; columns are called column_N")
    parser.add_argument("--month-first", action="store_true", help="read 03/04/2024 as 4 March")
    parser.add_argument("--max-mib", type=int, default=32, metavar="N", help="read at most N MiB, default 32")
    chart = parser.add_argument_group("chart")
    chart.add_argument("--chart", choices=KINDS, default="auto", help="default: by the kinds of the columns")
    chart.add_argument("--x", metavar="COLUMN", help="horizontal axis, or the categories of bars")
    chart.add_argument("--y", metavar="COLUMN", help="what is measured")
    chart.add_argument("--group", metavar="COLUMN", help="one line or colour for each value")
    chart.add_argument("--aggregate", choices=AGGREGATES, help="how rows at the same place are put together")
    chart.add_argument("--title", help="heading of the chart")
    chart.add_argument("--palette", metavar="FILE", default=str(PALETTE), help="colours, default assets/palette.json")
    arguments = parser.parse_args(argv)
    if not 1 <= arguments.max_mib <= 1024:
        parser.error("--max-mib must be between 1 and 1024")
    if arguments.svg and arguments.chart == "none":
        parser.error("--svg needs a chart, and --chart none forbids one")
    return arguments


def read_bounded(name: str, limit: int) -> tuple[bytes, bool]:
    """Read up to the limit, cut at the last line end; the flag says whether something was left."""
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(limit + 1)
        else:
            with open(name, "rb") as file:
                raw = file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error
    if len(raw) <= limit:
        return raw, False
    end = raw.rfind(b"\n", 0, limit)
    return raw[: end + 1 if end >= 0 else limit], True


def write_text(name: str, text: str) -> None:
    """Write a result file, making its directory."""
    path = Path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror}") from error


def plan_chart(arguments: argparse.Namespace, table: Table) -> tuple[ChartPlan | None, list[Column]]:
    """Profile the columns and choose the chart."""
    columns = [
        profile(name, cells, table.lines, month_first=arguments.month_first)
        for name, cells in zip(table.header, table.columns)
    ]
    wish = Wish(arguments.chart, arguments.x, arguments.y, arguments.group, arguments.aggregate)
    return choose(columns, wish) if table.lines else None, columns


def make_report(arguments: argparse.Namespace) -> int:
    """Do the work and return the exit code."""
    raw, truncated = read_bounded(arguments.file, arguments.max_mib * MEBIBYTE)
    table = read_table(
        raw,
        delimiter=NAMED_DELIMITERS[arguments.delimiter],
        encoding=arguments.encoding,
        header=not arguments.no_header,
    )
    plan, columns = plan_chart(arguments, table)
    name = "standard input" if arguments.file == "-" else Path(arguments.file).name
    written = []
    if arguments.svg and plan:
        source = f"{name} · {len(table.lines):,} rows"
        svg = draw(plan, load_palette(Path(arguments.palette)), source, arguments.title)
        write_text(arguments.svg, svg)
        written.append(arguments.svg)
    source_facts = {"name": name, "bytes": len(raw), "truncated": truncated}
    report = build_report(source_facts, table, columns, plan.describe() if plan else None)
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    if arguments.json:
        write_text(arguments.json, text)
        written.append(arguments.json)
        invalid = sum(column.invalid_count for column in columns)
        facts = {"rows": len(table.lines), "bad_rows": table.bad_count, "invalid_cells": invalid, "written": written}
        print(json.dumps(facts, ensure_ascii=False))
    else:
        print(text, end="")
    return judge(table, columns, truncated, wanted_chart=bool(arguments.svg), has_chart=plan is not None)


def judge(table: Table, columns: list[Column], truncated: bool, *, wanted_chart: bool, has_chart: bool) -> int:
    """Say on standard error what is wrong with the data; that makes the exit code 1."""
    complaints = [f"{table.bad_count} rows were left out"] if table.bad_count else []
    complaints += [
        f"column {column.name!r}: {column.invalid_count} values are not of kind {column.kind}"
        for column in columns
        if column.invalid_count
    ]
    if truncated:
        complaints.append("the file was cut at --max-mib")
    if not table.lines:
        complaints.append("there are no data rows")
    elif wanted_chart and not has_chart:
        complaints.append("no column can be charted; no SVG was written")
    for complaint in complaints:
        print(f"report.py: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


def main(argv: list[str]) -> int:
    """Turn every failure into one line and an exit code."""
    arguments = parse_arguments(argv)
    try:
        return make_report(arguments)
    except (CsvError, EmptyChartError) as error:
        print(f"report.py: {arguments.file}: {error}", file=sys.stderr)
        return 1
    except (PlanError, PaletteError, UsageError) as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
