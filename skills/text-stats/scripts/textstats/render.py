"""The report as Markdown."""

from __future__ import annotations

from typing import Any

COLUMNS = (
    ("words", "words"),
    ("sentences", "sentences"),
    ("paragraphs", "paragraphs"),
    ("lines", "lines"),
    ("graphemes", "characters seen"),
    ("ideographs", "ideographs"),
)


def cell(text: str) -> str:
    """Make a text safe inside a table cell."""
    flat = " ".join(text.split())
    return flat.replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`").replace("<", "&lt;")


def duration(seconds: int) -> str:
    """Spell a reading time."""
    return f"{seconds // 60} min {seconds % 60:02} s" if seconds >= 60 else f"{seconds} s"


def markdown(report: dict[str, Any]) -> str:
    """Render a table of all files, then the frequent words of each."""
    names = [name for _, name in COLUMNS]
    lines = ["# Text statistics", "", f"| file | {' | '.join(names)} | reading time |"]
    lines.append("|---|" + "---:|" * (len(names) + 1))
    rows = [(one["file"], one) for one in report["files"]]
    if len(rows) > 1:
        rows.append(("**all**", report["total"]))
    for name, one in rows:
        numbers = " | ".join(f"{one[key]:,}" for key, _ in COLUMNS)
        lines.append(
            f"| {name if one is report['total'] else cell(name)} | {numbers} | {duration(one['reading_seconds'])} |"
        )
    for one in report["files"]:
        lines += frequent(one)
    return "\n".join(lines) + "\n"


def frequent(one: dict[str, Any]) -> list[str]:
    """The sections on one file."""
    lines: list[str] = []
    for key, title in (("top_words", "Frequent words"), ("top_ideograph_pairs", "Frequent ideograph pairs")):
        if one[key]:
            lines += ["", f"## {title} in {cell(one['file'])}", "", "| text | count |", "|---|---:|"]
            lines += [f"| {cell(entry['text'])} | {entry['count']:,} |" for entry in one[key]]
    return lines
