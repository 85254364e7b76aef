"""Names of recorded data of runs, trials and studies, for writers and readers.

The recorder, trackers and tuning write them; reports and commands read them.

Fixed: the texts of members, prefixes and suffixes, and names of columns: they stand in stored results. Free:
names of members.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum, auto

CAMPAIGN = ".tuning"  # suffix of the experiment with a suite's tuning campaign
PILOT = ".pilot"  # suffix, before CAMPAIGN, of the experiment with a campaign on a changed suite
VARIANT = "-tuned"  # suffix of a suite with the values found by tuning another suite
UNTUNED = "Rates were set by hand, one for all: a difference may be a difference of rates."
CLAIMS = "claims-"  # prefix of experiments with the runs that claims need
LIVE = "-live-"  # in the name of an experiment with a suite's runs in real time, before the unit of time
DEFAULT = "Default"  # MLflow's own experiment

JOINT = " · "  # between the parts of a scenario's label
EDGE_FRACTION = 0.05  # of a range, on its scale: so near to an end a value lies at an edge


def end_near(
    value: float, low: float, high: float, *, log: bool = False, listed: bool = False, counts: bool = False
) -> str:
    """Return the end of a search range near a value, `lower` or `upper`; empty if neither is near.

    Near is within 5 % of a range. Of a list, only its ends are near. The 1 of a count is no edge, since no
    count is smaller.

    Args:
        value: A value of the range or list.
        low: The smallest value.
        high: The largest value.
        log: Whether the range has a logarithmic scale.
        listed: Whether the values are a list.
        counts: Whether the values are counts.
    """
    if low == high or (counts and value == 1):
        return ""
    if log:
        low, high, value = math.log(low), math.log(high), math.log(value)
    near = 0.0 if listed else EDGE_FRACTION * (high - low)
    return "lower" if value - low <= near else "upper" if high - value <= near else ""


def untuned(rates: Iterable[tuple[str, str, str]]) -> str:
    """Return a warning where all strategies of every scenario share a local rate; otherwise an empty text.

    `rates` are triples of scenario, strategy and rate.
    """
    strategies: dict[str, set[str]] = {}
    values: dict[str, set[str]] = {}
    for scenario, strategy, rate in rates:
        strategies.setdefault(scenario, set()).add(strategy)
        values.setdefault(scenario, set()).add(rate)
    compared = [scenario for scenario, names in strategies.items() if len(names) > 1]
    return UNTUNED if compared and all(len(values[scenario]) == 1 for scenario in compared) else ""


class Status(StrEnum):
    """The state of a run."""

    RUNNING = auto()  # or interrupted
    DONE = auto()  # the budget is spent, or no client is left after some update
    DIVERGED = auto()  # an update, the model or its loss ceased to be finite
    STALLED = auto()  # the model would not change any more, such as where it waits for clients that are gone
    ERROR = auto()  # an exception ended it
    PRUNED = auto()  # a trial's pruner stopped it
    UNREADABLE = auto()  # it ended, but its record is gone or damaged; never written

    @property
    def finite(self) -> bool:
        """True if the run has a final model with valid metrics."""
        return self in {Status.DONE, Status.STALLED}

    @property
    def terminated(self) -> bool:
        """True if nothing more is computed: a final model, divergence, or a pruned trial."""
        return self.finite or self in {Status.DIVERGED, Status.PRUNED}

    @property
    def unfinished(self) -> bool:
        """True if `asyncfl run` computes the run again."""
        return self in {Status.RUNNING, Status.ERROR}


class Reason(StrEnum):
    """The reason for the end of a run."""

    ITERATIONS = "budget of server iterations"
    UPDATES = "budget of client updates"
    TIME = "budget of virtual time"
    BYTES = "budget of bytes"
    TARGET = "target of the budget reached"
    NO_CLIENT = "no client is left"


class TrialState(StrEnum):
    """The state of a tuning trial."""

    RUNNING = auto()
    COMPLETE = auto()
    PRUNED = auto()
    FAILED = auto()


class StudyStatus(StrEnum):
    """The state of a tuning study."""

    RUNNING = auto()  # here or in other processes
    INTERRUPTED = auto()
    FINISHED = auto()


class Origin(StrEnum):
    """The origin of a trial's parameters."""

    PAPER = auto()  # the suite's own values, or the defaults, which are the paper's
    GRID = auto()
    SAMPLER = auto()


class JudgedOn(StrEnum):
    """The data for comparing trials."""

    VALIDATION = "validation data"
    HALF = "the other half of the test data"
    TRAINING = "the clients' training data"
    PROBLEM = "the problem itself, which has no test data"


