"""Messages → templates: what varies from line to line becomes a placeholder. Secrets are taken out."""

from __future__ import annotations

import re

MAX_TEMPLATE = 400

# Order matters: the wider pattern comes first.
PLACEHOLDERS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "<uuid>"),
        (r"\b[a-z][a-z0-9+.-]{1,15}://[^\s\"'<>)\]]+", "<url>"),
        (r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b", "<email>"),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b", "<time>"),
        (r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?:/\d{1,2})?\b", "<ip>"),
        (r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b", "<mac>"),
        (r"\[?(?<![\w:])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{1,4}(?![\w:])\]?(?::\d{1,5})?", "<ip>"),
        (r"\b0x[0-9a-fA-F]+\b", "<hex>"),
        (r"\b(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}\b", "<hex>"),
        (r"(?<![\w/.])(?:[A-Za-z]:)?(?:[/\\][\w.@+~%=-]+){2,}[/\\]?", "<path>"),
        (r"\"[^\"]*[^\"\w.-][^\"]*\"|\"[^\"]*\d[^\"]*\"|\"[^\"]{41,}\"", '"<text>"'),
        (r"(?<!\w)'[^']*[^'\w.-][^']*'(?!\w)|(?<!\w)'[^']*\d[^']*'(?!\w)|(?<!\w)'[^']{41,}'(?!\w)", "'<text>'"),
        (r"(?<![A-Za-z_])[+-]?\d[\d,_]*(?:\.\d+)*(?:[eE][+-]?\d+)?", "<n>"),
        (r"(?<=[A-Za-z_])(?<!sha)(?<!SHA)(?<!utf)(?<!UTF)(?<!md)(?<!MD)\d{3,}", "<n>"),
    )
)
VARYING = re.compile(r"^\d|\d{3,}|^[0-9a-fA-F-]{16,}$|.{40}")
REPEATED = re.compile(r"<n>(?:(?:, ?|:|/|-)<n>)+")

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
    for pattern, replacement in PLACEHOLDERS:
        text = pattern.sub(replacement, text)
    text = " ".join(REPEATED.sub("<n>", text).split())
    return text if len(text) <= MAX_TEMPLATE else f"{text[: MAX_TEMPLATE - 1]}…"
