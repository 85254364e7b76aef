"""Diagnostics requested by a suite, and the measurement during a run.

`Recorder` shows each event of a run to a `Diagnosis`, and records the rows that it returns.

Fixed: fields of `Diagnostics`, which suites set, and names of columns, which are recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from torch import Tensor

from fl_core.diagnostics.constants import constants
from fl_core.diagnostics.error_terms import ErrorTerms, Terms, full_gradient, refuses
from fl_core.experiment import Experiment
from fl_core.loop.simulation import Event, Simulation
from fl_core.parts import Count, Frozen
from fl_core.recorded_names import ITERATION, TIME, UPDATES, Clock, Name
from fl_core.streams import stream


class Diagnostics(Frozen):
    """Measurements besides the curve, at intervals of server iterations; no part of a run's identity."""

    errors: Count | None = None  # every so many iterations: the error terms A, B, C of the update, and ‖∇F‖²
    gradient: Count | None = None  # every so many iterations: ‖∇F‖² alone
    constants: Count | None = None  # every so many iterations: L, σ², σ_G²

    def refuses(self, experiment: Experiment) -> str | None:
        """Return the reason why the error terms cannot be measured in an experiment, or None."""
        return refuses(experiment) if self.errors else None

    def possible(self, experiment: Experiment) -> Diagnostics:
        """Return the diagnostics without terms unmeasurable in an experiment."""
        return self.model_copy(update={"errors": None}) if self.refuses(experiment) else self

    def __bool__(self) -> bool:
        return bool(self.errors or self.gradient or self.constants)


class Diagnosis:
    """Diagnostics of a run, event by event: a row for each server iteration t with measurements.

    Its columns: iteration t, updates received, the time at which w^t was made and `round_time` until w^{t+1};
    then, of what `Diagnostics` requests, at w^t: gradient_sq ‖∇F(w^t)‖²; update_sq ‖u^t‖², error_sq ‖u^t −
    ∇F(w^t)‖², noise_sq ‖A‖², bias_sq ‖B‖², delay_sq ‖C‖², drift_sq where clients take several steps,
    participants in u^t; smoothness L, client_smoothness max L_i, noise_variance σ², dissimilarity σ_G²,
    worst_dissimilarity ζ².
    """

    def __init__(self, simulation: Simulation, asked: Diagnostics) -> None:
        self.simulation, self.asked = simulation, asked
        self.terms = ErrorTerms(simulation, asked.errors) if asked.errors else None
        self.since = 0.0  # when the newest version was made
        self.resume()

    def resume(self) -> None:
        """Note the simulation's present model, the start of the next step."""
        self._model = self.simulation.server.model

    def see(self, event: Event) -> dict[str, float] | None:
        """Follow the run through a past event; return a row with any measurements."""
        terms = self.terms.see(event) if self.terms else None
        if not event.stepped:
            return None
        model, since, time = self._model, self.since, self.simulation.time
        self.resume()
        self.since = time
        version = event.version - 1
        row: dict[str, float] = {}
        if terms is not None:
            row |= squares(terms)
        elif due(self.asked.gradient, version):
            row[Name.GRADIENT] = square(full_gradient(self.simulation.world, model))
        if due(self.asked.constants, version):
            row |= self._constants(model, version)
        if not row:
            return None
        updates = self.simulation.server.updates
        clocks = {ITERATION: version, UPDATES: updates, TIME: since, Name.ROUND_TIME: time - since}
        return {**clocks, **row}

    @property
    def shadows(self) -> dict[str, Simulation]:
        """The simulations in lock step with the run, by name."""
        return self.terms.shadows if self.terms else {}

    def state(self) -> dict[str, Any]:
        """Return the whole state except the simulations in lock step."""
        return {"since": self.since, "terms": self.terms.state() if self.terms else None}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state; the simulations in lock step must be restored before."""
        self.since = state["since"]
        if self.terms:
            self.terms.restore(state["terms"])
        self.resume()

    def _constants(self, model: Tensor, version: int) -> dict[str, float]:
        """Return the constants at a model by name; start directions depend on the version alone."""
        rng = stream(self.simulation.experiment.seed, "diagnostics", version)
        return asdict(constants(self.simulation.world, model, self.simulation.local.batch, rng))


def due(interval: int | None, version: int) -> bool:
    """Return whether a quantity is measured at a version, for every `interval`-th version; None: never."""
    return interval is not None and version % interval == 0


def squares(terms: Terms) -> dict[str, float]:
    """Return the squared lengths of an update's terms, and the number of participating clients."""
    row = {
        Name.GRADIENT: square(terms.gradient),
        "update_sq": square(terms.update),
        "error_sq": square(terms.update - terms.gradient),
        Name.NOISE: square(terms.noise),
        Name.BIAS: square(terms.bias),
        Name.DELAY: square(terms.delay),
    }
    if terms.drift is not None:
        row["drift_sq"] = square(terms.drift)
    return {**row, Name.PARTICIPANTS: terms.participants}


def square(vector: Tensor) -> float:
    """Return ‖x‖²."""
    return vector.square().sum().item()


CLOCKS = {*Clock, Name.ROUND_TIME}  # columns that say when, and have no mean worth reporting


def summary(rows: Sequence[dict[str, float]], n: int) -> dict[str, float]:
    """Return every column's mean over the rows [t] with a value, and two further statistics.

    gradient_sq_time_weighted: (1/(T+1)) Σ 𝔱_t ‖∇F(w^t)‖², 𝔱_t the length of round t (Alahyane et al.,
    2502.08206, eq. 12); part_share: share of iterations in which fewer than the n clients had a weight.
    """
    columns = dict.fromkeys(name for row in rows for name in row if name not in CLOCKS)
    means = {name: float(np.mean([row[name] for row in rows if name in row])) for name in columns}
    if Name.GRADIENT in columns:
        weighted = [row[Name.GRADIENT] * row[Name.ROUND_TIME] for row in rows if Name.GRADIENT in row]
        means["gradient_sq_time_weighted"] = float(np.mean(weighted))
    if Name.PARTICIPANTS in columns:
        part = [row[Name.PARTICIPANTS] < n for row in rows if Name.PARTICIPANTS in row]
        means["part_share"] = float(np.mean(part))
    return means
