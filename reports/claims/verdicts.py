"""Verdicts on the numbers of claims, by rules fixed before any number was seen.

`readings` calls `verdicts` on the stored numbers of a paper at a scale.

A claim is judged at the looks of its plan (`Claim.plan`) until it is decided. Before the first
look it counts as *not run*: a few seeds at a larger scale do not displace the verdict at a smaller one.
The tests of a row of the list of claims share 5 % of error (Holm). An estimate over paired seeds is held
against the band that the claim names: inside it the claim is *confirmed*, outside *refuted*, across its edge
*undecided*, with the number of seeds that would decide it. It takes t, corrected for skewness, and an exact
sign-flip test at 5 % (`agreed`), which fewer than six seeds cannot pass. Where no test decides and
all seeds are on one side, the claim *leans*.

    better     A − B in the direction of the metric: ahead is confirmed, behind is refuted; within the margin
               that the entry names *equal*; 0 in every seed *no effect*
    same       A − B, band ± margin
    contrast   Σ times · value, as `better`, or a band
    ratio      of two such sums; or of spreads over seeds (Brown and Forsythe)
    rank       Spearman's ρ of means over seeds, and an exact permutation test
    value      a printed mean of k runs, ± margin: the interval of our mean over all seeds, widened to
               ± t·s·√(1/n + 1/k) and by the printed rounding, inside, outside, or *compatible*. Or a band
    theorem    the result of its test, in a band or equal to what is printed

Where runs collapse (`rules.collapses`), the sign test takes the place of both in comparisons, contrasts
and ratios of means; ratios of spreads are not tested. Entries that apply the same rule to the same numbers
are one test.

Looks at 8, 16, 32 and 64 seeds, with a stop at the first decision, give four chances of an error. So the 5 %
are divided among the looks, in proportion to the new seeds at each: at look k of K with n₁ < … < n_K seeds,
α·(n_k − n_{k−1})/n_K (Lan and DeMets, Biometrika 70, 1983, with a linear spending function). The shares are
simply added up (Bonferroni), which is slightly conservative and leaves Student's t exact at every look.

Fixed: these rules and the looks. A change may change published verdicts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf

import numpy as np

from benchmarks.claims.claim import Claim
from benchmarks.claims.kinds import Report, Theorem, Value
from reports.claims import rules
from reports.claims.rules import Look, Values, Verdict, Word
from reports.statistical_inference import ERROR, holm_by_question, simultaneous_level


def share(plan: Sequence[int], look: int) -> float:
    """Return the share of the error spent at a look, counted from 0; the shares of all looks add up to 1.

    Args:
        plan: Increasing numbers of seeds, one for each look.
        look: The look.
    """
    return (plan[look] - (plan[look - 1] if look else 0)) / plan[-1]


def verdicts(claims: Mapping[str, Claim], values: Mapping[str, Values]) -> dict[str, Verdict]:
    """Return the verdicts by id, for a paper's claims at a single scale."""
    rows: dict[str, dict[str, Sequence[Look]]] = {}
    for id_, claim in claims.items():
        rows.setdefault(claim.row, {})[id_] = looks(claim, values.get(id_, {}))
    judged = {id_: verdict for all_looks in rows.values() for id_, verdict in _row(all_looks).items()}
    return {id_: _with_reason(claim, judged[id_]) for id_, claim in claims.items()}


def judge(claim: Claim, values: Values) -> Verdict:
    """Return the verdict on a single claim, judged alone."""
    return verdicts({claim.id: claim}, {claim.id: values})[claim.id]


def looks(claim: Claim, values: Values) -> list[Look]:
    """Return the result at each look allowed by the seeds; a single result where looks do not apply."""
    if isinstance(claim, Theorem):
        return [Look(rules.tested_without_runs(claim))]
    seeds, table = rules.paired(claim, values)
    if not seeds:
        return [Look(Verdict("not run"))]
    if isinstance(claim, Report):
        return [Look(rules.reported(table[0]))]
    reached = [at for at, n in enumerate(claim.plan) if n <= len(seeds)]
    if not reached:
        few = f"{len(seeds)} of the {claim.plan[0]} seeds of the first look"
        return [Look(replace(rules.means_only(claim, table), remarks=(few,)))]
    if isinstance(claim, Value) and claim.band is None:
        return [_look(claim, table, reached[-1])]
    return [_look(claim, table[:, : claim.plan[at]], at) for at in reached]


