"""Short readable labels of scenarios and strategies, unique in a suite, for tables and figures.

`suite.build` and `expansion.expand` make them.

Fixed: the labels. They are in no key, and no code parses them; but `scenarios:` of a suite names scenarios by
them, and stored tables have those of strategies.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import UserError
from benchmarks.suite.document import as_part
from benchmarks.suite.fields import MAX_LABEL_CHARACTERS, SuiteSpec
from benchmarks.yaml_io import fault
from fl_core.parts import Part
from fl_core.problems.problem import Problem
from fl_core.recorded_names import JOINT
from fl_core.scenario import Scenario, Timing
from fl_core.strategies.strategy import Strategy
from fl_core.text import varying


def first_line(documented: object) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(documented) or "").partition("\n")[0]


def problem(learnt: Problem) -> str:
    """Return the name of a problem; of a user's own problem, the name of the class."""
    return learnt.reference().rpartition(":")[2]


def partition(learnt: Problem) -> str:
    """Return the label of a problem's partition; empty for a problem without data to split."""
    part = getattr(learnt, "partition", None)
    return part.label() if isinstance(part, Part) else ""


def conditions(planned: Sequence[Scenario], places: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return the conditions of each scenario: parts in words, and values of the grid's keys."""
    in_words = re.compile(r"problem(\.name|\.partition(\..*)?)?|(timing|arrangement)(\..*)?")
    base = [tuple(filter(None, _parts_in_words(scenario))) for scenario in planned]
    unsaid = [[axis for axis in place if not in_words.fullmatch(axis)] for place in places]
    named = [(*words, *_values(place, keys)) for words, place, keys in zip(base, places, unsaid, strict=True)]
    if len(set(map(scenario, named))) == len(named):
        return named
    apart = [  # conditions would be equal: name all keys of the grid
        {
            axis: _differing(written, [place_values[axis] for place_values in places])
            for axis, written in place.items()
        }
        for place in places
    ]
    return [(*words, *_values(place, place)) for words, place in zip(base, apart, strict=True)]


def scenario(conditions: Sequence[str]) -> str:
    """Join the conditions of a scenario into a label."""
    return JOINT.join(conditions)


def scenarios(conditions: Sequence[Sequence[str]], label: str = "") -> list[str]:
    """Return a label for each scenario; with a label of the suite, shared conditions are left out."""
    if not label:
        return list(map(scenario, conditions))
    return [scenario([label, *parts]) for parts in varying(conditions)]


def _parts_in_words(scenario: Scenario) -> tuple[str, ...]:
    learnt, arrangement = scenario.problem, scenario.arrangement
    is_default = arrangement and scenario.timing == Timing()  # with rounds, durations have no effect
    timing = "" if is_default else scenario.timing.label()
    return problem(learnt), partition(learnt), timing, arrangement.label() if arrangement else ""


def _values(place: Mapping[str, Any], axes: Iterable[str]) -> list[str]:
    return [f"{axis.rpartition('.')[2]} {value(place[axis])}" for axis in axes]


def _differing(written: Any, written_elsewhere: Sequence[Any]) -> Any:
    """Return the fields of a mapping with different values elsewhere, or the mapping if all are equal."""
    mappings = [
        alternative for alternative in map(as_part, written_elsewhere) if isinstance(alternative, dict)
    ]
    if not isinstance(written, dict):
        return written
    differ = {
        key: _differing(field, [alternative[key] for alternative in mappings if key in alternative])
        for key, field in written.items()
        if any(key not in alternative or alternative[key] != field for alternative in mappings)
    }
    return differ or written


def value(written: Any) -> str:
    """Return a value of a grid's key in words."""
    if isinstance(written, dict):
        fields = dict(written)
        name = [str(fields.pop("name"))] if fields.get("name") else []
        return " ".join(
            [*name, *(key if field is True else f"{key} {value(field)}" for key, field in fields.items())]
        )
    return "none" if written is None else str(written) or "''"


def take_labels(path: Path, document: dict[str, Any]) -> tuple[str, ...]:
    """Take the strategies' labels out of a document; empty for a strategy without a label.

    A label is no hyper-parameter: runs keep their keys. Raises UserError.
    """
    entries = document.get("strategies")
    written = [
        entry.pop("label", "") if isinstance(entry, dict) else ""
        for entry in (entries if isinstance(entries, list) else [])
    ]
    for at, text in enumerate(written):
        if not isinstance(text, str) or len(text) > MAX_LABEL_CHARACTERS or not text.isprintable():
            sentence = f"must be a single line of at most {MAX_LABEL_CHARACTERS} characters, not {text!r}"
            raise UserError(fault(path, document, ("strategies", at, "label"), sentence))
    return tuple(written)


def must_be_printable(path: Path, kind: str, names: Iterable[str]) -> None:
    """Raise UserError for a label with a line break or another control character.

    Such a label comes from a parameter or a file name, or from a class of the user's own.
    """
    for label in names:
        if not label.isprintable():
            raise UserError(
                f"{path}: {kind} {label!r}: control characters and line breaks are not allowed in labels. "
                "Remove them from the parameter or the `label` method that they come from"
            )


def strategies(suite: SuiteSpec, from_file: Sequence[str] = ()) -> list[str]:
    """Return a label for each strategy: the given label, or title and distinguishing hyper-parameters.

    These hyper-parameters differ from the paper's defaults; more are added if labels would be equal.
    """
    explicit = from_file or [""] * len(suite.strategies)
    unnamed = [strategy for strategy, label in zip(suite.strategies, explicit, strict=True) if not label]
    generated = iter(_distinct_labels(unnamed, suite))
    return [label or next(generated) for label in explicit]


def _distinct_labels(strategies: Sequence[Strategy], suite: SuiteSpec) -> list[str]:
    """Return a label for each strategy; equal labels get the differing hyper-parameters in brackets."""
    labels = [_strategy(strategy, strategies, suite) for strategy in strategies]
    twins = {
        label: [strategy for strategy, its in zip(strategies, labels, strict=True) if its == label]
        for label in labels
    }
    return [
        label if len(twins[label]) == 1 else f"{label} [{_differences(strategy, twins[label])}]"
        for strategy, label in zip(strategies, labels, strict=True)
    ]


def _strategy(strategy: Strategy, all_strategies: Sequence[Strategy], suite: SuiteSpec) -> str:
    """Return the label of a strategy, with the variant and unusual local work."""
    label = strategy.label()
    siblings = [candidate for candidate in all_strategies if type(candidate) is type(strategy)]
    specific = type(strategy).model_fields.keys() - Strategy.model_fields.keys()
    variant = _differences(strategy, siblings, specific)
    if variant and not label.endswith(")"):  # otherwise the strategy has named its variant
        label = f"{label} ({variant})"
    by_paper = type(strategy).model_fields["local"].default
    expected = strategy.local.whole or type(strategy.local) in (type(suite.local), type(by_paper))
    return label if expected else f"{label} + {strategy.local.reference()}"


def _differences(strategy: Strategy, rivals: Sequence[Strategy], keys: Collection[str] = ()) -> str:
    """Return the hyper-parameters (of `keys`, if given) not shared with other strategies."""
    mine, theirs = _flat(strategy), [_flat(rival) for rival in rivals]
    differ = (key for key, setting in mine.items() if any(rival.get(key) != setting for rival in theirs))
    return ", ".join(f"{key} {mine[key]}" for key in differ if not keys or key in keys)


def _flat(strategy: Strategy) -> dict[str, Any]:
    parts = {key: part.label() for key, part in strategy if isinstance(part, Part)}
    return {**strategy.model_dump(mode="json"), **parts}
