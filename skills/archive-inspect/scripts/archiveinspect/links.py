"""Where the members of an archive would land, and where its links would lead."""

from __future__ import annotations

from .entry import Entry

MAX_HOPS = 40

Path = tuple[str, ...]


def parts_of(path: str) -> list[str]:
    """Split a name at both kinds of slash; single dots and empty parts vanish."""
    return [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]


def is_absolute(path: str) -> bool:
    """Whether a name starts at a root: a slash, a backslash or a drive letter."""
    return path.startswith(("/", "\\")) or (path[1:2] == ":" and path[:1].isascii() and path[:1].isalpha())


class LinkMap:
    """The symbolic links of an archive, for following names as the file system would."""

    def __init__(self, entries: list[Entry]) -> None:
        self.targets: dict[Path, str] = {
            tuple(parts_of(entry.path)): entry.target
            for entry in entries
            if entry.kind == "symlink" and entry.target is not None
        }

    def escapes(self, base: Path, target: str) -> str | None:
        """Say how a link leaves the root, or return None when it stays inside."""
        if is_absolute(target):
            return "its target is absolute"
        place, pending, hops = list(base), parts_of(target), 0
        while pending:
            part = pending.pop(0)
            if part == "..":
                if not place:
                    return "its target is above the root"
                place.pop()
                continue
            place.append(part)
            further = self.targets.get(tuple(place))
            if further is None:
                continue
            hops += 1
            if hops > MAX_HOPS:
                return "its target goes round in circles"
            if is_absolute(further):
                return "it leads to another link whose target is absolute"
            place.pop()
            pending = parts_of(further) + pending
        return None

    def link_above(self, path: Path) -> str | None:
        """The first parent of a name that is itself a link."""
        return next(("/".join(path[:end]) for end in range(1, len(path)) if path[:end] in self.targets), None)
