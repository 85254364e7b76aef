"""The board's scores and page, from tables whose truth is known."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import inf, isnan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from benchmarks.commands import options
from reports.leaderboard import rank_groups
from reports.leaderboard import scores as module
from reports.leaderboard.board_tables import FINALS, TRIALS, BoardTables
from reports.leaderboard.page import SETTINGS, Board, held_out_table, matrix, population_table, write
from reports.leaderboard.scores import (
    COPY,
    Coverage,
    PopulationScores,
    ScenarioGoal,
    board_scores,
)

ROOT = Path(__file__).parents[2]
BUDGET = 200.0
TRUE = {"FedAvg": 100.0, "FedBuff": 30.0, "ASGD": 30.0, "Clone of ASGD": 30.0, "ACE": 60.0, "Slow": 180.0}
MOTIONLESS, FLIPPED = "Motionless", "Flipped"
GOAL = ScenarioGoal(BUDGET, 0.5)
SCALES = ("features10-alike", "features10-alike-iid", "features10-fixed")


@pytest.fixture(autouse=True, scope="module")
def _few_draws() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RESAMPLES", 200)
        patch.setattr(rank_groups, "BOARDS", 300)
        yield


def _curve(time: float) -> dict[str, str]:
    """Return a curve that rises evenly from 0.1 and is at 0.5 at the time; flat where that is endless."""
    times = np.arange(0, BUDGET + 1, 1.0)
    values = 0.1 + 0.4 * np.minimum(times / time, 2)
    return {"times": " ".join(map(str, times)), "values": " ".join(f"{value:.4f}" for value in values)}


def rows(
    name: str, studies: tuple[int, ...], scale: str, rng: np.random.Generator
) -> list[dict[str, object]]:
    made = []
    for study in studies:
        luck = 0.08 * rng.standard_normal()
        for seed in range(4):
            noise = np.exp(luck + 0.1 * rng.standard_normal())
            time = TRUE[name.removesuffix(COPY)] * noise if name.removesuffix(COPY) in TRUE else inf
            made.append(
                dict(zip(FINALS, (scale, name, study, 10 * study + seed, "done", "abc"), strict=False))
                | {
                    "time": time if time < BUDGET else inf,
                    "updates": 100,
                    "uploads": 10**6,
                    "downloads": 10**6,
                }
                | {"worst_client": 0.5, **_curve(time)}
            )
    return made


@cache
def tables() -> BoardTables:
    rng = np.random.default_rng(1)
    finals = [
        row
        for scale in SCALES
        for name in (*TRUE, MOTIONLESS, FLIPPED)
        for row in rows(name, (1, 2, 3, 4), scale, rng)
    ]
    for scale in SCALES:
        for name in ("FedBuff", "ASGD", "ACE"):
            finals += rows(f"{name}{COPY}", (5, 6, 7, 8), scale, rng)
    return BoardTables(pd.DataFrame(columns=TRIALS), pd.DataFrame(finals, columns=FINALS))


@cache
def all_scores(board: BoardTables) -> dict[str, PopulationScores]:
    return board_scores(board, dict.fromkeys(board.scales, GOAL))


def scores(board: BoardTables, population: str = "alike") -> PopulationScores:
    return all_scores(board)[population]


def test_scores_are_ratios_of_median_times() -> None:
    own = scores(tables())
    assert own.scales == ["features10-alike", "features10-alike-iid"]
    for name, time in TRUE.items():
        if name != "Slow":
            assert own.sooner(name) == pytest.approx(TRUE["FedAvg"] / time, rel=0.2)
            low, high = own.interval(name)
            assert low <= own.sooner(name) <= high
    assert own.interval("FedAvg")[0] < 1 < own.interval("FedAvg")[1]  # its own luck is in it


def test_times_to_other_targets_are_read_off_the_curves() -> None:
    own = scores(tables())
    at_target = own.times_to(dict.fromkeys(own.scales, 0.5))
    half_way = own.times_to(dict.fromkeys(own.scales, 0.3))
    for name in TRUE:
        met = np.isfinite(own.times[name])
        assert (np.abs(at_target[name][met] - own.times[name][met]) <= 1.1).all()  # marks are 1 apart
        assert (np.abs(half_way[name][met] - own.times[name][met] / 2) <= 1.1).all()
    assert np.isinf(half_way[MOTIONLESS]).all()
    assert own.agreement(0.9) > 0.9 and not own.sooner_at_best[FLIPPED] > 0


def test_fewer_trials_are_the_first_of_each_study() -> None:
    times = {1: [5.0, 1.0, 4.0], 2: [7.0, 3.0, 2.0], 3: [inf, 6.0, 9.0]}  # mean times of trials, by study
    trials = [
        {"scale": SCALES[0], "strategy": "ACE", "study": study, "trial": trial, "seed": seed, "time": time}
        for study, means in times.items()
        for trial, mean in enumerate(means)
        for seed, time in enumerate((mean - 0.5, mean + 0.5))
    ]
    own = replace(scores(tables()), tables=BoardTables(pd.DataFrame(trials), tables().finals))
    assert [own.tuned_with("ACE", count) for count in (1, 2, 3)] == [7, 3, 2]
    assert own.tuned_with("ACE", None) == 1


def test_one_setting_is_chosen_in_the_other_populations() -> None:
    times = {  # trial → means in the population, and in two others
        1: {0: (50.0, 9.0, 8.0), 1: (5.0, 9.0, inf), 2: (70.0, 1.0, 80.0)},
        2: {0: (inf, 10.0, 10.0), 1: (3.0, inf, 9.0), 2: (2.0, inf, inf)},
        3: {0: (20.0, 5.0, 5.0)},
    }
    trials = [
        {"scale": scale, "strategy": "ACE", "study": study, "trial": trial, "seed": 0, "time": time}
        for study, means in times.items()
        for trial, row in means.items()
        for scale, time in zip(("one", "two", "three"), row, strict=True)
    ]
    own = replace(scores(tables()), scales=["one"], tables=BoardTables(pd.DataFrame(trials), tables().finals))
    assert own.transferred("ACE", ["two", "three"]) == 50  # median of 50, ∞ and 20
    assert own.transferred("ACE", ["two"]) == 70  # of 70, ∞ and 20
    assert own.transferred("ACE", ["three"]) == 20  # of 50, 3 and 20
    assert isnan(own.transferred("ACE", ["four"]))


def test_identical_entries_share_a_group_and_different_ones_do_not() -> None:
    for population in ("alike", "fixed"):
        own = scores(tables(), population)
        assert own.groups["FedBuff"] == own.groups["ASGD"] == own.groups["Clone of ASGD"] == (1, 1)
        assert own.groups["FedAvg"].first > own.groups["ACE"].last >= own.groups["ACE"].first > 1
        assert own.never(MOTIONLESS) and own.never(FLIPPED) and not {MOTIONLESS, FLIPPED} & {*own.groups}
        assert {*own.groups} == {name for name in own.entries if not own.never(name)}
        assert {*own.order()[-2:]} == {MOTIONLESS, FLIPPED} and own.sooner(FLIPPED) == 0
        assert own.met(MOTIONLESS) == 0
        assert {*own.copies} == {"FedBuff", "ASGD", "ACE"} and not any(COPY in name for name in own.entries)


@pytest.mark.parametrize("seed", range(4))
def test_two_entries_share_a_rank_group_if_and_only_if_they_are_not_separated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    means, threshold = rng.normal(size=12).round(1), 0.75
    means[3] = means[7]
    groups = rank_groups.rank_groups(means, threshold)
    for mine, own in zip(means, groups, strict=True):
        for other, theirs in zip(means, groups, strict=True):
            share = own.first <= theirs.last and theirs.first <= own.last
            assert share == (abs(mine - other) <= threshold)
            assert share or (own.last < theirs.first) == (mine < other)
    assert {at for own in groups for at in own} <= {*range(1, max(own.last for own in groups) + 1)}
    assert min(groups).first == 1 and groups[int(np.argmin(means))] == (1, 1)
    assert rank_groups.rank_groups([*means, means[5]], threshold) == [*groups, groups[5]]  # a clone


def renamed(board: BoardTables, name: str, other: str) -> BoardTables:
    """Return a board with all rows of an entry once more under another name."""
    more = [
        pd.concat([table, table[table["strategy"] == name].assign(strategy=other)], ignore_index=True)
        for table in (board.trials, board.finals)
    ]
    return BoardTables(*more)


def without(board: BoardTables, name: str) -> BoardTables:
    return BoardTables(*(table[table["strategy"] != name] for table in (board.trials, board.finals)))


@pytest.mark.parametrize(
    ("name", "clone"),  # clones are first or last by name
    [("FedBuff", "A clone"), (MOTIONLESS, "Zebra")],
)
def test_a_clone_changes_no_other_row(name: str, clone: str) -> None:
    board = tables()
    goals = dict.fromkeys(SCALES, GOAL)
    before, after = all_scores(board), Board(renamed(board, name, clone), goals).scores
    (head, rows), (same_head, more) = matrix(before), matrix(after)
    assert head == same_head and [row for row in more if row[0] != clone] == rows
    for population, own in before.items():
        there = after[population]
        assert there.groups.get(clone) == own.groups.get(name) and there.resolution == own.resolution
        assert [there.interval(entry) for entry in own.entries] == list(map(own.interval, own.entries))
        assert [there.sooner_at_best[entry] for entry in own.entries] == [
            own.sooner_at_best[entry] for entry in own.entries
        ]


@pytest.mark.parametrize("name", ["FedBuff", MOTIONLESS])
def test_adding_or_removing_an_entry_changes_no_other_score(name: str) -> None:
    board = tables()
    smaller = without(board, name)
    for population in ("alike", "fixed"):
        own, rest = scores(board, population), scores(smaller, population)
        for entry in rest.entries:
            assert rest.sooner(entry) == own.sooner(entry) or np.isnan(own.sooner(entry))
            assert rest.interval(entry) == own.interval(entry)
            assert rest.met(entry) == own.met(entry)


def test_an_entry_that_is_not_whole_is_left_out_and_changes_nothing() -> None:
    board = tables()
    part = pd.DataFrame(rows("FedBuff", (1, 2), SCALES[0], np.random.default_rng(2)), columns=FINALS)
    more = BoardTables(board.trials, pd.concat([board.finals, part.assign(strategy="Begun")]))
    assert scores(more).groups == scores(board).groups


def test_a_scenario_that_has_only_begun_leaves_no_entry_out() -> None:
    board = tables()
    rng = np.random.default_rng(3)
    begun = [row for name in ("FedAvg", "ACE") for row in rows(name, (1, 2, 3, 4), "text-fixed", rng)]
    more = BoardTables(board.trials, pd.concat([board.finals, pd.DataFrame(begun, columns=FINALS)]))
    coverage = Coverage(more)
    assert coverage.uncounted_scenarios == ["text-fixed"] and coverage.populations["fixed"] == [
        "features10-fixed"
    ]
    assert scores(more, "fixed").groups == scores(board, "fixed").groups
    rest = [
        row for name in ("FedBuff", "ASGD", "Slow") for row in rows(name, (1, 2, 3, 4), "text-fixed", rng)
    ]
    most = BoardTables(board.trials, pd.concat([more.finals, pd.DataFrame(rest, columns=FINALS)]))
    assert scores(most, "fixed").scales == ["features10-fixed", "text-fixed"]
    lacking = {"Clone of ASGD", FLIPPED, MOTIONLESS}
    assert Coverage(most).missing() == {name: ["text-fixed"] for name in lacking}


def test_a_held_out_scenario_changes_no_score_and_has_the_order_of_equal_runs() -> None:
    board, held_out = tables(), "features10-iid"
    moved = board.finals[board.finals["scale"] == SCALES[2]].assign(scale=held_out)
    more = BoardTables(board.trials, pd.concat([board.finals, moved]))
    goals = dict.fromkeys(SCALES, GOAL) | {held_out: replace(GOAL, tuned_in=SCALES[2])}
    with_held_out = Board(more, goals)
    assert {name: result.groups for name, result in with_held_out.scores.items()} == {
        name: result.groups for name, result in all_scores(board).items()
    }
    [row] = held_out_table(with_held_out)[1]
    assert row[0] == held_out and row[-2:] == ["1.00", "1.00"]
    flipped = moved.assign(time=1e4 / moved["time"].clip(upper=1e6))
    backwards = Board(BoardTables(board.trials, pd.concat([board.finals, flipped])), goals)
    [row] = held_out_table(backwards)[1]
    assert row[-2] == "-1.00"


def test_a_run_that_diverged_does_not_hide_the_others() -> None:
    board = tables()
    broken = board.finals.copy()
    ace = broken.index[(broken["strategy"] == "ACE")][0]
    broken.loc[ace, ["time", "times", "values", "status"]] = [inf, "0 1", "0.1 nan", "diverged"]
    own = scores(BoardTables(board.trials, broken))
    assert own.best_targets == scores(board).best_targets and own.met("ACE") < 1
    assert own.sooner("FedBuff") == scores(board).sooner("FedBuff")


def test_entries_with_the_same_runs_are_named() -> None:
    assert [{*names} for names in scores(tables()).identical] == [{MOTIONLESS, FLIPPED}]
    own = scores(renamed(tables(), "ACE", "Alias"))
    assert [*own.identical[0]] == ["ACE", "Alias"]


def test_entries_that_are_too_soon_for_the_evaluations_are_named() -> None:
    """A mark every unit of time, and targets met at 30 at the soonest; a mark every 20, and ASGD is early."""
    own = scores(tables(), "fixed")
    assert own.spacing == {"features10-fixed": 1} and own.early == []
    rare = own.tables.finals.assign(times=lambda rows: rows["times"].map(_times_20))
    sparse = replace(own, tables=BoardTables(own.tables.trials, rare))
    assert {*sparse.early} >= {"FedBuff", "ASGD", "ACE", "FedAvg"} and MOTIONLESS not in sparse.early
    assert "Slow" not in sparse.early


def _times_20(cell: str) -> str:
    return " ".join(str(20 * at) for at in range(len(cell.split())))


def test_energy_is_that_of_the_runs_that_meet_the_target() -> None:
    board = tables()
    energy = board.finals["time"].replace(inf, 1e9) * np.where(board.finals["strategy"] == "ACE", 5, 1)
    board = BoardTables(board.trials, board.finals.assign(energy=energy))
    goals = dict.fromkeys(SCALES, replace(GOAL, power="computation 1 W"))
    own = board_scores(board, goals)["fixed"]
    head, rows = population_table(own, linked=False)
    cells = {row[head.index("Entry")]: row[head.index("Energy, FedAvg = 1")] for row in rows}
    assert cells["FedAvg"] == "1.00" and cells[MOTIONLESS] == "–"
    met = np.isfinite(own.times["FedAvg"])
    reference = np.median(own.times["FedAvg"][met])
    assert float(cells["ACE"]) == pytest.approx(5 * np.median(own.times["ACE"]) / reference, abs=0.006)
    assert "Energy, FedAvg = 1" not in population_table(scores(board, "fixed"))[0]  # no power is given


def trial_rows() -> pd.DataFrame:
    """Four trials of each study of two entries; times do not matter."""
    made = [
        dict(zip(TRIALS, (scale, name, study, trial, 0, "done", 10.0 + trial, 0.5), strict=False))
        | {"best": int(trial == 0), "values": '{"local_lr": 0.5, "server.name": "sgd"}'}
        for scale in SCALES
        for name in ("FedAvg", "FedBuff")
        for study in (1, 2, 3, 4)
        for trial in range(4)
    ]
    return pd.DataFrame(made, columns=TRIALS)


@pytest.mark.usefixtures("undrawn")
def test_the_page_says_who_leads_where(tmp_path: Path) -> None:
    board = BoardTables(trial_rows(), tables().finals)
    goals = dict.fromkeys(SCALES, GOAL)
    own = Board(board, goals, [*SCALES, "text-alike"], [*TRUE, "Later"])
    written = write(own, tmp_path)
    text = written.read_text()
    assert {path.name for path in tmp_path.glob("*.svg")} == {
        "leaderboard-heat.svg",
        *(f"leaderboard-{scale}.svg" for scale in SCALES),
    }
    lines = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if line.startswith("| ")}
    motionless = f"[{MOTIONLESS}]({SETTINGS}.md#motionless)"
    assert "never" in lines[motionless] and "**1**" in text
    assert "assumed power of a client" not in text
    assert "text-alike" in text and "Later" in text  # missing
    settings = (tmp_path / f"{SETTINGS}.md").read_text()
    assert settings.count("local_lr 0.5") == 2 * 3 * 4
    first = text.split("## Rank groups")[0]
    assert "say" in first and "linear" in first  # what the board cannot say stands first
    board.save(tmp_path / "tables")
    again = BoardTables.load(tmp_path / "tables")
    for read, saved in ((again.finals, board.finals), (again.trials, board.trials)):
        key = [*saved.columns[:5]]
        rows = [table.sort_values(key, ignore_index=True) for table in (read, saved)]
        pd.testing.assert_frame_equal(*rows, check_dtype=False)


def test_the_data_of_the_board_are_those_of_the_page_on_data() -> None:
    digests = yaml.safe_load((options.LEADERBOARD / "rules.yaml").read_text())["data"]
    rows = [line.split("`") for line in (ROOT / "docs" / "data.md").read_text().splitlines() if "| `" in line]
    documented = {cells[1]: cells[3] for cells in rows if len(cells) > 4}
    assert digests and digests.items() <= documented.items()
