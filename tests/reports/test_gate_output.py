"""Files of the gate: JUnit XML and Markdown, whatever the names are."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from reports.gate import output as gate_output
from reports.gate.baseline import Baseline
from reports.gate.gate import Finding, GateCheck

HOSTILE = 'A|<b>`*_[x](y)\\\n& "q"'


def hostile() -> list[GateCheck]:
    return [
        GateCheck(
            "digits · F80", HOSTILE, "Final test accuracy", Finding.WORSE, "93.0 %", "84.0 %", "−9.0", "−2.0"
        ),
        GateCheck(
            "", "ACE", "Speed ÷ yardstick", Finding.BETTER, "0.5", "0.9", "0.56 × the time", "1.5 × the time"
        ),
        GateCheck("digits · F80", "ACE", "Schedule", Finding.SAME),
    ]


def test_junit() -> None:
    """Well-formed whatever the names are; a failure each for what failed, nothing for the others."""
    root = ET.fromstring(
        gate_output.junit(hostile(), Baseline(suite="ci", commit="", versions={}, goals={}, runs=()))
    )
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert [case.find("failure") is not None for case in suite] == [True, False, False]
    assert suite[0].get("name", "").startswith("A|<b>")
    failure = suite[0].find("failure")
    assert failure is not None
    assert failure.get("message") == "93.0 % → 84.0 % (−9.0; allowed −2.0)"


def test_markdown() -> None:
    """Every row has as many cells as the head, whatever the names are; nothing of them is markup."""
    before = Baseline(suite="ci", commit="0123456789abcdef", versions={"torch": "2.13.0"}, goals={}, runs=())
    anew, newer = "asyncfl check ci", before.model_copy(update={"versions": {"torch": "2.14.0"}})

    def markdown(checks: list[GateCheck], now: Baseline) -> str:
        return gate_output.markdown(checks, before, now, gate_output.to_accept(checks, anew))

    text = markdown(hostile(), newer)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8}
    assert "\\<b>" in text and text.startswith(f"{gate_output.SUMMARY}\n## ❌ ci: 3 checks, 1 worse (")
    assert "`asyncfl check ci --update --accept-worse REASON`" in text and "torch 2.13.0 → 2.14.0" in text
    better = markdown(hostile()[1:], newer)
    assert better.startswith(f"{gate_output.SUMMARY}\n## ✅ ci: 2 checks, 1 better (ACE).")
    assert "Accept the improvement: `asyncfl check ci --update`." in better
    alike = markdown(hostile()[2:], before)
    assert alike.startswith(f"{gate_output.SUMMARY}\n## ✅ ci: 1 check, all as before.")


def test_an_error_is_reported_whatever_its_text_is() -> None:
    """Control characters are no XML, and fences in a text end no fence."""
    lines, trace = ("bad \x1b[31m <value> \x00", "lr: 0.2 → 0.1"), "Traceback\n```\nValueError: \x07 no & yes"
    (suite,) = ET.fromstring(gate_output.junit_of_error("mine", lines, trace))
    (case,) = suite
    error = case.find("error")
    assert suite.get("errors") == "1" and error is not None and error.text is not None
    assert "lr: 0.2 → 0.1" in error.text and "ValueError:  no & yes" in error.text
    text = gate_output.markdown_of_error("mine", lines, trace)
    assert text.startswith(gate_output.SUMMARY) and "lr: 0.2 → 0.1" in text
    assert text.count(gate_output.FENCE) == 4 and trace in text