class Clock(StrEnum):
    """A clock of a run; the text is the column in tables."""

    ITERATION = auto()
    UPDATES = auto()
    TIME = auto()
    BYTES = auto()  # sent in both directions
    ENERGY = auto()  # joules drawn by all clients; only where their power is given

    @property
    def budget(self) -> str:
        """Return the field of a budget for the clock."""
        return "iterations" if self is Clock.ITERATION else self.value

    @property
    def words(self) -> str:
        """The clock on axes and in sentences."""
        words = {"iteration": "server iterations", "updates": "client updates", "time": "virtual time"}
        return words.get(self, "bytes sent" if self is Clock.BYTES else "energy (J)")

    @property
    def heading(self) -> str:
        """The clock as a heading: `words` with a capital letter first."""
        return self.words[:1].upper() + self.words[1:]

    @property
    def metric(self) -> str:
        """Return the clock's name among MLflow's metrics; empty for the iteration, MLflow's step."""
        names = {"iteration": "", "time": "clock/virtual_time"}
        return names.get(self, f"clock/{self.value}")

    @property
    def to_target(self) -> str:
        """Return the metric for the clock at the target."""
        return f"{self.value}_to_target"


BY_BUDGET = {clock.budget: clock for clock in Clock}
# Metric → its clock
TO_TARGET = {clock.to_target: clock for clock in Clock if clock is not Clock.ITERATION}


class Kind(StrEnum):
    """The kind of an MLflow run, in the tag `Tag.KIND`."""

    RUN = auto()  # one run
    GROUP = auto()  # a strategy in a scenario: the parent of its seeds, and their mean
    POOLED = auto()  # a centralised baseline
    REPORT = auto()  # the report page
    STUDY = auto()  # the search for a strategy's parameters in a scenario
    TRIAL = auto()  # a trial of a study


TAGS = "asyncfl."  # begins the names of our tags


class Tag(StrEnum):
    """A tag of the project, by name in MLflow."""

    @staticmethod
    def _generate_next_value_(name: str, *_: object) -> str:
        return f"{TAGS}{name.lower()}"

    # Of every kind
    KIND = auto()  # run, group, pooled (a centralised baseline), report, study or trial
    SUITE = auto()  # name of the suite, of its campaign or of its tuned variant
    SUPERSEDED = auto()  # there if other runs of the same labels, or another study, count in its place
    # Of a run, a group or a baseline
    KEY = auto()  # the run's identity: a hash of all that determines its numbers
    SCENARIO = auto()  # label of the scenario, unique in the suite
    CONDITIONS = auto()  # the parts of a scenario's label, as JSON: problem, partition, timing, …
    PROBLEM = auto()  # name of the problem
    PARTITION = auto()  # how data are split among clients
    TIMING = auto()  # how long jobs take, and who is available when
    STRATEGY = auto()  # label of the strategy, unique in the suite
    PAPER = auto()  # the strategy's paper
    SEED = auto()  # seed of the run
    METRIC = auto()  # name of the metric that ranks
    HIGHER_IS_BETTER = auto()  # whether higher values of that metric are better
    METRICS = auto()  # declarations of all metrics, as JSON: name, title, direction, unit
    TARGET = auto()  # value of the ranking metric that counts as reached
    SHOW = auto()  # metrics that reports show first
    CODE = auto()  # import paths of the user's own code, with digests, as JSON
    EVALUATE = auto()  # what is evaluated at every mark: test data, or clients' training data as well
    # How it ended: done, diverged, stalled, error or pruned; of a study running, interrupted or finished
    STATUS = auto()
    REASON = auto()  # why it ended
    WALL_SECONDS = auto()  # seconds of computing, over all attempts
    EXECUTION = auto()  # how jobs were computed: one by one, stacked, or as CUDA graphs
    DEVICE = auto()  # CPU or GPU that computed the run
    MEMORY_FORMAT = auto()  # order of a tensor's dimensions in memory, on a GPU
    DATA = auto()  # digests of data, partition and first weights, as JSON
    VERSION = auto()  # version of asyncfl-bench
    COMMIT = auto()  # commit of asyncfl-bench's repository
    REPOSITORY = auto()  # the commit of the repository in which the command was started
    VERSIONS = auto()  # versions of Python and libraries, as JSON
    MACHINE = auto()  # operating system, number of cores and memory
    PROCESSOR = auto()  # model of the processor
    CLOCK = auto()  # "wall" for a run in real time; absent for others
    UNIT = auto()  # seconds in a unit of virtual time, of a run in real time
    TIME_UNIT = auto()  # name of the unit of virtual time, if a trace names it
    MEAN_OF = auto()  # ids of the runs that a group's curve is the mean of
    # Of an experiment
    DESCRIPTION = auto()  # description of the suite
    HIGHLIGHT = auto()  # labels of strategies, a JSON list
    # Of a study, beside some of the above
    STUDY = auto()  # name of the study
    IDENTITY = auto()  # hash of all that a study's trials have in common; an edit makes another study
    OBJECTIVE = auto()  # what a trial is judged by: final, auc, updates_to_target or time_to_target
    DIRECTION = auto()  # maximize or minimize
    TRIALS = auto()  # number of trials that are planned
    SEEDS = auto()  # seeds of every trial, a JSON list
    BUDGET = auto()  # where a trial's runs end, in words
    SAMPLER = auto()  # how values are proposed
    SPACE = auto()  # what is searched, as JSON: range or choices of each parameter
    JUDGED_ON = auto()  # data on which trials are judged
    PRUNER = auto()  # when trials are given up early
    BEST = auto()  # parameters of the best trial, as JSON
    BEST_VALUE = auto()  # objective of the best trial, mean over seeds
    BEST_TRIAL = auto()  # number of the best trial
    IMPORTANCE = auto()  # importance of each parameter (PED-ANOVA), as JSON: shares that sum to 1
    PRUNED = auto()  # numbers of the pruned trials
    # Of a trial's run, beside some of the above
    TRIAL = auto()  # number of the trial in its study
    # Where the values of a trial come from: paper (those of the suite, or defaults), grid or sampler
    ORIGIN = f"{TAGS}from"
    CHOSEN = auto()  # "true" if the trial is the best of its study

    @property
    def short(self) -> str:
        """Return the name without the common prefix."""
        return self.removeprefix(TAGS)


