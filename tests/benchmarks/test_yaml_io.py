"""YAML's core schema, by the tables of the YAML 1.2 specification (chapter 10.3), and its bounds."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import yaml_io
from benchmarks.errors import UserError
from benchmarks.suite.suite import load
from benchmarks.yaml_io import YAMLParseError

SUITE = """name: small
seeds: {seeds}
problem: {{name: digits, clients: {clients}}}
budget: {{updates: {updates}}}
strategies: [fedavg, ace]
grid: {grid}
"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("null", None), ("~", None), ("", None), ("Null", None), ("nUll", "nUll")),
        *(("true", True), ("FALSE", False), ("yes", "yes"), ("on", "on"), ("n", "n")),
        *(("0", 0), ("-19", -19), ("+12", 12), ("012", 12), ("0o14", 12), ("0x3A", 58), ("0b1", "0b1")),
        *(("0x", "0x"), ("1_000", "1_000"), ("190:20:30", "190:20:30"), ("-0x1", "-0x1")),
        *(("0.", 0.0), ("-0.0", -0.0), (".5", 0.5), ("+12e03", 12000.0), ("-2E+05", -2e5), ("1e-3", 1e-3)),
        *((".inf", math.inf), ("-.Inf", -math.inf), ("inf", "inf"), ("nan", "nan"), (".", "."), ("e3", "e3")),
        *(("2026-13-40", "2026-13-40"), ("2026-01-02", "2026-01-02"), ("'1'", "1"), ("!!str 1", "1")),
        ("{1: a, 0.1: b, true: c}", {"1": "a", "0.1": "b", "true": "c"}),
        ("[&a {x: 1}, *a, {<<: *a, y: 2}]", [{"x": 1}, {"x": 1}, {"x": 1, "y": 2}]),
    ],
)
def test_the_core_schema(text: str, value: Any) -> None:
    found = yaml_io.value(text)
    assert found == value and type(found) is type(value)
    assert math.isnan(yaml_io.value(".NaN"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: " + "9" * 5000, 2),
        ("a: 9223372036854775808", 1),
        ("a: 1e999", 1),
        ("a:\n- *b", 2),
        ("a: &a [*a]", 1),
        ("a: 1\na: 2", 2),
        ("- &a {x: 1}\n- &b {y: 2}\n- <<: *a\n  <<: *b", 4),
        ("a: !!timestamp 2026-01-01", 1),
        ("\n" + "[" * 60 + "]" * 60, 2),
        ('a: "\\uD800"', 1),
        ("<<: 3", 1),
        ('a: "\\UFFFFFFFF"', None),
    ],
)
def test_what_is_not_plain_names_its_line(text: str, line: int | None) -> None:
    with pytest.raises(YAMLParseError) as caught:
        yaml_io.parse(text)
    assert caught.value.wrong[0][0] == line


def test_aliases_do_not_multiply_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A billion laughs in ten lines: refused as soon as the limit is exceeded."""
    monkeypatch.setattr(yaml_io, "MAX_NODES", 10_000)
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(YAMLParseError, match="more than 10,000 values and keys"):
        yaml_io.parse("\n".join(lines))


def test_a_copy_behind_an_alias_is_a_copy() -> None:
    first, second = yaml_io.value("[&a {x: 1}, *a]")
    first["x"] = 2
    assert second == {"x": 1}


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_bytes(b"#" * (yaml_io.MAX_BYTES + 1))
    with pytest.raises(UserError, match=r"s\.yaml: is larger than 8 MB"):
        yaml_io.read(tmp_path / "s.yaml")


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"))
    | st.sampled_from(
        ["1e5", "1234567890123e45", "0o7", "0x1f", "yes", "~", "2026-01-01", "<<", "=", "1:30"]
    ),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc.-1", min_size=1), inner),
    max_leaves=10,
)


@given(plain)
def test_what_is_written_is_read_as_the_same(content: Any) -> None:
    assert yaml_io.parse(yaml_io.dump(content))[0] == content


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"seeds": 10**9}, ":2: seeds: "),
        ({"updates": 10**15}, ":4: budget: "),
        (
            {"grid": f"{{problem.target: {list(range(1000))}, local.steps: {list(range(1000))}}}"},
            ":6: grid: ",
        ),
        ({"seeds": 60_000}, ": 120,000 runs"),
        ({"clients": 10**7}, ":3: problem: "),
    ],
)
def test_what_is_absurd_is_refused_at_once(tmp_path: Path, changed: dict[str, Any], place: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(SUITE.format(**{"seeds": 1, "clients": 2, "updates": 10, "grid": "{}", **changed}))
    with pytest.raises(UserError) as caught:
        load(str(path))
    (line,) = caught.value.lines
    assert line.startswith(f"{path}{place}")


def test_clients_of_a_users_own_problem_are_counted_before_their_means_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.yaml"
    monkeypatch.setattr("benchmarks.suite.fields.MAX_CLIENTS", 5)
    path.write_text(SUITE.format(seeds=1, clients=6, updates=10, grid="{}"))
    with pytest.raises(UserError, match=r"s\.yaml:3: problem: 6 clients"):
        load(str(path))


@pytest.mark.parametrize("time", ["1e-999999999", "9" * 101])
def test_a_fraction_is_not_written_out_without_end(tmp_path: Path, time: str) -> None:
    path = tmp_path / "s.yaml"
    text = SUITE.format(seeds=1, clients=2, updates=10, grid="{}")
    path.write_text(text.replace("budget: {", f"budget: {{time: '{time}', "))
    with pytest.raises(UserError, match=r"s\.yaml:4: budget\.time: "):
        load(str(path))
