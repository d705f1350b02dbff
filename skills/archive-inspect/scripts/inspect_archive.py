#!/usr/bin/env python3
"""List a zip or tar archive without unpacking it, and say what is dangerous about it."""

from __future__ import annotations

import argparse
import json
import stat
import sys
from collections import Counter
from pathlib import Path

# The skill's tree may be read-only, and its digest must not change by use.
sys.dont_write_bytecode = True

from archiveinspect.entry import ArchiveError, Entry, show  # noqa: E402
from archiveinspect.inspection import Inspection, inspect  # noqa: E402
from archiveinspect.streams import Limits  # noqa: E402

MEBIBYTE = 1024 * 1024
TYPE_LETTERS = {
    "file": "-",
    "directory": "d",
    "symlink": "l",
    "hardlink": "h",
    "character device": "c",
    "block device": "b",
    "fifo": "p",
    "socket": "s",
}


class UsageError(Exception):
    """A file that cannot be read or written."""


def positive(text: str) -> int:
    """Parse a positive number."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 1 and 10000000")
    return int(text)


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="inspect_archive.py",
        description=__doc__,
        epilog="Example: python3 scripts/inspect_archive.py work/inputs/upload.zip --json out/archive.json",
    )
    parser.add_argument("file", metavar="FILE", help="zip, tar, tar.gz, tar.bz2, tar.xz, or one compressed file")
    parser.add_argument("--json", metavar="FILE", help="write the report here instead of to standard output")
    parser.add_argument("--text", metavar="FILE", help="write a listing for people here")
    parser.add_argument("--verify", action="store_true", help="zip: check sizes and checksums of the contents")
    parser.add_argument("--max-mib", type=positive, default=1024, metavar="N", help="unpacked size limit, default 1024")
    parser.add_argument("--max-ratio", type=positive, default=100, metavar="N", help="compression limit, default 100")
    parser.add_argument("--max-entries", type=positive, default=100_000, metavar="N", help="members, default 100000")
    parser.add_argument("--list", type=positive, default=1000, metavar="N", help="members in the report, default 1000")
    return parser.parse_args(argv)


def look_into(arguments: argparse.Namespace) -> tuple[Inspection, int]:
    """Open and inspect the archive."""
    limits = Limits(arguments.max_mib * MEBIBYTE, arguments.max_ratio, arguments.max_entries)
    try:
        path = Path(arguments.file)
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"cannot read {arguments.file}: it is not a regular file")
        with path.open("rb") as file:
            return inspect(file, limits, check_contents=arguments.verify), path.stat().st_size
    except OSError as error:
        raise UsageError(f"cannot read {arguments.file}: {error.strerror}") from error


def describe(entry: Entry) -> dict[str, object]:
    """One member as the report shows it."""
    facts: dict[str, object] = {"path": entry.shown, "kind": entry.kind, "size": entry.size}
    if entry.packed is not None:
        facts["packed"] = entry.packed
    if entry.mode is not None:
        facts["mode"] = f"{entry.mode:04o}"
    if entry.target is not None:
        facts["target"] = show(entry.target)
    if entry.codes:
        facts["findings"] = sorted(entry.codes)
    return facts


def build_report(arguments: argparse.Namespace, found: Inspection, length: int) -> dict[str, object]:
    """Assemble the JSON report; references/findings.md explains the codes."""
    kinds = Counter(entry.kind for entry in found.entries)
    total = sum(entry.size for entry in found.entries)
    return {
        "archive": Path(arguments.file).name,
        "format": found.format,
        "bytes": length,
        "verdict": found.verdict,
        "complete": found.complete,
        "members": len(found.entries),
        "kinds": dict(sorted(kinds.items())),
        "unpacked_bytes": total,
        "ratio": round(total / length, 2) if length else 0,
        "finding_counts": found.counts(),
        "findings": [
            {"severity": one.severity, "code": one.code, "entry": one.entry, "detail": one.detail}
            for one in found.findings[: arguments.list]
        ],
        "entries": [describe(entry) for entry in found.entries[: arguments.list]],
        "omitted_entries": max(0, len(found.entries) - arguments.list),
    }


def listing(arguments: argparse.Namespace, found: Inspection) -> str:
    """A listing like that of tar, with the findings behind each name."""
    lines = [f"{found.verdict.upper()}: {Path(arguments.file).name} ({found.format})", ""]
    for entry in found.entries[: arguments.list]:
        mode = stat.filemode(entry.mode or 0)[1:] if entry.mode is not None else "?" * 9
        arrow = f" -> {show(entry.target)}" if entry.target is not None else ""
        marks = f"  [{', '.join(sorted(entry.codes))}]" if entry.codes else ""
        lines.append(f"{TYPE_LETTERS.get(entry.kind, '?')}{mode} {entry.size:>12} {entry.shown}{arrow}{marks}")
    hidden = len(found.entries) - arguments.list
    if hidden > 0:
        lines.append(f"… {hidden} more members")
    whole = [one for one in found.findings if one.entry is None]
    if whole:
        lines += ["", *(f"{one.severity}: {one.code}: {one.detail}" for one in whole)]
    return "\n".join(lines) + "\n"


def write_text(name: str, text: str) -> None:
    """Write a result file, making its directory."""
    path = Path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror}") from error


def publish(arguments: argparse.Namespace, found: Inspection, length: int) -> None:
    """Write what was asked for."""
    report = build_report(arguments, found, length)
    if arguments.text:
        write_text(arguments.text, listing(arguments, found))
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    if arguments.json:
        write_text(arguments.json, text)
        summary = {key: report[key] for key in ("verdict", "complete", "members", "unpacked_bytes", "finding_counts")}
        print(json.dumps(summary))
    else:
        print(text, end="")


def main(argv: list[str]) -> int:
    """Inspect, publish and return the exit code."""
    arguments = parse_arguments(argv)
    try:
        found, length = look_into(arguments)
        publish(arguments, found, length)
    except ArchiveError as error:
        print(f"inspect_archive.py: {arguments.file}: {error}", file=sys.stderr)
        return 1
    except UsageError as error:
        print(f"inspect_archive.py: {error}", file=sys.stderr)
        return 2
    return 0 if found.verdict == "clean" else 1


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
