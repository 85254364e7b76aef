"""What a shell is offered, asked as Bash asks."""

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from benchmarks.catalogue import entries
from benchmarks.suite.shipped import shipped

Offered = Callable[[str], list[str]]


@pytest.fixture
def offered(typed: Callable[..., CompletedProcess[str]], monkeypatch: pytest.MonkeyPatch) -> Offered:
    """What is offered for the last of the words, and its kind before the comma."""

    def _offered(words: str) -> list[str]:
        monkeypatch.setenv("_ASYNCFL_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
        return typed().stdout.splitlines()

    return _offered


def test_suites_and_files(offered: Offered) -> None:
    assert offered("asyncfl run qu") == ["plain,quickstart", "file,qu"]
    every = [line.removeprefix("plain,") for line in offered("asyncfl report ")]
    assert every[:-1] == list(shipped()) and every[-1] == "file,"


def test_strategies(offered: Offered) -> None:
    for words in ("compare ace fedb", "list fedb", "list strategies fedb"):
        assert offered(f"asyncfl {words}") == ["plain,fedbuff", "plain,fedbuff_c"]


def test_kinds_of_parts_and_the_parts_of_one(offered: Offered) -> None:
    assert offered("asyncfl list dur") == ["plain,durations"]
    assert offered("asyncfl list durations ") == [f"plain,{one.name}" for one in entries("durations")]


def test_errata_and_theory(offered: Offered) -> None:
    assert offered("asyncfl list er") == ["plain,errata"]
    assert "plain,X-1" in offered("asyncfl list errata X-")
    assert offered("asyncfl list theory ") == ["plain,cost", "plain,routing", "plain,weights"]
