"""What is searched, and what becomes of a strategy when it is set."""

import math
from typing import ClassVar

import pytest

from benchmarks.suite import tuned
from fl_core.local_work import SGD
from fl_core.parts import Tune
from fl_core.scenario import Budget, Scenario
from fl_core.strategies.fedavg import FedAvg
from fl_core.strategies.fedbuff import FedBuff
from fl_core.strategies.fedfix import FedFix
from fl_core.strategies.hyperparameters import declared, with_parameters
from fl_core.strategies.sampling import MD, Full, Uniform
from fl_core.strategies.strategy import Strategy
from tuning.optuna_space import distributions, space_of

SCENARIO = Scenario.model_validate({"problem": "quadratic", "budget": {"updates": 50, "iterations": 8}})
NAMES = ["fedbuff", "fedfix"]


@pytest.mark.parametrize("name", Strategy.members())
def test_what_a_strategy_declares_are_its_own_parameters(name: str) -> None:
    member = Strategy.members()[name]
    assert {"local_lr", "server_lr"} <= member.tunable().keys() <= member.model_fields.keys()
    try:
        strategy = member.model_validate({})
    except ValueError:
        pytest.skip(f"{name} has fields without a default")
    found = declared(strategy)
    for values in found.ends():
        assert found.apply(values, SCENARIO) != strategy


RATES = {"local_lr": (0.001, 1), "server_lr": (0.1, 10)}
BUFFER, BATCH = {"buffer": (1, 32)}, {"batch": (1, 32)}
# Strategy → low and high end of what is searched, or the values; as they were when campaigns were run.
SPACES: dict[str, dict[str, tuple[float, ...]]] = {
    **dict.fromkeys(("ace", "asgd", "async_fedavg", "asyncfeded", "delay_adaptive", "fedavg"), RATES),
    **dict.fromkeys(("generalized_asyncsgd", "mifa", "ringleader"), RATES),
    **dict.fromkeys(("afa_cd", "afa_cs", "ca2fl", "fedbuff", "fedbuff_c"), RATES | BUFFER),
    **dict.fromkeys(("malenia", "rennala"), RATES | BATCH),
    "aced": RATES | {"max_age": (1, 100)},
    "ringmaster": RATES | {"max_delay": (1, 100)},
    "fadas": RATES | BUFFER | {"server_lr": (0.00001, 0.1)},
    "fedasync": RATES | {"server_lr": (0.05, 1), "power": (0.1, 2)},
    "fedfa": RATES | {"window": (1, 32)},
    "fedfix": RATES | {"period": (0.1, 0.2, 0.5, 0.8, 1.0, 2.0)},
}


@pytest.mark.parametrize("name", SPACES)
def test_the_space_of_every_strategy(name: str) -> None:
    """All ranges are logarithmic; parameters come in the order of the fields."""
    own = declared(Strategy.members()[name].model_validate({})).described()
    found = {}
    for parameter, of in own.items():
        assert of.pop("log", True)
        found[parameter] = tuple(of.get("choices", of.values()))
    assert list(found.items()) == list(SPACES[name].items())


def test_a_suite_narrows_the_space_and_a_name_makes_it_one_strategys() -> None:
    written = {"local_lr": Tune(low=0.01, high=1), "fedbuff.buffer": (1, 5, 10)}
    assert space_of(FedBuff(), NAMES, written).candidates == {"local_lr": Tune(0.01, 1), "buffer": (1, 5, 10)}
    assert space_of(FedFix(), NAMES, written).candidates == {"local_lr": Tune(0.01, 1)}


def test_a_strategy_for_which_a_suite_names_nothing_keeps_its_own() -> None:
    written = {"fedfix.period": (1, 2)}
    assert space_of(FedBuff(), NAMES, written) == space_of(FedBuff(), NAMES, {})
    assert space_of(FedBuff(), NAMES, {}).described() == declared(FedBuff()).described()


class Own(FedBuff):
    """A user's strategy, selected by its import path."""

    name: ClassVar[str] = ""

    @classmethod
    def reference(cls) -> str:
        return "mine.strategies:Own"


def test_keys_of_absent_strategies_have_no_effect_and_ones_own_is_named_by_its_path() -> None:
    written = {"async_fedavg.server_lr": Tune(low=0.01, high=1), "mine.strategies:Own.buffer": (2, 4)}
    assert space_of(Own(), ["mine.strategies:Own"], written).candidates == {"buffer": (2, 4)}
    with pytest.raises(ValueError, match=r"async_fedvag\.server_lr: "):
        space_of(FedBuff(), NAMES, {"async_fedvag.server_lr": (1, 2)})


