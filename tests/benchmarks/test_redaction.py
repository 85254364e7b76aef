"""Secrets stay out of whatever a person, a log or a page may hold; a message is one line of plain text."""

from __future__ import annotations

import shlex
import sys
from collections import UserDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from subprocess import CompletedProcess
from unittest.mock import patch
from urllib.parse import quote, quote_plus, urlsplit

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from benchmarks import redaction
from benchmarks.errors import UserError
from benchmarks.errors import summarised as told
from benchmarks.redaction import command_line, one_line, redacted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql+psycopg://me:secret@host/db", "postgresql+psycopg://host/db"),
        ("no route to mysql://me:se@cr/et@host:3306/db: gone", "no route to mysql://host:3306/db: gone"),
        ("at postgresql://me:it's a <secret>@host:5432/db: gone", "at postgresql://host:5432/db: gone"),
        ("https://me:s3c/ret@host/path", "https://host/path"),
        ("https://token@host/path", "https://host/path"),
        ("https://host/an@address", "https://host/an@address"),
        ("sqlite:////a/b@c.db?mode=ro", "sqlite:////a/b@c.db?mode=ro"),
        ("http://host:5000: user me@there is unknown", "http://host:5000: user me@there is unknown"),
        ("postgresql://me:pass@[::1]:5432,b:1/db?user=a", "postgresql://[::1]:5432,b:1/db?user=***"),
        ("postgresql://host/db?user=a@b&host=c", "postgresql://host/db?user=***&host=c"),
        ("https://host/a?access_token=abcd&x=1&sig", "https://host/a?access_token=***&x=***&***"),
        (
            "mssql+pyodbc:///?odbc_connect=DRIVER%3D%7BODBC%7D%3BSERVER%3Dhost%3BPWD%3Dsecret",
            "mssql+pyodbc:///?odbc_connect=DRIVER={ODBC};SERVER=host;PWD=***",
        ),
        ("connection to 'host=a password=secret' failed", "connection to 'host=a password=***' failed"),
        (
            "passphrase='a secret' _password=b PWD={c;d} api_key=e",
            "passphrase=*** _password=*** PWD=*** api_key=***",
        ),
        ("{'Authorization': 'Bearer abc.def'}", "{'Authorization': 'Bearer ***'}"),
        ("Authorization: Basic YTpi", "Authorization: Basic ***"),
        ("http://a:b@c and postgresql://me:secret@host/d", "http://c and postgresql://host/d"),
        (
            "--set lr=0.1 config=x: mode=fast; the bearer of news",
            "--set lr=0.1 config=x: mode=fast; the bearer of news",
        ),
    ],
)
def test_no_password_is_shown(text: str, shown: str) -> None:
    assert redacted(text) == shown


@pytest.mark.parametrize(
    "name", ["PGPASSWORD", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN", "MYSQL_PWD"]
)
def test_what_the_environment_keeps_secret_is_shown_nowhere(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "it's se/cret")
    assert (
        redacted("rejected: it's se/cret, it%27s%20se%2Fcret, it%27s+se%2fcret") == "rejected: ***, ***, ***"
    )


def test_other_variables_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    monkeypatch.setenv("PGPASSWORD", "abc")
    monkeypatch.setenv("PWD", "/home/me")
    assert redacted("abc in /home/me is false") == "abc in /home/me is false"


def test_a_secret_that_is_the_name_of_the_database_is_not_searched_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["asyncfl", "postgresql://flows:flows@host/flows"])
    assert (
        redacted("no flows at postgresql://flows:flows@host/flows") == "no flows at postgresql://host/flows"
    )


SECRET = st.text("abXY19" + "'\" <>/@#%&:;,?+=\\{}é", min_size=4, max_size=12)
HOSTS = st.sampled_from(["db.example.org", "localhost:5432", "[::1]:5000"])
PATHS = st.sampled_from(["flows", "a/flows"])


@contextmanager
def started(address: str) -> Iterator[None]:
    """A process with an address on its command line."""
    with patch.object(sys, "argv", ["asyncfl", "run", "small", f"--tracking-uri={address}"]):
        yield


def errors(address: str) -> Iterator[str]:
    """What libraries say of it."""
    for read in (make_url, lambda text: urlsplit(text).port):
        try:
            read(address)
        except Exception as error:  # noqa: BLE001 - whatever it is
            yield str(error)


def texts(address: str) -> Iterator[str]:
    """Where an address may stand."""
    yield address
    yield f"--storage {address}: refused"
    yield f"{address!r} and {address}."
    yield from errors(address)
    yield from (f"could not translate host name {part!r}" for part in address.split("@")[1:-1])


def survives(secret: str, text: str, frame: str) -> bool:
    """Whether a text has a secret that is in nothing else."""
    return secret in text and secret not in frame


FRAME = (
    "asyncfl run small --tracking-uri= --storage : refused and could not translate host name user _password"
)


