"""Verdicts: what the numbers of a claim come to, by rules that were fixed before any of them was seen.

A claim is judged at the looks of its plan (`reports/statistics/looks.py`) until it is decided; the tests of a
row of the list of claims share 5 % of error (Holm). An estimate over paired seeds is held against the band
that the claim names: inside it the claim is *confirmed*, outside *refuted*, across its edge *undecided*, with
the number of seeds that would decide it.

    better     A − B in the direction of the metric: ahead is confirmed, behind is refuted; within the margin
               that the entry names *equal*; 0 in every seed *no effect*
    same       A − B, band ± margin
    contrast   Σ times · value, as `better`, or a band
    ratio      of two such sums; or of variances over seeds
    rank       Spearman's ρ of means over seeds, and an exact permutation test
    value      a printed mean of k runs lies in the prediction interval mean ± t·s·√(1/n + 1/k) and the
               printed rounding: judged once, at the first look. Or the mean, and a band
    exact      equal within 1e-9 of its size; no test

Entries that ask the same of the same numbers are one test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, nan

import numpy as np

from benchmarks.claims import Claim, Exact, Report, Value
from reports.claims import rules
from reports.claims.rules import Look, Values, Verdict, Word
from reports.statistics.looks import ERROR, SEEDS, Looks
from reports.statistics.paired import holm


def verdicts(claims: Mapping[str, Claim], values: Mapping[str, Values]) -> dict[str, Verdict]:
    """The verdicts of a paper's claims at one scale, by id."""
    rows: dict[str, dict[str, Sequence[Look]]] = {}
    for id_, claim in claims.items():
        rows.setdefault(claim.row, {})[id_] = looks(claim, values.get(id_, {}))
    found = {id_: one for of in rows.values() for id_, one in _row(of).items()}
    return {id_: _with_reason(claim, found[id_]) for id_, claim in claims.items()}


def judge(claim: Claim, values: Values) -> Verdict:
    """The verdict of one claim by itself."""
    return verdicts({claim.id: claim}, {claim.id: values})[claim.id]


def looks(claim: Claim, values: Values) -> list[Look]:
    """What a claim comes to at each look that its seeds allow; a single one where looks are not of use."""
    if claim.computed is not None:
        return [
            Look(rules.computed(claim, {name: one for name, of in values.items() for one in of.values()}))
        ]
    names = list(claim.samples)
    seeds = sorted(set.intersection(*(set(values.get(name, ())) for name in names)))
    if not seeds:
        return [Look(Verdict("not run"))]
    table = np.array([[values[name][seed] for seed in seeds] for name in names])  # [samples, seeds]
    if isinstance(claim, Report | Exact):
        return [Look(rules.reported(table[0]))]
    plan = Looks(claim.looks or SEEDS)
    reached = plan.reached(len(seeds))
    if not reached:
        few = f"{len(seeds)} of the {plan.seeds[0]} seeds of the first look"
        return [Look(Verdict("undecided", seeds=len(seeds), why=few, more=plan.seeds[0]))]
    if isinstance(claim, Value) and claim.band is None:
        return [rules.printed(claim, table[0, : plan.seeds[0]])]
    return [
        _of_plan(rules.tested(claim, table[:, : plan.seeds[at]], plan.level(at)), plan, at) for at in reached
    ]


def _of_plan(look: Look, plan: Looks, at: int) -> Look:
    """A look whose p-values count for the whole plan."""
    chances = {word: plan.p(p, at) for word, p in look.chances.items()}
    return replace(look, chances=chances, needed=partial(_seeds, look.needed, plan))


def _seeds(needed: Callable[[float], int | None], plan: Looks, level: float) -> int | None:
    """Seeds that would decide: those of the first look that has enough; their number where none has."""
    seeds = None
    for at, there in enumerate(plan.seeds):
        seeds = needed(1 - (1 - level) * plan.share(at))
        if seeds is None or seeds <= there:
            return None if seeds is None else there
    return seeds


def _row(all_looks: Mapping[str, Sequence[Look]]) -> dict[str, Verdict]:
    """The verdicts of a row: look after look, Holm's correction over its tests; what is decided stays."""
    found: dict[str, Verdict] = {}
    latest: dict[str, Look] = {}
    best: dict[str, tuple[float, Word]] = {}  # the smallest p-value so far, and what it would decide
    adjusted: dict[bytes, float] = {}
    for at in range(max(map(len, all_looks.values()))):
        for id_, of in all_looks.items():
            if at < len(of) and id_ not in found:
                latest[id_] = of[at]
                if of[at].chances:
                    best[id_] = min(best.get(id_, (inf, "undecided")), of[at].best)
        tests = {latest[id_].test: p for id_, (p, _) in best.items()}
        adjusted = dict(zip(tests, holm(list(tests.values())), strict=True))
        for id_ in best.keys() - found.keys():
            if adjusted[latest[id_].test] <= ERROR:
                found[id_] = replace(latest[id_].shown, word=best[id_][1])
    tests_open = len({latest[id_].test for id_ in best.keys() - found.keys()})
    for id_, look in latest.items():
        p, word = best.get(id_, (nan, "undecided"))
        shown = replace(found.get(id_, look.shown), p=p, adjusted=adjusted.get(look.test, nan))
        if id_ not in found and p <= ERROR:
            why = f"{word} but for the other tests of its row"
            shown = replace(shown, word="undecided", why=why)
        if id_ not in found and shown.word == "undecided" and shown.more is None:
            shown = replace(shown, more=look.needed(1 - ERROR / max(1, tests_open)))
        found[id_] = shown
    return found


def _with_reason(claim: Claim, one: Verdict) -> Verdict:
    """A verdict as it is shown: none where the entry says why, and with the reason why there is no effect."""
    if claim.unjudged and one.word != "not run":
        return replace(one, word="reported", p=nan, adjusted=nan, why=claim.unjudged, more=None)
    return replace(one, why=claim.seen) if one.word == "no effect" and claim.seen else one
