"""Entries → findings about names, links, kinds, modes, collisions and sizes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from .entry import DECEPTIVE, Entry, Finding, show
from .links import LinkMap, is_absolute, parts_of
from .streams import RATIO_FLOOR, Limits

SPECIAL = ("character device", "block device", "fifo", "socket")
RESERVED = re.compile(r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\..*)?", re.IGNORECASE)
NESTED = (".zip", ".tar", ".tgz", ".tar.gz", ".tbz2", ".tar.bz2", ".txz", ".tar.xz", ".7z", ".rar", ".jar", ".whl")
LONGEST_PART = 255
LONGEST_PATH = 4096


def check_entry(entry: Entry, links: LinkMap, limits: Limits) -> Iterator[Finding]:
    """Everything that one member says about itself."""
    for severity, code, detail in (*check_name(entry), *check_kind(entry), *check_links(entry, links)):
        yield Finding(severity, code, detail, entry.shown)
    if entry.packed is not None and entry.size > max(RATIO_FLOOR, limits.ratio * max(entry.packed, 1)):
        detail = f"{entry.packed} bytes would unpack to {entry.size}"
        yield Finding("warning", "high_ratio", detail, entry.shown)


def check_name(entry: Entry) -> Iterator[tuple[str, str, str]]:
    """Names that leave the root, deceive, or do not work elsewhere."""
    path, parts = entry.path, parts_of(entry.path)
    if is_absolute(path):
        yield "danger", "absolute_path", "it would be written to an absolute place"
    if ".." in parts:
        yield "danger", "traversal", "its name climbs up with .."
    elif not parts and entry.kind != "directory":
        yield "warning", "empty_name", "it has no name"
    if "\\" in path:
        yield "warning", "backslash", "its name holds a backslash, which separates directories on Windows"
    if any(0xDC80 <= ord(character) <= 0xDCFF for character in path):
        yield "warning", "invalid_name", "its name is not valid UTF-8"
    if any(unicodedata.category(character) == "Cc" for character in path):
        yield "warning", "control_characters", "its name holds control characters"
    if any(character in DECEPTIVE for character in path):
        yield "warning", "deceptive_name", "its name holds characters that hide or reorder text"
    lengths = [len(part.encode("utf-8", "surrogateescape")) for part in parts]
    if max(lengths, default=0) > LONGEST_PART or sum(lengths) + len(lengths) > LONGEST_PATH:
        yield "warning", "long_name", "its name is too long for common file systems"
    if ".git" in parts:
        yield "warning", "repository_files", "it would be written into a .git directory"
    if any(RESERVED.fullmatch(part) or part.endswith((".", " ")) for part in parts if part != ".."):
        yield "info", "not_portable", "its name does not work on Windows"
    if entry.kind == "file" and path.lower().endswith(NESTED):
        yield "info", "nested_archive", "it is an archive itself; its contents were not looked at"


def check_kind(entry: Entry) -> Iterator[tuple[str, str, str]]:
    """Devices, special permissions and encryption."""
    if entry.kind in SPECIAL:
        yield "danger", "special_file", f"it is a {entry.kind}"
    elif entry.kind.startswith("type "):
        yield "warning", "unknown_type", f"it is of {entry.kind}"
    mode = entry.mode or 0
    if entry.kind == "file" and mode & 0o6000:
        yield "danger", "setuid", f"its mode {mode:04o} would let it run with another's rights"
    elif entry.kind == "file" and mode & 0o002:
        yield "info", "world_writable", f"its mode {mode:04o} lets everyone change it"
    if entry.encrypted:
        yield "info", "encrypted", "its content is encrypted and cannot be checked"


def check_links(entry: Entry, links: LinkMap) -> Iterator[tuple[str, str, str]]:
    """Links that leave the root, and names that go through links."""
    parts = tuple(parts_of(entry.path))
    if entry.kind == "symlink" and entry.target is not None:
        reason = links.escapes(parts[:-1], entry.target)
        if reason:
            yield "danger", "link_escape", f"{reason}: {show(entry.target)}"
    elif entry.kind == "hardlink" and entry.target is not None:
        reason = links.escapes((), entry.target)
        if reason:
            yield "danger", "link_escape", f"{reason}: {show(entry.target)}"
    above = links.link_above(parts)
    if above is not None:
        yield "danger", "through_link", f"it would be written through the link {show(above)}"


def check_together(entries: list[Entry]) -> Iterator[tuple[Entry, Finding]]:
    """Members that would overwrite or hide each other."""
    seen: dict[tuple[str, ...], Entry] = {}
    folded: dict[tuple[str, ...], tuple[str, ...]] = {}
    for entry in entries:
        parts = tuple(parts_of(entry.path))
        earlier = seen.get(parts)
        if earlier is not None and not (entry.kind == earlier.kind == "directory"):
            linked = "symlink" in (entry.kind, earlier.kind)
            detail = f"an earlier {earlier.kind} has the same name"
            yield entry, Finding("danger" if linked else "warning", "duplicate", detail, entry.shown)
        seen[parts] = entry
        yield from check_case(entry, parts, folded)
    for entry in entries:
        parts = tuple(parts_of(entry.path))
        for end in range(1, len(parts)):
            above = seen.get(parts[:end])
            if above is not None and above.kind in ("file", "hardlink", *SPECIAL):
                detail = f"its parent {above.shown} is not a directory"
                yield entry, Finding("warning", "file_as_directory", detail, entry.shown)
                break


def check_case(
    entry: Entry, parts: tuple[str, ...], folded: dict[tuple[str, ...], tuple[str, ...]]
) -> Iterator[tuple[Entry, Finding]]:
    """Names that are the same on file systems which ignore case or normalise Unicode."""
    for end in range(1, len(parts) + 1):
        key = tuple(unicodedata.normalize("NFC", part).casefold() for part in parts[:end])
        other = folded.setdefault(key, parts[:end])
        if other != parts[:end]:
            detail = f"it is the same as {show('/'.join(other))} where case does not matter"
            yield entry, Finding("warning", "case_collision", detail, entry.shown)
            return


def check_totals(entries: list[Entry], archive_bytes: int, limits: Limits) -> Iterator[Finding]:
    """Sizes of the whole."""
    total = sum(entry.size for entry in entries)
    if total > limits.unpacked:
        yield Finding("danger", "bomb_total", f"the members claim {total} bytes, more than {limits.unpacked}")
    elif total > max(RATIO_FLOOR, limits.ratio * max(archive_bytes, 1)):
        yield Finding("danger", "bomb_ratio", f"{archive_bytes} bytes would unpack to {total}")
