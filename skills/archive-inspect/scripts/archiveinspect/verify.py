"""Unpack the members of a zip archive into nothing, to see whether their sizes and checksums are true."""

from __future__ import annotations

import zlib

from .entry import ArchiveError, LimitError
from .streams import CHUNK, Limits
from .zipdir import Member, ZipReader


def verify(reader: ZipReader, limits: Limits) -> None:
    """Check every member that can be read; the limit holds for all of them together."""
    budget = limits.unpacked
    for member in reader.members:
        if member.entry.kind == "directory":
            continue
        if not member.readable:
            reader.note(member, "info", "not_verified", "it is encrypted or uses a rare compression")
            continue
        budget -= check_member(reader, member, budget)


def check_member(reader: ZipReader, member: Member, budget: int) -> int:
    """Unpack one member and return its true size."""
    reader.file.seek(member.data_start)
    decoder = zlib.decompressobj(-15) if member.method == 8 else None
    left, size, checksum = member.packed, 0, 0
    pending = b""
    while left > 0 or pending:
        if not pending:
            pending = reader.file.read(min(CHUNK, left))
            left -= len(pending)
            if not pending:
                raise ArchiveError(f"the data of {member.entry.shown} ends too early")
        try:
            piece = decoder.decompress(pending, CHUNK) if decoder else pending
        except zlib.error:
            reader.note(member, "warning", "damaged", "its data cannot be unpacked")
            return size
        pending = decoder.unconsumed_tail if decoder else b""
        size, checksum = size + len(piece), zlib.crc32(piece, checksum)
        if size > budget:
            raise LimitError(f"verification was stopped at {member.entry.shown}: the limit is used up")
        if size > member.entry.size:
            # It is larger than it says; how much larger does not matter.
            break
    compare(reader, member, size, checksum)
    return size


def compare(reader: ZipReader, member: Member, size: int, checksum: int) -> None:
    """Record what is not as declared."""
    if size > member.entry.size:
        reader.note(member, "danger", "size_lie", f"it unpacks to more than the declared {member.entry.size} bytes")
    elif size < member.entry.size:
        reader.note(member, "warning", "damaged", f"it unpacks to {size} of the declared {member.entry.size} bytes")
    elif checksum != member.crc:
        reader.note(member, "warning", "damaged", "its checksum is wrong")