WALL = "wall"  # the clock of a run in real time


class MlflowTag(StrEnum):
    """A tag of MLflow set by the project."""

    NAME = "mlflow.runName"
    PARENT = "mlflow.parentRunId"
    COLOUR = "mlflow.runColor"
    NOTE = "mlflow.note.content"
    EXPERIMENT_KIND = "mlflow.experimentKind"  # so that MLflow's pages open on runs, not on language models


SEED = "seed"
OF_BUDGET = "budget."  # begins the names of a budget's parameters
OF_STRATEGY = "strategy."  # … and of a strategy's
NETWORK = "timing.network."  # … and of a network's
POWER = "timing.power."  # … and of the clients' power
STRATEGY_NAME = f"{OF_STRATEGY}name"


class Total(StrEnum):
    """A metric of a whole run, or of the seeds of a group."""

    KEPT_BY_SERVER = "kept_bytes/server"  # bytes of state that the server keeps at the end
    KEPT_BY_CLIENTS = "kept_bytes/clients"  # bytes of state that all clients keep at the end
    # Server versions between the sending of a job and its arrival, mean over updates
    STALENESS_MEAN = "staleness/mean"
    STALENESS_MAX = "staleness/max"  # the greatest of these, in server versions
    LOCAL_STEPS = "local_steps"  # gradient steps of clients, of all updates
    NON_FINITE = "non_finite_updates"  # updates with an infinity or NaN; recorded only above 0
    MISREAD = "misread_messages"  # messages that could not be decoded; recorded only above 0
    WALL_SECONDS = "wall_seconds"  # seconds of computing over all attempts, waiting left out
    TRANSFER_SHARE = "transfer_share"  # share of the working time of clients that downloads and uploads take
    # Share of a run in which the server did not wait, in real time or where the server takes virtual time
    SERVER_BUSY = "server_busy"
    SERVER_WAIT = "server_wait"  # virtual time that an update waits for the server, mean over updates
    SEEDS_DONE = "seeds/done"  # seeds of a group that ended with a final model
    SEEDS_DIVERGED = "seeds/diverged"  # seeds of a group that diverged, and are left out of means
    # Seeds of a group whose model would not change any more; recorded only above 0
    SEEDS_STALLED = "seeds/stalled"


DIAGNOSED = "diagnostics/"  # begins the names of means over a run of what was diagnosed
SPREAD = "std/"  # begins the names of standard deviations over seeds


class TrialMetric(StrEnum):
    """A metric of a trial's run, or of a study."""

    OBJECTIVE = "objective"  # value of the trial under this seed, in the unit of what it is judged by
    REACHED = "objective/reached"  # 1 if the objective's target was met, 0 if not
    TIME_EASY = "objective/time_easy"  # virtual time at which problem.target was met; absent if it was not
    TIME_HARD = "objective/time_hard"  # virtual time at which the objective's own target was; likewise
    UPDATES = "objective/updates"  # client updates until the objective's target, or else to the end
    UPLOADS = "objective/uploads"  # bytes uploaded until then
    END = "objective/end"  # the metric at the end; absent if diverged
    WORST_CLIENT = "objective/worst_client"  # the same at the client where it is worst
    BEST_VALUE = "best_value"  # objective of a study's best trial, mean over seeds


