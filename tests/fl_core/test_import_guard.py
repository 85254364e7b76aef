"""Packages are found in a folder that is not on the import path if they are named, and the user's own."""

from __future__ import annotations

import importlib
import importlib.util
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from py_compile import compile as compiled

import pytest

from fl_core import import_guard
from fl_core.import_guard import (
    ALLOWED,
    ImportRefusedError,
    guarded,
    in_a_line,
    leave_the_path,
    load,
    not_own,
    own_packages,
    place,
    search_beside,
)

LATE = """
def late():
    from .more import value
    return value
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which a command starts, first on the path, with a package and modules in it."""
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "inside.py").write_text(
        "def late():\n    from .more import value\n    return value\n"
    )
    (tmp_path / "named" / "more.py").write_text("value = 1\n")
    (tmp_path / "alone.py").write_text("value = 2\n")
    (tmp_path / "leaning.py").write_text("import beside\n")
    (tmp_path / "beside.py").write_text("value = 3\n")
    (tmp_path / "colorsys.py").write_text("value = 4\n")
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    known = set(sys.modules)
    leave_the_path(Path.cwd())
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_the_folder_is_not_searched(folder: Path) -> None:
    assert "" not in sys.path and str(folder) not in sys.path
    assert os.environ["PYTHONSAFEPATH"] == "1"
    for name in ("alone", "named", "named.inside", "beside"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)


def test_an_error_has_its_place_in_the_users_code_not_in_a_library(folder: Path) -> None:
    (folder / "named" / "wrong.py").write_text("import json\n\ndef read():\n    return json.loads('{')\n")
    with pytest.raises(ValueError, match="Expecting property name") as told:
        load("named.wrong:read")()
    assert place(told.value) == " (named/wrong.py:4)"


def test_a_class_of_a_notebooks_cell_is_refused_since_workers_cannot_see_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "Mine", object, raising=False)
    with pytest.raises(ImportRefusedError, match=r"^worker processes cannot see "):
        load("__main__:Mine")


def test_what_is_named_is_found_and_nothing_else(folder: Path) -> None:
    assert load("alone:value") == 2
    assert load("named.inside:late")() == 1
    assert importlib.util.find_spec("beside") is None


def test_a_module_beside_the_file_that_names_it_is_found_there(folder: Path) -> None:
    """Before one in the current folder, under the same rules as there."""
    suites = folder / "suites"
    suites.mkdir()
    (suites / "alone.py").write_text("value = 5\n")
    (suites / "own.py").write_text("value = 6\n")
    with pytest.raises(ModuleNotFoundError):
        load("own:value")
    search_beside(suites / "suite.yaml")
    assert load("own:value") == 6 and load("alone:value") == 5
    assert load("named.inside:late")() == 1
    (suites / "open.py").write_text("value = 7\n")
    (suites / "open.py").chmod(0o666)
    with pytest.raises(ImportRefusedError, match=r"everyone can write to .*open\.py"):
        load("open:value")
    assert importlib.util.find_spec("beside") is None


def test_installed_packages_come_first(folder: Path) -> None:
    assert not hasattr(load("colorsys:rgb_to_hsv"), "value")
    finder = own_packages()
    assert finder is not None and "colorsys" not in finder.trusted


def test_a_neighbour_is_not_found_and_the_error_says_what_to_do(folder: Path) -> None:
    with pytest.raises(ImportError, match=r"beside\.py is not on the import path: make one package of both"):
        load("leaning:value")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'named\.misspelt'"):
        load("named.misspelt:value")


@pytest.mark.parametrize("name", ["alone.py", "named/inside.py", "named/more.py"])
def test_a_file_that_everyone_can_write_to_is_refused(folder: Path, name: str) -> None:
    """At once, or when it is imported late; with `--allow-code` it is not."""

    def everything() -> int:
        return int(load("alone:value")) + int(load("named.inside:late")())

    (folder / name).chmod(0o666)
    with pytest.raises(
        ImportRefusedError, match=f"everyone can write to .*{name}: allow it with --allow-code"
    ):
        everything()
    leave_the_path(folder)
    token = ALLOWED.set(True)
    try:
        assert everything() == 3
    finally:
        ALLOWED.reset(token)


def test_a_file_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(ImportRefusedError, match=r"alone\.py belongs to another user"):
        load("alone:value")


class TestTrustWithoutOwnership:
    """Checkouts of CI and of containers belong to other users, or everyone can write to them."""

    @pytest.mark.parametrize("value", ["true", "1"])
    def test_a_job_of_ci_trusts_its_checkout(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, value: str
    ) -> None:
        monkeypatch.setenv("CI", value)
        monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
        (folder / "alone.py").chmod(0o666)
        assert not_own(folder / "alone.py") == ""
        assert load("alone:value") == 2
        assert importlib.util.find_spec("beside") is None  # what no file names is not found there either

    @pytest.mark.parametrize("value", ["", "0", "false", "False"])
    def test_elsewhere_it_is_refused(self, folder: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
        monkeypatch.setenv("CI", value)
        (folder / "alone.py").chmod(0o666)
        with pytest.raises(ImportRefusedError):
            load("alone:value")

    @pytest.mark.parametrize("user", [0, 1000])
    @pytest.mark.parametrize("contained", [True, False])
    def test_root_in_a_container_reads_files_of_others(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, user: int, contained: bool
    ) -> None:
        """They are mounted; a file that everyone can write to is refused nevertheless."""
        mark = folder / "mark"
        if contained:
            mark.touch()
        status = list((folder / "alone.py").stat())
        status[stat.ST_UID] = 1001
        monkeypatch.setattr(import_guard, "CONTAINER_MARKS", (mark,))
        monkeypatch.setattr(os, "getuid", lambda: user)
        alone = folder / "alone.py"
        real = Path.stat

        def of_another(path: Path, **options: bool) -> os.stat_result:
            return os.stat_result(status) if path == alone else real(path, **options)

        monkeypatch.setattr(Path, "stat", of_another)
        assert (not_own(alone) == "") == (user == 0 and contained)
        status[stat.ST_MODE] |= stat.S_IWOTH
        assert not_own(alone) != ""

    def test_a_group_may_write(self, folder: Path) -> None:
        """As with the umask 002 of many systems."""
        (folder / "alone.py").chmod(0o664)
        assert load("alone:value") == 2


def test_compiled_code_that_lies_beside_a_source_is_not_run(folder: Path) -> None:
    """Anyone who may write into the folder can leave some with the right date and size."""
    source, about = folder / "alone.py", (folder / "alone.py").stat()
    source.write_text("value = 9\n")
    os.utime(source, ns=(about.st_atime_ns, about.st_mtime_ns))
    compiled(str(source))
    source.write_text("value = 2\n")
    os.utime(source, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert load("alone:value") == 2


def test_a_folder_that_pythonpath_names_in_full_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), "", ".", "other"]))
    sys.path[:0] = [str(folder)]
    leave_the_path(folder)
    assert str(folder) in sys.path
    assert os.environ["PYTHONPATH"] == os.pathsep.join([str(folder), "other"])


def test_nothing_is_loaded_where_code_is_refused(folder: Path) -> None:
    with guarded("the file is another's"), pytest.raises(ImportRefusedError, match="the file is another's: "):
        load("alone:value")
    assert "alone" not in sys.modules


class WordlessError(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise RuntimeError


def test_an_error_that_cannot_be_put_into_words_is_told_by_its_kind() -> None:
    assert in_a_line(WordlessError()) == "WordlessError"
