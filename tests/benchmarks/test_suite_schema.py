"""The JSON schema of a suite accepts what loads and refuses what does not."""

from typing import Any

import pytest
import yaml

from benchmarks.commands.list import suite_schema
from benchmarks.suite.shipped import shipped

jsonschema = pytest.importorskip(
    "jsonschema", reason="jsonschema is not installed: nothing here to validate with"
)


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = suite_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_shipped_suites(validator: Any) -> None:
    for path in shipped().values():
        suite = yaml.load(path.read_text(), yaml.CSafeLoader)
        assert list(validator.iter_errors(suite)) == [], path


def suite(**changed: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "name": "small",
        "seeds": 2,
        "problem": {"name": "quadratic"},
        "budget": {"updates": 3, "time": "1/3"},
        "strategies": ["fedavg", {"name": "fedfix", "period": 0.25, "local": {"steps": 3}}, "my.module:Mine"],
    }
    return {**base, **changed}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"seeds": [3, 4]},
        {"lr": 0.1},
        {"lr": {"fedavg": 0.1, "ace": {"local": 0.1, "server": 1.0}}},
        {"local": {"batch": 3}},
        {"local": {"name": "prox", "mu": 0.5}},
        {"grid": {"problem.noise": [0, 1], "timing.durations": ["fixed", {"name": "fx", "spread": 80}]}},
        {"arrangement": None},
        {"arrangement": "rounds"},
    ],
)
def test_accepts(validator: Any, changed: dict[str, Any]) -> None:
    assert list(validator.iter_errors(suite(**changed))) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"seeds": 0},
        {"seeds": [1, 1]},
        {"strategies": ["fedbuf"]},
        {"strategies": [{"name": "fedbuff", "bufer": 3}]},
        {"strategies": [{"name": "fedbuff", "buffer": 0}]},
        {"strategies": [{"buffer": 2}]},
        {"local": {"btch": 3}},
        {"lr": "fast"},
        {"evaluation": 3},
        {"timing": {"durations": {"name": "fx", "spred": 3}}},
    ],
)
def test_refuses(validator: Any, changed: dict[str, Any]) -> None:
    assert list(validator.iter_errors(suite(**changed))) != []


def undescribed(schema: Any, where: str = "") -> list[str]:
    """Properties without a description, anywhere in a schema."""
    if isinstance(schema, list):
        return [path for at, one in enumerate(schema) for path in undescribed(one, f"{where}[{at}]")]
    if not isinstance(schema, dict):
        return []
    properties = schema.get("properties", {})
    here = [f"{where}.{name}" for name, of in properties.items() if not of.get("description")]
    return here + [path for key, of in schema.items() for path in undescribed(of, f"{where}.{key}")]


def test_every_key_and_every_definition_is_described() -> None:
    schema = suite_schema()
    assert undescribed(schema) == []
    assert [name for name, one in schema["$defs"].items() if not one.get("description")] == []
    assert undescribed({"$defs": {"A": {"properties": {"b": {"type": "string"}}}}}) == [".$defs.A.b"]
