"""Lines → log entries: time, severity, message, and the lines that continue it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .moments import Moment, find_moment, parse_loose
from .severity import LEADING, by_level, by_name, by_status, by_words
from .template import route

MAX_CONTINUATION = 200
KEPT_CONTINUATION = 12
MAX_LOGFMT = 4000
MAX_RAW = 2000
LEVEL_KEYS = ("level", "severity", "lvl", "log.level", "loglevel", "levelname")
MESSAGE_KEYS = ("msg", "message", "event", "error", "err", "text")
TIME_KEYS = ("time", "timestamp", "ts", "@timestamp", "t", "datetime", "date", "asctime")
LOGFMT = re.compile(r'([A-Za-z_][\w.@-]*)=("(?:[^"\\]|\\.)*"|\S*)')
REQUEST = re.compile(r'"(?P<method>[A-Z]{3,10}) (?P<target>\S+)[^"]*" (?P<status>[1-5]\d\d)\b')
CONTINUES = re.compile(r"^(?:\s|Traceback \(|Caused by:|Suppressed:|at \S+\(|\.\.\. \d+ more|goroutine \d+ \[)")
CAUSE = re.compile(
    r"^(?:Caused by: )?(?:[A-Za-z_][\w$]*[.:])*[A-Z]\w*(?:Error|Exception|Warning|Fault|Interrupt|Exit)\b.*"
)


@dataclass
class Entry:
    """One event of the log."""

    file: str
    line: int
    raw: str
    message: str
    severity: str
    judged_by: str
    moment: Moment | None
    more: list[str] = field(default_factory=list)
    more_count: int = 0
    cause: str = ""
    template: str = ""

    def extend(self, line: str) -> None:
        """Attach a continuation line; the last exception named in it is the cause."""
        self.more_count += 1
        if len(self.more) < KEPT_CONTINUATION:
            self.more.append(line[:MAX_RAW])
        if CAUSE.match(line):
            self.cause = line[:MAX_RAW]


def entries(file: str, lines: Iterable[tuple[int, str]], year: int | None) -> Iterator[Entry]:
    """Group the lines of one file into entries."""
    current: Entry | None = None
    for number, line in lines:
        if not line.strip():
            continue
        parsed = parse(file, number, line, year)
        if current and continues(current, parsed, line):
            current.extend(line)
            continue
        if current:
            yield finish(current)
        current = parsed
    if current:
        yield finish(current)


def continues(current: Entry, parsed: Entry, line: str) -> bool:
    """Whether a line belongs to the entry before it."""
    if parsed.moment or parsed.judged_by in ("level", "status") or current.more_count >= MAX_CONTINUATION:
        return False
    # In a log with timestamps, a line without one is the rest of the entry above it.
    in_traceback = bool(current.more) and not current.cause and bool(CAUSE.match(line))
    return current.moment is not None or bool(CONTINUES.match(line)) or in_traceback


def finish(entry: Entry) -> Entry:
    """Bound what is kept; a stack trace is an error when no level says otherwise."""
    entry.raw, entry.message = entry.raw[:MAX_RAW], entry.message[:MAX_RAW]
    if entry.cause and entry.judged_by in ("none", "words") and entry.severity in ("unknown", "warning"):
        entry.severity, entry.judged_by = "error", "words"
    return entry


def parse(file: str, number: int, line: str, year: int | None) -> Entry:
    """Read one line by itself."""
    structured = parse_structured(line)
    if structured:
        return from_fields(file, number, line, structured, year)
    found = find_moment(line, year)
    moment = found[0] if found else None
    rest = f"{line[: found[1]]}{line[found[2] :]}" if found else line
    request = REQUEST.search(rest)
    if request and found:
        status = request["status"]
        entry = Entry(file, number, line, rest, by_status(int(status)), "status", moment)
        entry.template = f"{request['method']} {route(request['target'])} -> {status}"
        return entry
    message = LEADING.sub("", rest).strip() or rest.strip()
    level = by_level(line if not found or (found[1] == 0 and line[:1] in "IWEF") else rest)
    if level:
        return Entry(file, number, line, message, level, "level", moment)
    guess = by_words(message)
    return Entry(file, number, line, message, guess or "unknown", "words" if guess else "none", moment)


def parse_structured(line: str) -> dict[str, object] | None:
    """Read a JSON or logfmt line into its fields."""
    text = line.strip()
    if text.startswith("{") and text.endswith("}"):
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return {str(key).lower(): value for key, value in fields.items()} if isinstance(fields, dict) else None
    pairs = LOGFMT.findall(text[:MAX_LOGFMT]) if "=" in text[:200] else []
    fields = {key.lower(): value.strip('"').replace('\\"', '"') for key, value in pairs}
    return fields if pick(fields, LEVEL_KEYS) is not None and pick(fields, MESSAGE_KEYS) is not None else None


def pick(fields: dict[str, object], keys: tuple[str, ...]) -> object:
    """The first of several keys that is there."""
    return next((fields[key] for key in keys if fields.get(key) not in (None, "")), None)


def from_fields(file: str, number: int, line: str, fields: dict[str, object], year: int | None) -> Entry:
    """Make an entry of a structured line."""
    said = pick(fields, MESSAGE_KEYS)
    message = said if isinstance(said, str) else json.dumps(said if said is not None else fields, ensure_ascii=False)
    moment = parse_loose(pick(fields, TIME_KEYS), year)
    level = by_name(pick(fields, LEVEL_KEYS))
    flat = " ".join(message.split())
    if level:
        return Entry(file, number, line, flat, level, "level", moment)
    guess = by_words(flat)
    return Entry(file, number, line, flat, guess or "unknown", "words" if guess else "none", moment)