@pytest.mark.parametrize("written", [{"bufer": (1, 2)}, {"c": (1, 2), "local_lr": (0.1,)}])
def test_mistakes_in_a_space(written: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(ValueError, match="|".join(written)):
        space_of(FedBuff(), NAMES, written)


def test_applied_values_reach_strategy_and_local_work() -> None:
    strategy = with_parameters(FedBuff(), {"buffer": 3, "local.steps": 4, "server_lr": 2.0}, SCENARIO)
    assert strategy == FedBuff(buffer=3, server_lr=2.0, local=SGD(steps=4))


def test_a_sampling_is_searched_and_set_by_dotted_keys() -> None:
    strategy = FedAvg(sampling=Uniform(sample=10))
    found = space_of(strategy, ["fedavg"], {"fedavg.sampling.sample": (2, 5)})
    assert found.current() == {"sampling.sample": 10} and found.usual() == {"sampling.sample": None}
    assert found.apply({"sampling.sample": 5}, SCENARIO) == FedAvg(sampling=Uniform(sample=5))


def test_the_digest_knows_the_sampling() -> None:
    samplings = (Full(), Uniform(sample=5), Uniform(sample=10), MD(sample=10))
    digests = [tuned.digest(SCENARIO, FedAvg(sampling=one), ["local_lr"]) for one in samplings]
    assert len(set(digests)) == 4


def test_c_is_the_factor_of_a_rate_that_falls_with_the_horizon() -> None:
    by_iterations = with_parameters(FedBuff(), {"c": 0.5}, SCENARIO)
    assert by_iterations.local_lr == 0.5 * math.sqrt(2 / 8)
    by_updates = SCENARIO.model_copy(update={"budget": Budget(updates=50)})
    assert with_parameters(FedBuff(), {"c": 0.5}, by_updates).local_lr == 0.5 * math.sqrt(2 / 50)
    with pytest.raises(ValueError, match=r"needs budget\.iterations or budget\.updates"):
        with_parameters(FedBuff(), {"c": 0.5}, SCENARIO.model_copy(update={"budget": Budget(time=5)}))


def test_the_suites_own_value_widens_what_is_declared() -> None:
    strategy = FedBuff(local_lr=30.0, buffer=100)
    narrow, wide = declared(strategy), space_of(strategy, NAMES, {})
    assert not narrow.holds(narrow.current()) and wide.holds(wide.current()) and wide.holds(wide.usual())
    assert wide.candidates["local_lr"] == Tune(1e-3, 30.0) and wide.candidates["buffer"] == Tune(1, 100)


def test_a_grid_is_every_combination_in_order() -> None:
    grid = space_of(FedBuff(), NAMES, {"local_lr": (0.1, 0.2), "buffer": (1, 5)}).grid()
    points = [(values["local_lr"], values["buffer"]) for values in grid]
    assert points == [(0.1, 1), (0.1, 5), (0.2, 1), (0.2, 5)]
    with pytest.raises(ValueError, match="a list of values for local_lr"):
        space_of(FedBuff(), NAMES, {"local_lr": Tune(low=0.1, high=1)}).grid()


def test_whole_numbers_stay_whole() -> None:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    assert distributions(declared(FedBuff()))["buffer"] == IntDistribution(1, 32, log=True)
    assert distributions(declared(FedFix()))["local_lr"] == FloatDistribution(1e-3, 1, log=True)
    assert isinstance(distributions(declared(FedFix()))["period"], CategoricalDistribution)
    for name, key in (("asgd", "concurrency"), ("fedavg", "take"), ("fadas", "delay")):
        absent = space_of(Strategy.model_validate(name), [name], {key: Tune(low=1, high=20)})
        assert distributions(absent)[key] == IntDistribution(1, 20, log=True)  # its present value is None


def test_another_part_keeps_what_all_of_its_family_have() -> None:
    """AdamW makes as many steps on as large mini-batches as SGD did, in whichever order values come."""
    strategy = FedBuff(local=SGD(steps=10, batch=8, momentum=0.9))
    for values in ({"local.name": "adamw", "local.steps": 5}, {"local.steps": 5, "local.name": "adamw"}):
        local = with_parameters(strategy, values, SCENARIO).local
        assert (local.reference(), local.steps, local.batch) == ("adamw", 5, 8)
    assert with_parameters(strategy, {"local.name": "adamw"}, SCENARIO).local.steps == 10


def test_the_papers_values_are_those_of_the_strategy_before_those_of_its_parts() -> None:
    """FedAsync's local work is FedProx with a ρ of its own."""
    strategy = Strategy.model_validate("fedasync")
    assert space_of(strategy, ["fedasync"], {"local.mu": (0.005, 0.1)}).usual() == {"local.mu": 0.005}
    other = Strategy.model_validate({"name": "fedasync", "local": {"name": "sgd", "steps": 3}})
    assert space_of(other, ["fedasync"], {"local.steps": (1, 3)}).usual() == {"local.steps": 1}


def test_a_field_without_a_default_has_no_usual_value() -> None:
    class Needy(FedBuff):
        """A strategy with a field that has to be written."""

        needed: float

    own = space_of(Needy(needed=0.5), ["mine"], {"needed": (0.1, 0.5), "buffer": (1, 5)})
    assert own.usual() == {"needed": None, "buffer": FedBuff().buffer}


def test_the_digest_forgets_what_was_tuned_and_nothing_else() -> None:
    one, other = FedBuff(local_lr=0.1), FedBuff(local_lr=0.2)
    assert tuned.digest(SCENARIO, one, ["local_lr"]) == tuned.digest(SCENARIO, other, ["local_lr"])
    assert tuned.digest(SCENARIO, one, ["buffer"]) != tuned.digest(SCENARIO, other, ["buffer"])
    longer = SCENARIO.model_copy(update={"budget": Budget(updates=60)})
    assert tuned.digest(SCENARIO, one, ["local_lr"]) != tuned.digest(longer, one, ["local_lr"])
    looked_at_more_often = SCENARIO.model_copy(update={"evaluations": 50})
    assert tuned.digest(SCENARIO, one, []) == tuned.digest(looked_at_more_often, one, [])
