"""Texts for display: without secrets, and without terminal control characters.

Messages, logs, tracebacks, pages and tags pass through it (`errors.short_line`). Of an address,
`scheme://login@host/path?name=value`, scheme, host, path and names of parameters are shown, and the values of
`READABLE`. The login ends at the last @, since its password may hold an @ or a slash that should
have been encoded; there is no login if the first slash comes before any colon or @. In doubt, more is left
out.

Addresses that the process was given (on the command line, in its environment, by a script) are known exactly.
What is secret of them, and of variables such as PGPASSWORD, is left out wherever it occurs, encoded or not: a
library may quote a part of what it cannot parse. In other texts, addresses and `password=…` are recognised by
their form.

Fixed: nothing secret becomes visible (tests/benchmarks/test_redaction.py). Free: hiding more.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import quote, unquote, unquote_plus

HIDDEN = "***"
MIN_SECRET_CHARACTERS = 4  # of secrets searched for in texts: shorter ones would match ordinary words
# Parameters of addresses whose values are shown; any other may be a secret.
READABLE = {"host", "hostaddr", "server", "port", "database", "dbname", "driver", "mode"}

SCHEME = re.compile(r"([A-Za-z][\w+.-]*)://")
ADDRESS_WORD = re.compile(r"[^\s'\"<>]*")
_HOST = r"(?:\[[^\]@]*\]|[^@:/?\s,\[]*)(?::\d*)?"
WITHOUT_LOGIN = re.compile(rf"{_HOST}(?:,{_HOST})*(?:[/?][^@]*)?")
SECRET_VARIABLE = re.compile(r"(PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_KEY|ACCESS_KEY|_PWD)$")
_NAME = r"\w*(?:password|passwd|passphrase|secret|token|api_?key|access_?key|signature)|(?:\w*_)?(?:pwd|sig)"
SECRET_NAME = re.compile(_NAME, re.IGNORECASE)
NAMED_SECRET = re.compile(rf"(?i)\b({_NAME})(=|%3D)('[^']*'|\"[^\"]*\"|{{[^}}]*}}|[^\s&;,'\")]+)")
HEADER_SECRET = re.compile(
    r"(?i)(\bauthorization['\"]?\s*[:=]\s*['\"]?(?:\w+\s+)?|\bbearer\s+(?=\S{4}))[^\s'\",;]+"
)

Address = tuple[str, str]  # scheme, and what follows ://

_remembered: set[str] = set()


def remember(address: str) -> None:
    """Treat an address given by a script like an address on the command line."""
    _remembered.add(address)


def redacted(text: str) -> str:
    """Return the text without secrets."""
    addresses = tuple(_known_addresses())
    values = tuple(value for name, value in _variables().items() if SECRET_VARIABLE.search(name))
    text = HEADER_SECRET.sub(
        rf"\1{HIDDEN}", NAMED_SECRET.sub(rf"\1\2{HIDDEN}", _with_addresses_redacted(text, addresses))
    )
    return _secrets_of(addresses, values).sub(HIDDEN, text)


def one_line(text: str) -> str:
    """Return the text as a redacted line, with line breaks and unprintable characters written out."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in redacted(text))


def command_line(words: Iterable[str]) -> str:
    """Return words as typed in a shell, redacted."""
    return shlex.join(map(redacted, words))


def _known_addresses() -> Iterator[Address]:
    """Yield the addresses given to the current process."""
    options = (word.partition("=")[2] for word in sys.argv)
    for word in (*sys.argv, *options, *_variables().values(), *_remembered):
        if scheme := SCHEME.match(word):
            yield scheme[1], word[scheme.end() :]


def _variables() -> dict[str, str]:
    """Return the environment, even if another thread adds and removes variables meanwhile."""
    values = ((name, os.environ.get(name)) for name in os.environ)
    return {name: value for name, value in values if value is not None}


