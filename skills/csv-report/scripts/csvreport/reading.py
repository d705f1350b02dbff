"""Bytes of a CSV file → a rectangular table, and what did not fit into it."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

DELIMITERS = (",", ";", "\t", "|")
SNIFFED_ROWS = 100
SNIFFED_CHARACTERS = 256 * 1024
MAX_COLUMNS = 1000
MAX_FIELD = 128 * 1024
MAX_LISTED = 20


class CsvError(Exception):
    """The file holds no table; the text says why."""


@dataclass(frozen=True)
class BadRow:
    """A record that was left out of the report."""

    line: int
    reason: str
    text: str


@dataclass
class Table:
    """The usable rows, column by column, with the line each row came from."""

    header: list[str]
    delimiter: str
    encoding: str
    columns: list[list[str]]
    lines: list[int] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)
    bad_count: int = 0
    blank_count: int = 0

    def reject(self, row: BadRow) -> None:
        """Count a bad row and keep the first few."""
        self.bad_count += 1
        if len(self.bad_rows) < MAX_LISTED:
            self.bad_rows.append(row)


def decode(raw: bytes, encoding: str | None) -> tuple[str, str]:
    """Decode by the given encoding, the byte-order mark, UTF-8, or Windows-1252 as the last resort."""
    if encoding is None:
        encoding = guess_encoding(raw)
    try:
        return raw.decode(encoding), encoding
    except LookupError:
        raise CsvError(f"unknown encoding {encoding!r}") from None
    except UnicodeDecodeError as error:
        raise CsvError(f"the file is not {encoding}: byte {error.start} does not fit") from error


def guess_encoding(raw: bytes) -> str:
    """Name the encoding that the bytes suggest."""
    if raw.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ("utf-8", "cp1252"):
        try:
            raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def sniff_delimiter(text: str) -> str:
    """Choose the delimiter under which most rows agree on a number of fields above one."""
    sample = text[:SNIFFED_CHARACTERS]
    best, best_score = DELIMITERS[0], (0.0, 0)
    for delimiter in DELIMITERS:
        widths = Counter(len(row) for row in itertools.islice(sample_rows(sample, delimiter), SNIFFED_ROWS))
        wide = [(count, width) for width, count in widths.items() if width > 1]
        if not wide:
            continue
        count, width = max(wide)
        score = (round(count / sum(widths.values()), 2), width)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def sample_rows(sample: str, delimiter: str) -> Iterator[list[str]]:
    """Parse the sample under one delimiter, as far as it goes."""
    try:
        yield from (row for row in csv.reader(split_lines(sample), delimiter=delimiter) if row)
    except csv.Error:
        return


def records(text: str, delimiter: str) -> Iterator[tuple[int, list[str] | BadRow]]:
    """Yield each record with the line it starts on; a record that cannot be parsed is a `BadRow`."""
    csv.field_size_limit(MAX_FIELD)
    lines = split_lines(text)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield start, BadRow(start, explain(str(error), reader.line_num - start + 1), excerpt(lines[start - 1]))
            continue
        yield start, row


def split_lines(text: str) -> list[str]:
    """Split at CR, LF and CRLF only, and not at the other breaks that `splitlines` knows."""
    return list(io.StringIO(text, newline=""))


def explain(message: str, lines: int) -> str:
    """Put the csv module's complaint into plain words."""
    if "unexpected end" in message:
        return f"a quote is never closed; {lines} lines are lost"
    if "field limit" in message:
        return f"a field is longer than {MAX_FIELD} characters; {lines} lines are lost"
    return "text follows a closing quote"


def excerpt(text: str) -> str:
    """Shorten a row for display."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 120 else f"{flat[:119]}…"


def name_columns(cells: list[str]) -> list[str]:
    """Give every column a name of its own."""
    names: list[str] = []
    for number, cell in enumerate(cells, start=1):
        base = " ".join(cell.split()) or f"column_{number}"
        name, copy = base, 1
        while name in names:
            copy += 1
            name = f"{base}_{copy}"
        names.append(name)
    return names


def read_table(raw: bytes, *, delimiter: str | None, encoding: str | None, header: bool) -> Table:
    """Parse the file; the first record sets the width."""
    text, used_encoding = decode(raw, encoding)
    used_delimiter = delimiter or sniff_delimiter(text)
    rows = records(text, used_delimiter)
    table: Table | None = None
    early: list[BadRow] = []
    shared: dict[str, str] = {}
    for line, row in rows:
        if table is None:
            if isinstance(row, BadRow):
                early.append(row)
            elif any(cell.strip() for cell in row):
                table = start_table(row, used_delimiter, used_encoding, header)
                if not header:
                    add_row(table, line, row, shared)
        elif isinstance(row, BadRow):
            table.reject(row)
        else:
            add_row(table, line, row, shared)
    if table is None:
        raise CsvError("the file holds no rows" if not early else f"line {early[0].line}: {early[0].reason}")
    for bad in reversed(early):
        table.bad_rows.insert(0, bad)
        table.bad_count += 1
    return table


def start_table(row: list[str], delimiter: str, encoding: str, header: bool) -> Table:
    """Make an empty table from the first record."""
    if len(row) > MAX_COLUMNS:
        raise CsvError(f"the first row has {len(row)} columns; at most {MAX_COLUMNS} are read")
    names = name_columns(row if header else [""] * len(row))
    return Table(names, delimiter, encoding, [[] for _ in names])


def add_row(table: Table, line: int, row: list[str], shared: dict[str, str]) -> None:
    """Append one record, or reject it when its width is wrong."""
    width = len(table.header)
    if not any(cell.strip() for cell in row) and (width > 1 or not row):
        table.blank_count += 1
        return
    if len(row) != width:
        reason = f"{len(row)} fields instead of {width}"
        table.reject(BadRow(line, reason, excerpt(table.delimiter.join(row))))
        return
    table.lines.append(line)
    for column, cell in zip(table.columns, row):
        # Repeated cells share one string, which keeps long tables small.
        text = cell.strip()
        column.append(shared.setdefault(text, text))
