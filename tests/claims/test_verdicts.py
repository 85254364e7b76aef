"""Verdicts on synthetic numbers whose truth is known."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from benchmarks.claims.claim import SEEDS, Claim
from benchmarks.claims.kinds import KINDS
from fl_core.streams import stream
from reports.claims import verdicts as rules
from reports.claims.verdict_text import sides
from reports.claims.verdicts import Values, Verdict, reported
from reports.statistical_inference import RankEstimate, RatioEstimate, holm, holm_by_question, straightened

TEST = "tests/papers/test_it.py::test_it"


def claim(kind: str, **more: Any) -> Claim:
    """A claim of that kind on test accuracy."""
    usual = {
        "id": "T-row/case",
        "place": "§1",
        "statement": "It is so.",
        "kind": kind,
        "clock": "updates",
        "rates": "stated",
        "scenario": "somewhere",
        "metric": "test/accuracy",
    }
    return KINDS[kind].model_validate({**usual, **more})


def once(one: Claim, values: Values) -> Claim:
    """The claim, with a single look at all of its seeds: all of the 5 % may be spent there."""
    seeds = max((len(of) for of in values.values()), default=0)
    return one.model_copy(update={"looks": (max(2, seeds),)})


def judge(one: Claim, values: Values) -> Verdict:
    """Its verdict at a single look."""
    return rules.judge(once(one, values), values)


def verdicts(claims: Mapping[str, Claim], values: Mapping[str, Values]) -> dict[str, Verdict]:
    """The verdicts of a family at a single look."""
    return rules.verdicts({id_: once(one, values[id_]) for id_, one in claims.items()}, values)


BETTER = claim("better", a={}, b={})
SAME = claim("same", a={}, b={}, margin=0.02)


def pair(differences: list[float] | np.ndarray, level: float = 0.5) -> Values:
    """Numbers of two samples that differ so."""
    return samples(a=[level + one for one in differences], b=[level] * len(differences))


def samples(**values: Any) -> Values:
    """Numbers of samples, one a seed; `term_1` stands for `term 1`."""
    return {name.replace("_", " "): dict(enumerate(map(float, of))) for name, of in values.items()}


WIN = [0.05, 0.06, 0.04, 0.05, 0.06, 0.05, 0.04, 0.05]
TIE = [0.001, -0.002, 0.0, 0.002, -0.001, 0.001, -0.001, 0.0]
UNSURE = [0.1, -0.08, 0.02, 0.05, -0.04, 0.06, -0.03, 0.03]
WEAK = [0.01, 0.02, 0.03, 0.01, 0.005, 0.025, 0.002, 0.015]


@pytest.mark.parametrize(
    ("differences", "better", "same"),
    [
        (WIN, "confirmed", "refuted"),
        ([-one for one in WIN], "refuted", "refuted"),
        (TIE, "undecided", "confirmed"),
        (UNSURE, "undecided", "undecided"),
        (WIN[:1], "not run", "not run"),  # the first look needs two seeds
        (WIN[:5], "leans for", "leans against"),  # sign flips of five seeds do not tell them from chance
        ([-one for one in WIN[:5]], "leans against", "leans against"),
        (TIE[:5], "undecided", "leans for"),
        (UNSURE[:5], "undecided", "undecided"),
    ],
)
def test_win_loss_tie_and_too_few_seeds(differences: list[float], better: str, same: str) -> None:
    assert judge(BETTER, pair(differences)).word == better
    assert judge(SAME, pair(differences)).word == same


def test_what_is_open_is_told_as_of_the_last_look() -> None:
    """Almost decided at the first look and not at the last: neither that word, nor seeds that are there."""
    row = [BETTER.model_copy(update={"id": f"T-row/{at}", "looks": (8, 16)}) for at in range(6)]
    first = [0.05, 0.02, 0.05, 0.01, 0.06, 0.05, 0.03, 0.02]
    later = [-0.05, -0.07, -0.05, -0.06, -0.05, -0.05, -0.03, -0.04]
    noise = stream(22, "row").normal(0, 0.1, (6, 16))
    values = {one.id: pair([*noise[at]]) for at, one in enumerate(row[1:], 1)}
    begun = rules.verdicts({one.id: one for one in row}, values | {row[0].id: pair(first)})[row[0].id]
    assert begun.word == "leans for" and begun.remarks == ("confirmed but for the other tests of its row",)
    ended = rules.verdicts({one.id: one for one in row}, values | {row[0].id: pair(first + later)})[row[0].id]
    assert (ended.word, ended.remarks) == ("undecided", ())
    assert ended.more is None or ended.more > 16


def test_shares_of_the_error_by_hand() -> None:
    assert [rules.share(SEEDS, at) for at in range(4)] == [1 / 8, 1 / 8, 1 / 4, 1 / 2]


@pytest.mark.parametrize(
    ("n", "judged_at"),
    [(7, [7]), (8, [8]), (15, [8]), (16, [8, 16]), (40, [8, 16, 32]), (100, [8, 16, 32, 64])],
)
def test_a_look_waits_for_all_of_its_seeds(n: int, judged_at: list[int]) -> None:
    found = [look.shown for look in rules.looks(BETTER, pair((UNSURE * 13)[:n]))]
    assert [verdict.seeds for verdict in found] == judged_at
    assert (found[0].word == "not run") is (n < 8)


def test_holm_counts_a_question_until_all_of_its_hypotheses_fall() -> None:
    """Three questions, one with two hypotheses: p times 3, 3, 2 and 1; with one each it is Holm's."""
    questions = {b"x": {"side": 0.001, "equal": 0.012}, b"y": {"side": 0.01}, b"z": {"side": 0.04}}
    assert holm_by_question(questions) == {
        (b"x", "side"): pytest.approx(0.003),
        (b"y", "side"): pytest.approx(0.03),
        (b"x", "equal"): pytest.approx(0.03),  # 0.024, but never below an earlier one
        (b"z", "side"): pytest.approx(0.04),
    }
    p = [0.01, 0.04, 0.03, 0.005]
    alone = holm_by_question({bytes([at]): {"side": value} for at, value in enumerate(p)})
    assert [alone[bytes([at]), "side"] for at in range(4)] == pytest.approx(holm(p))


