"""The central directory of a zip archive → entries, compared with the local headers."""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from .entry import ArchiveError, Entry, Finding, LimitError

END = b"PK\x05\x06"
END64 = b"PK\x06\x06"
LOCATOR64 = b"PK\x06\x07"
CENTRAL = b"PK\x01\x02"
LOCAL = b"PK\x03\x04"
UNIX = 3
MAX_TARGET = 4096
METHODS = (0, 8)


@dataclass
class Member:
    """An entry with what is needed to find its data."""

    entry: Entry
    raw_name: bytes
    method: int
    flags: int
    crc: int
    offset: int
    packed: int
    data_start: int = 0

    @property
    def readable(self) -> bool:
        """Whether the content can be had without a password or a rare decoder."""
        return self.method in METHODS and not self.entry.encrypted


@dataclass
class ZipReader:
    """Walks the central directory; what is odd about the archive itself becomes a finding."""

    file: BinaryIO
    max_entries: int
    findings: list[Finding] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    shift: int = 0

    def entries(self) -> Iterator[Entry]:
        """Yield the members in order of the central directory."""
        start, size, count = self.locate()
        self.file.seek(start)
        seen = 0
        while seen < count:
            seen += 1
            if seen > self.max_entries:
                raise LimitError(f"listing was stopped after {self.max_entries} members")
            if self.file.tell() >= start + size:
                raise ArchiveError(f"the directory ends after {seen - 1} of {count} members")
            member = self.central()
            self.members.append(member)
            place = self.file.tell()
            self.local(member)
            if member.entry.kind == "symlink":
                member.entry.target = self.link_target(member)
            self.file.seek(place)
            yield member.entry
        if self.file.tell() < start + size:
            self.findings.append(Finding("warning", "hidden_data", "the directory holds more than it counts"))
        self.check_overlaps()

    def locate(self) -> tuple[int, int, int]:
        """Find the central directory: its place, its size and its number of members."""
        length = self.file.seek(0, os.SEEK_END)
        tail_start = max(0, length - 65_557)
        self.file.seek(tail_start)
        tail = self.file.read()
        place = tail.rfind(END)
        if place < 0 or len(tail) - place < 22:
            raise ArchiveError("the end of the central directory is missing")
        _, disk, first_disk, _, count, size, offset, comment = struct.unpack("<4s4H2LH", tail[place : place + 22])
        end = tail_start + place
        if disk or first_disk:
            raise ArchiveError("archives in several parts are not supported")
        if end + 22 + comment < length:
            self.findings.append(Finding("warning", "trailing_data", "there is data after the end of the archive"))
        if count == 0xFFFF or size == 0xFFFFFFFF or offset == 0xFFFFFFFF:
            end, size, offset, count = self.locate64(end, size, offset, count)
        # Data before the archive, as in self-extracting programs, shifts every offset.
        self.shift = end - size - offset
        if self.shift < 0 or end - size < 0:
            raise ArchiveError("the central directory is not where the archive says")
        if self.shift:
            self.findings.append(Finding("warning", "prefix_data", f"{self.shift} bytes stand before the archive"))
        return end - size, size, count

    def locate64(self, end: int, size: int, offset: int, count: int) -> tuple[int, int, int, int]:
        """Read the 64-bit end record, where there is one."""
        if end < 20:
            return end, size, offset, count
        self.file.seek(end - 20)
        locator = self.file.read(20)
        if not locator.startswith(LOCATOR64):
            return end, size, offset, count
        place = struct.unpack("<4sLQL", locator)[2]
        for candidate in (place, end - 20 - 56):
            self.file.seek(max(0, candidate))
            record = self.file.read(56)
            if len(record) == 56 and record.startswith(END64):
                _, _, _, _, _, _, _, count, size, offset = struct.unpack("<4sQ2H2L4Q", record)
                return candidate, size, offset, count
        raise ArchiveError("the 64-bit end of the central directory is missing")

    def central(self) -> Member:
        """Read one record of the central directory."""
        head = self.file.read(46)
        if len(head) < 46 or not head.startswith(CENTRAL):
            raise ArchiveError(f"record {len(self.members) + 1} of the central directory is damaged")
        fields = struct.unpack("<4s2B5H3L5H2L", head)
        system, flags, method, crc, packed, size = fields[2], fields[4], fields[5], *fields[8:11]
        name_length, extra_length, comment_length, attributes, offset = *fields[11:14], fields[16], fields[17]
        raw_name = self.file.read(name_length)
        extra = self.file.read(extra_length)
        self.file.seek(comment_length, os.SEEK_CUR)
        if len(raw_name) < name_length or len(extra) < extra_length:
            raise ArchiveError("the central directory ends too early")
        size, packed, offset = widen(extra, size, packed, offset)
        mode = attributes >> 16 if system == UNIX else None
        path = decode_name(raw_name, declared_utf8=bool(flags & 0x800))
        entry = Entry(path, kind_of(path, mode, attributes), size, packed, encrypted=bool(flags & 1))
        entry.mode = None if mode is None else mode & 0o7777
        return Member(entry, raw_name, method, flags, crc, offset + self.shift, packed)

    def local(self, member: Member) -> None:
        """Compare the local header, which other programs may trust instead."""
        self.file.seek(member.offset)
        head = self.file.read(30)
        if len(head) < 30 or not head.startswith(LOCAL):
            raise ArchiveError(f"the local header of {member.entry.shown} is missing")
        name_length, extra_length = struct.unpack("<2H", head[26:30])
        name = self.file.read(name_length)
        member.data_start = member.offset + 30 + name_length + extra_length
        if name != member.raw_name:
            shown = Entry(name.decode("utf-8", "surrogateescape"), "").shown
            self.note(member, "danger", "header_mismatch", f"the local header has another name: {shown}")
        elif struct.unpack("<H", head[8:10])[0] != member.method:
            self.note(member, "danger", "header_mismatch", "the local header has another compression method")

    def note(self, member: Member, severity: str, code: str, detail: str) -> None:
        """Record a finding about one member."""
        member.entry.codes.add(code)
        self.findings.append(Finding(severity, code, detail, member.entry.shown))

    def link_target(self, member: Member) -> str | None:
        """Read the target of a symbolic link, which is its content."""
        if not member.readable:
            self.note(member, "warning", "unreadable_link", "the target of the link cannot be read")
            return None
        self.file.seek(member.data_start)
        raw = self.file.read(min(member.packed, 2 * MAX_TARGET))
        try:
            content = raw if member.method == 0 else zlib.decompressobj(-15).decompress(raw, MAX_TARGET)
        except zlib.error:
            self.note(member, "warning", "unreadable_link", "the target of the link is damaged")
            return None
        return content[:MAX_TARGET].decode("utf-8", "surrogateescape")

    def check_overlaps(self) -> None:
        """Members that share data are how a small archive claims a huge content."""
        ordered = sorted(self.members, key=lambda member: member.offset)
        for before, after in zip(ordered, ordered[1:]):
            if before.data_start + before.packed > after.offset:
                self.note(after, "danger", "overlap", f"it shares data with {before.entry.shown}")


