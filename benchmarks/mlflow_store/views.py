"""Saved views for MLflow's pages, picked from a menu, and notes in Markdown on suites and groups.

`Tracking` writes them; `asyncfl ui` links to them. MLflow keeps a view as a tag of the experiment: its name,
and the state of the page (chart settings, deflated). The format is that of MLflow 3.17; a version that does
not know it ignores the tag. Names and keys below are MLflow's.

Fixed: `log10`, which names stored metrics of trials. Free: the views; no report and no key depends on one.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from zlib import compress

from fl_core.metrics import Metric, from_text, named
from fl_core.recorded_names import (
    CAMPAIGN,
    JOINT,
    OF_STRATEGY,
    SPREAD,
    Clock,
    JudgedOn,
    Kind,
    Tag,
    Total,
    TrialMetric,
)
from fl_core.text import many

TAG_PREFIX = "mlflow.sharedViewState."
KEY_PREFIX = "asyncfl-"  # of the keys of our views; views that users save have other keys
EVERYTHING = "All scenarios"
SINGLE = "Single runs"
BEST = "Best of each strategy"  # of a campaign
ALL_TRIALS = "All trials"  # … of all strategies
FIRST_CREATED = 1_000_000_000_000  # milliseconds; the menu sorts views by creation time, chosen for an order

CLOCKS = (Clock.UPDATES, Clock.TIME)  # x axes of the charts of a metric
TO_TARGET = "to_target"  # key of the section with charts of clocks at the target
PARAMETERS = "parameters"  # key of the section with charts of a study's parameters
COLUMNS = 2  # charts side by side
MAX_RUNS = 1000  # in a chart
CURRENT = f"tags.`{Tag.SUPERSEDED}` IS NULL"  # the filter of runs that count


@dataclass(frozen=True, slots=True)
class View:
    """A saved view."""

    name: str
    state: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Key of the view in links."""
        return KEY_PREFIX + hashlib.sha256(self.name.encode()).hexdigest()[:8]

    @property
    def tag(self) -> str:
        """Name of the experiment's tag for the view."""
        return TAG_PREFIX + self.key

    @property
    def value(self) -> str:
        """Value of the tag, with a creation time for the menu's order: the whole suite comes first."""
        created = FIRST_CREATED + 3 - _rank(self.name)
        state = "deflate;" + b64encode(compress(json.dumps(self.state).encode(), 9)).decode()
        envelope = {"name": self.name, "createdAt": created, "updatedAt": created, "state": state}
        return json.dumps(envelope, ensure_ascii=False)


def view(
    metrics: Sequence[Metric],
    scenario: str = "",
    *,
    more_clocks: Sequence[Clock] = (),
    target: bool = False,
) -> View:
    """Return mean curves of a scenario's strategies, or of all scenarios, each metric against every clock.

    Args:
        metrics: The first one ranks; its curves are followed by the clocks at the target.
        scenario: Label; empty for all scenarios.
        more_clocks: Bytes with a network, energy with the power of clients.
        target: Whether the suite has a target.
    """
    clocks = (*CLOCKS, *more_clocks)
    condition = f" AND {_of_scenario(scenario)}" if scenario else ""
    values = [metric.name for metric in metrics]
    spread = [f"{SPREAD}{name}" for name in values]
    reached = [clock.to_target for clock in clocks] if target else []
    sections = [_section(metric.name, _title(metric.heading, clocks)) for metric in metrics]
    name = _title("To the target", clocks) + "; no bar: not met"
    bars = [_section(TO_TARGET, name)] if target else []
    state = {
        "searchFilter": f"tags.`{Tag.KIND}` = '{Kind.GROUP}'{condition}",
        "orderByKey": f"metrics.`{metrics[0].name}`",
        "orderByAsc": metrics[0].higher is False,
        "selectedColumns": [
            *(f"tags.`{tag}`" for tag in (Tag.SCENARIO, Tag.STRATEGY)),
            *(f"metrics.`{name}`" for name in (*values, *reached, *spread, Total.SEEDS_DONE)),
        ],
        "runsHiddenMode": "SHOW_ALL",
        "runListHidden": False,  # the list names all strategies; legends have room for a few
        "isAccordionReordered": True,  # otherwise MLflow sorts the sections by name
        "compareRunSections": [*sections[:1], *bars, *sections[1:]],
        "compareRunCharts": [
            *(_curves(metric, clock) for metric in metrics for clock in clocks),
            *(_bars(clock) for clock in clocks if target),
        ],
    }
    return View(scenario or EVERYTHING, state)


