"""Tables of the leaderboard as files: every text comes back as it was."""

import json
from pathlib import Path

from test_leaderboard_scores import BEST, RATES, RULES, board, entry

from reports.leaderboard.rules import FILE
from reports.leaderboard.tables import Tables

LABELS = {"FedAvg": "NA", "FedBuff": "None", "ACE": "007"}


def test_a_text_may_be_empty_or_look_like_a_missing_value_or_a_number(tmp_path: Path) -> None:
    """As where a problem has no partition."""
    tables = board(**{label: entry(label, BEST[name], RATES) for name, label in LABELS.items()})
    tables.design["partition"] = tables.finals["partition"] = ""
    tables.finals["worst_client"] = float("nan")
    tables.save(tmp_path, "a")
    (tmp_path / FILE).write_text(json.dumps(RULES.model_dump(mode="json")))
    again = Tables.load(tmp_path)
    assert again.entries == ("007", "NA", "None")
    assert {*again.design["partition"], *again.finals["partition"]} == {""}
    assert again.finals["worst_client"].isna().all() and again.design["accuracy"].notna().all()
