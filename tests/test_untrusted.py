"""What comes from elsewhere is data: nothing of it is executed, and none of its names leaves its folder."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from test_architecture import MODULES, imports, nodes

from benchmarks.errors import UserError
from benchmarks.suite.shipped import recorded_name
from reports.tables import csv, escaped, slug

# Calls that run what a file says, or may.
NEVER = re.compile(
    r"yaml\.\w*(?i:load)\w*|(pickle|cloudpickle|dill|marshal)\.(loads?|Unpickler)|shelve\.open|joblib\.load"
    r"|(pd|pandas)\.read_pickle|eval|exec|os\.system|tarfile\.open|zipfile\.ZipFile|shutil\.unpack_archive"
)
# CIFAR's published files are pickles: each is compared with its published digest first.
CHECKED = {("fl_core.problems.cifar", "pickle.loads")}


def calls(module: str) -> Iterator[tuple[str, ast.Call]]:
    for node in nodes()[module]:
        if isinstance(node, ast.Call):
            yield dotted(node.func), node


def dotted(function: ast.expr) -> str:
    """Return the last two names of what is called."""
    if isinstance(function, ast.Attribute):
        return f"{dotted(function.value).rpartition('.')[2]}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else "?"


def test_nothing_runs_what_a_file_says() -> None:
    for module in MODULES:
        for name, call in calls(module):
            options = {option.arg: ast.unparse(option.value) for option in call.keywords}
            place = f"{module}:{call.lineno}: {name}"
            assert not NEVER.fullmatch(name) or (module, name) in CHECKED, place
            assert name != "torch.load" or options.get("weights_only") == "True", place
            assert options.get("allow_pickle", "False") == "False", place
            assert options.get("shell", "False") == "False", place


def test_what_runs_a_file_is_known() -> None:
    for name in ("yaml.load", "yaml.safe_load", "pickle.Unpickler", "eval", "pd.read_pickle"):
        assert NEVER.fullmatch(name)
    assert not NEVER.fullmatch("json.loads") and not NEVER.fullmatch("tuned.load")


def test_yaml_is_parsed_in_one_place() -> None:
    assert {module for module in MODULES if "yaml" in imports(module)} == {"benchmarks.yaml_io"}


@pytest.mark.parametrize(
    ("suite", "scale"), [("small", "../../x"), ("small", "/etc"), ("..", None), ("a\\b", None)]
)
def test_a_report_is_written_into_its_folder(suite: str, scale: str | None) -> None:
    with pytest.raises(UserError, match="invalid suite name "):
        recorded_name(suite, scale)


def test_the_name_in_a_file_does_not_lead_out_of_the_folder_either(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("name: ../../x")
    with pytest.raises(UserError, match=r"invalid suite name '\.\./\.\./x'"):
        recorded_name(str(path))


@pytest.mark.parametrize(
    "cell", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "\n=1"]
)
def test_a_spreadsheet_sees_no_formula(cell: str) -> None:
    for line in (csv(pd.DataFrame({"name": [cell]})), csv(pd.DataFrame({cell: ["x"]}))):
        assert f"'{cell}".replace("\r", "\n") in line  # a carriage return starts no row


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "..", "a\0b", "a/b\\c", "con\n"])
def test_a_file_s_name_stays_in_its_folder(name: str) -> None:
    assert (Path("/out") / slug(name)).parent == Path("/out") or slug(name) == ""


@pytest.mark.parametrize(
    "command", [r"\input{/etc/passwd}", r"\write18{ls}", r"\def\x{}", "a%b", "^^5cinput{x}"]
)
def test_latex_sees_no_command(command: str) -> None:
    shown = escaped(command)
    known = (r"\textbackslash{}", r"\textasciicircum{}", r"\{", r"\}", r"\%")
    for one in known:
        shown = shown.replace(one, "")
    assert not set(shown) & set("\\{}%^")
