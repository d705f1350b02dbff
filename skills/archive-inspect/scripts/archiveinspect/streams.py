"""Bytes of a file, unpacked on the way when it is compressed, never more than the limits allow."""

from __future__ import annotations

import bz2
import lzma
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from .entry import ArchiveError, LimitError

CHUNK = 64 * 1024
XZ_MEMORY = 256 * 1024 * 1024
RATIO_FLOOR = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """What reading may cost, and what an honest archive looks like."""

    unpacked: int
    ratio: int
    entries: int


class ByteSource(Protocol):
    """What a tar reader needs."""

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, fewer only at the end."""

    def skip(self, size: int) -> None:
        """Pass over bytes."""


class PlainSource:
    """An uncompressed file; skipping does not read."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.length = os.fstat(file.fileno()).st_size

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes."""
        return self.file.read(size)

    def skip(self, size: int) -> None:
        """Seek forward; beyond the end means that the archive was cut."""
        if self.file.tell() + size > self.length:
            self.file.seek(0, os.SEEK_END)
            raise ArchiveError("the archive ends in the middle of a member")
        self.file.seek(size, os.SEEK_CUR)


def gzip_decoder() -> Any:
    """A decoder of one gzip member."""
    return zlib.decompressobj(31)


def xz_decoder() -> Any:
    """A decoder of one xz stream with bounded memory."""
    return lzma.LZMADecompressor(memlimit=XZ_MEMORY)


DECODERS: dict[str, tuple[bytes, Callable[[], Any]]] = {
    "gzip": (b"\x1f\x8b", gzip_decoder),
    "bzip2": (b"BZh", bz2.BZ2Decompressor),
    "xz": (b"\xfd7zXZ\x00", xz_decoder),
}


class PackedSource:
    """A compressed file, unpacked in bounded pieces; several streams in a row are one."""

    def __init__(self, file: BinaryIO, name: str, limits: Limits) -> None:
        self.file, self.limits = file, limits
        self.magic, self.make_decoder = DECODERS[name]
        self.decoder = self.make_decoder()
        self.raw, self.ready = b"", b""
        self.length = os.fstat(file.fileno()).st_size
        self.produced = 0
        self.finished = False
        self.trailing = False

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes."""
        while len(self.ready) < size and not self.finished:
            self.ready += self.unpack(min(CHUNK, max(size - len(self.ready), 512)))
        piece, self.ready = self.ready[:size], self.ready[size:]
        return piece

    def skip(self, size: int) -> None:
        """Unpack and forget."""
        while size > 0:
            piece = self.read(min(size, CHUNK))
            if not piece:
                raise ArchiveError("the archive ends in the middle of a member")
            size -= len(piece)

    def unpack(self, size: int) -> bytes:
        """Unpack one piece and check the limits."""
        if self.decoder.eof and not self.next_stream():
            return b""
        try:
            piece: bytes = self.decoder.decompress(self.raw, size)
        except (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError) as error:
            raise ArchiveError("the compressed data is damaged") from error
        self.raw = getattr(self.decoder, "unconsumed_tail", b"")
        if not piece and not self.decoder.eof and not self.raw:
            self.refill()
        self.produced += len(piece)
        if self.produced > self.limits.unpacked:
            raise LimitError(f"unpacking was stopped after {self.limits.unpacked} bytes")
        if self.produced > max(RATIO_FLOOR, self.limits.ratio * self.length):
            raise LimitError(f"unpacking was stopped at more than {self.limits.ratio} times the size of the archive")
        return piece

    def refill(self) -> None:
        """Read more of the file; its end inside a stream is damage."""
        self.raw = self.file.read(CHUNK)
        if not self.raw:
            raise ArchiveError("the compressed data ends too early")

    def next_stream(self) -> bool:
        """Start the next stream, if there is one."""
        rest = self.decoder.unused_data
        if len(rest) < len(self.magic):
            rest += self.file.read(CHUNK)
        if not rest.startswith(self.magic):
            self.trailing = bool(rest.strip(b"\0"))
            self.finished = True
            return False
        self.decoder, self.raw = self.make_decoder(), rest
        return True


def compression_of(head: bytes) -> str | None:
    """Name the compression by the first bytes."""
    return next((name for name, (magic, _) in DECODERS.items() if head.startswith(magic)), None)
