"""Saved views for MLflow's pages: the strategies of a scenario against its clocks, picked from a menu.

MLflow keeps a view as a tag of the experiment: its name, and the state of the page (its own chart settings,
deflated). The format is that of MLflow 3.17; a version that does not know it ignores the tag.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import compress

from fl_core.metrics import Metric
from fl_core.schema import SPREAD, Clock, Kind, Tag, Total, TrialMetric
from fl_core.text import natural

TAG = "mlflow.sharedViewState."
OURS = "asyncfl-"  # begins the keys of our views; users may save others
EVERYTHING = "All scenarios"
FIRST = 1_000_000_000_000  # milliseconds; the menu shows views by age, so theirs gives them an order

# Okabe–Ito hues, each with a contrast of 3 : 1 to white (see `reports.figures.look`).
COLOURS = ("#244d85", "#cf2f17", "#3a7e66", "#d77f29", "#a280b1", "#4e94fe", "#3e204a", "#7f43cf")

CLOCKS = (Clock.UPDATES, Clock.TIME)  # of the charts of a metric
TO_TARGET = "to_target"  # the section of charts of it
PARAMETERS = "parameters"  # the section of charts of a study's parameters
COLUMNS = 2  # as charts stand side by side: there is room for two


@dataclass(frozen=True, slots=True)
class View:
    """A saved view."""

    name: str
    state: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What a link to it says."""
        return OURS + hashlib.sha256(self.name.encode()).hexdigest()[:8]

    @property
    def tag(self) -> str:
        """The experiment's tag that holds it."""
        return TAG + self.key

    @property
    def value(self) -> str:
        """What the tag says; the whole suite comes first in the menu."""
        created = FIRST + (self.name == EVERYTHING)
        state = "deflate;" + b64encode(compress(json.dumps(self.state).encode(), 9)).decode()
        envelope = {"name": self.name, "createdAt": created, "updatedAt": created, "state": state}
        return json.dumps(envelope, ensure_ascii=False)


def view(
    metrics: Sequence[Metric], scenario: str = "", *, network: bool = False, target: bool = False
) -> View:
    """The mean curves of a scenario's strategies, or of all, each metric against every clock.

    The first metric ranks; after its curves come the times to its target, if it has one. With a network bytes
    are a clock, too.
    """
    clocks = (*CLOCKS, Clock.BYTES) if network else CLOCKS
    which = f" AND tags.`{Tag.SCENARIO}` {_is(scenario)}" if scenario else ""
    values = [name for metric in metrics for name in (metric.name, f"{SPREAD}{metric.name}")]
    reached = [clock.to_target for clock in clocks] if target else []
    sections = [_section(metric.name, metric.title) for metric in metrics]
    bars = [_section(TO_TARGET, "To the target (no bar: not met)")] if target else []
    state = {
        "searchFilter": f"tags.`{Tag.KIND}` = '{Kind.GROUP}'{which}",
        "orderByKey": f"metrics.`{metrics[0].name}`",
        "orderByAsc": metrics[0].higher is False,
        "selectedColumns": [
            *(f"tags.`{tag}`" for tag in (Tag.SCENARIO, Tag.STRATEGY)),
            *(f"metrics.`{name}`" for name in (*values, *reached, Total.SEEDS_DONE)),
        ],
        "runsHiddenMode": "SHOW_ALL",
        "runListHidden": True,  # legends name the runs, and charts have its room
        "isAccordionReordered": True,  # or MLflow sorts the sections by name
        "compareRunSections": [*sections[:1], *bars, *sections[1:]],
        "compareRunCharts": [
            *(_curves(metric, clock) for metric in metrics for clock in clocks),
            *(_bars(clock) for clock in clocks if target),
        ],
    }
    return View(scenario or EVERYTHING, state)


