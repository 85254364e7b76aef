"""Figures and tables of a page as files for a paper: SVG and PDF, CSV and LaTeX."""

from pathlib import Path

from reports.sections.section import Section
from reports.tables import csv, slug

LONGEST = 100  # letters of a file's name


def write_files(sections: list[Section], folder: Path) -> list[Path]:
    """Write all figures and tables into `folder`, created if needed; existing files are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for section in sections:
        for title, drawing in section.figures:
            path = _free(folder, f"{section.anchor} {title}", ".svg", written)
            for file in (path, path.with_suffix(".pdf")):
                drawing.save(file)
                written.append(file)
        for table in section.tables:
            path = _free(folder, f"{section.anchor} {table.name}", ".csv", written)
            path.write_text(csv(table.numbers), encoding="utf-8")
            written.append(path)
            if table.lines:
                written.append(path.with_suffix(".tex"))
                written[-1].write_text(table.latex(), encoding="utf-8")
    return written


def _free(folder: Path, name: str, suffix: str, taken: list[Path]) -> Path:
    """Return an unused path for a name, with a number if the name is taken."""
    base = slug(name)[:LONGEST].strip("-")
    path, number = folder / f"{base}{suffix}", 2
    while path in taken:
        path, number = folder / f"{base}-{number}{suffix}", number + 1
    return path