def test_less_is_better_of_a_loss() -> None:
    loss = claim("better", a={}, b={}, metric="fp/loss")
    assert judge(loss, pair(WIN)).word == "refuted"
    assert judge(claim("better", a={}, b={}, metric="fp/loss", higher=True), pair(WIN)).word == "confirmed"


def test_zero_in_every_seed_is_no_effect_and_gives_its_reason() -> None:
    one = judge(BETTER, pair([0.0] * 5))
    assert (one.word, one.remarks) == ("no effect", ("exactly 0 in every seed",))
    known = BETTER.model_copy(update={"seen": "β only rescales time."})
    assert judge(known, pair([0.0] * 5)).remarks == ("β only rescales time.",)
    assert judge(BETTER, pair(TIE)).word == "undecided"
    assert judge(SAME, pair([0.0] * 6)).word == "confirmed"


def test_no_look_before_its_seeds_and_none_after_a_decision() -> None:
    """Decided at 8 seeds, a claim stays so whatever later seeds say; 7 seeds decide nothing."""
    first = [0.05, 0.06, 0.04, 0.05, 0.06, 0.05, 0.04, 0.05]
    early = rules.judge(BETTER, pair(first[:7]))
    assert (early.word, early.more) == ("not run", None)
    assert early.remarks == ("7 of the 8 seeds of the first look",)
    at_8 = rules.judge(BETTER, pair(first))
    later = rules.judge(BETTER, pair([*first, *[-0.2] * 56]))
    assert (at_8.word, at_8.seeds, later) == ("confirmed", 8, at_8)
    assert at_8.level == pytest.approx(1 - 0.05 / 8)
    half = stats.t.ppf(1 - 0.05 / 16, 7) * stats.sem(first)
    assert at_8.high - at_8.found == pytest.approx(half)


def test_fields_of_equal_verdicts_are_equal() -> None:
    """Python 3.13 compares data classes field by field, and NaN is unequal to itself."""
    theorem = claim("theorem", test=TEST, printed=[1, 2], found=[1, 2])
    verdicts_ = [Verdict("not run"), rules.judge(BETTER, pair([0.1] * 7)), reported(np.array([np.nan]))]
    verdicts_ += [rules.judge(BETTER, samples(a=[np.nan] * 8, b=[0.1] * 8)), judge(theorem, {})]
    for verdict in verdicts_:
        values = [getattr(verdict, field.name) for field in fields(verdict)]
        assert all(value == value for value in values), verdict  # noqa: PLR0124 - not so with NaN
        assert not np.isnan(verdict.sides).any()


