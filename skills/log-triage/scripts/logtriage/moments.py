"""Timestamps in the forms that logs use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# A leap year, so that every day of a log without years has a place.
PLACEHOLDER_YEAR = 2000
LOOK = 90

CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
ZONE = r"(?P<zone>\s?(?:Z\b|UTC\b|GMT\b|[+-]\d\d:?\d\d\b))?"
PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\[?(?P<year>\d{{4}})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ]{CLOCK}{ZONE}\]?",
        rf"\[?(?P<day>\d\d)/(?P<name>[A-Za-z]{{3}})/(?P<year>\d{{4}}):{CLOCK}{ZONE}\]?",
        rf"\[?(?:[A-Z][a-z]{{2}} )?(?P<name>[A-Z][a-z]{{2}}) +(?P<day>\d{{1,2}}) {CLOCK}(?: (?P<year>\d{{4}}))?\]?",
        rf"^[IWEF](?P<month>\d\d)(?P<day>\d\d) {CLOCK}",
        r"^\[?(?P<epoch>1\d{9})(?:\.(?P<fraction>\d{1,9})|(?P<millis>\d{3}))?\b\]?",
    )
)


@dataclass(frozen=True, order=True)
class Moment:
    """A point in time; the zone and the year may be unknown."""

    time: datetime
    zoned: bool = False
    yearless: bool = False

    def __str__(self) -> str:
        """ISO 8601; without year it begins with two dashes, without zone it has none."""
        kind = "milliseconds" if self.time.microsecond else "seconds"
        text = self.time.isoformat(timespec=kind) + ("Z" if self.zoned else "")
        return f"-{text[4:]}" if self.yearless else text

    @property
    def second(self) -> int:
        """Whole seconds on a common axis."""
        return int((self.time - datetime(1970, 1, 1)) / timedelta(seconds=1))


def find_moment(line: str, year: int | None) -> tuple[Moment, int, int] | None:
    """Find the first timestamp near the start of a line, with its place."""
    head = line[:LOOK]
    best: tuple[Moment, int, int] | None = None
    for pattern in PATTERNS:
        match = pattern.search(head)
        if match and (best is None or match.start() < best[1]):
            moment = build(match.groupdict(), year)
            if moment:
                best = moment, match.start(), match.end()
                if match.start() == 0:
                    break
    return best


def build(parts: dict[str, str | None], year: int | None) -> Moment | None:
    """Put the parts of a timestamp together, or refuse impossible ones."""
    micro = int((parts.get("fraction") or "0").ljust(6, "0")[:6])
    try:
        if parts.get("epoch"):
            millis = int(parts.get("millis") or 0) * 1000
            seconds = int(parts["epoch"] or 0)
            return Moment(datetime(1970, 1, 1) + timedelta(seconds=seconds, microseconds=micro or millis), zoned=True)
        name = parts.get("name")
        month = MONTHS.index(name.lower()) + 1 if name else int(parts.get("month") or 0)
        known = int(parts.get("year") or year or 0)
        hour, minute, second, day = (int(parts[part] or 0) for part in ("hour", "minute", "second", "day"))
        time = datetime(known or PLACEHOLDER_YEAR, month, day, hour, minute, second, micro)
        zone = (parts.get("zone") or "").strip()
        if zone:
            time = time.replace(tzinfo=offset(zone)).astimezone(timezone.utc).replace(tzinfo=None)
        return Moment(time, zoned=bool(zone), yearless=not known)
    except (ValueError, KeyError, OverflowError):
        return None


def offset(zone: str) -> timezone:
    """Read Z, UTC, GMT, +02:00 or +0200."""
    if zone[0] not in "+-":
        return timezone.utc
    digits = zone[1:].replace(":", "")
    distance = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-distance if zone[0] == "-" else distance)


def parse_loose(value: object, year: int | None) -> Moment | None:
    """Read the time field of a structured entry: text, seconds or milliseconds since 1970."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        seconds = value / 1000 if value > 10**11 else value
        if not 0 <= seconds < 4 * 10**9:
            return None
        return Moment(datetime(1970, 1, 1) + timedelta(microseconds=round(seconds * 10**6)), zoned=True)
    found = find_moment(str(value), year)
    return found[0] if found else None