def study_view(study: Mapping[str, str], name: str) -> View:
    """Return the trials of a study: their objective over each parameter, and their learning curves.

    MLflow has no logarithmic axes for parameters: their logarithms are metrics of their own (`log10`).

    Args:
        study: Its tags.
        name: The name of the view.
    """
    space = json.loads(study[Tag.SPACE])
    logarithmic = [parameter for parameter, spec in space.items() if spec.get("log")]
    plain = [parameter for parameter in space if parameter not in logarithmic]
    metric, identity = Metric(study[Tag.METRIC]), study[Tag.IDENTITY]
    axes = [(log10(parameter), "METRIC") for parameter in logarithmic]
    axes += [(parameter, "PARAM") for parameter in plain]
    objective = {"key": TrialMetric.OBJECTIVE, "type": "METRIC"}
    parallel = _described("PARALLEL", "All parameters and the objective", PARAMETERS) | {
        "selectedParams": plain,
        "selectedMetrics": [*map(log10, logarithmic), TrialMetric.OBJECTIVE],
        "showAllRuns": True,
    }
    scatter = [
        _described("SCATTER", f"Objective over {key}", PARAMETERS)
        | {"xaxis": {"key": key, "type": kind}, "yaxis": objective, "runsCountToCompare": 100}
        for key, kind in axes
    ]
    state = {
        "searchFilter": f"tags.`{Tag.KIND}` = '{Kind.TRIAL}' AND tags.`{Tag.IDENTITY}` = '{identity}'",
        "orderByKey": f"metrics.`{TrialMetric.OBJECTIVE}`",
        "orderByAsc": study[Tag.DIRECTION] == "minimize",
        "selectedColumns": [
            *(f"tags.`{tag}`" for tag in (Tag.STRATEGY, Tag.TRIAL, Tag.SEED)),
            f"metrics.`{TrialMetric.OBJECTIVE}`",
            *(f"params.`{parameter}`" for parameter in space),
        ],
        "runsHiddenMode": "SHOW_ALL",
        "isAccordionReordered": True,
        "compareRunSections": [_section(PARAMETERS, "Parameters"), _section(metric.name, metric.title)],
        "compareRunCharts": [parallel, *scatter, *(_curves(metric, clock) for clock in CLOCKS)],
    }
    return View(name, state)


def log10(parameter: str) -> str:
    """Return the name of the metric that holds the decimal logarithm of a parameter."""
    return f"log10/{parameter}"


def colours(strategies: Iterable[str]) -> dict[str, str]:
    """A colour for each label, the same as on the report page; after eight they begin again."""
    ordered = sorted(set(strategies), key=natural)
    return {strategy: COLOURS[at % len(COLOURS)] for at, strategy in enumerate(ordered)}


def saved(tags: Mapping[str, str]) -> list[tuple[str, str]]:
    """Name and key of our views among an experiment's tags; the whole suite first, then by name."""
    ours = {tag.removeprefix(TAG): value for tag, value in tags.items() if tag.startswith(TAG + OURS)}
    views = [(name, key) for key, value in ours.items() if (name := _name(value))]
    return sorted(views, key=lambda view: (view[0] != EVERYTHING, view[0].casefold()))


def _name(value: str) -> str:
    """The name of the view that a tag holds; empty if the tag was edited by hand, and damaged."""
    try:
        return str(json.loads(value)["name"])
    except (ValueError, KeyError, TypeError):
        return ""


def page(experiment: str, key: str = "", mode: str = "CHART") -> str:
    """The address of the experiment's runs after the server's: charts or, with mode TABLE, a table."""
    view = f"&viewStateShareKey={key}" if key else ""
    return f"#/experiments/{experiment}/runs?workflowType=machine_learning&compareRunsMode={mode}{view}"


def _section(key: str, name: str) -> dict[str, Any]:
    """A section with charts side by side."""
    return {
        "uuid": key,
        "name": name,
        "display": True,
        "isReordered": True,
        "columns": COLUMNS,
    }


def _bars(clock: Clock) -> dict[str, Any]:
    """A bar chart, as MLflow describes it, of when each strategy met the target."""
    return _chart("BAR", clock, clock.to_target, TO_TARGET)


def _curves(metric: Metric, clock: Clock) -> dict[str, Any]:
    """A line chart as MLflow describes it."""
    return _chart("LINE", clock, metric.name, metric.name) | {
        "xAxisKey": "metric" if clock.metric else "step",
        "selectedXAxisMetricKey": clock.metric,
        "useGlobalXaxisKey": False,
        "xAxisScaleType": "linear",
        "scaleType": "linear",
        "yAxisKey": "metric",
        "yAxisExpressions": [],
        "range": {},
        "lineSmoothness": 0,
        "useGlobalLineSmoothing": False,
        "displayPoints": False,
    }


def _chart(kind: str, clock: Clock, metric: str, section: str) -> dict[str, Any]:
    """Return a chart of a metric."""
    return _described(kind, clock.words.capitalize(), section) | {
        "uuid": f"{metric} {clock.metric}",
        "metricKey": metric,
        "selectedMetricKeys": [metric],
        "runsCountToCompare": 100,
    }


def _described(kind: str, name: str, section: str) -> dict[str, Any]:
    """Return what all charts have."""
    return {
        "type": kind,
        "uuid": f"{kind} {name}",
        "displayName": name,
        "metricSectionId": section,
        "isGenerated": False,
        "deleted": False,
    }


def _is(text: str) -> str:
    """A filter's condition; MLflow cannot escape an apostrophe, but has a wildcard for any letter."""
    return "LIKE '{}'".format(text.replace("'", "_")) if "'" in text else f"= '{text}'"