def test_seeds_that_would_decide_are_those_of_a_look() -> None:
    values = 0.01 * stream(21, "looks").normal(0.6, 1, 8)
    one = rules.judge(BETTER, pair(values))
    size = straightened(abs(values.mean()) / values.std(ddof=1))
    shares = {8: 1 / 8, 16: 1 / 8, 32: 1 / 4, 64: 1 / 2}
    power = {
        n: stats.nct.sf(stats.t.ppf(1 - 0.025 * share, n - 1), n - 1, size * np.sqrt(n))
        for n, share in shares.items()
    }
    assert one.word == "undecided"
    assert one.more == next(n for n, chance in power.items() if chance >= 0.8)


def test_what_asks_the_same_of_the_same_samples_is_one_test() -> None:
    """Nine copies, one of them the other way round, leave p as it is; nine others multiply it."""
    weak = pair(WEAK)
    turned = claim("better", a={}, b={}, higher=False)
    family: dict[str, Claim] = {f"T-row/{at}": BETTER for at in range(9)} | {"T-row/turned": turned}
    same = verdicts(family, dict.fromkeys(family, weak))
    assert same["T-row/0"].adjusted == pytest.approx(same["T-row/0"].p)
    assert (same["T-row/0"].word, same["T-row/turned"].word) == ("confirmed", "refuted")
    others = {id_: pair(np.array(UNSURE) * (1 + at)) for at, id_ in enumerate(family)}
    apart = verdicts(family, {**others, "T-row/0": weak})
    assert apart["T-row/0"].adjusted == pytest.approx(10 * apart["T-row/0"].p)


def test_nothing_ran() -> None:
    assert judge(BETTER, {}).word == "not run"
    assert judge(BETTER, {"a": {0: 1.0}, "b": {1: 1.0}}).word == "not run"  # no seed in common


def test_both_sides_of_a_comparison_are_told_in_their_own_unit() -> None:
    """Of a loss, too, where A is ahead with less; of collapsed runs by the median; not of a lost one."""
    loss = BETTER.model_copy(update={"higher": False})
    assert judge(loss, samples(a=[0.1, 0.2, 0.3], b=[0.5, 0.6, 0.7])).sides == pytest.approx((0.2, 0.6))
    one_collapsed = samples(a=[0.8, 0.1, 0.9], b=[0.5, 0.4, 0.9])
    assert judge(BETTER, one_collapsed).sides == pytest.approx((0.8, 0.5))
    assert sides(judge(BETTER, samples(a=[0.8, 0.8], b=[0.25, 0.5]))) == "0.800 against 0.375"
    assert sides(judge(BETTER, samples(a=[0.8, np.nan], b=[0.25, 0.5]))) == ""
    assert sides(judge(claim("value", band=[0, 1]), samples(value=[0.5, 0.6, 0.4]))) == ""


def test_where_runs_collapse_signs_decide() -> None:
    """One that diverged is worse than any other, and one with half of a usual accuracy has collapsed."""
    nan = float("nan")
    better, worse = [0.9, 0.8, 0.9, 0.85, 0.9, 0.8, 0.9], [0.7, 0.6, 0.75, 0.7, 0.7, 0.6, 0.7]
    always = samples(a=better, b=[nan] * 7)
    assert [judge(one, always).word for one in (BETTER, SAME)] == ["confirmed", "refuted"]
    assert judge(BETTER, samples(a=[nan] * 7, b=better)).word == "refuted"
    for low in (nan, 0.3):
        found = judge(BETTER, samples(a=better, b=[low, *worse[1:]]))
        assert (found.word, found.p) == ("confirmed", pytest.approx(2 / 2**7))
        assert found.remarks == ("1 of 7 seeds collapse: the sign test decides",)
        assert found.found == pytest.approx(0.2, abs=0.05)
    most = judge(BETTER, samples(a=better, b=[0.1] * 4 + [0.7] * 3))
    assert most.remarks == ("4 of 7 seeds collapse: the sign test decides",)
    few = judge(BETTER, samples(a=better[:3], b=[nan, 0.1, 0.2]))
    assert few.word == "leans for"
    assert judge(BETTER, samples(a=[nan, nan], b=[nan, nan])).word == "undecided"
    contrast = claim("contrast", terms=[{}, {"times": -1}])
    assert judge(contrast, samples(term_1=[1, nan], term_2=[0, 0])).word == "undecided"
    assert judge(contrast, samples(term_1=better, term_2=[0.3, *worse[1:]])).p == pytest.approx(2 / 2**7)
    loss = claim("better", a={}, b={}, metric="fp/loss")
    assert not judge(loss, samples(a=better, b=[0.1, *worse[1:]])).remarks  # a small loss is no collapse


