"""A mutant: one file with one mutation, named by what it is, so that an unchanged mutant keeps its result."""

import ast
import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from parso.tree import NodeOrLeaf

from tests.mutants.operators import operators
from tests.mutants.targets import DATA, ROOT


@dataclass(frozen=True)
class Mutant:
    """The `occurrence`-th place of `file` where `operator` applies."""

    file: str  # relative to the root
    operator: str
    occurrence: int
    start: tuple[int, int]  # line, column
    end: tuple[int, int]
    digest: str  # of the file's text

    @property
    def key(self) -> str:
        """The same for the same mutation of the same text; sorted by it, mutants are in random order."""
        text = f"{self.file} {self.digest} {self.operator} {self.occurrence}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def module(self) -> str:
        """The module's name."""
        parts = PurePosixPath(self.file).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def source(self) -> str | None:
        """The mutated text; None where it does not compile or is the same program."""
        original = (ROOT / self.file).read_text()
        mutated = mutate_code(original, operators()[self.operator], self.occurrence)
        try:
            same = mutated is None or ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(original))
            compile(mutated or "", self.file, "exec")
        except SyntaxError:
            return None
        return None if same else mutated

    def change(self) -> str:
        """The lines as they were → as they are, without indentation."""
        before = (ROOT / self.file).read_text().splitlines()
        after = (self.source() or "").splitlines()
        first, last = self.start[0] - 1, self.end[0]
        till = last + len(after) - len(before)
        old, new = (
            " ".join(line.strip() for line in lines) for lines in (before[first:last], after[first:till])
        )
        return f"{old} → {new}"


def mutants(file: str) -> list[Mutant]:
    """Every mutant of a file."""
    text = (ROOT / file).read_text()
    digest = hashlib.sha256(text.encode()).hexdigest()
    nodes = list(ast_nodes(get_ast(text)))
    found = []
    for name, operator in operators().items():
        places = ((node, *span) for node in nodes for span in operator.mutation_positions(node))
        found += [
            Mutant(file, name, occurrence, start, end, digest)
            for occurrence, (node, start, end) in enumerate(places)
            if not _is_no_fault(node)
        ]
    return found


def _is_no_fault(node: NodeOrLeaf) -> bool:
    """A bare `*` or `**`, what is there for types only, data of the tuner, or an abstract method."""
    if node.get_code().strip().startswith(("raise NotImplementedError", "if TYPE_CHECKING:")):
        return True
    while node.parent is not None:
        if node.parent.type == "funcdef" and node is node.parent.annotation:
            return True
        if node.type == "operator" and node.parent.type in ("parameters", "param", "dictorsetmaker"):
            return True
        if node.type == "atom_expr" and node.children[0].get_code().strip() in DATA:
            return True
        node = node.parent
    return False
