#!/usr/bin/env python3
"""Count words, sentences and characters of texts in any script, as JSON or Markdown."""

from __future__ import annotations

import argparse
import codecs
import json
import sys
from pathlib import Path

# The skill's tree may be read-only, and its digest must not change by use.
sys.dont_write_bytecode = True

from textstats.measure import Settings, measure, totals  # noqa: E402
from textstats.render import markdown  # noqa: E402

ASSETS = Path(__file__).resolve().parent.parent / "assets"
MEBIBYTE = 1024 * 1024


class UsageError(Exception):
    """A file that cannot be read or written."""


def positive(text: str) -> int:
    """Parse a positive number."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 1 and 100000")
    return int(text)


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="text_stats.py",
        description=__doc__,
        epilog="Example: python3 scripts/text_stats.py work/inputs/essay.txt --json out/stats.json",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="text file, or - for standard input")
    parser.add_argument("--json", metavar="FILE", help="write the report here instead of to standard output")
    parser.add_argument("--markdown", metavar="FILE", help="write a Markdown summary here")
    parser.add_argument("--top", type=positive, default=20, metavar="N", help="frequent words to list, default 20")
    parser.add_argument(
        "--stopwords",
        metavar="en|FILE",
        help="words to leave out of the frequent ones: en, or a file with one per line",
    )
    parser.add_argument("--wpm", type=positive, default=238, metavar="N", help="words read per minute, default 238")
    parser.add_argument("--ipm", type=positive, default=500, metavar="N", help="ideographs per minute, default 500")
    parser.add_argument("--readability", action="store_true", help="add Flesch scores; English only")
    parser.add_argument("--max-mib", type=positive, default=64, metavar="N", help="largest file, default 64 MiB")
    return parser.parse_args(argv)


def read_text(name: str, limit: int) -> tuple[str, int]:
    """Read one text; the number says how many byte sequences were not valid."""
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(limit + 1)
        else:
            with open(name, "rb") as file:
                raw = file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error
    if len(raw) > limit:
        raise UsageError(f"{name} is larger than --max-mib allows")
    encoding = "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    text = raw.decode(encoding, "replace")
    honest = raw.decode(encoding, "ignore").count("\ufffd")
    return text, text.count("\ufffd") - honest


def read_stopwords(choice: str | None) -> frozenset[str]:
    """Load the words that are not interesting."""
    if choice is None:
        return frozenset()
    path = ASSETS / "stopwords-en.list" if choice == "en" else Path(choice)
    try:
        return frozenset(path.read_text(encoding="utf-8-sig").casefold().split())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read stop words {path}: {error}") from error


def write_text(name: str, text: str) -> None:
    """Write a result file, making its directory."""
    path = Path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror}") from error


def build_report(arguments: argparse.Namespace) -> dict[str, object]:
    """Measure every file."""
    settings = Settings(
        top=arguments.top,
        stopwords=read_stopwords(arguments.stopwords),
        words_per_minute=arguments.wpm,
        ideographs_per_minute=arguments.ipm,
        readability=arguments.readability,
    )
    files: list[dict[str, object]] = []
    for name in arguments.files:
        text, invalid = read_text(name, arguments.max_mib * MEBIBYTE)
        shown = "standard input" if name == "-" else Path(name).name
        files.append({"file": shown, "invalid_sequences": invalid, **measure(text, settings)})
    return {"files": files, "total": totals(files)}


def publish(arguments: argparse.Namespace, report: dict[str, object]) -> None:
    """Write what was asked for."""
    if arguments.markdown:
        write_text(arguments.markdown, markdown(report))
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    if arguments.json:
        write_text(arguments.json, text)
        print(json.dumps(report["total"]))
    else:
        print(text, end="")


def main(argv: list[str]) -> int:
    """Measure, publish and return the exit code."""
    arguments = parse_arguments(argv)
    try:
        report = build_report(arguments)
        publish(arguments, report)
    except UsageError as error:
        print(f"text_stats.py: {error}", file=sys.stderr)
        return 2
    code = 0
    for one in report["files"]:  # type: ignore[attr-defined]
        if one["invalid_sequences"]:
            print(f"text_stats.py: {one['file']}: {one['invalid_sequences']} invalid byte sequences", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
