"""The mutations: a choice of Cosmic Ray's operators, and two for faults that those cannot make.

Cosmic Ray replaces every operator by every other, which mostly gives type errors that any test sees. Here
each is replaced by its nearest neighbours.
"""

from collections.abc import Iterable, Iterator

import parso
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.operators.provider import OperatorProvider
from parso.tree import BaseNode, NodeOrLeaf

Span = tuple[tuple[int, int], tuple[int, int]]  # (line, column) of start and end

ARITHMETIC = (
    "Add_Sub",
    "Sub_Add",
    "Mul_Div",
    "Div_Mul",
    "FloorDiv_Div",
    "Mod_FloorDiv",
    "Pow_Mul",
    "BitAnd_BitOr",
)
COMPARISONS = (
    *("Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt"),
    *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
)
OTHERS = (
    *("ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Not", "AddNot"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop", "NumberReplacer"),
)

# Functions and methods whose result is a number like their argument: without them a formula still computes.
NUMERIC = {
    *("abs", "ceil", "clamp", "cumsum", "exp", "floor", "log", "log2", "max", "maximum", "mean", "min"),
    *("minimum", "norm", "round", "sorted", "sqrt", "square", "sum"),
}


class LeaveOutStatement(Operator):
    """An assignment, a call or a `raise` inside a function that does not happen."""

    KINDS = ("expr_stmt", "atom_expr", "power", "raise_stmt")

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Span]:
        """The statement itself, without the end of its line."""
        if node.type == "simple_stmt" and node.children[0].type in self.KINDS and _inside_a_function(node):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: BaseNode, index: int) -> BaseNode:
        """`pass` instead."""
        node.children[0] = _parsed("pass", like=node.children[0])
        return node

    @classmethod
    def examples(cls) -> Iterable[Example]:
        """One of each kind."""
        return (
            Example("def f():\n    x = 1\n", "def f():\n    pass\n"),
            Example("def f():\n    g(1)\n", "def f():\n    pass\n"),
            Example("def f():\n    raise E\n", "def f():\n    pass\n"),
        )


class LeaveOutFunction(Operator):
    """A number that is used as it is: `sqrt(x)` → `x`, `max(a, b)` → `a` and `b`, `x.norm()` → `x`."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Span]:
        """The whole call, once for everything that may stand in its place."""
        yield from [(node.start_pos, node.end_pos)] * len(self._kept(node))

    def mutate(self, node: BaseNode, index: int) -> NodeOrLeaf:
        """One of the arguments, or what the method belongs to."""
        return _parsed(f"({self._kept(node)[index].strip()})", like=node)

    @classmethod
    def examples(cls) -> Iterable[Example]:
        """Functions of one and of several arguments, and a method."""
        return (
            Example("y = sqrt(x)", "y = (x)"),
            Example("y = torch.maximum(a, b)", "y = (a)"),
            Example("y = torch.maximum(a, b)", "y = (b)", occurrence=1),
            Example("y = 2 * a.b.norm()", "y = 2 * (a.b)"),
        )

    @staticmethod
    def _kept(node: NodeOrLeaf) -> list[str]:
        """The code that may stand in the place of `node`; none if it is no call of this kind."""
        if node.type != "atom_expr":
            return []
        *owner, call = node.children
        name = (owner[-1].children[-1] if owner[-1].type == "trailer" else owner[-1]).get_code().strip()
        if call.type != "trailer" or call.children[0].value != "(" or name not in NUMERIC:
            return []
        inside = call.children[1]
        if inside.type == "operator":  # no argument: a method
            before = "".join(part.get_code() for part in owner[:-1])
            return [before] if before else []
        arguments = inside.children[::2] if inside.type == "arglist" else [inside]
        return [argument.get_code() for argument in arguments if argument.type != "argument"]


def _inside_a_function(node: NodeOrLeaf) -> bool:
    return parso.tree.search_ancestor(node, "funcdef") is not None


def _parsed(code: str, like: NodeOrLeaf) -> NodeOrLeaf:
    """`code` in the place of `like`, with the blanks that stood before it."""
    return parso.parse(like.get_first_leaf().prefix + code)


def operators() -> dict[str, Operator]:
    """Name → operator, for everything that is tried."""
    names = [f"ReplaceBinaryOperator_{pair}" for pair in ARITHMETIC]
    names += [f"ReplaceComparisonOperator_{pair}" for pair in COMPARISONS]
    provided = OperatorProvider()
    found: dict[str, Operator] = {name: provided[name]() for name in (*names, *OTHERS)}
    return found | {kind.__name__: kind() for kind in (LeaveOutStatement, LeaveOutFunction)}
