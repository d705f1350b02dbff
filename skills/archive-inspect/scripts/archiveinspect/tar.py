"""Headers of tar archives (v7, ustar, pax, GNU) → entries, without touching the contents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .entry import ArchiveError, Entry, Finding, LimitError
from .streams import CHUNK, ByteSource

BLOCK = 512
MAX_EXTENSION = 1024 * 1024
KINDS = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"S": "file",
    b"1": "hardlink",
    b"2": "symlink",
    b"3": "character device",
    b"4": "block device",
    b"5": "directory",
    b"6": "fifo",
}
# Only these types have contents after their header.
WITHOUT_DATA = frozenset(("hardlink", "symlink", "character device", "block device", "directory", "fifo"))


@dataclass
class TarReader:
    """Walks the headers; what is odd about the archive itself becomes a finding."""

    source: ByteSource
    max_entries: int
    findings: list[Finding] = field(default_factory=list)
    global_pax: dict[str, str] = field(default_factory=dict)
    pax: dict[str, str] = field(default_factory=dict)

    def entries(self) -> Iterator[Entry]:
        """Yield the members in order."""
        count = zero_blocks = 0
        while True:
            block = self.source.read(BLOCK)
            if len(block) < BLOCK:
                if block or not zero_blocks:
                    self.findings.append(Finding("warning", "truncated", "the end-of-archive mark is missing"))
                return
            if not block.strip(b"\0"):
                zero_blocks += 1
                if zero_blocks == 2:
                    self.check_trailer()
                    return
                continue
            if zero_blocks:
                self.findings.append(Finding("warning", "hidden_data", "members follow after an empty block"))
                zero_blocks = 0
            if not checksum_fits(block):
                raise ArchiveError(f"the header of member {count + 1} has a wrong checksum")
            entry = self.member(block)
            if entry:
                count += 1
                if count > self.max_entries:
                    raise LimitError(f"listing was stopped after {self.max_entries} members")
                yield entry

    def check_trailer(self) -> None:
        """Read on to the end of the file: only zeros belong there, and not endlessly many."""
        noted = False
        while piece := self.source.read(CHUNK):
            if not noted and piece.strip(b"\0"):
                self.findings.append(Finding("warning", "trailing_data", "there is data after the end of the archive"))
                noted = True

    def member(self, block: bytes) -> Entry | None:
        """Read one header and pass over its contents; extension headers give no entry."""
        kind = block[156:157]
        stored = number(block[124:136], "size")
        if kind in b"xgLK" and kind:
            self.extend(kind, stored)
            return None
        pax, self.pax = {**self.global_pax, **self.pax}, {}
        stored = pax_number(pax, "size", stored)
        name = pax.get("GNU.sparse.name") or pax.get("path") or header_name(block)
        what = KINDS.get(kind, f"type {kind.decode('latin-1')!r}")
        if what == "file" and name.endswith("/"):
            what = "directory"
        size = pax_number(pax, "GNU.sparse.realsize", pax_number(pax, "GNU.sparse.size", stored))
        if kind == b"S":
            size = self.sparse_size(block)
        if what in WITHOUT_DATA:
            stored = size = 0
        self.source.skip(-(-stored // BLOCK) * BLOCK)
        target = pax.get("linkpath", text(block[157:257])) if what in ("symlink", "hardlink") else None
        return Entry(name, what, size, None, number(block[100:108], "mode") & 0o7777, target)

    def extend(self, kind: bytes, size: int) -> None:
        """Read an extension header: pax records or a long name."""
        if size > MAX_EXTENSION:
            raise LimitError(f"an extension header claims {size} bytes")
        padded = -(-size // BLOCK) * BLOCK
        data = self.source.read(padded)
        if len(data) < padded:
            raise ArchiveError("the archive ends in an extension header")
        if kind == b"L":
            self.pax["path"] = text(data[:size])
        elif kind == b"K":
            self.pax["linkpath"] = text(data[:size])
        elif kind == b"g":
            self.global_pax.update(pax_records(data[:size]))
        else:
            self.pax.update(pax_records(data[:size]))

    def sparse_size(self, block: bytes) -> int:
        """The true size of an old GNU sparse file; its map may go on in further blocks."""
        extended = block[482:483] not in (b"\0", b"")
        while extended:
            more = self.source.read(BLOCK)
            if len(more) < BLOCK:
                raise ArchiveError("the archive ends in a sparse map")
            extended = more[504:505] not in (b"\0", b"")
        return number(block[483:495], "size")


def checksum_fits(block: bytes) -> bool:
    """Compare the header's checksum, in the unsigned and the historical signed form."""
    try:
        claimed = number(block[148:156], "checksum")
    except ArchiveError:
        return False
    blanked = block[:148] + b" " * 8 + block[156:]
    unsigned = sum(blanked)
    signed = sum(byte - 256 if byte > 127 else byte for byte in blanked)
    return claimed in (unsigned, signed)


def number(raw: bytes, what: str) -> int:
    """Read an octal or base-256 number that is not negative."""
    if raw[:1] and raw[0] & 0x80:
        value = int.from_bytes(bytes([raw[0] & 0x7F]) + raw[1:], "big")
        if raw[0] & 0x40 or value >= 1 << 63:
            raise ArchiveError(f"a header has an impossible {what}")
        return value
    digits = raw.replace(b"\0", b" ").strip()
    try:
        return int(digits, 8) if digits else 0
    except ValueError:
        raise ArchiveError(f"a header has an unreadable {what}") from None


def pax_number(pax: dict[str, str], key: str, otherwise: int) -> int:
    """Read a number of a pax record."""
    if key not in pax:
        return otherwise
    value = pax[key]
    if not (value.isascii() and value.isdigit()) or len(value) > 19:
        raise ArchiveError(f"an extension header has an unreadable {key}")
    return int(value)


def text(raw: bytes) -> str:
    """Decode a field up to its first zero byte."""
    return raw.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def header_name(block: bytes) -> str:
    """The name of the header itself, with the ustar prefix before it."""
    name = text(block[0:100])
    prefix = text(block[345:500]) if block[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def pax_records(data: bytes) -> dict[str, str]:
    """Split `length key=value` records; the rest of a malformed header is refused."""
    records: dict[str, str] = {}
    while data.strip(b"\0"):
        length, _, _ = data.partition(b" ")
        if not length.isdigit() or len(length) > 8 or not 0 < int(length) <= len(data):
            raise ArchiveError("an extension header is malformed")
        record, data = data[: int(length)], data[int(length) :]
        key, equals, value = record[len(length) + 1 :].partition(b"=")
        if not equals or not value.endswith(b"\n"):
            raise ArchiveError("an extension header is malformed")
        records[key.decode("utf-8", "replace")] = value[:-1].decode("utf-8", "surrogateescape")
    return records


def looks_like_tar(block: bytes) -> bool:
    """Whether a first block is a tar header, or the end of an empty archive."""
    return len(block) == BLOCK and (not block.strip(b"\0") or checksum_fits(block))
