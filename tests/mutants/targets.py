"""What is mutated, and which tests have to notice it: the one place to edit when files move."""

from pathlib import Path

ROOT = Path(__file__).parents[2]

# Rows of the table in docs/testing.md → patterns of files, relative to the root.
GROUPS: dict[str, tuple[str, ...]] = {
    "strategies": ("fl_core/strategies/**/*.py",),
    "loop": ("fl_core/loop/*.py", "fl_core/server/*.py"),
    "local work": ("fl_core/local/*.py",),
    "arrangement": ("fl_core/arrangements/*.py",),
    "timing": ("fl_core/timing/*.py",),
    "theory": ("fl_core/theory/*.py",),
    "metrics": ("fl_core/recording/recorder.py",),
}

# The tests that have to notice. Left out: trajectories that the code itself recorded, devices and data sets.
TESTS = (
    "tests/fl_core/test_*.py",
    "tests/fl_core/oracles/test_*.py",
    "tests/fl_core/theory/test_*.py",
    "tests/fl_core/timing/test_*.py",
)
TESTS_LEFT_OUT = (
    "tests/fl_core/test_golden.py",
    "tests/fl_core/test_devices.py",
    "tests/fl_core/test_vision.py",
)

# What is called at a field for the tuner: its data, not part of an algorithm.
DATA = ("Tune", "TuneAmong")

# What a default or a constant outside of any function is held to by tests that run nothing of its file.
TESTS_OF_DEFAULTS = "tests/fl_core/oracles/"

# Libraries that are imported once, before the children are forked.
LIBRARIES = (
    "hypothesis.extra.numpy",
    "mlflow",
    "pandas",
    "pydantic",
    "pytest",
    "pytest_timeout",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.datasets",
    "torch.func",
    "fl_core.lightning",  # Lightning, torchmetrics and torchvision
)


def files(patterns: tuple[str, ...]) -> list[str]:
    """Paths of the files that match, relative to the root, sorted."""
    found = {path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)}
    return sorted(found)


def group_of() -> dict[str, str]:
    """File → its group, for every file that is mutated."""
    return {file: group for group, patterns in GROUPS.items() for file in files(patterns)}


def test_files() -> list[str]:
    """The test files that have to notice a mutation."""
    return [file for file in files(TESTS) if file not in TESTS_LEFT_OUT]
