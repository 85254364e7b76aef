"""Figures and tables as files: all of them are there, can be read, and names do no harm."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
import pytest
from click.testing import CliRunner
from synthetic import POOLED, Fake, curve, plausible, records

from benchmarks.colours import colours
from benchmarks.commands.group import asyncfl
from benchmarks.errors import UserError
from reports.figures.svg import Drawing
from reports.page import sections, write_files
from reports.records.records import RecordedSuite
from reports.sections.section import Results
from reports.tables import PageTable, TableEntry

NASTY = r"50 % & $x_1$ {a}^2 ~ \input{/etc/passwd} #1 <b>"


@pytest.fixture(scope="module")
def suite() -> RecordedSuite:
    made = [
        plausible(strategy, "digits · i.i.d. · F80", seed)
        for strategy in ("ACE", "FedBuff", "Vanilla ASGD")
        for seed in range(2)
    ]
    return records(*made, pooled=POOLED, name="quickstart")


DRAWN = ("curves-Test-accuracy-updates", "staleness")  # the others are empty: drawing takes seconds


@pytest.fixture(scope="module")
def folder(suite: RecordedSuite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, save = tmp_path_factory.mktemp("paper") / "new", Drawing.save
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Drawing,
            "save",
            lambda figure, file: (
                save(figure, file) if file.name.startswith(DRAWN) else file.touch(exist_ok=False)
            ),
        )
        written = write_files(sections(Results.of(suite)), path)
    assert len(set(written)) == len(written) and sorted(written) == sorted(path.iterdir())
    return path


def test_every_figure_and_table_is_there(suite: RecordedSuite, folder: Path) -> None:
    found = sections(Results.of(suite))
    figures = sum(len(section.figures) for section in found)
    tables = sum(len(section.tables) for section in found)
    assert figures > 10 and tables > 6
    assert len(list(folder.glob("*.svg"))) == len(list(folder.glob("*.pdf"))) == figures
    assert len(list(folder.glob("*.csv"))) == tables
    assert len(list(folder.glob("*.tex"))) == sum(
        bool(one.lines) for section in found for one in section.tables
    )
    curves = pd.read_csv(folder / "curves-all.csv")
    assert set(curves.strategy) == set(suite.strategies)


def test_figures_have_real_colours_and_a_legend(folder: Path) -> None:
    path = folder / "curves-Test-accuracy-updates-digits-i-i-d-F80.svg"
    words = "".join(ET.parse(path).getroot().itertext())
    assert "Vanilla ASGD" in words and "Client updates" in words
    text = path.read_text()
    assert colours(["Vanilla ASGD"])["Vanilla ASGD"] in text and not re.search("#0000[cd][0-9a-f]", text)
    assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF-")


def test_the_same_runs_give_the_same_files(suite: RecordedSuite, folder: Path, tmp_path: Path) -> None:
    one = [section for section in sections(Results.of(suite)) if section.anchor == "staleness"]
    for path in write_files(one, tmp_path):
        assert path.read_bytes() == (folder / path.name).read_bytes()


def test_latex_is_escaped() -> None:
    made = PageTable(
        "t", pd.DataFrame(), [NASTY, "x"], [(TableEntry(NASTY), TableEntry("1.5", "± 0.2", best=True))]
    ).latex()
    escaped = (
        r"50 \% \& \$x\_1\$ \{a\}\textasciicircum{}2 \textasciitilde{} "
        r"\textbackslash{}input\{/etc/passwd\} \#1 \textless{}b\textgreater{}"
    )
    assert made.splitlines() == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        rf"{escaped} & x \\",
        r"\midrule",
        rf"{escaped} & \textbf{{1.5}} $\pm$ 0.2 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_every_line_of_every_table_has_its_columns(folder: Path) -> None:
    for path in folder.glob("*.tex"):
        first, *lines = path.read_text().splitlines()
        columns = len(first.partition("}{")[2]) - 1
        rows = [line for line in lines if line.endswith(r"\\")]
        assert len(rows) > 1 and all(len(re.findall(r"(?<!\\)&", row)) == columns - 1 for row in rows)


@pytest.mark.usefixtures("undrawn")
def test_names_that_are_no_file_names(tmp_path: Path) -> None:
    made = [
        Fake(
            scenario=f"../../{NASTY}/\\" + "x" * 300,
            strategy=strategy,
            seed=seed,
            curve=curve([0.1, 0.9], [0, 10]),
        )
        for strategy in ("..", NASTY)
        for seed in range(2)
    ]
    written = write_files(sections(Results.of(records(*made))), tmp_path / "out")
    assert len(set(written)) == len(written)
    assert all(path.parent == tmp_path / "out" and path.is_file() for path in written)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.slow
def test_the_command_writes_them(store: str, tmp_path: Path) -> None:
    arguments = ["report", "two", "--store", str(tmp_path), "--tracking-uri", store]
    done = CliRunner().invoke(asyncfl, [*arguments, "--files", str(tmp_path / "paper")])
    assert done.exit_code == 0, done.output
    assert f"files for a paper: {tmp_path / 'paper'}" in done.output
    assert (tmp_path / "paper" / "ranking-digits-i-i-d-F80.tex").is_file()
    (tmp_path / "taken").write_text("a file")
    done = CliRunner().invoke(asyncfl, [*arguments, "--files", str(tmp_path / "taken" / "paper")])
    assert isinstance(done.exception, UserError) and "--files" in str(done.exception)


def test_a_figure_without_legend_keeps_its_size(suite: RecordedSuite) -> None:
    (section,) = [one for one in sections(Results.of(suite)) if one.anchor == "behind"]
    assert all(not drawing.legend for _, drawing in section.figures)
    assert replace(section.figures[0][1], legend=[(0, "a")]).legend
