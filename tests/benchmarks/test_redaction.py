"""Passwords stay out of whatever a person, a log or a page may hold; a message is one line of plain text."""

import pytest

from benchmarks.errors import UserError
from benchmarks.errors import summarised as told
from benchmarks.redaction import one_line, redacted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql+psycopg://me:secret@host/db", "postgresql+psycopg://host/db"),
        ("no route to mysql://me:se@cr/et@host:3306/db: gone", "no route to mysql://host:3306/db: gone"),
        ("https://token@host/path", "https://host/path"),
        ("https://host/an@address", "https://host/an@address"),
        ("sqlite:////a/b@c.db", "sqlite:////a/b@c.db"),
        ("postgresql://host/db?user=me&password=secret&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("connection to 'host=a password=secret' failed", "connection to 'host=a password=***' failed"),
        ("http://a:b@c and postgresql://me:secret@host/d", "http://c and postgresql://host/d"),
    ],
)
def test_no_password_is_shown(text: str, shown: str) -> None:
    assert redacted(text) == shown


def test_an_error_is_one_line_without_a_password() -> None:
    error = UserError("x: http://me:secret@host\nsecond", "\x1b[31mred")
    assert error.lines == ("x: http://host\\nsecond", "\\x1b[31mred")
    assert "secret" not in str(error)
    assert told(OSError("postgresql://me:secret@host is away\nmore")) == "OSError: postgresql://host is away"
    assert one_line("η = 0.1, 80 %") == "η = 0.1, 80 %"
