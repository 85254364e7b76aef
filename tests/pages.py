"""Run the blocks of a documentation page, in order, in the current folder: `python tests/pages.py PAGE`.

Without a page, list the blocks that are not run, with the reasons. A block without a language is a shell
command; `text` is its output. Two invisible comments above a block change what is run:

    <!-- not run: needs a GPU -->
    <!-- in tests: time: 300 → time: 10 -->

In the shell of a page, `$CLONE` is this repository.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    DOCS / "index.md",
    *sorted(path for room in ("tutorial", "how-to", "explanation") for path in (DOCS / room).glob("*.*")),
]
PAGES = [page for page in PAGES if page.suffix in {".md", ".ipynb"}]

FENCE = re.compile(r"^( *)```(\S*)(.*)$")
NAME_INSIDE = re.compile(r"# (\S+\.\w+)\n")  # the first line of a file, as a comment
NAME_ABOVE = re.compile(r"`([\w./-]+\.\w+)`[^`.]*:$")  # the end of the sentence above a file
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")
REPLACEMENT = re.compile(r"<!-- in tests: (.+?) → (.*?) -->")
SHELL = {"", "bash", "sh", "shell", "console"}
FILES = {"python", "yaml", "csv", "json", "toml"}


@dataclass(frozen=True)
class Block:
    """A block of a page: a command, a file, Python to be executed, or the output of the block before."""

    page: Path
    line: int
    language: str
    text: str
    above: str  # the text between the previous block and this one

    @property
    def place(self) -> str:
        """Page and line."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def reason_not_run(self) -> str | None:
        """The reason in the comment above the block."""
        found = NOT_RUN.search(self.above)
        return found[1] if found else None

    @property
    def is_shell(self) -> bool:
        return self.language in SHELL

    @property
    def is_shortened(self) -> bool:
        """Whether tests run the block with another budget."""
        return REPLACEMENT.search(self.above) is not None

    @property
    def file(self) -> str | None:
        """The name of the file that the block shows."""
        visible = re.sub(r"<!--.*?-->", "", self.above, flags=re.DOTALL).rstrip()
        if self.language not in FILES:
            return None
        found = NAME_INSIDE.match(self.text) or NAME_ABOVE.search(visible)
        return found[1] if found else None

    @property
    def tested(self) -> str:
        """The text with the replacements of tests."""
        text = self.text
        for old, new in REPLACEMENT.findall(self.above):
            assert old in text, f"{self.place}: {old!r} is not in the block"
            text = text.replace(old, new)
        return text


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page; the code cells of a notebook."""
    if page.suffix == ".ipynb":
        yield from _cells(page)
        return
    above: list[str] = []
    inside: list[str] | None = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if inside is None and fence:
            start, indent, language, inside = number, len(fence[1]), fence[2], []
        elif inside is None:
            above.append(line)
        elif fence and not fence[2]:
            text = "".join(f"{inner[indent:]}\n" for inner in inside)
            if not language.startswith("{"):  # a directive of the site
                yield Block(page, start, language, text, "\n".join(above))
            above, inside = [], None
        else:
            inside.append(line)


def _cells(page: Path) -> Iterator[Block]:
    for number, cell in enumerate(json.loads(page.read_text(encoding="utf-8"))["cells"], 1):
        text = "".join(cell["source"]) + "\n"
        if cell["cell_type"] == "code":
            shell = text.startswith("%%bash\n")
            yield Block(page, number, "bash" if shell else "python", text.removeprefix("%%bash\n"), "")


def run(page: Path) -> None:
    """Run the blocks in the current folder; raise an error with the place of the first that fails."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    written: list[str] = []
    output: str | None = None
    for block in blocks(page):
        if block.language == "text":
            if output is not None:
                check_output(block, output)
            continue
        if block.reason_not_run:
            output = None
            continue
        click.echo(block.place)
        if block.file:
            write(block, block.tested, Path(), written)
            output = None
        elif block.is_shell:
            output = run_shell(block)
        elif block.language == "python":
            output = run_python(block, namespace)
        else:
            raise AssertionError(f"{block.place}: a file without a name in its first line or above it")
        output = None if block.is_shortened else output


def write(block: Block, text: str, folder: Path, written: list[str]) -> None:
    """Write the file that a block shows, if any; a page may add to a Python module that it showed before."""
    if block.file is not None:
        path = folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        more = block.language == "python" and block.file in written
        with path.open("a" if more else "w", encoding="utf-8") as file:
            file.write(text)
        written.append(block.file)


def run_shell(block: Block) -> str:
    """Run a block as a script of the shell, and return the output."""
    words = ["bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", block.tested]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    click.echo(done.stdout + done.stderr)
    assert done.returncode == 0, f"{block.place}: exit code {done.returncode}\n{block.tested}"
    return done.stdout + done.stderr


def run_python(block: Block, namespace: dict[str, object]) -> str:
    """Execute a block after the earlier ones of the page, and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(block.tested, block.place, "exec"), namespace)
    click.echo(printed.getvalue())
    return printed.getvalue()


def check_output(block: Block, output: str) -> None:
    """Check that the lines of the block are in the output, in order; `…` stands for anything."""
    lines = iter([" ".join(line.split()) for line in output.splitlines()])
    for line in block.text.splitlines():
        words = " ".join(line.split())
        pattern = re.compile(".*".join(map(re.escape, words.split("…"))))
        if words.strip("…"):
            assert any(pattern.fullmatch(other) for other in lines), (
                f"{block.place}: not in the output: {line}\n{output}"
            )


def run_in(folder: Path, page: Path) -> subprocess.CompletedProcess[str]:
    """Run a page in a process and a folder of its own, with this repository's `asyncfl`."""
    programs = folder / ".bin"
    programs.mkdir()
    command = programs / "asyncfl"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m asyncfl "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASYNCFL_")}
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [sys.executable, str(Path(__file__)), str(page)],
        cwd=folder,
        env=environment
        | {"PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "MPLBACKEND": "Agg", "CLONE": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def write_files(page: Path, folder: Path) -> list[str]:
    """Write the files that a page shows into a folder, and return their names."""
    names: list[str] = []
    for block in blocks(page):
        write(block, block.text, folder, names)
    return names


def commands(page: Path) -> list[str]:
    """Return the lines of a page that begin with `asyncfl`, without that word and comments."""
    lines = "".join(block.text for block in blocks(page) if block.is_shell).splitlines()
    return [
        re.sub(r"\s+#.*", "", line).removeprefix("asyncfl ") for line in lines if line.startswith("asyncfl ")
    ]


def blocks_not_run() -> list[Block]:
    """All blocks of all pages that have a reason not to be run."""
    return [block for page in PAGES for block in blocks(page) if block.reason_not_run]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.path[0] = str(Path.cwd())  # as Python started in the folder
        run(Path(sys.argv[1]).resolve())
    else:
        for block in blocks_not_run():
            click.echo(f"{block.place}: {block.reason_not_run}")