def test_a_fitted_exponent_is_a_contrast_of_logarithms() -> None:
    """Rounds ~ m^-1 at m = 1, 2, 4: the slope of a line through three points is (y₃ − y₁)/(x₃ − x₁)."""
    ends = 1 / np.log(4)
    law = claim("contrast", terms=[{"times": -ends}, {"times": ends}], band=[-1.2, -0.8], log=True)
    first = np.array([100, 104, 97, 101, 99.0, 102, 98, 101])
    assert judge(law, samples(term_1=first, term_2=first / 4)).word == "confirmed"
    assert judge(law, samples(term_1=first, term_2=first / 2)).word == "refuted"
    assert judge(law, samples(term_1=[1, 2], term_2=[0, 1])).remarks == ("a value that has no logarithm",)


def test_at_the_ends_of_fiellers_interval_t_is_at_its_quantile() -> None:
    rng = stream(8, "fieller")
    bottom = rng.normal(1, 0.2, 6)
    top = 2 * bottom + rng.normal(0, 0.3, 6)
    one = RatioEstimate(top, bottom)
    found = [stats.ttest_1samp(top - end * bottom, 0).statistic for end in (one.low, one.high)]
    assert found == pytest.approx([stats.t.ppf(at, 5) for at in (0.975, 0.025)])


def test_there_is_no_ratio_to_a_gap_that_may_be_nil() -> None:
    gaps = claim("ratio", top=[{}], bottom=[{}], band=[1.5, 3], metric="test/loss")
    one = judge(gaps, samples(top_1=[1, 2, 3], bottom_1=[-1, 0, 1.1]))
    assert (one.word, one.low, one.high) == ("undecided", -np.inf, np.inf)


def test_where_runs_collapse_a_ratio_is_that_of_the_typical_seed() -> None:
    """In nineteen seeds of twenty the gain is a half; the other is at chance, where it is 36."""
    gain = claim("ratio", top=[{}, {"times": -1}], bottom=[{}], band=[0.4, 0.6])
    lower = np.array([0.5] * 19 + [0.02])
    noise = stream(12, "typical").normal(0, 0.01, 20)
    numbers = {"top_1": 0.75 + noise, "top_2": lower, "bottom_1": lower}
    one = judge(gain, samples(**numbers))
    assert one.word == "confirmed" and one.remarks == ("1 of 20 seeds collapse: the sign test decides",)
    assert one.found == pytest.approx(0.5, abs=0.02)


def test_rank_correlation_of_means() -> None:
    rng = stream(11, "rank")
    early = np.arange(6)[:, None] + rng.normal(0, 0.1, (6, 5))
    late = early + rng.normal(0, 0.1, (6, 5))
    assert RankEstimate(early, late).mean == pytest.approx(
        stats.spearmanr(early.mean(1), late.mean(1)).statistic
    )
    k: list[dict[str, Any]] = [{}] * 6
    stays = claim("rank", samples=k, against=k)
    named = {f"sample_{at}": row for at, row in enumerate(early, 1)}
    for rows, word in ((late, "confirmed"), (late[::-1], "refuted")):
        against = {f"against_{at}": row for at, row in enumerate(rows, 1)}
        assert judge(stays, samples(**named, **against)).word == word
    ordered = claim("rank", samples=k, order=[10, 20, 30, 40, 50, 60])
    assert judge(ordered, samples(**named)).word == "confirmed"


def test_ranks_are_tested_by_all_their_permutations() -> None:
    """Three values in order in both of two seeds: 1 of 36 by chance, 1/18 two-sided; too few for 5 %."""
    ordered = claim("rank", samples=[{}] * 3, order=[1, 2, 3])
    level = np.array([1.0, 2.0, 3.0])

    def found(seeds: int) -> Verdict:
        rows = {f"sample_{at}": np.full(seeds, one) for at, one in enumerate(level, 1)}
        return judge(ordered, samples(**rows))

    assert found(2).p == pytest.approx(1 / 18)
    assert (found(2).word, found(2).more) == ("undecided", 3)
    assert found(3).word == "confirmed"
    assert found(3).p == pytest.approx(2 / 216)
    one = RankEstimate(np.array([[1.0, 1], [2, 3], [3, 2]]), level)  # sums of products: 14 and 13 of 10 … 14
    sums = [10, 11, 11, 13, 13, 14]
    assert one.p_above(-1) == pytest.approx(np.mean([x + y >= 27 for x in sums for y in sums]))


