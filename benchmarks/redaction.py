"""Texts for display: without passwords, and without terminal control characters."""

from __future__ import annotations

import re

# Of an address, up to its last @, since a password may hold an @ or a slash; in HTTP the path may hold an @.
_LOGIN = re.compile(r"(https?://)[^\s/'\"<>]*@|(?<!\bhttp)(?<!\bhttps)(://)[^\s/'\"<>][^\s'\"<>]*@")
_SECRET = re.compile(r"(?i)\b((?:ssl)?password|passwd|pwd|token|secret)=[^&\s'\"]+")


def redacted(text: str) -> str:
    """The text with every address in it without user name and password."""
    return _SECRET.sub(r"\1=***", _LOGIN.sub(r"\1\2", text))


def one_line(text: str) -> str:
    """The text in one line, redacted; line breaks and other characters that do not print are written out."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in redacted(text))
