"""Samplers and pruners by name, with all options written out against changes of Optuna's defaults."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from benchmarks.errors import UserError

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

ADAPTIVE = ("tpe", "gp", "cmaes")  # samplers that look at what was found
STARTUP = 10  # trials before TPE, GP or CMA-ES look at what was found


def sampler(name: str, study: str, trials: int) -> BaseSampler:
    """Return a sampler for a study with the given number of trials.

    It is made anew each time, with a seed that depends on both: processes that share a study never draw the
    same, and a campaign that was interrupted draws what it would have drawn, but for the rest of a batch that
    was interrupted amid its draws.
    """
    from optuna import samplers

    seed = int.from_bytes(hashlib.blake2b(f"{study} {trials}".encode(), digest_size=4).digest(), "big")
    if name == "tpe":
        return samplers.TPESampler(
            seed=seed, n_startup_trials=STARTUP, n_ei_candidates=24, multivariate=True, constant_liar=True
        )
    if name == "gp":
        return samplers.GPSampler(seed=seed, n_startup_trials=STARTUP, deterministic_objective=False)
    if name == "cmaes":
        return samplers.CmaEsSampler(seed=seed, n_startup_trials=STARTUP, warn_independent_sampling=False)
    return samplers.RandomSampler(
        seed=seed
    )  # points of a grid or of Sobol's are in the queue: nothing is drawn


def must_be_there(name: str) -> None:
    """Raise UserError if a sampler needs a missing package."""
    needs = {"cmaes": "cmaes", "gp": "torch"}
    package = needs.get(name)
    if package is None:
        return
    try:
        __import__(package)
    except ImportError:
        raise UserError(f"--sampler {name}: needs the package {package}: pip install {package}") from None


def pruner(name: str, evaluations: int) -> BasePruner:
    """A pruner; median and hyperband look at evaluations, wilcoxon at seeds."""
    from optuna import pruners

    if name == "median":
        return pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=evaluations // 4, interval_steps=1)
    if name == "hyperband":
        return pruners.HyperbandPruner(min_resource=1, max_resource=evaluations, reduction_factor=3)
    if name == "wilcoxon":
        return pruners.WilcoxonPruner(p_threshold=0.1, n_startup_steps=2)
    return pruners.NopPruner()
