"""The text of one cell → a number, a date, a truth value, or nothing."""

from __future__ import annotations

import re
from datetime import datetime, timezone

MISSING = frozenset({"", "-", "--", "?", "n/a", "na", "nan", "nil", "none", "null", "#n/a"})
TRUE_WORDS = frozenset({"true", "yes", "y", "on"})
FALSE_WORDS = frozenset({"false", "no", "n", "off"})
IDENTIFIER = re.compile(r"0\d+", re.ASCII)
LARGEST = 1e150  # Its square is still a number.
UNITS = "$€£¥₹₩%"

# Each style names its decimal sign, then its grouping signs.
NUMBER_STYLES = {
    "point": re.compile(r"[+-]?(\d{1,3}([,'\u2019 \u00a0\u202f]\d{3})+|\d+)?(\.\d+)?([eE][+-]?\d{1,3})?", re.ASCII),
    "comma": re.compile(r"[+-]?(\d{1,3}([.'\u2019 \u00a0\u202f]\d{3})+|\d+)?(,\d+)?([eE][+-]?\d{1,3})?", re.ASCII),
}
GROUPING = {
    "point": str.maketrans("", "", ",'\u2019 \u00a0\u202f"),
    "comma": str.maketrans(",", ".", ".'\u2019 \u00a0\u202f"),
}

DATE_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%dT%H:%M:%S.%f%z",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%d %H:%M:%S%z",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S",
    "%Y-%m",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%d %b %Y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%b %Y",
    "%B %Y",
)
AMBIGUOUS_PAIR = ("%d/%m/%Y", "%m/%d/%Y")


def is_missing(text: str) -> bool:
    """Say whether a cell stands for an absent value."""
    return text in MISSING or text.lower() in MISSING


def split_unit(text: str) -> tuple[str, str]:
    """Take one currency or per-cent sign off either end."""
    sign = ""
    if text[:1] in "+-\u2212" and text[1:2] and text[1:2] in UNITS:
        sign, text = text[:1], text[1:]
    if text[:1] and text[:1] in UNITS:
        return sign + text[1:].strip(), text[0]
    if text[-1:] and text[-1:] in UNITS:
        return sign + text[:-1].strip(), text[-1]
    return sign + text, ""


def parse_number(text: str, style: str) -> int | float | None:
    """Parse a number written in one style; leading zeros mark an identifier, not a number."""
    bare = split_unit(text)[0].replace("\u2212", "-")
    match = NUMBER_STYLES[style].fullmatch(bare)
    if not match or (match[1] is None and match[3] is None) or IDENTIFIER.fullmatch(bare):
        return None
    plain = bare.translate(GROUPING[style])
    if match[3] is None and match[4] is None and len(plain) <= 30:
        return int(plain)
    value = float(plain)
    return value if abs(value) < LARGEST else None


def parse_date(text: str, pattern: str) -> datetime | None:
    """Parse a date in one format; a zone is turned into UTC."""
    try:
        moment = datetime.strptime(text, pattern)
        return moment if moment.tzinfo is None else moment.astimezone(timezone.utc).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def parse_truth(text: str) -> bool | None:
    """Parse a truth value."""
    word = text.lower()
    if word in TRUE_WORDS:
        return True
    return False if word in FALSE_WORDS else None