@given(st.sampled_from(["postgresql", "mysql+pymysql", "http", "https"]), SECRET, HOSTS, PATHS, st.booleans())
@example("https", "s3c/ret", "db.example.org", "flows", False)
@example("postgresql", "12 34", "localhost:5432", "flows", False)
def test_a_password_of_an_address_is_nowhere(
    scheme: str, secret: str, host: str, path: str, encoded: bool
) -> None:
    """Whatever the text is in which the address stands, or a part of it; host and database stay."""
    address = f"{scheme}://user:{quote(secret, safe='') if encoded else secret}@{host}/{path}"
    with started(address):
        command = " ".join(shlex.split(command_line(sys.argv)))
        for text in texts(address):
            for shown in (redacted(text), *UserError(text).lines, command):
                for form in (secret, quote(secret, safe=""), quote_plus(secret)):
                    assert not survives(form, shown, f"{FRAME} {host}/{path}")
        assert redacted(f"{address}: refused") == f"{scheme}://{host}/{path}: refused"


@given(
    st.sampled_from(["password", "_password", "access_token", "api_key", "sig", "passphrase", "sslpassword"]),
    SECRET,
    HOSTS,
    PATHS,
)
def test_a_secret_parameter_is_nowhere(name: str, secret: str, host: str, path: str) -> None:
    address = f"postgresql://{host}/{path}?connect_timeout=3&{name}={quote(secret, safe='')}"
    with started(address):
        for text in (*texts(address), f"{secret} was rejected", f"{name}={secret!r}"):
            shown = redacted(text)
            for form in (secret, quote(secret, safe=""), quote_plus(secret)):
                assert not survives(form, shown, f"{FRAME} {host}/{path} {name} connect_timeout was rejected")
        assert redacted(address) == f"postgresql://{host}/{path}?connect_timeout=***&{name}=***"


@given(SECRET, HOSTS)
def test_a_password_for_odbc_is_nowhere(secret: str, host: str) -> None:
    connection = f"DRIVER={{ODBC}};SERVER={host};DATABASE=flows;UID=user;PWD={{{secret}}}"
    assume(not set(";}") & set(secret))
    address = f"mssql+pyodbc:///?odbc_connect={quote_plus(connection)}"
    with started(address):
        for text in (*texts(address), connection, f"{secret} was rejected"):
            shown = redacted(text)
            for form in (secret, quote(secret, safe=""), quote_plus(secret)):
                assert not survives(form, shown, f"{FRAME} {connection[: -len(secret) - 6]} was rejected")
        assert f"SERVER={host};DATABASE=flows" in redacted(address)


@given(st.text("abXY19/@:%-", min_size=4, max_size=12), HOSTS)
def test_an_address_that_is_not_known_is_recognised(secret: str, host: str) -> None:
    """That of a foreign store, say, or of an artifact."""
    shown = redacted(f"not found: ftp://user:{secret}@{host}/flows, sorry")
    assert not survives(secret, shown, f"not found: ftp://user {host}/flows, sorry")
    assert f"{host}/flows, sorry" in shown


def test_a_script_s_address_is_known_by_its_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_remembered", set())
    from benchmarks.mlflow_store.store import Store

    Store(tracking="postgresql://user:12 34 secret@host/db")
    assert redacted("FATAL: 12 34 secret is rejected") == "FATAL: *** is rejected"


@pytest.mark.parametrize(
    "words",
    [
        ["report", "x", "--tracking-uri", "https://me:s3c/ret@host"],
        ["report", "x", "--tracking-uri=postgresql://me:it's <s3c@ret@host:port/db"],
        ["ui", "--tracking-uri", "https://host/x?api_key=s3c/ret&"],
        ["sync", "postgresql://me:a s3c/ret@host/db"],
        ["run", "https://me:s3c ret@host/suite.yaml"],
    ],
)
def test_no_command_prints_one(words: list[str], typed: Callable[..., CompletedProcess[str]]) -> None:
    done = typed(*words)
    assert done.returncode == 2
    assert "s3c" not in done.stderr and "host" in done.stderr


def test_nor_does_the_traceback_of_a_bug(
    typed: Callable[..., CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    typed("--version")
    sys.excepthook(RuntimeError, RuntimeError("no postgresql://me:secret@host/db"), None)
    assert capsys.readouterr().err == "RuntimeError: no postgresql://host/db\n"


def test_an_error_is_one_line_without_a_password() -> None:
    error = UserError("x: http://me:secret@host\nsecond", "\x1b[31mred")
    assert error.lines == ("x: http://host\\nsecond", "\\x1b[31mred")
    assert "secret" not in str(error)
    assert told(OSError("postgresql://me:secret@host is away\nmore")) == "OSError: postgresql://host is away"
    assert one_line("η = 0.1, 80 %") == "η = 0.1, 80 %"


def test_variables_may_be_removed_by_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `PYTHONSAFEPATH` is, which is set while workers start."""

    class Changing(UserDict[str, str]):
        def __iter__(self) -> Iterator[str]:
            yield from [*self.data, "REMOVED"]

    monkeypatch.setattr("os.environ", Changing({"PGPASSWORD": "hidden-word"}))
    assert redacted("it is hidden-word") == "it is ***"
