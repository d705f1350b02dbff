"""Entries → groups with counts, times and bursts."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

from .entries import Entry
from .moments import Moment
from .severity import RANKS
from .template import redact, template

MAX_GROUPS = 20_000
MAX_SAMPLE = 500


@dataclass(frozen=True)
class BurstRule:
    """So many entries within so many seconds are a burst."""

    count: int
    seconds: int


@dataclass
class Group:
    """All entries of one template and severity."""

    severity: str
    judged_by: str
    template: str
    cause: str
    sample: Entry
    count: int = 0
    first_line: str = ""
    last_line: str = ""
    first_seen: Moment | None = None
    last_seen: Moment | None = None
    files: Counter[str] = field(default_factory=Counter)
    seconds: Counter[int] = field(default_factory=Counter)

    @property
    def identifier(self) -> str:
        """A short name that stays the same from run to run."""
        text = "\n".join((self.severity, self.template, self.cause))
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:10]

    def add(self, entry: Entry) -> None:
        """Count one more entry."""
        self.count += 1
        self.files[entry.file] += 1
        place = f"{entry.file}:{entry.line}"
        self.first_line = self.first_line or place
        self.last_line = place
        if entry.moment:
            self.first_seen = min(self.first_seen or entry.moment, entry.moment)
            self.last_seen = max(self.last_seen or entry.moment, entry.moment)
            self.seconds[entry.moment.second] += 1

    def describe(self, rule: BurstRule) -> dict[str, object]:
        """The finding as the report shows it."""
        return {
            "id": self.identifier,
            "severity": self.severity,
            "judged_by": self.judged_by,
            "count": self.count,
            "template": self.template,
            "cause": self.cause or None,
            "first_seen": str(self.first_seen) if self.first_seen else None,
            "last_seen": str(self.last_seen) if self.last_seen else None,
            "first_line": self.first_line,
            "last_line": self.last_line,
            "files": dict(sorted(self.files.items())),
            "bursts": bursts(self, rule),
            "sample": {
                "line": f"{self.sample.file}:{self.sample.line}",
                "text": shorten(self.sample.raw),
                "more": [shorten(line) for line in self.sample.more],
                "more_lines": self.sample.more_count,
            },
        }


@dataclass
class Triage:
    """Everything counted over all files."""

    groups: dict[tuple[str, str, str], Group] = field(default_factory=dict)
    severities: Counter[str] = field(default_factory=Counter)
    overflow: int = 0
    first_seen: Moment | None = None
    last_seen: Moment | None = None

    def add(self, entry: Entry, least: int) -> None:
        """Count an entry, and group it when it is bad enough."""
        self.severities[entry.severity] += 1
        if entry.moment:
            self.first_seen = min(self.first_seen or entry.moment, entry.moment)
            self.last_seen = max(self.last_seen or entry.moment, entry.moment)
        if RANKS[entry.severity] < least:
            return
        key = (entry.severity, entry.template or template(entry.message), template(entry.cause) if entry.cause else "")
        group = self.groups.get(key)
        if group is None:
            if len(self.groups) >= MAX_GROUPS:
                self.overflow += 1
                return
            group = self.groups[key] = Group(entry.severity, entry.judged_by, key[1], key[2], entry)
        group.add(entry)

    def ordered(self) -> list[Group]:
        """The worst first, then the most frequent, then in order of appearance."""
        return sorted(self.groups.values(), key=lambda group: (-RANKS[group.severity], -group.count))


def shorten(text: str) -> str:
    """Redact and cut a line for display."""
    safe = redact(text)
    return safe if len(safe) <= MAX_SAMPLE else f"{safe[: MAX_SAMPLE - 1]}…"


def bursts(group: Group, rule: BurstRule) -> list[dict[str, object]]:
    """Stretches in which some window of the rule's length holds enough entries, merged where they touch."""
    ordered = sorted(group.seconds.items())
    stretches: list[list[int]] = []
    start = inside = 0
    for index, (second, count) in enumerate(ordered):
        inside += count
        while ordered[start][0] <= second - rule.seconds:
            inside -= ordered[start][1]
            start += 1
        if inside < rule.count:
            continue
        if stretches and start <= stretches[-1][1]:
            stretches[-1][1] = index
        else:
            stretches.append([start, index])
    return [describe_burst(group, ordered[first : last + 1]) for first, last in stretches]


def describe_burst(group: Group, inside: list[tuple[int, int]]) -> dict[str, object]:
    """One burst with its times in the spelling of the group."""
    example = group.first_seen
    assert example is not None, "a burst needs times"
    base = example.second
    return {
        "start": str(shift(example, inside[0][0] - base)),
        "end": str(shift(example, inside[-1][0] - base)),
        "count": sum(count for _, count in inside),
    }


def shift(moment: Moment, seconds: int) -> Moment:
    """Move a moment by whole seconds, dropping its fraction."""
    return Moment(moment.time.replace(microsecond=0) + timedelta(seconds=seconds), moment.zoned, moment.yearless)
