"""A minimal SVG writer: escapes everything, rounds coordinates, knows text widths."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
FONTS = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', 'Noto Sans', sans-serif"
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class PaletteError(Exception):
    """The palette file is not usable; the text says why."""


@dataclass(frozen=True)
class Palette:
    """The colours of a chart."""

    background: str
    ink: str
    muted: str
    grid: str
    series: list[str]


def load_palette(path: Path) -> Palette:
    """Read and check a palette file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        palette = Palette(**{key: data[key] for key in ("background", "ink", "muted", "grid", "series")})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PaletteError(f"cannot use palette {path}: {error}") from error
    colours = [palette.background, palette.ink, palette.muted, palette.grid, *palette.series]
    wrong = [colour for colour in colours if not isinstance(colour, str) or not COLOUR.fullmatch(colour)]
    if wrong or not palette.series:
        raise PaletteError(f"palette {path} needs colours such as #1f6feb, at least one in series; wrong: {wrong}")
    return palette


def clean(text: str) -> str:
    """Replace what XML cannot carry."""
    return FORBIDDEN.sub("\ufffd", text)


def coordinate(value: float) -> str:
    """Print a coordinate with one decimal at most."""
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


def text_width(text: str, size: float) -> float:
    """Estimate the width of a text; wide East Asian characters take a full square."""
    units = sum(1.0 if unicodedata.east_asian_width(character) in "WF" else 0.56 for character in text)
    return units * size


def shorten(text: str, size: float, room: float) -> str:
    """Cut a text to the room it has."""
    flat = " ".join(clean(text).split())
    if text_width(flat, size) <= room:
        return flat
    while flat and text_width(flat + "…", size) > room:
        flat = flat[:-1]
    return flat.rstrip() + "…"


class Drawing:
    """Collects elements and prints the document."""

    def __init__(self, width: float, height: float, title: str, description: str, palette: Palette) -> None:
        self.width, self.height = width, height
        self.title, self.description = title, description
        self.palette = palette
        self.parts: list[str] = []

    def add(self, name: str, /, content: str | None = None, **attributes: float | str) -> None:
        """Append one element; underscores in attribute names become hyphens."""
        words = [name]
        for key, value in attributes.items():
            text = value if isinstance(value, str) else coordinate(value)
            words.append(f"{key.replace('_', '-')}={quoteattr(clean(text))}")
        opening = " ".join(words)
        self.parts.append(f"  <{opening}/>" if content is None else f"  <{opening}>{content}</{name}>")

    def text(self, x: float, y: float, text: str, size: float, **attributes: str) -> None:
        """Append a text."""
        self.add("text", escape(clean(text)), x=x, y=y, font_size=size, **attributes)

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, **attributes: str) -> None:
        """Append a straight line."""
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, **attributes)

    def render(self) -> str:
        """Print the document."""
        width, height = coordinate(self.width), coordinate(self.height)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
            f' role="img" aria-labelledby="title description" font-family={quoteattr(FONTS)}>'
        )
        return "\n".join(
            [
                head,
                f'  <title id="title">{escape(clean(self.title))}</title>',
                f'  <desc id="description">{escape(clean(self.description))}</desc>',
                f'  <rect width="{width}" height="{height}" fill="{self.palette.background}"/>',
                *self.parts,
                "</svg>",
                "",
            ]
        )
