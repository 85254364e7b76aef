"""Metadata of the published tables are valid Croissant, and records are read with them."""

import csv
import itertools
import json
import logging
import math
from pathlib import Path
from typing import Any

import croissant
import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "benchmarks").rglob(croissant.FILE))
RESPONSIBLE_AI = {
    "rai:dataCollection",
    "rai:dataCollectionType",
    "rai:dataCollectionMissingData",
    "rai:dataPreprocessingProtocol",
    "rai:dataCollectionTimeframe",
    "rai:dataLimitations",
    "rai:dataBiases",
    "rai:dataUseCases",
    "rai:dataSocialImpact",
    "rai:personalSensitiveInformation",
    "rai:dataReleaseMaintenancePlan",
}


def test_every_published_table_is_described() -> None:
    files = croissant.metadata()
    assert sorted(files) == FILES
    for path, content in files.items():
        assert (ROOT / path).read_bytes() == content, "write it with: python docs/reproduce.py --write"
        folder, document = (ROOT / path).parent, json.loads(content)
        tables = {file.relative_to(folder).as_posix() for file in folder.rglob("*.csv")}
        assert {one["@id"] for one in document["distribution"]} == tables
        assert {f"{one['@id']}.csv" for one in document["recordSet"]} == tables
        assert document.keys() >= RESPONSIBLE_AI


@pytest.mark.parametrize("path", FILES)
def test_metadata_are_valid_and_records_are_those_of_the_tables(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    with caplog.at_level(logging.WARNING):
        dataset = mlcroissant.Dataset(jsonld=str(ROOT / path))
    issues = dataset.metadata.ctx.issues
    assert not issues.errors and not issues.warnings and not caplog.records
    folder = (ROOT / path).parent
    for record_set in dataset.metadata.record_sets:
        with (folder / f"{record_set.uuid}.csv").open(newline="", encoding="utf-8") as lines:
            table = list(itertools.islice(csv.DictReader(lines), 20))
        records = itertools.islice(dataset.records(record_set.uuid), 20)
        for row, record in zip(table, records, strict=True):
            assert {name.rpartition("/")[2]: text(value) for name, value in record.items()} == {
                name: text(value) for name, value in row.items()
            }


def text(value: Any) -> str:
    """A cell as text; numbers in one form, and no text where there is no value."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        value = value.decode()
    try:
        number = float(value)
    except ValueError:
        return str(value)
    return "" if math.isnan(number) else repr(number)
