"""Characters → one-letter classes, so that segmentation is plain pattern matching."""

from __future__ import annotations

import unicodedata

WORD = "w"
DIGIT = "d"
IDEOGRAPH = "c"
MARK = "m"
JOINER = "j"
POINT = "p"
COMMA = "q"
ZERO_WIDTH_JOINER = "z"
REGIONAL = "r"
OTHER = "o"

# Han, kana and their relatives are written without blanks; each character counts by itself.
IDEOGRAPH_RANGES = (
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3031, 0x3035),
    (0x3041, 0x3096),
    (0x309D, 0x309F),
    (0x30A1, 0x30FA),
    (0x30FC, 0x30FF),
    (0x3105, 0x312F),
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),
    (0x1B000, 0x1B16F),
    (0x20000, 0x323AF),
)
JOINING = frozenset("'’ʼ＇-‐‑·\u00ad")
COMMAS = frozenset(",٫٬")


def class_of(character: str) -> str:
    """Name the class of one character."""
    code = ord(character)
    category = unicodedata.category(character)
    if category[0] == "L":
        return IDEOGRAPH if is_ideograph(code) else WORD
    if is_ideograph(code) and category == "Nl":
        return IDEOGRAPH
    if category[0] == "N":
        return DIGIT
    if category[0] == "M" or code == 0x200C or 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F:
        return MARK
    if character in JOINING:
        return JOINER
    if character == ".":
        return POINT
    if character in COMMAS:
        return COMMA
    if code == 0x200D:
        return ZERO_WIDTH_JOINER
    return REGIONAL if 0x1F1E6 <= code <= 0x1F1FF else OTHER


def is_ideograph(code: int) -> bool:
    """Whether a letter belongs to a script that counts by characters."""
    return any(low <= code <= high for low, high in IDEOGRAPH_RANGES)


class ClassTable(dict[int, str]):
    """A translation table that classifies each character once, when it is first seen."""

    def __missing__(self, code: int) -> str:
        """Classify a new character."""
        self[code] = class_of(chr(code))
        return self[code]


CLASSES = ClassTable()


def classes_of(text: str) -> str:
    """Return a string of the same length that holds the class of each character."""
    return text.translate(CLASSES)


def script_of(character: str) -> str:
    """Name the script of a letter by the first word of its Unicode name."""
    word = unicodedata.name(character, "UNKNOWN").split(" ")[0].split("-")[0]
    if word in ("CJK", "IDEOGRAPHIC"):
        return "Han"
    if word in ("FULLWIDTH", "HALFWIDTH", "MODIFIER", "MATHEMATICAL", "SCRIPT", "DOUBLE", "FEMININE", "MASCULINE"):
        plain = unicodedata.normalize("NFKC", character)[:1]
        return script_of(plain) if plain and plain != character else "Other"
    return word.title()
