"""Tables of the leaderboard as files: every text comes back as it was."""

import json
from csv import reader
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from test_leaderboard_scores import BEST, RATES, RULES, board, entry

from benchmarks.errors import UserError
from reports.leaderboard.rules import FILE
from reports.leaderboard.tables import Tables
from reports.tables import csv

LABELS = {"FedAvg": "NA", "FedBuff": "None", "ACE": "007"}
FORMULAS = ["=cmd", "+1", "-1", "@sum", "\t=cmd", " =cmd"]


def test_a_text_may_be_empty_or_look_like_a_missing_value_or_a_number(tmp_path: Path) -> None:
    """As where a problem has no partition."""
    tables = board(**{label: entry(label, BEST[name], RATES) for name, label in LABELS.items()})
    whole = {name: getattr(tables, name).query("partition != 'skew'") for name in ("design", "finals")}
    tables = replace(tables, **{name: table.assign(partition="") for name, table in whole.items()})
    tables.finals["worst_client"] = float("nan")
    tables.save(tmp_path, "a")
    (tmp_path / FILE).write_text(json.dumps(RULES.model_dump(mode="json")))
    again = Tables.load(tmp_path)
    assert again.entries == ("007", "NA", "None")
    assert {*again.design["partition"], *again.finals["partition"]} == {""}
    assert again.finals["worst_client"].isna().all() and again.design["accuracy"].notna().all()


@pytest.mark.parametrize("label", [*FORMULAS, "'quoted", "'=quoted"])
def test_no_cell_is_a_formula_and_labels_come_back(tmp_path: Path, label: str) -> None:
    board(**{label: entry(label, BEST["FedAvg"], RATES)}).save(tmp_path, "a")
    (tmp_path / FILE).write_text(json.dumps(RULES.model_dump(mode="json")))
    cells = pd.read_csv(tmp_path / "a-finals.csv", dtype=str, keep_default_na=False)["strategy"]
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in cells)
    assert Tables.load(tmp_path).entries == (label,)


@pytest.mark.parametrize("label", [*FORMULAS, "\r1", "\tb", "a\r=cmd"])
def test_no_cell_of_a_page_is_a_formula(label: str) -> None:
    table = pd.DataFrame({label: [label], "number": [-1.5], "plain": ["a-b"]})
    head, row = list(reader(StringIO(csv(table), newline="")))
    text = label.replace("\r", "\n")
    text = text if label.startswith("a") else f"'{text}"
    assert (head, row) == ([text, "number", "plain"], [text, "-1.5", "a-b"])


def test_rows_that_no_run_can_have_left_are_refused(tmp_path: Path) -> None:
    tables = board(FedAvg=entry("FedAvg", BEST["FedAvg"], RATES))
    (tmp_path / FILE).write_text(json.dumps(RULES.model_dump(mode="json")))
    tables.save(tmp_path, "a")
    path = tmp_path / "a-finals.csv"
    kept = pd.read_csv(path)
    for wrong, said in (
        (pd.concat([kept, kept.iloc[[2]]]), f"row {len(kept) + 1} is there twice"),
        (kept.assign(updates=kept["updates"].where(kept.index != 3, -1.0)), "row 4 has a number below 0"),
    ):
        wrong.to_csv(path, index=False)
        with pytest.raises(UserError, match=f"a-finals.csv: {said}"):
            Tables.load(tmp_path)
