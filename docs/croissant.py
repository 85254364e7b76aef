"""Croissant metadata (JSON-LD) of the published tables: https://docs.mlcommons.org/croissant

The texts are in `croissant.yaml`; `python docs/reproduce.py --write` writes the files.
"""

import csv
import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
FILE = "croissant.json"

# The context of Croissant 1.0, with the vocabulary for responsible AI
TERMS = """
citeAs column equivalentProperty extract field fileObject fileProperty fileSet format includes isLiveDataset
jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source
subField transform
"""
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in TERMS.split()},
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}


def metadata() -> dict[str, bytes]:
    """Return the content of each metadata file by its path in the repository."""
    texts = yaml.safe_load((ROOT / "docs" / "croissant.yaml").read_text(encoding="utf-8"))
    return {
        f"{folder}/{FILE}": _document(ROOT / folder, texts["all"] | group, texts["columns"])
        for folder, group in texts["groups"].items()
    }


def _document(folder: Path, texts: dict[str, Any], columns: dict[str, list[str]]) -> bytes:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version, first, last = _release(folder, project["version"])
    author, tables = project["authors"][0]["name"], sorted(folder.rglob("*.csv"))
    document = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        **texts,
        "version": version,
        "datePublished": last,
        "rai:dataCollectionTimeframe": [first, last],
        "keywords": project["keywords"],
        "creator": {"@type": "sc:Organization", "name": author},
        "citeAs": (
            f"@software{{asyncfl_bench, title={{{texts['name']}}}, author={{{{{author}}}}}, "
            f"year={{{last[:4]}}}, version={{{version}}}}}"
        ),
        "distribution": [_file_object(path, folder) for path in tables],
        "recordSet": [_record_set(path, folder, columns) for path in tables],
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def _release(folder: Path, project_version: str) -> tuple[str, str, str]:
    """Return the version of a group of tables, and the days of its first and last runs."""
    rules = folder / "rules.yaml"
    if rules.is_file():  # a version of the leaderboard
        manifest = yaml.safe_load(rules.read_text(encoding="utf-8"))
        return f"{manifest['version']}.0", manifest["date"], manifest["date"]
    days = [
        row["when"][:10]
        for path in folder.glob("*.csv")
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())
        if "when" in row
    ]
    return project_version, min(days), max(days)


def _file_object(path: Path, folder: Path) -> dict[str, Any]:
    name, content = path.relative_to(folder).as_posix(), path.read_bytes()
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{len(content)} B",
        "encodingFormat": "text/csv",
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _record_set(path: Path, folder: Path, columns: dict[str, list[str]]) -> dict[str, Any]:
    file = path.relative_to(folder).as_posix()
    name = file.removesuffix(".csv")
    fields = []
    for column in next(csv.reader(path.read_text(encoding="utf-8").splitlines()[:1])):
        kind, description = columns[column]
        fields.append(
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column}",
                "name": column,
                "description": description,
                "dataType": f"sc:{kind}",
                "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
            }
        )
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}
