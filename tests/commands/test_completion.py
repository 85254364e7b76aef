"""What a shell is offered, asked as Bash asks."""

from pathlib import Path

import pytest
from shell import asyncfl

from benchmarks.catalogue import entries
from benchmarks.suite.shipped import shipped


def offered(words: str, variable: str = "bash") -> list[str]:
    """What is offered for the last of the words, and its kind before the comma."""
    count = str(len(words.split(" ")) - 1)
    shell = {"_ASYNCFL_COMPLETE": f"{variable}_complete", "COMP_WORDS": words, "COMP_CWORD": count}
    return asyncfl(Path(), **shell).stdout.splitlines()


def test_suites_and_files() -> None:
    assert offered("asyncfl run qu") == ["plain,quickstart", "file,qu"]
    every = [line.removeprefix("plain,") for line in offered("asyncfl report ")]
    assert every[:-1] == list(shipped()) and every[-1] == "file,"


@pytest.mark.parametrize(
    "words", ["asyncfl compare ace fedb", "asyncfl list fedb", "asyncfl list strategies fedb"]
)
def test_strategies(words: str) -> None:
    assert offered(words) == ["plain,fedbuff", "plain,fedbuff_c"]


def test_kinds_of_parts_and_the_parts_of_one() -> None:
    assert offered("asyncfl list dur") == ["plain,durations"]
    assert offered("asyncfl list durations ") == [f"plain,{one.name}" for one in entries("durations")]


def test_errata_and_theory() -> None:
    assert offered("asyncfl list er") == ["plain,errata"]
    assert "plain,X-1" in offered("asyncfl list errata X-")
    assert offered("asyncfl list theory ") == ["plain,cost", "plain,routing", "plain,weights"]
