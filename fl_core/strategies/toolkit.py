"""The building blocks of strategies, collected for import.

The strategies of this folder import them from here; users import them from `asyncfl`.

Free: only the strategies of this folder import from here.
"""

from fl_core.parts import Count, Length, Rate, Share, Time, Tune, TuneAmong
from fl_core.scenario import Scenario
from fl_core.server.jobs import Job, Send, Update
from fl_core.server.server import Server
from fl_core.strategies.strategy import Strategy

__all__ = [
    "Count",
    "Job",
    "Length",
    "Rate",
    "Scenario",
    "Send",
    "Server",
    "Share",
    "Strategy",
    "Time",
    "Tune",
    "TuneAmong",
    "Update",
]
