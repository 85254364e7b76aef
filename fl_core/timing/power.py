"""The power of clients in each phase, for the energy of a run; a scenario declares it as `timing.power`.

`loop/energy.py` multiplies it by the durations of phases.
"""

from collections.abc import Sequence
from fractions import Fraction

from fl_core.parts import Frozen
from fl_core.timing.network import NumberOrLaw, checked

PHASES = ("download", "computation", "upload")  # in the order of a job's


class Power(Frozen):
    """The power of clients in watts, by phase; the sum over clients and time is the energy, in joules.

    Latencies belong to transfers. A client in none of the three phases is idle, present or not.
    """

    computation: NumberOrLaw | None = None  # watts while computing; None: 0
    download: NumberOrLaw | None = None  # watts while receiving; None: 0
    upload: NumberOrLaw | None = None  # watts while sending; None: 0
    idle: NumberOrLaw | None = None  # watts otherwise; None: 0

    def watts(self, n: int, seed: int, ids: Sequence[str] | None = None) -> dict[str, tuple[Fraction, ...]]:
        """Return each client's power [n], by phase and idle; `ids` are from `Timing.ids`.

        Laws are drawn alike: a client that draws more in one phase does so in all.

        Raises:
            ValueError: A law does not fit n clients.
        """
        return {phase: checked(getattr(self, phase), n, seed, "power", ids) for phase in (*PHASES, "idle")}