def _look(claim: Claim, table: np.ndarray, at: int) -> Look:
    """Return a look with p-values adjusted for the whole plan: the smallest over all looks is valid."""
    spent = share(claim.plan, at)
    look = rules.tested(claim, table, 1 - ERROR * spent)
    tests = {name: (min(1.0, p / spent), word) for name, (p, word) in look.tests.items()}
    return replace(look, tests=tests, needed=partial(_seeds, look.needed, claim.plan, at))


def _seeds(needed: Callable[[float], int | None], plan: Sequence[int], at: int, level: float) -> int | None:
    """Return the seeds to decide: of the first later look with enough, or a number beyond the plan."""
    seeds = None
    for later in range(min(at + 1, len(plan) - 1), len(plan)):
        seeds = needed(1 - (1 - level) * share(plan, later))
        if seeds is None or (seeds <= plan[later] and later > at):
            return None if seeds is None else plan[later]
    return seeds if seeds is not None and seeds > plan[-1] else None


def _row(all_looks: Mapping[str, Sequence[Look]]) -> dict[str, Verdict]:
    """Return the verdicts of a row: look after look, corrected for multiple tests; decisions are final."""
    decided: dict[str, Verdict] = {}
    latest: dict[str, Look] = {}
    smallest: dict[str, dict[str, tuple[float, Word]]] = {}  # the best of all looks, by hypothesis
    adjusted: dict[tuple[bytes, str], float] = {}
    for at in range(max(map(len, all_looks.values()))):
        for id_, looks in all_looks.items():
            if at < len(looks) and id_ not in decided:
                latest[id_], best = looks[at], smallest.setdefault(id_, {})
                best |= {
                    name: min(test, best.get(name, (inf, test[1]))) for name, test in looks[at].tests.items()
                }
        questions = {
            latest[id_].question: {name: p for name, (p, _) in best.items()} for id_, best in smallest.items()
        }
        adjusted = holm_by_question(questions)
        for id_ in latest.keys() - decided.keys():
            for name, (p, word) in sorted(smallest[id_].items(), reverse=True):  # a side, before equality
                if id_ not in decided and (after := adjusted[latest[id_].question, name]) <= ERROR:
                    decided[id_] = replace(latest[id_].shown, word=word, p=p, adjusted=after)
    tests_open = len({latest[id_].question for id_, best in smallest.items() if best and id_ not in decided})
    for id_ in latest.keys() - decided.keys():
        decided[id_] = _open(latest[id_], smallest[id_], adjusted, tests_open)
    return decided


def _open(
    look: Look,
    best: Mapping[str, tuple[float, Word]],
    adjusted: Mapping[tuple[bytes, str], float],
    among: int,
) -> Verdict:
    """Return the undecided verdict, with the seeds to decide among all open tests."""
    verdict = look.shown
    if best:
        name = min(best, key=lambda name: best[name])
        verdict = replace(verdict, p=best[name][0], adjusted=adjusted[look.question, name])
    for p, word in (look.tests[name] for name in sorted(look.tests)):  # equality, before a side
        if p <= ERROR:
            but = f"{word} but for the other tests of its row"
            verdict = replace(verdict, remarks=(but, *look.shown.remarks))
    if look.lean:
        verdict = replace(verdict, word=look.lean)
    if verdict.word in {"undecided", "leans for", "leans against"} and verdict.more is None:
        verdict = replace(verdict, more=look.needed(simultaneous_level(among)))
    return verdict


def _with_reason(claim: Claim, verdict: Verdict) -> Verdict:
    """Return the verdict as pages show it, with remarks written in the claim's entry.

    Numbers of an unjudged entry are only reported; for "no effect" the entry may say what was observed.
    """
    if claim.unjudged and verdict.word != "not run":
        return replace(verdict, word="reported", p=None, adjusted=None, remarks=(claim.unjudged,), more=None)
    return replace(verdict, remarks=(claim.seen,)) if verdict.word == "no effect" and claim.seen else verdict