def _with_addresses_redacted(text: str, addresses: tuple[Address, ...]) -> str:
    """Return a text with all addresses redacted: known addresses to the end, others as far as recognised."""
    parts: list[str] = []
    end = 0
    for scheme in SCHEME.finditer(text):
        begin = scheme.end()
        if begin >= end:
            ends = (begin + len(rest) for _, rest in addresses if text.startswith(rest, begin))
            parts.append(text[end:begin])
            end = max(_end(text, begin), *ends, begin)
            parts.append(_redacted_address(text[begin:end]))
    return "".join([*parts, text[end:]])


def _end(text: str, begin: int) -> int:
    """Return the end of an address: after a word, or after the host if the word ends amid a password."""
    end = _word_end(text, begin)
    word = text[begin:end]
    if "@" in word or WITHOUT_LOGIN.fullmatch(word.rstrip(".,:;)]")):
        return end
    line = text[end:].split("\n", 1)[0]
    login, at, _ = SCHEME.split(line, 1)[0].partition("@")
    return _word_end(text, end + len(login) + 1) if at else end


def _word_end(text: str, begin: int) -> int:
    word = ADDRESS_WORD.match(text, begin)
    return word.end() if word else begin


def _parts(rest: str) -> tuple[str, str, str]:
    """Return login, host with path, and parameters from the text after ://."""
    begin = re.split("[/?]", rest, maxsplit=1)[0]
    login, _, rest = rest.rpartition("@") if ":" in begin or "@" in begin else ("", "", rest)
    return login, *rest.partition("?")[::2]


def _redacted_address(rest: str) -> str:
    """Return the visible part of the text after ://."""
    _, place, parameters = _parts(rest)
    return f"{place}?{_redacted_parameters(parameters)}" if parameters else place


def _redacted_parameters(text: str, separator: str = "&") -> str:
    parameters = (parameter.partition("=") for parameter in text.split(separator))
    return separator.join(_redacted_parameter(*parameter) for parameter in parameters)


def _redacted_parameter(name: str, equals: str, value: str) -> str:
    if not equals:
        return name and HIDDEN
    if name == "odbc_connect":
        return f"{name}={_redacted_parameters(unquote_plus(value), ';')}"
    return f"{name}={value if name.lower() in READABLE else HIDDEN}"


@lru_cache(maxsize=8)
def _secrets_of(addresses: tuple[Address, ...], values: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of all secrets, except for visible parts of the addresses."""
    visible = "\n".join(f"{scheme}://{_redacted_address(rest)}" for scheme, rest in addresses)
    secrets = {*values, *(secret for address in addresses for secret in _secrets(*address))}
    long = {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARACTERS and secret not in visible}
    patterns = ("".join(map(_letter_in_any_code, secret)) for secret in sorted(long, key=len, reverse=True))
    return re.compile("|".join(patterns) or "(?!)")


def _secrets(scheme: str, rest: str) -> Iterator[str]:
    """Yield the secrets of an address, decoded or not, and the possible parts after parsing."""
    login, _, parameters = _parts(rest)
    user, colon, password = login.partition(":")
    secrets = list(_secret_values(parameters))
    if colon or scheme.startswith("http"):  # a user alone is a token there
        secrets.append(password or user)
    for secret in secrets:
        for text in (secret, unquote(secret), unquote_plus(secret)):
            yield text
            yield from re.split(r"[\s/@:?#'\"<>\\]+", text)


def _secret_values(parameters: str, separator: str = "&") -> Iterator[str]:
    for name, value in re.findall(rf"([^={separator}]+)=(\{{[^}}]*\}}|[^{separator}]*)", parameters):
        if name == "odbc_connect":
            yield from _secret_values(unquote_plus(value), ";")
        elif SECRET_NAME.fullmatch(name):
            yield value[1:-1] if value.startswith("{") and value.endswith("}") else value


def _letter_in_any_code(letter: str) -> str:
    """Return a pattern of a letter: plain, percent-encoded, or quoted as by Python and shells."""
    percent = re.escape(quote(letter, safe="", errors="replace"))
    return rf"(?:\\?{re.escape(letter)}|(?i:{percent}){'|[+]' if letter == ' ' else ''})"
