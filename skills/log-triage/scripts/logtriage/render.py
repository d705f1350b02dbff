"""The triage as a Markdown report."""

from __future__ import annotations

from typing import Any

MARKS = {"fatal": "FATAL", "error": "ERROR", "warning": "WARNING", "info": "INFO", "debug": "DEBUG", "unknown": "?"}


def code(text: str) -> str:
    """Quote a text as inline code, whatever backticks it holds."""
    flat = " ".join(text.split()) or " "
    fence = "`"
    while fence in flat:
        fence += "`"
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def cell(text: str) -> str:
    """Inline code that survives a table."""
    return code(text).replace("|", "\\|")


def shorten(text: str, limit: int) -> str:
    """Cut a text."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def markdown(report: dict[str, Any]) -> str:
    """Render the summary, a table of findings, and one section for each."""
    lines = ["# Log triage", "", *summary(report["summary"])]
    findings = report["findings"]
    if not findings:
        return "\n".join([*lines, "", "Nothing at or above the wanted severity.", ""])
    lines += ["", "## Findings", "", "| # | severity | count | first seen | last seen | message |"]
    lines.append("|---:|---|---:|---|---|---|")
    for number, finding in enumerate(findings, start=1):
        times = [finding[key] or finding[key.replace("seen", "line")] for key in ("first_seen", "last_seen")]
        message = cell(shorten(finding["template"], 90))
        lines.append(
            f"| {number} | {MARKS[finding['severity']]} | {finding['count']:,} | {times[0]} | {times[1]} | {message} |"
        )
    if report["omitted_findings"]:
        lines += ["", f"{report['omitted_findings']:,} further findings are not shown; raise `--top` to see them."]
    for number, finding in enumerate(findings, start=1):
        lines += section(number, finding)
    return "\n".join(lines) + "\n"


def summary(facts: dict[str, Any]) -> list[str]:
    """The head of the report."""
    counts = ", ".join(f"{count:,} {name}" for name, count in facts["severities"].items()) or "none"
    lines = [
        f"- files: {', '.join(code(source['name']) for source in facts['files'])}",
        f"- lines: {facts['lines']:,}, entries: {facts['entries']:,} ({counts})",
    ]
    if facts["first_seen"]:
        lines.append(f"- from {facts['first_seen']} to {facts['last_seen']}")
    lines += [f"- note on {code(source['name'])}: {note}" for source in facts["files"] for note in source["notes"]]
    return lines


def section(number: int, finding: dict[str, Any]) -> list[str]:
    """One finding in full."""
    lines = ["", f"### {number}. {MARKS[finding['severity']]} × {finding['count']:,} ({finding['id']})", ""]
    lines.append(f"- message: {code(finding['template'])}")
    if finding["cause"]:
        lines.append(f"- cause: {code(finding['cause'])}")
    if finding["judged_by"] == "words":
        lines.append("- the severity is a guess from the words; the line has no level")
    lines.append(f"- first: {finding['first_seen'] or 'no time'} at {code(finding['first_line'])}")
    lines.append(f"- last: {finding['last_seen'] or 'no time'} at {code(finding['last_line'])}")
    lines += [
        f"- burst: {burst['count']:,} entries from {burst['start']} to {burst['end']}" for burst in finding["bursts"]
    ]
    sample = finding["sample"]
    block = [sample["text"], *sample["more"]]
    hidden = sample["more_lines"] - len(sample["more"])
    if hidden > 0:
        block.append(f"… {hidden:,} more lines")
    fence = "```"
    while any(fence in line for line in block):
        fence += "`"
    return [*lines, "", f"{fence}text", *block, fence]
