"""Final runs: chosen points of a design on the suite's own seeds and test data; a study for each point."""

from collections.abc import Mapping
from dataclasses import replace

from fl_core.schema import Origin
from fl_core.strategies.hyperparameters import Values
from tuning.study import GIVEN, Campaign

POINT = ", point "


def finals(campaign: Campaign, chosen: Mapping[tuple[str, str], Mapping[int, Values]]) -> Campaign:
    """Return the campaign of the final runs, in the order of the design's studies.

    A study has one trial, so that a point that is chosen later adds a study and changes none.

    Args:
        campaign: The design, of a suite under the name that the final runs are to have.
        chosen: (scenario, strategy) → points by number, with their parameters.
    """
    runs = {(run.scenario, run.strategy): run.experiment.scenario for run in campaign.suite.runs()}
    seeds = campaign.suite.spec.seeds
    on_test_data = {
        (study.scenario, study.strategy): study.on(runs[study.scenario, study.strategy])
        for study in campaign.studies
    }
    studies = [
        replace(
            study,
            strategy=label(study.strategy, point),
            seeds=seeds,
            objective=replace(study.objective, seeds=len(seeds)),
            trials=1,
            seeds_again=(),
            repeated=0,
            sampler=GIVEN,
            first=((Origin.SAMPLER, values),),
        )
        for place, study in on_test_data.items()
        for point, values in chosen.get(place, {}).items()
    ]
    return replace(campaign, studies=tuple(studies), reused=())


def label(strategy: str, point: int) -> str:
    """Return the name of a strategy at a point of the design."""
    return f"{strategy}{POINT}{point}"
