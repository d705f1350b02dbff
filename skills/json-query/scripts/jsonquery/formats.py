"""Spelling values as text: @text, @json, @csv, @tsv, @html, @uri, @base64."""

from __future__ import annotations

import base64
import html
from urllib.parse import quote

from .values import EvaluationError, Json, dump, kind, show

FORMATS = ("@text", "@json", "@csv", "@tsv", "@html", "@uri", "@base64")
TAB_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def text_of(value: Json) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else dump(value)


def apply_format(name: str, value: Json) -> str:
    """Spell a value in one format."""
    if name == "@text":
        return text_of(value)
    if name == "@json":
        return dump(value)
    if name == "@csv":
        return ",".join(csv_cell(cell) for cell in row(value, name))
    if name == "@tsv":
        return "\t".join(plain_cell(cell).translate(TAB_ESCAPES) for cell in row(value, name))
    if name == "@html":
        return html.escape(text_of(value)).replace("&#x27;", "&#39;")
    data = text_of(value).encode("utf-8", "replace")
    return quote(data, safe="-_.~") if name == "@uri" else base64.b64encode(data).decode("ascii")


def row(value: Json, name: str) -> list[Json]:
    """Demand an array."""
    if not isinstance(value, list):
        raise EvaluationError(f"{name} needs an array, not {kind(value)} ({show(value)})")
    return value


def plain_cell(value: Json) -> str:
    """A cell without quotes; null is empty."""
    if isinstance(value, (list, dict)):
        raise EvaluationError(f"{kind(value)} ({show(value)}) does not fit into one cell")
    return "" if value is None else text_of(value)


def csv_cell(value: Json) -> str:
    """A cell of a CSV row; texts are always quoted."""
    text = plain_cell(value)
    escaped = text.replace('"', '""')
    return f'"{escaped}"' if isinstance(value, str) else text
