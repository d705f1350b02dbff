"""Messages → templates: what varies from line to line becomes a placeholder. Secrets are taken out."""

from __future__ import annotations

import re

MAX_TEMPLATE = 400

# Order matters: the wider pattern comes first. A pattern is tried only on texts that hold its first word, which is what
# makes long logs fast.
PLACEHOLDERS = tuple(
    (needle, re.compile(pattern), replacement)
    for needle, pattern, replacement in (
        ("-", r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "<uuid>"),
        ("://", r"\b[a-z][a-z0-9+.-]{1,15}://[^\s\"'<>)\]]+", "<url>"),
        ("@", r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b", "<email>"),
        ("-", r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b", "<time>"),
        (".", r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?:/\d{1,2})?\b", "<ip>"),
        (":", r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b", "<mac>"),
        (":", r"\[?(?<![\w:])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{1,4}(?![\w:])\]?(?::\d{1,5})?", "<ip>"),
        ("0x", r"\b0x[0-9a-fA-F]+\b", "<hex>"),
        ("", r"\b(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}\b", "<hex>"),
        ("/", r"(?<![\w/.])(?:/[\w.@+~%=-]+){2,}/?", "<path>"),
        ("\\", r"(?<![\w\\.])(?:[A-Za-z]:)?(?:\\[\w.@+~%=-]+){2,}\\?", "<path>"),
        ('"', r"\"[^\"]*[^\"\w.-][^\"]*\"|\"[^\"]*\d[^\"]*\"|\"[^\"]{41,}\"", '"<text>"'),
        ("'", r"(?<!\w)'(?:[^']*[^'\w.-][^']*|[^']*\d[^']*|[^']{41,})'(?!\w)", "'<text>'"),
        ("", r"(?<![A-Za-z_])[+-]?\d[\d,_]*(?:\.\d+)*(?:[eE][+-]?\d+)?", "<n>"),
        ("", r"\d(?<=[A-Za-z_]\d)(?<!sha\d)(?<!SHA\d)(?<!utf\d)(?<!UTF\d)(?<!md\d)(?<!MD\d)\d{2,}", "<n>"),
    )
)
VARYING = re.compile(r"^\d|\d{3,}|^[0-9a-fA-F-]{16,}$|.{40}")
REPEATED = re.compile(r"<n>(?:(?:, ?|:|/|-)<n>)+")

# A quick look for anything that a pattern below could match.
SUSPICIOUS = re.compile(
    r"pass|pwd|secret|token|key|auth|cookie|bearer|basic|://|eyj|akia|asia|gh[pousr]_", re.IGNORECASE
)
SECRETS = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"\b(bearer|basic)\s+[\w.~+/=-]{6,}", r"\1 <redacted>"),
        (
            r"\b([\w-]*(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|authorization|cookie))"
            r"(\"?\s*[=:]\s*)(?!<redacted>|bearer |basic )(\"[^\"]*\"|'[^']*'|[^\s,;&\"'}]+)",
            r"\1\2<redacted>",
        ),
        (r"\b(\w+://[^\s:/@]+):[^\s@/]+@", r"\1:<redacted>@"),
        (r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*", "<redacted>"),
        (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", "<redacted>"),
        (r"\bgh[pousr]_[0-9A-Za-z]{20,}\b", "<redacted>"),
    )
)


def redact(text: str) -> str:
    """Replace what looks like a secret."""
    if not SUSPICIOUS.search(text):
        return text
    for pattern, replacement in SECRETS:
        text = pattern.sub(replacement, text)
    return text


def route(target: str) -> str:
    """The path of a request without its query; parts that hold digits vary from one request to the next."""
    parts = redact(target[:MAX_TEMPLATE]).split("?")[0].split("/")
    return "/".join("<id>" if VARYING.search(part) else part for part in parts)


def template(message: str) -> str:
    """Replace what varies, so that equal events become equal texts."""
    text = redact(message[: 4 * MAX_TEMPLATE])
    for needle, pattern, replacement in PLACEHOLDERS:
        if needle in text:
            text = pattern.sub(replacement, text)
    text = " ".join(REPEATED.sub("<n>", text).split())
    return text if len(text) <= MAX_TEMPLATE else f"{text[: MAX_TEMPLATE - 1]}…"