def runs_view(metrics: Sequence[Metric], *, target: bool = False) -> View:
    """Return a table of the single runs, with the most important columns."""
    values = [metric.name for metric in metrics]
    reached = [clock.to_target for clock in CLOCKS] if target else []
    state = {
        "searchFilter": f"tags.`{Tag.KIND}` = '{Kind.RUN}' AND {CURRENT}",
        "orderByKey": f"metrics.`{metrics[0].name}`",
        "orderByAsc": metrics[0].higher is False,
        "selectedColumns": [
            *(f"tags.`{tag}`" for tag in (Tag.STRATEGY, Tag.SCENARIO, Tag.SEED)),
            *(f"metrics.`{name}`" for name in (*values, *reached, Total.STALENESS_MEAN)),
            *(f"params.`{OF_STRATEGY}{rate}`" for rate in ("local_lr", "server_lr")),
        ],
        "runsHiddenMode": "SHOW_ALL",
    }
    return View(SINGLE, state)


def study_view(study: Mapping[str, str], name: str) -> View:
    """Return the trials of a study: the objective over each parameter, and the learning curves.

    Args:
        study: Its tags.
        name: The name of the view.
    """
    metric = _metric(study)
    condition = f"tags.`{Tag.KIND}` = '{Kind.TRIAL}' AND tags.`{Tag.IDENTITY}` = '{study[Tag.IDENTITY]}'"
    state = _trials_state([study], condition) | {
        "compareRunSections": [
            _section(PARAMETERS, "Objective over each parameter"),
            _section(metric.name, _title(metric.heading, CLOCKS)),
        ],
    }
    state["compareRunCharts"] += [_curves(metric, clock) for clock in CLOCKS]
    return View(name, state)


def trials_view(studies: Sequence[Mapping[str, str]], name: str) -> View:
    """Return all trials of a scenario's strategies, each strategy in a colour: the objective over parameters.

    Args:
        studies: The tags of each of its studies.
        name: The name of the view.
    """
    scenario = studies[0][Tag.SCENARIO]
    condition = f"tags.`{Tag.KIND}` = '{Kind.TRIAL}' AND {_of_scenario(scenario)} AND {CURRENT}"
    sections = [_section(PARAMETERS, "Objective over each parameter, all strategies")]
    return View(name, _trials_state(studies, condition) | {"compareRunSections": sections})


def best_view(studies: Sequence[Mapping[str, str]], name: str) -> View:
    """Return the best trial of each strategy of a scenario: the curves, and a table of the parameters.

    Args:
        studies: The tags of each of its studies.
        name: The name of the view.
    """
    metric, scenario = _metric(studies[0]), studies[0][Tag.SCENARIO]
    condition = f"tags.`{Tag.CHOSEN}` = 'true' AND {_of_scenario(scenario)} AND {CURRENT}"
    table = _chart_settings("DIFFERENCE", "Parameters", PARAMETERS) | {
        "chartName": "Parameters",
        "compareGroups": ["Parameters"],
        "showChangeFromBaseline": False,
        "showDifferencesOnly": False,
        "baselineColumnUuid": "",
    }
    state = _trials_state(studies, condition) | {
        "compareRunSections": [
            _section(metric.name, f"{_title(metric.heading, CLOCKS)}, best trial of each strategy"),
            _section(PARAMETERS, "Best parameters", columns=1),
        ],
        "compareRunCharts": [*(_curves(metric, clock) for clock in CLOCKS), table],
    }
    return View(name, state)


