"""Files of JSON or JSON lines → input values, with the places of what is broken."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .values import Json

BLANK = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True)
class Broken:
    """A piece of input that is not JSON."""

    place: str
    reason: str


def refuse_constant(word: str) -> Any:
    """Python would read NaN and Infinity; JSON has neither."""
    raise ValueError(f"{word} is not JSON")


def read_float(text: str) -> float:
    """Refuse numbers that do not fit."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


DECODER = json.JSONDecoder(parse_constant=refuse_constant, parse_float=read_float)


def decode(raw: bytes) -> str:
    """Decode UTF-8, or UTF-16 with a byte-order mark; invalid bytes are replaced, as jq does."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", "replace")
    return raw.decode("utf-8-sig", "replace")


def reason_of(error: Exception) -> str:
    """Put a decoder's complaint into few words."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        return error.msg.lower()
    text = str(error)
    return "a number has too many digits" if "digits" in text else text


def skip_blanks(text: str, place: int) -> int:
    """The next place that is not blank."""
    match = BLANK.match(text, place)
    return match.end() if match else place


def read_lines(text: str) -> Iterator[tuple[str, Json] | Broken]:
    """One value a line; a broken line does not hide the others."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            yield place, DECODER.decode(line.strip())
        except (ValueError, RecursionError) as error:
            yield Broken(place, reason_of(error))


def read_values(text: str) -> Iterator[tuple[str, Json] | Broken]:
    """Values one after the other, as in a JSON document; reading stops at the first broken one."""
    place = skip_blanks(text, 0)
    number = 0
    while place < len(text):
        number += 1
        try:
            value, end = DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            where = error.pos if isinstance(error, json.JSONDecodeError) else place
            line = text.count("\n", 0, where) + 1
            column = where - (text.rfind("\n", 0, where) + 1) + 1
            yield Broken(f"line {line} column {column}", reason_of(error))
            return
        yield f"value {number}", value
        place = skip_blanks(text, end)
