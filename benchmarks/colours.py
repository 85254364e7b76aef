"""Colours of strategies, as far as possible equal in all suites and campaigns.

Report pages (`figures/styles.py`) and MLflow (`mlflow_store/mlflow_experiment.py`) take them from here.

Fixed: the order of both lists, by which published figures are coloured (docs/*.svg).
"""

import hashlib
from collections.abc import Iterable

from fl_core.text import natural

# Each has a contrast of 3 : 1 to the light and the dark background of report pages and of MLflow. All differ
# clearly (OKLab distance) for normal eyes; the first eight for protanope, deuteranope and tritanope eyes,
# too.
COLOURS = (
    *("#4e61b1", "#c68900", "#c20175", "#16a2bd", "#935d00", "#9e74ff", "#f9528d", "#8e02fb"),
    *("#039768", "#be02bd", "#cd685a", "#e10031", "#a0899c", "#ab5b98", "#4f6c4a", "#e939e9"),
)
# The strategy of each colour, then again from the first colour. Strategies that are often compared have
# colours that are easy to tell apart; append new strategies at the end, or others change their colour.
STRATEGIES = (
    *("FedBuff", "ASGD", "ACE", "FedAvg", "Async FedAvg", "FedFix", "CA²FL", "FedAsync"),
    *("Generalized AsyncSGD", "ACED", "AFA-CD", "AFA-CS", "Delay-adaptive ASGD", "FedStale", "MIFA"),
    *("FAVAS", "FedFa", "Rennala SGD", "Ringmaster ASGD", "Ringleader ASGD", "MindFlayer SGD", "FADAS"),
    *("Malenia SGD", "QuAFL", "FedAST", "FedBuff-c", "AsyncFedED", "CGAD", "AsGrad", "Delayed Nesterov"),
    *("HeLoCo", "ASGD (server nesterov)", "ASGD (server look_ahead)", "FedAvg (server nesterov)"),
)


def slots(labels: Iterable[str]) -> dict[str, int]:
    """Return a number for each label; modulo the number of colours, an index into `COLOURS`.

    A label has its usual colour: by its place in `STRATEGIES`, or by its hash. Where an earlier label has
    that colour already, it gets the next free colour, and once all are taken, a colour a second time.
    """
    order = {label: at for at, label in enumerate(STRATEGIES)}
    chosen: dict[str, int] = {}
    for label in sorted(set(labels), key=lambda label: (order.get(label, len(order)), natural(label))):
        usual = order.get(label, int(hashlib.sha256(label.encode()).hexdigest(), 16)) % len(COLOURS)
        turn = len(chosen) // len(COLOURS)
        taken = {slot % len(COLOURS) for slot in list(chosen.values())[turn * len(COLOURS) :]}
        free = set(range(len(COLOURS))) - taken
        place = min(free, key=lambda slot: (slot - usual) % len(COLOURS))
        chosen[label] = place + turn * len(COLOURS)
    return chosen


def colours(labels: Iterable[str]) -> dict[str, str]:
    """Return the colour of each label."""
    return {label: COLOURS[slot % len(COLOURS)] for label, slot in slots(labels).items()}
