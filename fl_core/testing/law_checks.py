"""Requirements of every law: durations, availability, numbers per client, partitions, and codings.

Each check is a function of a part; `conformance` lists them. A check's name is the name of a test case.
"""

from itertools import islice

import numpy as np
import torch

from fl_core.compression import Coding
from fl_core.problems.partitions import Partition
from fl_core.recorded_names import Status
from fl_core.recording.recorder import run
from fl_core.scenario import Scenario
from fl_core.streams import stream
from fl_core.testing.check_experiments import CLIENTS, experiment, must, scenario
from fl_core.timing.availability import Availability
from fl_core.timing.durations import Durations, Lengths
from fl_core.timing.network import PerClient

DRAWS = 20_000
ERRORS = 5  # largest distance of the mean of draws from the declared mean, in standard errors
RARE = 1e-6  # smallest p-value of draws from a law


def lengths_do_not_depend_on_the_order_of_asking(law: Durations) -> None:
    """Client i's k-th job has a fixed length, at least a tick, regardless of earlier calls."""
    lengths, repeated = Lengths(law, CLIENTS, 7), Lengths(law, CLIENTS, 7)
    jobs = [(client, job) for client in range(CLIENTS) for job in range(5)]
    first = {job: lengths(*job) for job in jobs}
    must({job: repeated(*job) for job in reversed(jobs)} == first, "a length depends on earlier calls")
    must(min(first.values()) >= 1, "a job takes less than a tick of the clock")
    coarse = law.random and max(first.values()) == 1
    must(not coarse, "no job takes longer than a tick of the clock: `unit` is too coarse")


def lengths_have_the_means_that_it_says(law: Durations) -> None:
    """Means are exact if lengths are known beforehand, within five standard errors if drawn."""
    means = law.means(CLIENTS, 7)
    must(len(means) == CLIENTS and min(means) > 0, "means: one positive length for each client")
    if not law.random:
        cycles = law.cycles(CLIENTS, 7)
        must(
            all(sum(cycle) == mean * len(cycle) for cycle, mean in zip(cycles, means, strict=True)),
            "the mean of a client's cycle is not the mean that the law declares",
        )
        return
    random = stream(0, "conformance")
    mean = float(means[0])
    drawn = np.array([law.draw(mean, random) for _ in range(DRAWS)])
    error = ERRORS * drawn.std(ddof=1) / DRAWS**0.5
    must(abs(drawn.mean() - mean) <= error, f"draws of mean {mean:g} have the mean {drawn.mean():.4g}")


def lengths_are_exponential_where_it_says_so(law: Durations) -> None:
    """Draws pass a Kolmogorov–Smirnov test if the law is `memoryless`."""
    if not law.memoryless:
        return
    from scipy import stats

    random, mean = stream(0, "conformance"), float(law.means(CLIENTS, 7)[0])
    drawn = [law.draw(mean, random) / mean for _ in range(DRAWS)]
    chance = stats.kstest(drawn, "expon").pvalue
    must(chance > RARE, "its lengths are not exponential: set memoryless to False")


def runs_go_through_under_these_durations(law: Durations) -> None:
    """Asynchronous SGD spends the budget, and a second run has equal arrivals."""
    _ends_and_repeats(scenario(durations=law.model_dump(mode="json")))


def absences_follow_one_another(law: Availability) -> None:
    """An absence ends after the begin and before the next; every call gives equal absences."""
    for client in range(CLIENTS):
        absences = list(islice(law.absences(client, CLIENTS, 7), 20))
        repeated = list(islice(law.absences(client, CLIENTS, 7), 20))
        must(absences == repeated, "absences differ between two calls")
        ends = [0, *(end for _, end in absences[:-1])]
        must(None not in ends, "an absence follows one without an end")
        for (leaves, returns), previous_end in zip(absences, ends, strict=False):
            must(
                previous_end is not None and leaves >= previous_end,
                f"an absence begins at {leaves}, before {previous_end}",
            )
            must(returns is None or returns > leaves, f"an absence ends at {returns}, not after {leaves}")


def runs_go_through_with_these_absences(law: Availability) -> None:
    """Asynchronous SGD ends as done, and a second run has equal arrivals."""
    _ends_and_repeats(scenario(availability=law.model_dump(mode="json")))


def each_client_has_its_number(law: PerClient) -> None:
    """A number a client, 0 or more, equal at every call under a seed and purpose."""
    numbers = law.values(CLIENTS, 7, "rates")
    must(len(numbers) == CLIENTS and min(numbers) >= 0, "values: one number for each client, 0 or more")
    must(law.values(CLIENTS, 7, "rates") == numbers, "values differ between two calls")


def _ends_and_repeats(setting: Scenario) -> None:
    """Check that a run is done, and that a second run has equal arrivals."""
    described = experiment(setting)
    first = run(described)
    must(first.status is Status.DONE, f"a run ended as {first.status}: {first.reason}")
    must(run(described).arrivals == first.arrivals, "the same experiment gave other arrivals")


def data_are_dealt_out_as_promised(partition: Partition) -> None:
    """600 data points of ten classes are dealt to six clients as promised, alike under a seed."""
    labels = np.arange(600) % 10
    parts, repeated, reseeded = (partition.split(labels, CLIENTS, seed) for seed in (7, 7, 8))
    same = [np.array_equal(a, b) for a, b in zip(parts, repeated, strict=True)]
    must(all(same), "the same seed gave another partition")
    held = np.concatenate([*parts, *reseeded])
    must(held.min() >= 0 and held.max() < len(labels), "it deals out data points that do not exist")


def messages_have_the_mean_and_variance_that_it_says(coding: Coding) -> None:
    """A vector is left unchanged, nothing is received of zeros, and ω bounds the variance if declared."""
    vector, random = (
        torch.randn(40, generator=torch.Generator().manual_seed(0), dtype=torch.double),
        stream(0, "conformance"),
    )
    original = vector.clone()
    must(not coding.code(torch.zeros(40), random).any(), "zeros are received as other numbers")
    omega = coding.variance(len(vector))
    drawn = torch.stack([coding.code(vector, random) for _ in range(DRAWS // 10 if omega else 1)])
    must(torch.equal(vector, original), "it writes into the vector that is sent")
    must(coding.bytes(len(vector), 8) > 0, "no bytes are sent")
    if omega:
        apart = float((drawn.mean(0) - vector).norm() / vector.norm())
        bound = ERRORS * (omega / len(drawn)) ** 0.5
        must(apart <= bound, f"the mean of what is received is off by {apart:.2g} of the vector's length")
        variance = float((drawn - vector).square().sum(1).mean() / vector.square().sum())
        must(variance <= 1.05 * omega, f"the variance is {variance:.3g}, not at most {omega:.3g}, of ‖v‖²")


DURATIONS = (
    lengths_do_not_depend_on_the_order_of_asking,
    lengths_have_the_means_that_it_says,
    lengths_are_exponential_where_it_says_so,
    runs_go_through_under_these_durations,
)
