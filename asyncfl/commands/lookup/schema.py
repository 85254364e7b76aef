"""The JSON schema of a suite."""

from typing import Any


def suite_schema() -> dict[str, Any]:
    """Return what a suite may say, short forms included; combinations are checked when it is loaded."""
    from benchmarks.suite.file import SuiteFile
    from benchmarks.suite.labels import LONGEST
    from fl_core.local.sgd import SGD

    schema = SuiteFile.model_json_schema()
    nameless = {**SGD.model_json_schema(), "required": []}
    schema["$defs"]["LocalWork"]["anyOf"].append(nameless)  # the suite's local work, or plain SGD
    label = {"type": "string", "maxLength": LONGEST, "description": "its name in tables and figures"}
    for member in schema["$defs"]["Strategy"]["anyOf"]:
        if member.get("type") == "object":
            member["properties"] = {**member["properties"], "label": label}
    required = [key for key in schema["required"] if key not in ("problem", "budget")]  # or the grid's
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**head, **schema, "title": "Suite of asyncfl-bench", "required": required}
