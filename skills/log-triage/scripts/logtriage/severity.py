"""How bad a log line is: by its level, its HTTP status, or its words."""

from __future__ import annotations

import re

RANKS = {"fatal": 5, "error": 4, "warning": 3, "info": 2, "debug": 1, "unknown": 0}
ALIASES = {
    "fatal": "fatal panic emerg emergency alert crit critical dpanic f",
    "error": "error err severe e failure",
    "warning": "warning warn w",
    "info": "info information notice i audit",
    "debug": "debug trace verbose finest finer fine d v",
}
LEVELS = {alias: level for level, aliases in ALIASES.items() for alias in aliases.split()}
NUMERIC_LEVELS = ((60, "fatal"), (50, "error"), (40, "warning"), (30, "info"), (0, "debug"))
WORDS = (
    "EMERGENCY|EMERG|ALERT|CRITICAL|CRIT|FATAL|PANIC|SEVERE|ERROR|ERR|WARNING|WARN|NOTICE|INFORMATION|INFO|DEBUG|TRACE"
)
# Upper case anywhere near the start; any case in brackets or before a colon.
LEVEL = re.compile(rf"\b(?P<upper>{WORDS})\b|[\[<(](?P<inside>(?i:{WORDS}))[\])>]|\b(?P<before>(?i:{WORDS}))(?=:\s)")
LEADING = re.compile(rf"^[\s\-|:]*(?:[\[<(](?i:{WORDS})[\])>]|(?:{WORDS})\b|(?i:{WORDS})(?=:))[\s\-|:]*")
KLOG = re.compile(r"^(?P<letter>[IWEF])\d{4} \d\d:\d\d:\d\d")
LOOK = 120

HARMLESS = re.compile(r"\b(?:no|0|zero|without|any) (?:errors?|failures?|exceptions?|warnings?)\b", re.IGNORECASE)
FATAL_WORDS = re.compile(
    r"\b(?:panic|fatal|segfault|segmentation fault|out of memory|oom-kill\w*|core dumped|kernel bug)\b", re.IGNORECASE
)
ERROR_WORDS = re.compile(
    r"\b(?:errors?|exception|traceback|failed|failure|fails|cannot|could not|unable to|aborted|corrupt\w*|refused"
    r"|denied|unreachable)\b|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)
WARNING_WORDS = re.compile(
    r"\b(?:warn\w*|deprecated|timed? ?out|timeout|retry(?:ing)?|slow|throttl\w+|dropp(?:ed|ing)|missing)\b",
    re.IGNORECASE,
)


def by_level(line: str) -> str | None:
    """Read the level that the logger wrote."""
    letter = KLOG.match(line)
    if letter:
        return LEVELS[letter["letter"].lower()]
    match = LEVEL.search(line[:LOOK])
    return LEVELS[match[match.lastgroup or 0].lower()] if match else None


def by_name(value: object) -> str | None:
    """Read the level field of a structured entry; numbers follow the bunyan and pino convention."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return next((level for least, level in NUMERIC_LEVELS if value >= least), None)
    return LEVELS.get(str(value).strip().lower())


def by_status(status: int) -> str:
    """Judge an HTTP status."""
    if status >= 500:
        return "error"
    return "warning" if status >= 400 else "info"


def by_words(message: str) -> str | None:
    """Guess from the words of a line that has no level."""
    text = HARMLESS.sub("", message)
    for pattern, level in ((FATAL_WORDS, "fatal"), (ERROR_WORDS, "error"), (WARNING_WORDS, "warning")):
        if pattern.search(text):
            return level
    return None
