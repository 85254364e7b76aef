"""The small experiments for checking parts: six noisy quadratics, clients of very different speed.

The conformance checks (`strategy_checks`, `law_checks` and, with its own problem, `problem_checks`) run them.

Free: other experiments, as long as every check can fail on them.
"""

from typing import Any

from fl_core.experiment import Experiment
from fl_core.parts import Part
from fl_core.scenario import Scenario
from fl_core.strategies.asgd import ASGD
from fl_core.strategies.strategy import Strategy

CENTRES = [[1.0, 0.0], [-2.0, 1.0], [3.0, 3.0], [0.5, -1.0], [0.0, 2.0], [2.0, -2.0]]
CLIENTS = len(CENTRES)
TIMES = [1, "11/15", "7/15", "1/5", 2, 2]  # of a job of each client; two are equal, for ties
LOCAL_LR = 0.05


def must(holds: bool, sentence: str) -> None:
    """Raise AssertionError with a sentence for the author of the part, unless the condition holds."""
    if not holds:
        raise AssertionError(sentence)


def scenario(noise: float = 0.3, updates: int = 100, **timing: Any) -> Scenario:
    """Return six quadratics with fixed job lengths, or with the given durations and availability."""
    durations = {"name": "fixed", "times": TIMES}
    return Scenario.model_validate(
        {
            "problem": {"name": "quadratic", "centres": CENTRES, "noise": noise},
            "timing": {"durations": durations, **timing},
            "budget": {"updates": updates},
        }
    )


def experiment(setting: Scenario, strategy: Strategy | None = None, seed: int = 1) -> Experiment:
    """Return a strategy, plain asynchronous SGD unless given, in a scenario."""
    chosen = strategy if strategy is not None else ASGD(local_lr=LOCAL_LR)
    return Experiment(scenario=setting, strategy=chosen, seed=seed)


def changed(strategy: Strategy, **fields: Any) -> Strategy:
    """Return the strategy with a local rate suited to the quadratics, and other values of some fields."""
    described = without_name(strategy) | {"local_lr": LOCAL_LR} | fields
    return type(strategy).model_validate(described)


def without_name(part: Part) -> dict[str, Any]:
    """Return a part's description as JSON data without the name, for a class not importable by suites."""
    return {key: value for key, value in part.model_dump(mode="json").items() if key != "name"}