def of_campaign(studies: Sequence[Mapping[str, str]], names: Mapping[tuple[str, str], str]) -> Iterator[View]:
    """Yield the views of a campaign: best trials and all trials of each scenario, and a view of each study.

    Args:
        studies: The tags of each of its studies.
        names: A short name for each scenario and strategy.
    """
    for study in studies:
        yield study_view(study, names[study[Tag.SCENARIO], study[Tag.STRATEGY]])
    by_scenario: dict[str, list[Mapping[str, str]]] = {}
    for study in studies:
        by_scenario.setdefault(study[Tag.SCENARIO], []).append(study)
    for scenario, scenario_studies in by_scenario.items():
        suffix = f"{JOINT}{scenario}" if len(by_scenario) > 1 else ""
        yield best_view(scenario_studies, f"{BEST}{suffix}")
        yield trials_view(scenario_studies, f"{ALL_TRIALS}{suffix}")


def _metric(study: Mapping[str, str]) -> Metric:
    """Return the metric of a study's objective, as declared."""
    metric = named(study[Tag.METRIC], from_text(study.get(Tag.METRICS, "")))
    validated = study.get(Tag.JUDGED_ON) == JudgedOn.VALIDATION
    return metric.judged_on("Validation") if validated else metric


def _trials_state(studies: Sequence[Mapping[str, str]], condition: str) -> dict[str, Any]:
    """Return the state of a page of trials: objective over parameters, best first.

    MLflow has no logarithmic axes for parameters: their logarithms are metrics of their own (`log10`).
    """
    space = {name: spec for study in studies for name, spec in json.loads(study[Tag.SPACE]).items()}
    logarithmic = [parameter for parameter, spec in space.items() if spec.get("log")]
    plain = [parameter for parameter in space if parameter not in logarithmic]
    axes = [(log10(parameter), "METRIC") for parameter in logarithmic]
    axes += [(parameter, "PARAM") for parameter in plain]
    objective = {"key": TrialMetric.OBJECTIVE, "type": "METRIC"}
    parallel = _chart_settings("PARALLEL", "All parameters and the objective", PARAMETERS) | {
        "selectedParams": plain,
        "selectedMetrics": [*map(log10, logarithmic), TrialMetric.OBJECTIVE],
        "showAllRuns": True,
    }
    scatter = [
        _chart_settings("SCATTER", f"Objective over {key}", PARAMETERS)
        | {"xaxis": {"key": key, "type": kind}, "yaxis": objective, "runsCountToCompare": MAX_RUNS}
        for key, kind in axes
    ]
    return {
        "searchFilter": condition,
        "orderByKey": f"metrics.`{TrialMetric.OBJECTIVE}`",
        "orderByAsc": studies[0][Tag.DIRECTION] == "minimize",
        "selectedColumns": [
            *(f"tags.`{tag}`" for tag in (Tag.STRATEGY, Tag.TRIAL, Tag.SEED)),
            f"metrics.`{TrialMetric.OBJECTIVE}`",
            *(f"params.`{parameter}`" for parameter in space),
        ],
        "runsHiddenMode": "SHOW_ALL",
        "isAccordionReordered": True,
        "compareRunCharts": [*scatter, parallel],
    }


def log10(parameter: str) -> str:
    """Return the name of the metric for the decimal logarithm of a parameter."""
    return f"log10/{parameter}"


