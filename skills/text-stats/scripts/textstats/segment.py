"""Text → paragraphs, sentences, words, ideograph runs and graphemes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .alphabet import classes_of

# A word is an abbreviation such as e.g., or a run that may hold marks, be joined by an apostrophe or hyphen, and carry
# a point or comma between digits.
WORD = re.compile(r"(?<![wdmj])w(?:pw)+(?![wdmj])|[wd][wdmz]*(?:(?:j|(?<=d)[pq](?=d))[wd][wdmz]*)*")
RUN = re.compile(r"c[cm]*")
# A regional pair is one flag, and what follows a zero-width joiner belongs to the same emoji.
GRAPHEME = re.compile(r"(?:rr|.)(?:m|zo?)*")
PARAGRAPH_BREAK = re.compile(r"\n[^\S\n]*\n\s*|\u2029")
CLOSING = "\"'”’»›)]}」』】〉》）"
STRONG_END = "。！？｡．؟۔।॥።‼⁇⁈⁉"
ENDING = re.compile(rf"[{STRONG_END}]+[{re.escape(CLOSING)}]*|[.!?…]+[{re.escape(CLOSING)}]*(?=\s|$)")
ABBREVIATION = re.compile(
    r"(approx|ca|cf|co|corp|dept|dr|ed|eds|eg|etc|gen|gov|hr|inc|jr|ltd|messrs|mr|mrs|ms|prof|rev|sen|sr|st|tel|usw|vgl"
    r"|viz|vs|[^\W\d_]|(\w\.)+\w)"
)
BEFORE_NUMBER = re.compile(r"(fig|no|nos|nr|op|p|pp|vol)")
LOOK = 40  # No abbreviation is longer, and looking no further keeps long texts fast.


def paragraphs(text: str) -> list[str]:
    """Split at blank lines."""
    return [part for part in PARAGRAPH_BREAK.split(text) if part.strip()]


def words(text: str) -> list[str]:
    """Words of scripts that separate them."""
    classes = classes_of(text)
    return [text[match.start() : match.end()] for match in WORD.finditer(classes)]


def ideograph_runs(text: str) -> list[str]:
    """Unbroken runs of Han characters and kana."""
    classes = classes_of(text)
    return [text[match.start() : match.end()] for match in RUN.finditer(classes)]


def grapheme_count(text: str) -> int:
    """How many characters a reader sees, closely estimated."""
    return sum(1 for _ in GRAPHEME.finditer(classes_of(text.replace("\r\n", "\n"))))


def sentences(paragraph: str) -> Iterator[str]:
    """Split one paragraph at its sentence ends."""
    start = 0
    for match in ENDING.finditer(paragraph):
        if match.start() < start or not ends_sentence(paragraph, match.start(), match.end(), start):
            continue
        yield paragraph[start : match.end()]
        start = match.end()
    if paragraph[start:].strip():
        yield paragraph[start:]


def ends_sentence(text: str, mark: int, end: int, start: int) -> bool:
    """Tell the full stop of a sentence from that of an abbreviation or an initial."""
    following = text[end : end + LOOK].lstrip()[:1]
    if text[mark] not in ".…":
        return True
    if following.islower():
        return False
    if text[mark] != "." or text[mark : mark + 2] == ".." or not following:
        return True
    before = re.search(r"[\w.]*$", text[max(start, mark - LOOK) : mark])
    token = before.group().lower() if before else ""
    if following.isdigit() and BEFORE_NUMBER.fullmatch(token):
        return False
    return not ABBREVIATION.fullmatch(token)
