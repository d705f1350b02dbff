"""One archive → its entries, its findings and its verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

from .checks import check_entry, check_together, check_totals
from .entry import SEVERITIES, ArchiveError, Entry, Finding, LimitError
from .links import LinkMap
from .streams import CHUNK, Limits, PackedSource, PlainSource, compression_of
from .tar import BLOCK, TarReader, looks_like_tar
from .verify import verify
from .zipdir import ZipReader

ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
UNSUPPORTED = {
    b"7z\xbc\xaf'\x1c": "7z",
    b"Rar!\x1a\x07": "rar",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"\x1f\x9d": "compress",
    b"MSCF": "cab",
    b"!<arch>\n": "ar",
}


@dataclass
class Inspection:
    """What was found."""

    format: str
    entries: list[Entry] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    complete: bool = True

    @property
    def verdict(self) -> str:
        """One word for the whole archive."""
        severities = {finding.severity for finding in self.findings}
        if "danger" in severities:
            return "dangerous"
        return "suspicious" if "warning" in severities or not self.complete else "clean"

    def counts(self) -> dict[str, int]:
        """Findings by code, the most frequent first."""
        counts = Counter(finding.code for finding in self.findings)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def stop(self, severity: str, code: str, detail: str) -> None:
        """Record why the listing ends early."""
        self.complete = False
        self.findings.append(Finding(severity, code, detail))


def inspect(file: BinaryIO, limits: Limits, *, check_contents: bool) -> Inspection:
    """Look into an open archive."""
    head = file.read(BLOCK)
    file.seek(0)
    length = PlainSource(file).length
    result = list_members(file, head, limits, check_contents)
    links = LinkMap(result.entries)
    for entry in result.entries:
        for finding in check_entry(entry, links, limits):
            entry.codes.add(finding.code)
            result.findings.append(finding)
    for entry, finding in check_together(result.entries):
        entry.codes.add(finding.code)
        result.findings.append(finding)
    result.findings += check_totals(result.entries, length, limits)
    result.findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return result


def list_members(file: BinaryIO, head: bytes, limits: Limits, check_contents: bool) -> Inspection:
    """Find the format and list the members."""
    packed = compression_of(head)
    if packed:
        return list_packed(file, packed, limits)
    if looks_like_tar(head):
        result = Inspection("tar")
        walk(TarReader(PlainSource(file), limits.entries), result)
        return result
    unsupported = next((name for magic, name in UNSUPPORTED.items() if head.startswith(magic)), None)
    if unsupported:
        raise ArchiveError(f"{unsupported} archives are not supported")
    if head.startswith(ZIP_STARTS) or has_zip_end(file):
        result = Inspection("zip")
        reader = ZipReader(file, limits.entries)
        walk(reader, result)
        if check_contents and result.complete:
            guard(lambda: verify(reader, limits), result)
            result.findings += reader.findings
        return result
    raise ArchiveError("this is not a zip or tar archive")


def has_zip_end(file: BinaryIO) -> bool:
    """Whether a zip archive hides behind other data."""
    length = PlainSource(file).length
    file.seek(max(0, length - 65_557))
    found = b"PK\x05\x06" in file.read()
    file.seek(0)
    return found


def list_packed(file: BinaryIO, packed: str, limits: Limits) -> Inspection:
    """List a compressed tar, or measure a single compressed file."""
    source = PackedSource(file, packed, limits)
    result = Inspection(packed)
    first: list[bytes] = []
    guard(lambda: first.append(source.read(BLOCK)), result)
    if first and looks_like_tar(first[0]):
        result.format = f"tar.{packed}"
        source.ready = first[0] + source.ready
        walk(TarReader(source, limits.entries), result)
    elif first:
        size = [len(first[0])]
        guard(lambda: measure(source, size), result)
        result.entries.append(Entry("(content)", "file", size[0]))
    if source.trailing:
        result.findings.append(Finding("warning", "trailing_data", "there is data after the compressed data"))
    return result


def measure(source: PackedSource, size: list[int]) -> None:
    """Count what comes out of a single compressed file."""
    while piece := source.read(CHUNK):
        size[0] += len(piece)


def walk(reader: TarReader | ZipReader, result: Inspection) -> None:
    """Collect the members until the end, the damage or the limit."""

    def collect() -> None:
        for entry in reader.entries():
            result.entries.append(entry)

    guard(collect, result)
    result.findings += reader.findings
    reader.findings = []


def guard(step: Callable[[], object], result: Inspection) -> None:
    """Turn damage and limits into findings, keeping what was read before."""
    try:
        step()
    except LimitError as error:
        result.stop("danger", "limit", str(error))
    except ArchiveError as error:
        result.stop("warning", "damaged", str(error))
