"""Samplers and pruners by name, with all options written out against changes of Optuna's defaults.

Fixed: options and seeds; with others, a campaign draws other trials.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from benchmarks.errors import UserError

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

ADAPTIVE = ("tpe", "gp", "cmaes")  # samplers whose draws depend on earlier results
STARTUP_TRIALS = 10  # trials that they draw at random first


def sampler(name: str, study: str, trials: int) -> BaseSampler:
    """Return a sampler for the next trials of a study with a given number of trials.

    Each batch gets a new sampler, with a seed from both: processes that share a study never draw the same
    trial, and a resumed campaign draws the trials that it would have drawn without the interruption, except
    for the rest of a batch that was interrupted amid its draws.
    """
    from optuna import samplers

    seed = int.from_bytes(hashlib.blake2b(f"{study} {trials}".encode(), digest_size=4).digest(), "big")
    if name == "tpe":
        return samplers.TPESampler(
            seed=seed,
            n_startup_trials=STARTUP_TRIALS,
            n_ei_candidates=24,
            multivariate=True,
            constant_liar=True,
        )
    if name == "gp":
        return samplers.GPSampler(seed=seed, n_startup_trials=STARTUP_TRIALS, deterministic_objective=False)
    if name == "cmaes":
        return samplers.CmaEsSampler(
            seed=seed, n_startup_trials=STARTUP_TRIALS, warn_independent_sampling=False
        )
    return samplers.RandomSampler(seed=seed)  # unused for grid and sobol, whose trials are all queued


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
    """Return a pruner: median and hyperband compare evaluations, wilcoxon compares seeds.

    Args:
        name: Of the pruner; any other name gives none.
        evaluations: In each run of a trial.
    """
    from optuna import pruners

    if name == "median":
        return pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=evaluations // 4, interval_steps=1)
    if name == "hyperband":
        return pruners.HyperbandPruner(min_resource=1, max_resource=evaluations, reduction_factor=3)
    if name == "wilcoxon":
        return pruners.WilcoxonPruner(p_threshold=0.1, n_startup_steps=2)
    return pruners.NopPruner()
