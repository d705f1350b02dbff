"""A log file, plain or gzipped → numbered lines of bounded length."""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import BinaryIO

MAX_LINE = 16 * 1024
CHUNK = 64 * 1024
GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW = 31
ESCAPE_CODES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")


class UnreadableLogError(Exception):
    """The file cannot be opened."""


@dataclass
class Source:
    """One log file and what happened while reading it."""

    name: str
    path: str
    lines: int = 0
    cut_lines: int = 0
    incomplete: bool = False
    notes: list[str] = field(default_factory=list)

    def read(self, limit: int) -> Iterator[tuple[int, str]]:
        """Yield line numbers and cleaned lines, up to `limit` bytes of text."""
        try:
            with nullcontext(sys.stdin.buffer) if self.path == "-" else open(self.path, "rb") as file:
                yield from self.number(bounded(chunks(file), limit))
        except (EOFError, zlib.error):
            self.fail(f"the compressed data is damaged after line {self.lines}")
        except OverflowError:
            self.fail(f"reading stopped after {limit} bytes, at line {self.lines}")
        except OSError as error:
            raise UnreadableLogError(f"cannot read {self.path}: {error.strerror or error}") from error
        if self.cut_lines:
            self.notes.append(f"lines cut at {MAX_LINE} bytes: {self.cut_lines}")

    def fail(self, note: str) -> None:
        """Remember that the file was not read to its end."""
        self.incomplete = True
        self.notes.append(note)

    def number(self, data: Iterator[bytes]) -> Iterator[tuple[int, str]]:
        """Count and clean the lines."""
        for line in split_lines(data):
            self.lines += 1
            self.cut_lines += len(line) > MAX_LINE
            yield self.lines, clean(line[:MAX_LINE])


def chunks(file: BinaryIO) -> Iterator[bytes]:
    """Read in pieces; gzip is recognised by its first bytes."""
    data = file.read(CHUNK)
    if data.startswith(GZIP_MAGIC):
        yield from gunzip(file, data)
        return
    while data:
        yield data
        data = file.read(CHUNK)


def gunzip(file: BinaryIO, data: bytes) -> Iterator[bytes]:
    """Decompress one member after the other, at most one chunk at a time."""
    while data.startswith(GZIP_MAGIC):
        member = zlib.decompressobj(GZIP_WINDOW)
        while not member.eof:
            piece = member.decompress(data, CHUNK)
            data = member.unconsumed_tail
            if piece:
                yield piece
            elif not data and not member.eof:
                data = file.read(CHUNK)
                if not data:
                    raise EOFError
        data = member.unused_data or file.read(CHUNK)


def bounded(data: Iterator[bytes], limit: int) -> Iterator[bytes]:
    """Pass `limit` bytes through, then raise OverflowError."""
    for piece in data:
        yield piece[:limit]
        limit -= len(piece)
        if limit < 0:
            raise OverflowError


def split_lines(data: Iterator[bytes]) -> Iterator[bytes]:
    """Split into lines; of an endless one only a little more than MAX_LINE is kept."""
    pending = b""
    for piece in data:
        *whole, rest = piece.split(b"\n")
        for line in whole:
            yield pending + line
            pending = b""
        pending += rest[: MAX_LINE + 1 - min(len(pending), MAX_LINE + 1)]
    if pending:
        yield pending


def clean(line: bytes) -> str:
    """Decode a line and take terminal codes and control characters out."""
    text = ESCAPE_CODES.sub("", line.decode("utf-8", "replace").lstrip("\ufeff"))
    return CONTROLS.sub("\ufffd", text.rstrip("\r"))
