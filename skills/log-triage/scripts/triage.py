#!/usr/bin/env python3
"""Group the problems in log files: one finding for each kind of message, the worst first."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

# The skill's tree may be read-only, and its digest must not change by use.
sys.dont_write_bytecode = True

from logtriage.entries import entries  # noqa: E402
from logtriage.groups import BurstRule, Triage  # noqa: E402
from logtriage.lines import Source, UnreadableLogError  # noqa: E402
from logtriage.render import markdown  # noqa: E402
from logtriage.severity import RANKS  # noqa: E402

MEBIBYTE = 1024 * 1024
LEVELS = ("fatal", "error", "warning", "info", "debug", "unknown")


class UnwritableError(Exception):
    """A result file cannot be written."""


def positive(text: str) -> int:
    """Parse a positive number."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 1 and 1000000")
    return int(text)


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="triage.py",
        description=__doc__,
        epilog="Example: python3 scripts/triage.py work/inputs/app.log --json out/triage.json --markdown out/triage.md",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="log file, plain or gzip, or - for standard input")
    parser.add_argument("--json", metavar="FILE", help="write the findings here instead of to standard output")
    parser.add_argument("--markdown", metavar="FILE", help="write a report for people here")
    parser.add_argument("--min-severity", choices=LEVELS, default="warning", help="least bad to group, default warning")
    parser.add_argument(
        "--fail-on",
        choices=(*LEVELS, "never"),
        default="error",
        help="exit with 1 from this severity on, default error",
    )
    parser.add_argument("--top", type=positive, default=50, metavar="N", help="findings to report, default 50")
    parser.add_argument("--burst-count", type=positive, default=10, metavar="N", help="entries in a burst, default 10")
    parser.add_argument("--burst-seconds", type=positive, default=60, metavar="S", help="within S seconds, default 60")
    parser.add_argument("--year", type=positive, metavar="Y", help="year of timestamps that have none, as in syslog")
    parser.add_argument("--max-mib", type=positive, default=64, metavar="N", help="text read per file, default 64 MiB")
    arguments = parser.parse_args(argv)
    if arguments.year and not 1970 <= arguments.year <= 9998:
        parser.error("--year must be between 1970 and 9998")
    return arguments


def collect(arguments: argparse.Namespace) -> tuple[Triage, list[Source]]:
    """Read all files into one triage."""
    triage, sources = Triage(), []
    for path in arguments.files:
        source = Source("standard input" if path == "-" else Path(path).name, path)
        sources.append(source)
        for entry in entries(source.name, source.read(arguments.max_mib * MEBIBYTE), arguments.year):
            triage.add(entry, RANKS[arguments.min_severity])
    return triage, sources


def build_report(arguments: argparse.Namespace, triage: Triage, sources: list[Source]) -> dict[str, object]:
    """Assemble the JSON report."""
    ordered = triage.ordered()
    rule = BurstRule(arguments.burst_count, arguments.burst_seconds)
    shown = ordered[: arguments.top]
    return {
        "summary": {
            "files": [{"name": source.name, "lines": source.lines, "notes": source.notes} for source in sources],
            "lines": sum(source.lines for source in sources),
            "entries": sum(triage.severities.values()),
            "severities": {level: triage.severities[level] for level in LEVELS if triage.severities[level]},
            "first_seen": str(triage.first_seen) if triage.first_seen else None,
            "last_seen": str(triage.last_seen) if triage.last_seen else None,
            "ungrouped_entries": triage.overflow,
        },
        "findings": [group.describe(rule) for group in shown],
        "omitted_findings": len(ordered) - len(shown),
    }


def write_text(name: str, text: str) -> None:
    """Write a result file, making its directory."""
    path = Path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise UnwritableError(f"cannot write {name}: {error.strerror}") from error


def publish(arguments: argparse.Namespace, report: dict[str, object], findings: int) -> None:
    """Write what was asked for."""
    if arguments.markdown:
        write_text(arguments.markdown, markdown(report))
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    if arguments.json:
        write_text(arguments.json, text)
        summary = report["summary"]
        assert isinstance(summary, dict)
        print(json.dumps({"entries": summary["entries"], "findings": findings, "severities": summary["severities"]}))
    else:
        print(text, end="")


def main(argv: list[str]) -> int:
    """Triage, publish and return the exit code."""
    arguments = parse_arguments(argv)
    try:
        triage, sources = collect(arguments)
        publish(arguments, build_report(arguments, triage, sources), len(triage.groups))
    except (UnreadableLogError, UnwritableError) as error:
        print(f"triage.py: {error}", file=sys.stderr)
        return 2
    incomplete = [source for source in sources if source.incomplete]
    for source in incomplete:
        print(f"triage.py: {source.name}: {'; '.join(source.notes)}", file=sys.stderr)
    least = RANKS.get(arguments.fail_on, len(RANKS))
    bad = any(RANKS[level] >= least for level in triage.severities)
    return 1 if bad or incomplete else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