def widen(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """Replace the values that did not fit into 32 bits by those of the zip64 field."""
    while len(extra) >= 4:
        tag, length = struct.unpack("<2H", extra[:4])
        body, extra = extra[4 : 4 + length], extra[4 + length :]
        if tag != 1:
            continue
        values = [int.from_bytes(body[place : place + 8], "little") for place in range(0, len(body) - 7, 8)]
        wide = [values.pop(0) if value == 0xFFFFFFFF and values else value for value in (size, packed, offset)]
        return wide[0], wide[1], wide[2]
    return size, packed, offset


def decode_name(raw: bytes, *, declared_utf8: bool) -> str:
    """Decode a name; without the UTF-8 flag it is often UTF-8 anyway, and otherwise of the old DOS code page."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape") if declared_utf8 else raw.decode("cp437")


def kind_of(path: str, mode: int | None, attributes: int) -> str:
    """Tell files, directories and special members apart."""
    format_bits = stat.S_IFMT(mode) if mode else 0
    special = {
        stat.S_IFLNK: "symlink",
        stat.S_IFCHR: "character device",
        stat.S_IFBLK: "block device",
        stat.S_IFIFO: "fifo",
        stat.S_IFSOCK: "socket",
    }
    if format_bits in special:
        return special[format_bits]
    return "directory" if path.endswith("/") or format_bits == stat.S_IFDIR or attributes & 0x10 else "file"
