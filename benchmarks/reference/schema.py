"""The JSON schema of a suite file: what a person may write, short forms included."""

from __future__ import annotations

from typing import Any

from benchmarks.suite.file import SuiteFile
from fl_core.local.sgd import SGD


def suite_schema() -> dict[str, Any]:
    """The schema, with every shipped part; combinations are checked when a suite is loaded."""
    schema = SuiteFile.model_json_schema()
    nameless = {**SGD.model_json_schema(), "required": []}
    schema["$defs"]["LocalWork"]["anyOf"].append(nameless)  # the suite's local work, or plain SGD
    schema["required"] = [
        key for key in schema["required"] if key not in ("problem", "budget")
    ]  # or the grid's
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Suite of asyncfl-bench",
    }
