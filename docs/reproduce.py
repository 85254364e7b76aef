"""Rebuild the published pages from the stored tables, and compare them with the repository byte for byte.

    python docs/reproduce.py            # or: tox run -e reproduce; exit code 1 if a file differs
    python docs/reproduce.py --write    # replace the files that differ

Rebuilt are README's counts of main results, the pages and figures of claims and leaderboard, and the metadata
of their tables.
"""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import croissant

ROOT = Path(__file__).parents[1]
PUBLISHED = (
    "docs/claims.*",
    "docs/claims-rules.md",
    "docs/claims-changes.md",
    "docs/claims/*",
    "docs/leaderboard.md",
    "docs/leaderboard-settings.md",
    "docs/leaderboard-*.svg",
    "benchmarks/claims/results/croissant.json",
    "benchmarks/leaderboard/*/croissant.json",
)
BEGIN, END = "<!-- claims -->\n", "<!-- /claims -->"  # of the counts in README


def rebuild(folder: Path) -> dict[str, bytes]:
    """Return the content of every published file, made in an empty folder, by its path in the repository."""
    docs = str(folder / "docs")
    started = [
        _start("claims", "--readme"),
        _start("claims", "--markdown", docs),
        _start("leaderboard", "page", "--markdown", docs),
    ]
    counts, *_ = (_output(process) for process in started)
    readme = (ROOT / "README.md").read_bytes()
    made = f"{BEGIN}{counts.decode()}{END}".encode()
    readme, replaced = re.subn(f"{BEGIN}.*?{END}".encode(), lambda _: made, readme, flags=re.DOTALL)
    if replaced != 1:
        raise SystemExit(f"README.md: {replaced} places for the counts of main results; keep one")
    return {"README.md": readme, **_files(folder), **croissant.metadata()}


def differences(made: dict[str, bytes]) -> list[str]:
    """Return a line for each published file that is not as it was made, or that nothing makes."""
    published = {"README.md": (ROOT / "README.md").read_bytes(), **_files(ROOT)}
    lines = []
    for path in sorted(made | published):
        if path not in made:
            lines.append(f"{path}: no table makes this file; delete it")
        elif path not in published:
            lines.append(f"{path}: missing")
        elif made[path] != published[path]:
            pairs = zip(made[path].splitlines(), published[path].splitlines(), strict=False)
            line = next((number for number, (a, b) in enumerate(pairs, 1) if a != b), "its end")
            lines.append(f"{path}: differs from line {line} on")
    return lines


def _files(folder: Path) -> dict[str, bytes]:
    paths = {path for pattern in PUBLISHED for path in folder.glob(pattern)}
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def _start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "asyncfl", *arguments], cwd=ROOT, stdout=subprocess.PIPE)


def _output(process: subprocess.Popen[bytes]) -> bytes:
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{process.args!r} failed: {output.decode()}")
    return output


def main(arguments: list[str]) -> int:
    """Print what differs; return 1 if anything does, and was not replaced."""
    if arguments not in ([], ["--write"]):
        raise SystemExit(__doc__)
    with TemporaryDirectory() as folder:
        made = rebuild(Path(folder))
    lines = differences(made)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    if not lines:
        sys.stdout.write(f"{len(made)} files are rebuilt, equal byte for byte.\n")
    elif arguments:
        for path, content in made.items():
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_bytes(content)
        return 0
    else:
        sys.stdout.write("Write the files with: python docs/reproduce.py --write\n")
    return int(bool(lines))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