class Name:
    """Names of columns, besides clocks and metrics."""

    UPLOADS, DOWNLOADS = "uploads_bytes", "downloads_bytes"
    TOKENS = "tokens"  # that clients trained on, of all updates
    CLIENT, STALENESS, VERSION = "client", "staleness", "version"
    DEVICE = "device"  # id of a client in the user's own files
    IMPORTANCE, MEAN_TIME, SIZE, LOSS = "importance", "mean_time", "size", "loss"
    NOISE, BIAS, DELAY, GRADIENT = "noise_sq", "bias_sq", "delay_sq", "gradient_sq"
    DOWNLOAD, COMPUTATION, UPLOAD = "download_time", "computation_time", "upload_time"
    SERVER_WAIT, SERVICE = "server_wait_time", "server_time"  # of updates of clients without another job
    ROUND_TIME, PARTICIPANTS = "round_time", "participants"
    JOB, SENT, BEGAN, ARRIVED = "job", "sent", "began", "arrived"
    STEPS, COMPUTED, RESENT = "steps", "computed_seconds", "resent"
    KIND, MODEL = "kind", "model"
    ALARM, SET, RANG = "alarm", "set", "rang"


PHASES = (Name.DOWNLOAD, Name.COMPUTATION, Name.UPLOAD)  # of a job
PHASES_AT_SERVER = (Name.SERVER_WAIT, Name.SERVICE)  # of an update, where the server takes time


# Kinds of columns with a finite number in every row, 0 or more: whole, or any; as `array` and NumPy name them
COUNT, AMOUNT = "q", "d"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a run, in a separate file.

    Columns that are not listed hold numbers, infinite ones and NaN included, or nothing where a quantity was
    not measured.
    """

    name: str
    columns: Mapping[str, str]  # in every file: name → COUNT or AMOUNT
    rows: int = 0  # at least
    ordered: tuple[str, ...] = ()  # columns in which no row is less than the one before
    bounds: Mapping[str, str] = field(default_factory=dict)  # column → the one that it never exceeds
    numbers: str = ""  # the column that numbers the rows from 0
    shares: str = ""  # the column that sums to 1
    texts: tuple[str, ...] = ()  # columns of text, which a file may lack

    @property
    def file(self) -> str:
        """Return the name of the file."""
        return f"{self.name}.parquet"


TRACEBACK = "traceback.txt"  # file of a run that ended in error

ITERATION, UPDATES, TIME, BYTES, ENERGY = (clock.value for clock in Clock)
CLOCKS = {ITERATION: COUNT, UPDATES: COUNT, TIME: AMOUNT}
CURVE = Table("curve", CLOCKS, rows=1, ordered=tuple(CLOCKS))  # a row for each evaluation
ARRIVALS = Table(
    "arrivals",
    {TIME: AMOUNT, Name.CLIENT: COUNT, Name.STALENESS: COUNT, Name.VERSION: COUNT},
    ordered=(TIME, Name.VERSION),
    bounds={Name.STALENESS: Name.VERSION},
)
CLIENTS = Table(
    "clients",
    {Name.CLIENT: COUNT, Name.IMPORTANCE: AMOUNT, Name.MEAN_TIME: AMOUNT, Name.SIZE: COUNT},
    rows=1,
    numbers=Name.CLIENT,
    shares=Name.IMPORTANCE,
    texts=(Name.DEVICE,),
)
# Of a run in real time: its jobs, its events, its late alarms, and its last model. Times are in units of
# virtual time; a job that was dismissed or lost, or in flight at the end, has no arrival.
JOBS = Table(
    "jobs",
    dict.fromkeys((Name.CLIENT, Name.JOB, Name.VERSION), COUNT)
    | {Name.SENT: AMOUNT}
    | dict.fromkeys((Name.STEPS, Name.UPLOADS, Name.DOWNLOADS, Name.RESENT), COUNT),
)
EVENTS = Table(
    "events",
    {TIME: AMOUNT, Name.KIND: COUNT, Name.VERSION: COUNT, Name.MODEL: COUNT},
    ordered=(TIME, Name.VERSION),
)
SLIPS = Table("slips", dict.fromkeys((Name.SET, Name.RANG), AMOUNT))
MODEL = Table("model", {}, rows=1)
DIAGNOSTICS = Table("diagnostics", {ITERATION: COUNT}, ordered=(ITERATION,))
