"""The text of a query → tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


class QueryError(Exception):
    """A query that is not well-formed; it knows where."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True)
class Token:
    """A piece of the query: kind, text and place."""

    kind: str
    text: str
    position: int


TOKEN = re.compile(
    r"""
    (?P<blank>\s+|\#[^\n]*)
  | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
  | (?P<recurse>\.\.)
  | (?P<field>\.[A-Za-z_]\w*)
  | (?P<variable>\$[A-Za-z_]\w*)
  | (?P<format>@[a-z0-9]+)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<quote>")
  | (?P<update>(?:\|=|\+=|-=|\*=|/=|%=|//=|=(?!=)))
  | (?P<symbol>//|==|!=|<=|>=|[.\[\]{}()|,:;?<>+\-*/%])
    """,
    re.VERBOSE | re.ASCII,
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"'}
HEX = re.compile(r"[0-9a-fA-F]{4}")


def tokens(text: str) -> list[Token]:
    """Split a whole query; the last token is of kind `end`."""
    return [*scan(text), Token("end", "end of query", len(text))]


def scan(text: str) -> Iterator[Token]:
    """Yield the tokens; a string comes as `open`, pieces and interpolations, `close`."""
    place = 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if not match:
            raise QueryError(f"unexpected character {text[place]!r}", place)
        name = match.lastgroup or ""
        if name == "quote":
            parts, end = scan_string(text, place)
            yield from parts
            place = end
            continue
        if name == "update":
            raise QueryError(f"{match.group()} would change the data; this language only reads it", place)
        if name != "blank":
            yield Token(name, match.group(), place)
        place = match.end()


def scan_string(text: str, start: int) -> tuple[list[Token], int]:
    """Read a string literal; an interpolation is scanned into tokens of its own."""
    parts = [Token("open", '"', start)]
    place, piece = start + 1, ""
    while True:
        if place >= len(text):
            raise QueryError("this string is never closed", start)
        character = text[place]
        if character == '"':
            break
        if character != "\\":
            piece, place = piece + character, place + 1
        elif text[place + 1 : place + 2] == "(":
            end = closing_parenthesis(text, place + 1)
            parts += [Token("piece", piece, place), Token("begin", "\\(", place)]
            parts += [
                Token(token.kind, token.text, token.position + place + 2) for token in scan(text[place + 2 : end])
            ]
            parts.append(Token("finish", ")", end))
            piece, place = "", end + 1
        else:
            character, place = scan_escape(text, place)
            piece += character
    parts += [Token("piece", piece, place), Token("close", '"', place)]
    return parts, place + 1


def scan_escape(text: str, place: int) -> tuple[str, int]:
    """Read one escape sequence; a surrogate pair becomes one character."""
    letter = text[place + 1 : place + 2]
    if letter in ESCAPES and letter:
        return ESCAPES[letter], place + 2
    match = HEX.match(text, place + 2) if letter == "u" else None
    if not match:
        raise QueryError("unknown escape in a string", place)
    code, end = int(match.group(), 16), match.end()
    low = HEX.match(text, end + 2) if text[end : end + 2] == "\\u" else None
    if 0xD800 <= code < 0xDC00 and low and 0xDC00 <= int(low.group(), 16) < 0xE000:
        code, end = 0x10000 + ((code - 0xD800) << 10) + int(low.group(), 16) - 0xDC00, low.end()
    return chr(code), end


def skip_string(text: str, start: int) -> int:
    """Find the end of a string inside an interpolation."""
    place = start + 1
    while place < len(text) and text[place] != '"':
        if text[place : place + 2] == "\\(":
            place = closing_parenthesis(text, place + 1) + 1
        else:
            place += 2 if text[place] == "\\" else 1
    return place + 1


def closing_parenthesis(text: str, start: int) -> int:
    """Find the end of an interpolation, minding strings inside it."""
    depth, place = 0, start
    while place < len(text):
        character = text[place]
        if character == '"':
            place = skip_string(text, place)
            continue
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return place
        place += 1
    raise QueryError("this interpolation is never closed", start)


def parse_number(token: Token) -> int | float:
    """Read a number literal."""
    if token.text.isdigit():
        if len(token.text) > 1000:
            raise QueryError("this number is too long", token.position)
        return int(token.text)
    value = float(token.text)
    if value == float("inf"):
        raise QueryError("this number is too large", token.position)
    return int(value) if value.is_integer() and abs(value) < 1e17 else value


class TokenStream:
    """The tokens of a query, taken one after the other."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.place = 0

    @property
    def token(self) -> Token:
        """The token to look at next."""
        return self.tokens[self.place]

    def advance(self) -> Token:
        """Take the next token."""
        token = self.token
        self.place += 1
        return token

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of these symbols or keywords."""
        return self.token.kind in ("symbol", "word", "recurse") and self.token.text in texts

    def accept(self, *texts: str) -> Token | None:
        """Take the next token if it is one of these."""
        return self.advance() if self.at(*texts) else None

    def expect(self, text: str) -> Token:
        """Take exactly this symbol or keyword."""
        if not self.at(text):
            raise QueryError(f"expected {text!r} but found {self.token.text!r}", self.token.position)
        return self.advance()
