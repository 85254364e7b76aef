"""Verdicts on synthetic numbers whose truth is known."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.claims import Claim
from fl_core.streams import stream
from reports.claims.verdicts import Values, Verdict, flat, judge, verdicts
from reports.statistics.estimates import Rank, Ratio, VarianceRatio

REPEATS = 500


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
    return Claim.KINDS[kind].model_validate({**usual, **more})


BETTER = claim("better", a={}, b={})
SAME = claim("same", a={}, b={}, margin=0.02)


def pair(differences: list[float] | np.ndarray, level: float = 0.5) -> Values:
    """Numbers of two samples that differ so."""
    return samples(a=[level + one for one in differences], b=[level] * len(differences))


def samples(**values: Any) -> Values:
    """Numbers of samples, one a seed; `term_1` stands for `term 1`."""
    return {name.replace("_", " "): dict(enumerate(map(float, of))) for name, of in values.items()}


WIN = [0.05, 0.06, 0.04, 0.05, 0.06]
TIE = [0.001, -0.002, 0.0, 0.002, -0.001]
UNSURE = [0.1, -0.08, 0.02, 0.05, -0.04]


@pytest.mark.parametrize(
    ("differences", "better", "same"),
    [
        (WIN, "confirmed", "refuted"),
        ([-one for one in WIN], "refuted", "refuted"),
        (TIE, "undecided", "confirmed"),
        (UNSURE, "undecided", "undecided"),
        (WIN[:1], "undecided", "undecided"),  # one seed says nothing
        ([0.05, 0.06], "undecided", "undecided"),  # t of one degree of freedom: ± 12.7 standard errors
    ],
)
def test_win_loss_tie_and_too_few_seeds(differences: list[float], better: str, same: str) -> None:
    assert judge(BETTER, pair(differences)).word == better
    assert judge(SAME, pair(differences)).word == same


def test_less_is_better_of_a_loss() -> None:
    loss = claim("better", a={}, b={}, metric="fp/loss")
    assert judge(loss, pair(WIN)).word == "refuted"
    assert judge(claim("better", a={}, b={}, metric="fp/loss", higher=True), pair(WIN)).word == "confirmed"


def test_an_undecided_claim_says_how_many_seeds_would_decide() -> None:
    one = verdicts({"T-row/case": BETTER}, {"T-row/case": pair(UNSURE)})["T-row/case"]
    size = np.mean(UNSURE) / np.std(UNSURE, ddof=1)
    assert one.more is not None
    powers = [
        stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, size * np.sqrt(n)) for n in (one.more - 1, one.more)
    ]
    assert powers[0] < 0.8 <= powers[1]


def test_equal_in_every_seed_is_undecided_and_says_so() -> None:
    one = judge(BETTER, pair([0.0] * 5))
    assert (one.word, one.why) == ("undecided", "exactly 0 in every seed")
    assert judge(BETTER, pair(TIE)).why == ""


def test_nothing_ran() -> None:
    assert judge(BETTER, {}).word == "not run"
    assert judge(BETTER, {"a": {0: 1.0}, "b": {1: 1.0}}).word == "not run"  # no seed in common


@pytest.mark.parametrize("n", [5, 8])
def test_under_the_null_better_is_decided_in_seven_per_cent_at_most(n: int) -> None:
    """Worlds differ more than strategies do: what pairs take away."""
    rng = stream(3, "null", n)
    decided = 0
    for _ in range(REPEATS):
        world, noise = rng.normal(0.8, 0.1, n), rng.normal(0, 0.01, (2, n))
        decided += judge(BETTER, samples(a=world + noise[0], b=world + noise[1])).word != "undecided"
    assert decided / REPEATS <= 0.07


@pytest.mark.parametrize("n", [4, 5, 7])
def test_power_against_an_effect_of_known_size_is_as_predicted(n: int) -> None:
    rng, size = stream(4, "power", n), 1.5
    found = np.mean(
        [judge(BETTER, pair(rng.normal(0.01 * size, 0.01, n))).word == "confirmed" for _ in range(REPEATS)]
    )
    power = stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, size * np.sqrt(n))
    assert found == pytest.approx(power, abs=3 * np.sqrt(power * (1 - power) / REPEATS))


def test_a_difference_at_the_margin_is_called_the_same_in_seven_per_cent_at_most() -> None:
    rng = stream(5, "margin")
    wrong = [judge(SAME, pair(rng.normal(0.02, 0.01, 5))).word == "confirmed" for _ in range(REPEATS)]
    assert np.mean(wrong) <= 0.07


def test_divergence_counts_as_worst_only_where_it_is_the_rule() -> None:
    nan = float("nan")
    always = samples(a=[0.9, 0.8, 0.9], b=[nan, nan, nan])
    assert judge(BETTER, always).word == "confirmed"
    assert judge(SAME, always).word == "refuted"
    assert judge(BETTER, samples(a=[nan, nan], b=[0.9, 0.8])).word == "refuted"
    once = judge(BETTER, samples(a=[0.9, 0.8, 0.9], b=[nan, 0.1, 0.2]))
    assert (once.word, once.why) == ("undecided", "1 of 3 seeds diverged or never got there")
    assert judge(BETTER, samples(a=[nan, nan], b=[nan, nan])).word == "undecided"
    contrast = claim("contrast", terms=[{}, {"times": -1}])
    assert judge(contrast, samples(term_1=[1, nan], term_2=[0, 0])).word == "undecided"


def test_a_contrast_sees_the_interaction_and_nothing_else() -> None:
    """Delay costs .1 at α = .1 and .03 at α = .3, or the same at both."""
    terms = [{"times": 1}, {"times": -1}, {"times": -1}, {"times": 1}]
    shape, noise = claim("contrast", terms=terms), stream(6, "contrast").normal(0, 0.003, (4, 5))

    def found(*levels: float) -> Verdict:
        cells = np.array(levels)[:, None] + noise
        return judge(shape, samples(**{f"term_{at}": cell for at, cell in enumerate(cells, 1)}))

    assert found(0.8, 0.7, 0.85, 0.82).word == "confirmed"
    assert found(0.8, 0.77, 0.85, 0.75).word == "refuted"
    assert found(0.8, 0.75, 0.85, 0.80).word == "undecided"


def test_a_fitted_exponent_is_a_contrast_of_logarithms() -> None:
    """Rounds ~ m^-1 at m = 1, 2, 4: the slope of a line through three points is (y₃ − y₁)/(x₃ − x₁)."""
    ends = 1 / np.log(4)
    law = claim("contrast", terms=[{"times": -ends}, {"times": ends}], band=[-1.2, -0.8], log=True)
    first = np.array([100, 104, 97, 101, 99.0])
    assert judge(law, samples(term_1=first, term_2=first / 4)).word == "confirmed"
    assert judge(law, samples(term_1=first, term_2=first / 2)).word == "refuted"
    assert judge(law, samples(term_1=[1, 2], term_2=[0, 1])).why == "a value that has no logarithm"


def test_fiellers_interval_has_its_coverage() -> None:
    rng, truth = stream(8, "fieller"), 2.0
    inside = []
    for _ in range(REPEATS):
        bottom = rng.normal(1, 0.2, 6)
        one = Ratio(truth * bottom + rng.normal(0, 0.3, 6), bottom)
        inside.append(one.low <= truth <= one.high)
    assert np.mean(inside) == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize(
    ("factor", "word"), [(2.0, "confirmed"), (5.0, "refuted"), (0.5, "refuted"), (3.0, "undecided")]
)
def test_the_ratio_of_two_gaps(factor: float, word: str) -> None:
    gaps = claim("ratio", top=[{}, {"times": -1}], bottom=[{}, {"times": -1}], band=[1.5, 3])
    base, noise = 0.5, stream(9, "ratio").normal(0, 0.002, (4, 5))
    numbers = {
        "top_1": base + 0.1 * factor + noise[0],
        "top_2": base + noise[1],
        "bottom_1": base + 0.1 + noise[2],
        "bottom_2": base + noise[3],
    }
    one = judge(gaps, samples(**numbers))
    assert one.word == word
    assert one.found == pytest.approx(factor, abs=0.1)


def test_there_is_no_ratio_to_a_gap_that_may_be_nil() -> None:
    one = judge(
        claim("ratio", top=[{}], bottom=[{}], band=[1.5, 3]), samples(top_1=[1, 2, 3], bottom_1=[-1, 0, 1.1])
    )
    assert (one.word, one.low, one.high) == ("undecided", -np.inf, np.inf)


def test_a_ratio_of_variances_has_the_interval_of_f() -> None:
    rng = stream(10, "variance")
    wide, narrow = rng.normal(0, 5, 12), rng.normal(0, 1, 12)
    one = VarianceRatio(wide, narrow)
    found = wide.var(ddof=1) / narrow.var(ddof=1)
    assert (one.low, one.high) == pytest.approx(
        (found / stats.f.ppf(0.975, 11, 11), found / stats.f.ppf(0.025, 11, 11))
    )
    steadier = claim("ratio", top=[{}], bottom=[{}], of="variance", band=[0, 1])
    assert judge(steadier, samples(top_1=narrow, bottom_1=wide)).word == "confirmed"
    assert judge(steadier, samples(top_1=wide, bottom_1=narrow)).word == "refuted"
    assert judge(steadier, samples(top_1=wide, bottom_1=np.zeros(12))).word == "undecided"


def test_rank_correlation_of_means() -> None:
    rng = stream(11, "rank")
    early = np.arange(6)[:, None] + rng.normal(0, 0.1, (6, 5))
    late = early + rng.normal(0, 0.1, (6, 5))
    assert Rank(early, late).mean == pytest.approx(stats.spearmanr(early.mean(1), late.mean(1)).statistic)
    k = [{}] * 6
    stays = claim("rank", samples=k, against=k)
    named = {f"sample_{at}": row for at, row in enumerate(early, 1)}
    assert (
        judge(stays, samples(**named, **{f"against_{at}": row for at, row in enumerate(late, 1)})).word
        == "confirmed"
    )
    turned = {f"against_{at}": row for at, row in enumerate(late[::-1], 1)}
    assert judge(stays, samples(**named, **turned)).word == "refuted"
    ordered = claim("rank", samples=k, order=[10, 20, 30, 40, 50, 60])
    assert judge(ordered, samples(**named)).word == "confirmed"


@pytest.mark.parametrize(
    ("values", "single_run", "word"),
    [
        ([0.8916, 0.8917, 0.8915, 0.8916], False, "confirmed"),  # within the printed precision
        ([0.88, 0.90, 0.89, 0.895], False, "confirmed"),  # within twice the standard error
        ([0.88, 0.881, 0.88, 0.879], False, "refuted"),
        ([0.88, 0.881, 0.88, 0.879], True, "confirmed"),  # within 1.5 points of a single run
        ([0.86, 0.861, 0.86, 0.859], True, "refuted"),
        ([0.8916], False, "undecided"),
    ],
)
def test_a_printed_value(values: list[float], single_run: bool, word: str) -> None:
    one = claim("value", printed="0.8916", single_run=single_run)
    assert judge(one, samples(value=values)).word == word


def test_the_printed_precision_is_a_unit_of_the_last_digit() -> None:
    for printed, precision in (("0.8916", 1e-4), ("16932", 1.0), ("0.770", 1e-3), ("1.5e-3", 1e-4)):
        assert claim("value", printed=printed).precision == pytest.approx(precision)  # type: ignore[attr-defined]


def test_a_value_in_a_band() -> None:
    band = claim("value", band=[0.4, None])
    assert judge(band, samples(value=[0.51, 0.52, 0.5])).word == "confirmed"
    assert judge(band, samples(value=[0.31, 0.32, 0.3])).word == "refuted"
    computed = claim("value", band=[7, 8], computed="some.module:function")
    assert judge(computed, {"": {-1: 7.5}}).word == "confirmed"
    assert judge(computed, {"": {-1: 9.35}}).word == "refuted"


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
    one = claim("exact", printed=printed, computed="some.module:function")
    assert judge(one, {name: {-1: value} for name, value in flat(answer).items()}).word == word


def test_holm_keeps_the_family_honest() -> None:
    """Of twenty claims, one with p = .02 alone is undecided and says why; p < .0025 stays decided."""
    family = {f"T-row/{at}": BETTER for at in range(20)}
    weak, strong = [0.01, 0.02, 0.03, 0.01, 0.005], [0.05, 0.051, 0.049, 0.05, 0.05]
    numbers: Mapping[str, Values] = {
        id_: pair(strong if at == 0 else weak if at == 1 else UNSURE) for at, id_ in enumerate(family)
    }
    assert judge(BETTER, pair(weak)).word == "confirmed"
    found = verdicts(family, numbers)
    assert (found["T-row/0"].word, found["T-row/1"].word) == ("confirmed", "undecided")
    assert found["T-row/1"].why == "confirmed but for Holm’s correction"
    assert verdicts({"T-row/1": BETTER}, {"T-row/1": pair(weak)})["T-row/1"].word == "confirmed"


def test_under_the_null_a_whole_family_is_rarely_wrong() -> None:
    """Ten claims without any truth in them: some verdict in 7 % of families at most."""
    rng, family = stream(12, "family"), {f"T-row/{at}": BETTER for at in range(10)}
    wrong = 0
    for _ in range(REPEATS):
        found = verdicts(family, {id_: pair(rng.normal(0, 1, 5)) for id_ in family})
        wrong += any(one.word != "undecided" for one in found.values())
    assert wrong / REPEATS <= 0.07
