"""Descriptions of experiments and groups on MLflow's pages, in Markdown."""

from collections.abc import Mapping
from urllib.parse import quote

from benchmarks.tracking import views
from fl_core.metrics import Metric
from fl_core.schema import CAMPAIGN, Kind, Tag
from fl_core.text import many

REPORT = f"tags.`{Tag.KIND}` = '{Kind.REPORT}'"


def of_suite(suite: str, experiment: str, tags: Mapping[str, str], report: str) -> str:
    """Return a suite's description, with links to saved views and to the report page, if any."""
    links = [f"- [{_plain(name)}]({views.page(experiment, key)})" for name, key in views.saved(tags)]
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


def of_group(experiment: str, tags: Mapping[str, str], seeds: int = 0, diverged: int = 0) -> str:
    """Return a group's description: paper, scenario, number of seeds in the mean, and links."""
    scenario = tags[Tag.SCENARIO]
    view = views.view([Metric(tags[Tag.METRIC])], scenario)
    mean = f"Mean over the {many(seeds, 'seed')} below" if seeds else "Its seeds are below"
    lost = f"; without {diverged} diverged" if diverged else ""
    page = f"#/experiments/{experiment}/runs?workflowType=machine_learning&searchFilter={quote(REPORT)}"
    return (
        f"{_plain(tags.get(Tag.PAPER, ''))}\n\n"
        f"Scenario: {_plain(scenario)}. {mean}{lost}.\n\n"
        f"[Compare the strategies of this scenario]({views.page(experiment, view.key)}) · "
        f"[Report page]({page}), an artifact of its own run"
    )


def report_page(suite: str, experiment: str, run: str) -> str:
    """Return the address, after the server's, of the report page held by a run."""
    page = quote(f"{suite}.html")
    return f"#/experiments/{experiment}/runs/{run}/artifacts/{page}?workflowType=machine_learning"


def _plain(text: str) -> str:
    """Return the text with all Markdown mark-up escaped."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#" else letter for letter in text)
