"""One text → its numbers."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

from .alphabet import script_of
from .segment import grapheme_count, ideograph_runs, paragraphs, sentences, words

VOWELS = re.compile(r"[aeiouy]+")


@dataclass(frozen=True)
class Settings:
    """What to report, and how fast people read."""

    top: int
    stopwords: frozenset[str]
    words_per_minute: int
    ideographs_per_minute: int
    readability: bool


def measure(text: str, settings: Settings) -> dict[str, object]:
    """Count everything in one text."""
    normal = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    found, runs = words(normal), ideograph_runs(normal)
    ideographs = sum(map(len, runs))
    blocks = paragraphs(normal)
    lengths = sentence_lengths(blocks)
    characters = Counter(normal)
    folded = Counter(word.casefold().replace("’", "'") for word in found)
    report: dict[str, object] = {
        "lines": normal.count("\n") + (1 if normal and not normal.endswith("\n") else 0),
        "paragraphs": len(blocks),
        "sentences": len(lengths),
        "words": len(found) + ideographs,
        "separated_words": len(found),
        "ideographs": ideographs,
        "characters": len(normal),
        "characters_without_spaces": sum(map(len, normal.split())),
        "graphemes": grapheme_count(normal),
        "reading_seconds": reading_seconds(len(found), ideographs, settings),
        "distinct_words": len(folded),
        "sentence_length": spread(lengths),
        "word_length": spread([len(word) for word in found]),
        "scripts": scripts(characters),
        "top_words": top(
            Counter({word: count for word, count in folded.items() if word not in settings.stopwords}), settings.top
        ),
        "top_ideograph_pairs": top(pairs(runs), settings.top),
        "control_characters": control_characters(characters),
    }
    if settings.readability:
        report["readability"] = readability(found, len(lengths))
    return report


def sentence_lengths(blocks: list[str]) -> list[int]:
    """Words and ideographs of each sentence that has any."""
    lengths = [
        len(words(sentence)) + sum(map(len, ideograph_runs(sentence)))
        for block in blocks
        for sentence in sentences(block)
    ]
    return [length for length in lengths if length]


def reading_seconds(separated: int, ideographs: int, settings: Settings) -> int:
    """Silent reading time, rounded up to a second."""
    milliseconds = separated * 60_000 // settings.words_per_minute
    milliseconds += ideographs * 60_000 // settings.ideographs_per_minute
    return -(-milliseconds // 1000)


def spread(lengths: list[int]) -> dict[str, float] | None:
    """Smallest, mean and largest, or nothing for an empty list."""
    if not lengths:
        return None
    return {"min": min(lengths), "mean": round(sum(lengths) / len(lengths), 2), "max": max(lengths)}


def control_characters(characters: Counter[str]) -> int:
    """Control characters that do not belong into a text."""
    return sum(
        count
        for character, count in characters.items()
        if unicodedata.category(character) == "Cc" and character not in "\n\t\f"
    )


def scripts(characters: Counter[str]) -> list[dict[str, object]]:
    """Letters by script, the most frequent first."""
    counts: Counter[str] = Counter()
    for character, count in characters.items():
        if unicodedata.category(character)[0] == "L":
            counts[script_of(character)] += count
    total = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"script": name, "letters": count, "share": round(count / total, 4)} for name, count in ordered]


def pairs(runs: list[str]) -> Counter[str]:
    """Neighbouring ideographs: without a dictionary the best stand-in for words."""
    return Counter(run[index : index + 2] for run in runs for index in range(len(run) - 1))


def top(counts: Counter[str], limit: int) -> list[dict[str, object]]:
    """The most frequent entries, ties in code-point order."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]
    return [{"text": text[:100], "count": count} for text, count in ordered]


def syllables(word: str) -> int:
    """Estimate the syllables of an English word."""
    letters = re.sub(r"[^a-z]", "", word.casefold())
    count = len(VOWELS.findall(letters))
    if letters.endswith("e") and not letters.endswith(("le", "ee")) and count > 1:
        count -= 1
    return max(count, 1)


def readability(found: list[str], sentence_count: int) -> dict[str, float] | None:
    """Flesch's two formulas, which are made for English."""
    english = [word for word in found if re.search(r"[A-Za-z]", word)]
    if not english or not sentence_count:
        return None
    per_sentence = len(english) / sentence_count
    per_word = sum(map(syllables, english)) / len(english)
    return {
        "flesch_reading_ease": round(206.835 - 1.015 * per_sentence - 84.6 * per_word, 1),
        "flesch_kincaid_grade": round(0.39 * per_sentence + 11.8 * per_word - 15.59, 1),
    }


ADDITIVE = (
    "lines",
    "paragraphs",
    "sentences",
    "words",
    "separated_words",
    "ideographs",
    "characters",
    "characters_without_spaces",
    "graphemes",
    "reading_seconds",
)


def totals(reports: list[dict[str, object]]) -> dict[str, int]:
    """Add up what can be added."""
    return {key: sum(int(str(report[key])) for report in reports) for key in ADDITIVE}