def saved(tags: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return names and keys of our views among an experiment's tags; the whole suite first, then by name."""
    prefix = TAG_PREFIX + KEY_PREFIX
    ours = {tag.removeprefix(TAG_PREFIX): value for tag, value in tags.items() if tag.startswith(prefix)}
    views = [(name, key) for key, value in ours.items() if (name := _name(value))]
    return sorted(views, key=lambda view: (_rank(view[0]), view[0].casefold()))


def _rank(name: str) -> int:
    """Return the place of a view in menus: the whole suite first, single runs last."""
    if name == SINGLE:
        return 3
    return 0 if name == EVERYTHING or name.startswith(BEST) else 1 if name.startswith(ALL_TRIALS) else 2


def _name(value: str) -> str:
    """Return the name of the view in a tag's value; empty if the value is damaged."""
    try:
        return str(json.loads(value)["name"])
    except (ValueError, KeyError, TypeError):
        return ""


def page(experiment: str, key: str = "", mode: str = "CHART") -> str:
    """Return the address of the experiment's runs, after the server's: charts or, with TABLE, a table."""
    view = f"&viewStateShareKey={key}" if key else ""
    return f"#/experiments/{experiment}/runs?workflowType=machine_learning&compareRunsMode={mode}{view}"


def _section(key: str, name: str, columns: int = COLUMNS) -> dict[str, Any]:
    """Return a section with charts side by side."""
    return {
        "uuid": key,
        "name": name,
        "display": True,
        "isReordered": True,
        "columns": columns,
    }


def _title(quantity: str, clocks: Sequence[Clock]) -> str:
    """Return a title with the axes: Test accuracy (%) by client updates and virtual time.

    MLflow names a chart of one metric after that metric, so the section's title has to say what the charts
    show.
    """
    *first, last = (clock.words for clock in clocks)
    return f"{quantity} by {', '.join(first)} and {last}"


def _of_scenario(scenario: str) -> str:
    return f"tags.`{Tag.SCENARIO}` {_equals(scenario)}"


def _bars(clock: Clock) -> dict[str, Any]:
    """Return a bar chart in MLflow's format: each strategy's clock on meeting the target."""
    return _chart("BAR", clock, clock.to_target, TO_TARGET)


def _curves(metric: Metric, clock: Clock) -> dict[str, Any]:
    """Return a line chart in MLflow's format."""
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
    return _chart_settings(kind, clock.heading, section) | {
        "uuid": f"{metric} {clock.metric}",
        "metricKey": metric,
        "selectedMetricKeys": [metric],
        "runsCountToCompare": MAX_RUNS,
    }


def _chart_settings(kind: str, name: str, section: str) -> dict[str, Any]:
    """Return the settings common to all charts."""
    return {
        "type": kind,
        "uuid": f"{kind} {name}",
        "displayName": name,
        "metricSectionId": section,
        "isGenerated": False,
        "deleted": False,
    }


def _equals(text: str) -> str:
    """Return a filter's condition; MLflow cannot escape an apostrophe, but has a wildcard for any letter."""
    return "LIKE '{}'".format(text.replace("'", "_")) if "'" in text else f"= '{text}'"


def note_of_suite(suite: str, experiment: str, tags: Mapping[str, str], report: str) -> str:
    """Return a suite's description, with links to saved views and to the report page, if any."""
    links = [f"- [{_plain(name)}]({page(experiment, key)})" for name, key in saved(tags)]
    parts = [tags.get(Tag.DESCRIPTION, "").strip()]
    if links:
        about = (
            "Best trials, all trials, and each study"
            if suite.endswith(CAMPAIGN)
            else "Mean over seeds against client updates, virtual time and, with a network, bytes sent"
        )
        parts.append("\n".join([f"**{about}** (also in the menu of views)", "", *links]))
    if report:
        parts.append(f"[Report page]({report_page(suite, experiment, report)})")
    return "\n\n".join(filter(None, parts))


def note_of_group(experiment: str, tags: Mapping[str, str], seeds: int = 0, diverged: int = 0) -> str:
    """Return a group's description: paper, scenario, number of seeds in the mean, and links."""
    scenario = tags[Tag.SCENARIO]
    mean = f"Mean over the {many(seeds, 'seed')} below" if seeds else "Its seeds are below"
    lost = f"; without {diverged} diverged" if diverged else ""
    report = quote(f"tags.`{Tag.KIND}` = '{Kind.REPORT}'")
    report_run = f"#/experiments/{experiment}/runs?workflowType=machine_learning&searchFilter={report}"
    return (
        f"{_plain(tags.get(Tag.PAPER, ''))}\n\n"
        f"Scenario: {_plain(scenario)}. {mean}{lost}.\n\n"
        f"[Compare the strategies of this scenario]({page(experiment, View(scenario, {}).key)}) · "
        f"[Report page]({report_run}), an artifact of its own run"
    )


def report_page(suite: str, experiment: str, run: str) -> str:
    """Return the address, after the server's, of the report page held by a run."""
    file = quote(f"{suite}.html")
    return f"#/experiments/{experiment}/runs/{run}/artifacts/{file}?workflowType=machine_learning"


def _plain(text: str) -> str:
    """Return the text with all Markdown mark-up escaped."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#" else letter for letter in text)
