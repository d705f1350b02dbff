"""What an archive says about one member, and the findings about it."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

# Characters that reorder or hide text, and can make a name look like another one.
DECEPTIVE = frozenset("\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
SEVERITIES = ("danger", "warning", "info")


class ArchiveError(Exception):
    """The archive cannot be read any further; the text says why."""


class LimitError(Exception):
    """A limit was reached; the text says which."""


@dataclass(frozen=True)
class Finding:
    """Something that is worth knowing before unpacking."""

    severity: str
    code: str
    detail: str
    entry: str | None = None


@dataclass
class Entry:
    """One member; `path` is the decoded name with surrogates for bytes that are not valid."""

    path: str
    kind: str
    size: int = 0
    packed: int | None = None
    mode: int | None = None
    target: str | None = None
    encrypted: bool = False
    codes: set[str] = field(default_factory=set)

    @property
    def shown(self) -> str:
        """The name as it can be printed."""
        return show(self.path)


def show(text: str) -> str:
    """Spell control, deceptive and invalid characters visibly."""
    return "".join(escape(character) for character in text)


def escape(character: str) -> str:
    """Spell one character."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if character == "\\":
        return "\\\\"
    if character in DECEPTIVE or unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn", "Zl", "Zp"):
        return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return character
