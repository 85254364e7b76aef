"""Findings on an author's strategy among baselines, from rank groups in each population, and their page.

`asyncfl evidence` runs the comparison and calls `write`.

Fixed: names of the files. Free: wording.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fl_core.text import listed
from reports.leaderboard import figures
from reports.leaderboard.page import (
    certainty,
    population_name,
    population_table,
    tuning_table,
)
from reports.leaderboard.scores import REFERENCE, PopulationScores
from reports.tables import markdown

PAGE, MANIFEST = "evidence.md", "manifest.json"
MIN_STUDIES, MIN_POPULATIONS, MIN_BASELINES = 4, 3, 3
RANKED = "Ranked, and behind no baseline, in every population"
BEHIND, LEVEL, AHEAD = "behind", "not told apart from", "ahead of"  # verdicts, in the order of a sentence


@dataclass(frozen=True, eq=False)
class Findings:
    """An author's strategy among baselines.

    Args:
        strategy: Label of the strategy.
        scores: Population → scores of strategy and baselines.
    """

    strategy: str
    scores: Mapping[str, PopulationScores]

    def verdicts(self, population: str) -> dict[str, list[str]]:
        """Return the ranked baselines by verdict: in earlier, common, or later rank groups.

        All lists are empty if the strategy itself is not ranked, since most of its runs miss the target.
        """
        scores = self.scores[population]
        by: dict[str, list[str]] = {BEHIND: [], LEVEL: [], AHEAD: []}
        if not scores.never(self.strategy):
            mine = scores.groups[self.strategy]
            for name, group in scores.groups.items():
                if name != self.strategy:
                    verdict = (
                        BEHIND if group.last < mine.first else AHEAD if group.first > mine.last else LEVEL
                    )
                    by[verdict].append(name)
        return by

    def conclusion(self) -> str:
        """Return the conclusion, a line for each population, first those in which the strategy is behind."""
        order = sorted(self.scores, key=self._leads_or_shares)
        sentences = [self._sentence(name) for name in order]
        nothing = "Nothing is claimed for other data, models, populations of clients, or real devices."
        return "\n".join([*sentences, nothing])

    def _sentence(self, population: str) -> str:
        """Return the verdicts in a population as a sentence, with speed-up and resolution."""
        scores, verdicts = self.scores[population], self.verdicts(population)
        title = population_name(population).capitalize()
        if scores.never(self.strategy):
            return (
                f"{title}: most runs of {self.strategy} never meet the target, so it is not ranked "
                f"({scores.met(self.strategy):.0%} of its runs meet it, {scores.met(REFERENCE):.0%} of tuned "
                f"{REFERENCE})."
            )
        verdict_list = "; ".join(f"{verdict} {listed(names)}" for verdict, names in verdicts.items() if names)
        never = [name for name in scores.order() if scores.never(name)]
        unranked = f" Not ranked, since most runs never meet the target: {listed(never)}." if never else ""
        return (
            f"{title}: {self.strategy} is {verdict_list} ({scores.sooner(self.strategy):.2f} × as fast as "
            f"tuned {REFERENCE}; ratios below {scores.resolution:.3g} × are not told apart, "
            f"adjusted for {len(scores.ranked)} entries).{unranked}"
        )

    def _leads_or_shares(self, population: str) -> bool:
        """Return whether no baseline is ahead of the strategy, and the strategy is ranked."""
        return not (self.scores[population].never(self.strategy) or self.verdicts(population)[BEHIND])

    def checklist(self) -> Iterator[tuple[bool, str]]:
        """Yield the points of a reviewer's checklist, each preceded by whether the point is met."""
        boards = [*self.scores.values()]
        workloads = {population.goals[scale].workload for population in boards for scale in population.scales}
        baselines = min(len(population.entries) for population in boards) - 1
        studies = min(population.times[self.strategy].shape[1] for population in boards)
        met = min(population.met(self.strategy) for population in boards)
        yield len(boards) >= MIN_POPULATIONS, f"{MIN_POPULATIONS} populations or more: {len(boards)}"
        yield len(workloads) > 1, f"More than one workload: {len(workloads)}"
        yield baselines >= MIN_BASELINES, f"{MIN_BASELINES} baselines or more: {baselines}"
        yield studies >= MIN_STUDIES, f"{MIN_STUDIES} independent studies or more: {studies}"
        yield (
            all(population.copies for population in boards),
            "Copies of baselines, which show what luck alone does",
        )
        yield met == 1, f"The target met in all runs: in {met:.0%} where it is least"
        yield (
            all(self._leads_or_shares(name) for name in self.scores),
            RANKED,
        )
        yield False, "Data, models and populations that were not looked at while the method was designed"
        yield False, "Real devices: all times are virtual"


def write(findings: Findings, manifest: Mapping[str, Any], folder: Path) -> Path:
    """Write page, figures and manifest into a folder; return the path of the page."""
    for population in findings.scores.values():
        for scale in population.scales:
            figures.curves(population, scale, also=findings.strategy).save(folder / f"{scale}.svg")
    path = folder / PAGE
    path.write_text("\n\n".join(_page(findings)) + "\n", encoding="utf-8")
    text = json.dumps(dict(manifest), indent=2, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
    return path


def _page(findings: Findings) -> Iterator[str]:
    """Yield the paragraphs of the page in Markdown."""
    yield f"# Evidence for {findings.strategy}"
    yield "## Conclusion"
    yield "\n".join(f"- {line}" for line in findings.conclusion().splitlines())
    yield "The sentences follow from the rank groups below, and from nothing else."
    for name, population in findings.scores.items():
        yield f"## {population_name(name).capitalize()}"
        yield markdown(*population_table(population, linked=False), text_columns=2)
        for scale in population.scales:
            yield f"![Learning curves, {scale}]({scale}.svg)"
        yield "What tuning costs, on the tuning half:"
        yield markdown(*tuning_table(population))
    yield "## How sure is that"
    yield markdown(*certainty(findings.scores))
    yield "## What a reviewer would ask"
    yield "\n".join(f"- [{'x' if met else ' '}] {point}" for met, point in findings.checklist())
    yield f"Digests of code, data and tables, and versions: [{MANIFEST}]({MANIFEST})."
