"""Functions on texts and regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .catalogue import Query, Scope, need, on_queries, on_values
from .formats import text_of
from .values import EvaluationError, Json, kind, show

FLAGS = {"i": re.IGNORECASE, "x": re.VERBOSE, "s": re.DOTALL, "g": re.RegexFlag(0), "n": re.RegexFlag(0)}
LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def compiled(pattern: Json, flags: Any = "") -> re.Pattern[str]:
    """Compile a regular expression with jq's flag letters."""
    used = re.RegexFlag(0)
    for letter in need(flags or "", "string", "flags"):
        if letter not in FLAGS:
            raise EvaluationError(f"{letter!r} is not a regular expression flag; known: {', '.join(FLAGS)}")
        used |= FLAGS[letter]
    try:
        return re.compile(re.sub(r"\(\?<(?=\w)", "(?P<", need(pattern, "string", "a regular expression")), used)
    except (re.error, RecursionError, OverflowError) as error:
        raise EvaluationError(f"{show(pattern)} is not a regular expression") from error


@on_values("ascii_downcase")
def downcase(value: Json) -> Json:
    """Lower case, ASCII letters only."""
    return need(value, "string", "ascii_downcase").translate(LOWER)


@on_values("ascii_upcase")
def upcase(value: Json) -> Json:
    """Upper case, ASCII letters only."""
    return need(value, "string", "ascii_upcase").translate(UPPER)


@on_values("trim")
def trim(value: Json) -> Json:
    """Text without blanks at its ends."""
    return need(value, "string", "trim").strip()


@on_values("startswith", 1)
def starts_with(value: Json, prefix: Json) -> Json:
    """Whether a text starts with another."""
    return need(value, "string", "startswith").startswith(need(prefix, "string", "startswith"))


@on_values("endswith", 1)
def ends_with(value: Json, suffix: Json) -> Json:
    """Whether a text ends with another."""
    return need(value, "string", "endswith").endswith(need(suffix, "string", "endswith"))


@on_values("ltrimstr", 1)
def without_prefix(value: Json, prefix: Json) -> Json:
    """Take a prefix off; anything else passes unchanged."""
    both = isinstance(value, str) and isinstance(prefix, str)
    return value.removeprefix(prefix) if both else value


@on_values("rtrimstr", 1)
def without_suffix(value: Json, suffix: Json) -> Json:
    """Take a suffix off; anything else passes unchanged."""
    both = isinstance(value, str) and isinstance(suffix, str)
    return value.removesuffix(suffix) if both else value


@on_values("split", 1)
def split(value: Json, separator: Json) -> Json:
    """Pieces of a text between separators."""
    text, between = need(value, "string", "split"), need(separator, "string", "split")
    if not text:
        return []
    return text.split(between) if between else list(text)


@on_values("split", 2)
def split_by_pattern(value: Json, pattern: Json, flags: Json) -> Json:
    """Pieces of a text between matches."""
    text, ends = need(value, "string", "split"), [0]
    for match in compiled(pattern, flags).finditer(text):
        ends += match.span()
    ends.append(len(text))
    return [text[ends[place] : ends[place + 1]] for place in range(0, len(ends), 2)]


@on_values("join", 1)
def join(value: Json, separator: Json) -> Json:
    """One text of an array; null is empty, numbers and truth values are spelled."""
    parts = need(value, "array", "join")
    between = need(separator, "string", "join")
    for part in parts:
        if isinstance(part, (list, dict)):
            raise EvaluationError(f"{kind(part)} ({show(part)}) cannot be joined")
    return between.join("" if part is None else text_of(part) for part in parts)


@on_values("test", 1)
def test(value: Json, pattern: Json) -> Json:
    """Whether a regular expression matches somewhere."""
    return compiled(pattern).search(need(value, "string", "test")) is not None


@on_values("test", 2)
def test_with_flags(value: Json, pattern: Json, flags: Json) -> Json:
    """Whether a regular expression matches somewhere."""
    return compiled(pattern, flags).search(need(value, "string", "test")) is not None


@on_queries("capture", 1)
def capture(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
    """Named groups of the first match, or nothing."""
    for pattern in arguments[0].run(value, scope):
        match = compiled(pattern).search(need(value, "string", "capture"))
        if match:
            yield dict(match.groupdict())


@on_queries("scan", 1)
def scan(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
    """All matches, or their groups where the expression has any."""
    for pattern in arguments[0].run(value, scope):
        for match in compiled(pattern).finditer(need(value, "string", "scan")):
            yield list(match.groups()) if match.re.groups else match.group()


def replacer(name: str, count: int) -> None:
    """Register sub or gsub; the replacement sees the named groups as an object."""

    def run(arguments: list[Query], value: Json, scope: Scope) -> Iterator[Json]:
        text = need(value, "string", name)
        flags = next(arguments[2].run(value, scope), "") if len(arguments) == 3 else ""
        everywhere = 0 if "g" in str(flags) else count
        for pattern in arguments[0].run(value, scope):
            yield compiled(pattern, flags).sub(
                lambda match: need(next(arguments[1].run(dict(match.groupdict()), scope), ""), "string", name),
                text,
                everywhere,
            )

    on_queries(name, 2)(run)
    on_queries(name, 3)(run)


replacer("sub", 1)
replacer("gsub", 0)