@pytest.mark.parametrize(("runs", "margin", "side"), [(1, 0.02, -1), (1, 0.05, 1), (5, 0.02, 1)])
def test_a_printed_mean_of_runs_has_a_margin_and_its_own_noise(runs: int, margin: float, side: int) -> None:
    """At the half-width of t·s·√(1/n + 1/k), and half a unit of the last digit, inside or outside."""
    values = np.array([0.880, 0.884, 0.882, 0.883, 0.881, 0.882])
    half = stats.t.ppf(0.975, 5) * values.std(ddof=1) * np.sqrt(1 / 6 + 1 / runs) + 0.00005
    entry = claim("value", printed="0.8916", runs=runs, margin=margin)

    def at(away: float) -> Verdict:
        return judge(entry, samples(value=values - values.mean() + 0.8916 + side * away))

    words = [at(margin + factor * half).word for factor in (-1.05, -0.95, 0.95, 1.05)]
    assert words == ["confirmed", "compatible", "compatible", "refuted" if runs > 1 else "compatible"]
    assert (at(0).high - at(0).low) / 2 == pytest.approx(half)
    assert [at(factor * half).unlike <= 0.05 for factor in (0.99, 1.01)] == [False, True]


@pytest.mark.parametrize("side", [-1, 1])
def test_a_single_printed_run_is_outside_only_if_it_would_be_among_ours_too(side: int) -> None:
    """Of 40 seeds one that is as far makes it 2 of 41, above 2.5 %; 38 seeds alone show nothing."""
    values = 0.8 + 0.001 * stats.norm.ppf((np.arange(40) + 0.5) / 40)
    one = claim("value", printed=f"{0.8 + 0.1 * side:.2f}", margin=0.02, looks=[40])
    assert judge(one, samples(value=values)).word == "refuted"
    assert (
        judge(claim("value", printed=one.printed, margin=0.02, looks=[38]), samples(value=values[:38])).word
        == "compatible"
    )
    rare = np.append(values[:39], 0.8 + 0.081 * side)
    assert judge(one, samples(value=rare)).word == "compatible"
    assert judge(one.model_copy(update={"runs": 2}), samples(value=rare)).word == "refuted"


def test_a_printed_value_is_judged_on_all_seeds_at_the_level_of_their_last_look() -> None:
    one = claim("value", printed="0.8916", margin=0.02, looks=[4, 8])
    near, far = [0.889, 0.890, 0.89, 0.891], [0.5, 0.501, 0.499, 0.5]
    assert rules.judge(one, samples(value=near[:3])).word == "not run"
    assert [rules.judge(one, samples(value=of)).word for of in (near, near + far)] == [
        "confirmed",
        "compatible",
    ]
    found = rules.judge(one, samples(value=near + near[:2]))
    assert (found.seeds, found.level) == (6, 0.975)


def test_the_printed_rounding_is_half_a_unit_of_the_last_digit() -> None:
    for printed, rounding in (("0.8916", 5e-5), ("16932", 0.5), ("0.770", 5e-4), ("1.5e-3", 5e-5)):
        assert claim("value", printed=printed).rounding == pytest.approx(rounding)  # type: ignore[attr-defined]


def test_a_value_in_a_band() -> None:
    band = claim("value", band=[0.4, None])
    assert judge(band, samples(value=[0.51, 0.52, 0.5] * 3)).word == "confirmed"
    assert judge(band, samples(value=[0.31, 0.32, 0.3] * 3)).word == "refuted"
    assert judge(band, samples(value=[0.51, 0.52, 0.5])).word == "leans for"


@pytest.mark.parametrize(
    ("printed", "answer", "word"),
    [
        (732, 732.0, "confirmed"),
        (732, 732.0000001, "confirmed"),
        (732, 732.00001, "refuted"),
        (["15/11", 1], [15 / 11, True], "confirmed"),
        ({"a": [0.5]}, {"a": [0.5]}, "confirmed"),
        ([1, 2], [1, 2, 3], "refuted"),
        (0, 1e-300, "refuted"),
    ],
)
def test_exact_means_exact(printed: Any, answer: Any, word: str) -> None:
    assert judge(claim("theorem", test=TEST, printed=printed, found=answer), {}).word == word


@pytest.mark.parametrize(
    "claimed", [{}, {"printed": 1, "band": [0, 1]}, {"printed": 1, "test": "math:hypot"}, {"found": None}]
)
def test_a_theorem_names_a_test_its_result_and_one_rule(claimed: dict[str, Any]) -> None:
    entry = {"test": TEST, "found": 1, **claimed}
    with pytest.raises(ValidationError):
        claim("theorem", **{key: value for key, value in entry.items() if value is not None})
