"""Kernels as expressions of their names: ``2*gaussian + linear``, ``matern52(lengthscale=2) * polynomial(degree=2)``.

::

    expression  a name, a name with parameters, or a sum or product of expressions; a number multiplies one
    name        gaussian, linear, ...           a name of the registry
    parameters  (lengthscale=2, columns=[0, 1]) numbers, or a list of them
                (columns=[age, 'hours a week']) columns by name, in quotes where it is more than a word

Python's own grammar reads it, and nothing is run. A kernel that states no lengthscale leaves it to be found; one that
states it is `Fixed` where the expression leaves another one to be found.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from streamkernel.errors import ParameterError
from streamkernel.kernels.base import Composite, Fixed, Kernel, Scaled
from streamkernel.kernels.lengthscales import has_free_lengthscale
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import option

_MOST_CHARACTERS = 2000  # Python's parser has a limit of nesting, which a text of this length can hardly reach
_UNKNOWN = re.compile(r"[^\w\s.+\-*/(),=\[\]'\"]", re.ASCII)
# What stands in quotes is a name of a column: any characters, a quote of the same kind after a backslash.
_QUOTED = re.compile(r"""(['"])((?:\\.|(?!\1).)*)\1""", re.DOTALL)
_ALLOWED = "names of kernels, numbers, +, *, parentheses and parameters by name, as in '2*gaussian + linear'"

Named = Callable[[str, Fields], Kernel]
"""Makes a kernel of a name and its parameters."""


def is_expression(kernel: str) -> bool:
    """Whether the text is more than a name."""
    return any(sign in kernel for sign in "+-*/([")


def kernel_of_expression(text: str, named: Named) -> Kernel:
    """The kernel of an expression.

    Parameters
    ----------
    named : makes the kernels, and raises `ParameterError` for a name or a parameter that is none.

    Raises
    ------
    ParameterError
        The text is no expression; the message has the position, counted from 1.
    """
    return _Reader(text, named).kernel()


def without_fixed(kernel: Kernel) -> Kernel:
    """The same function, all of whose lengthscales a search may change."""
    if isinstance(kernel, Fixed):
        return without_fixed(kernel.part)
    if not isinstance(kernel, Composite):
        return kernel
    return kernel.with_parts([without_fixed(part) for part in kernel.parts])


class _Reader:
    """Reads one expression."""

    def __init__(self, text: str, named: Named) -> None:
        self.given, self.named = text, named
        # Python counts columns in each line; spaces in front would be an indentation.
        self.shown = re.sub(r"\s", " ", text).lstrip(" ")
        self.skipped = len(text) - len(self.shown)
        # Quoted text is replaced by as many plain letters for Python's parser. Its position finds the text again.
        self.quoted: dict[tuple[int, int], str] = {}
        self.text = re.sub(r"\s", " ", _QUOTED.sub(self.masked, text)[self.skipped :])

    def masked(self, quoted: re.Match[str]) -> str:
        """Letters in place of a quoted name, which is kept."""
        place = quoted.start() - self.skipped, quoted.end() - self.skipped
        self.quoted[place] = re.sub(r"\\(.)", r"\1", quoted[2], flags=re.DOTALL)
        return f"'{'s' * len(quoted[2])}'"

    def refuse(self, column: int, reason: str) -> NoReturn:
        """Raise the error of the place, a column of the text from 0."""
        shown = self.given if len(self.given) <= 200 else f"{self.given[:200]}..."
        raise ParameterError(
            f"{option('kernel')} = {shown!r} is wrong at character {self.skipped + column + 1}: {reason}",
            value=self.given,
        ) from None

    def kernel(self) -> Kernel:
        if len(self.text) > _MOST_CHARACTERS:
            self.refuse(_MOST_CHARACTERS, f"an expression has at most {_MOST_CHARACTERS} characters")
        # Only ASCII is left: Python's columns are bytes.
        if found := _UNKNOWN.search(self.text):
            self.refuse(found.start(), f"{found[0]!r} is none of {_ALLOWED}")
        try:
            tree = ast.parse(self.text, mode="eval")
        except (SyntaxError, MemoryError, RecursionError) as error:
            end = len(self.text) + 1
            place = min(getattr(error, "offset", None) or end, end)  # Python has 0 where the text ends too early
            self.refuse(place - 1, f"give {_ALLOWED}")
        return self.expression(tree.body)

    def expression(self, node: ast.expr) -> Kernel:  # noqa: RET503  # `refuse` raises
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.expression(node.left) + self.expression(node.right)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self.product(node.left, node.right)
        if isinstance(node, ast.BinOp):
            between = self.text[node.left.end_col_offset : node.right.col_offset]
            sign = len(between) - len(between.lstrip(" )"))
            self.refuse((node.left.end_col_offset or 0) + sign, "only + and * combine kernels")
        if isinstance(node, ast.Name):
            return self.of_name(node, [])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.args:
                self.refuse(node.args[0].col_offset, f"give parameters by name, as in {node.func.id}(lengthscale=2)")
            return self.of_name(node.func, node.keywords)
        if _number(node) is not None:
            self.refuse(node.col_offset, "a number only multiplies a kernel, as in 2*gaussian")
        self.refuse(node.col_offset, f"{self.source(node)!r} is none of {_ALLOWED}")

    def product(self, left: ast.expr, right: ast.expr) -> Kernel:
        for one, other in ((left, right), (right, left)):
            number = _number(one)
            if number is not None and _number(other) is None:
                return self.checked(one, partial(Scaled, self.expression(other), number))
        return self.expression(left) * self.expression(right)

    def of_name(self, name: ast.Name, keywords: list[ast.keyword]) -> Kernel:
        given: Fields = {}
        for each in keywords:
            if each.arg is None or each.arg in given:
                self.refuse(each.value.col_offset, "give each parameter once, by its name")
            given[each.arg] = self.columns(each.value) if each.arg == "columns" else self.value(each.value)
        found = self.checked(name, partial(self.named, name.id, given))
        return Fixed(found) if given.keys() & {"lengthscale", "gamma"} and has_free_lengthscale(found) else found

    def value(self, node: ast.expr) -> Unchecked:
        """A number, or a list of them."""
        if isinstance(node, ast.List | ast.Tuple):
            return tuple(self.value(each) for each in node.elts)
        number = _number(node)
        if number is None:
            self.refuse(node.col_offset, f"{self.source(node)!r} is no number, and no list of numbers such as [1, 2]")
        return number

    def columns(self, node: ast.expr) -> Unchecked:
        """Columns by position or by name: one, or a list of them."""
        if isinstance(node, ast.List | ast.Tuple):
            return tuple(self.columns(each) for each in node.elts)
        if isinstance(node, ast.Name):
            return node.id
        name = self.quoted.get((node.col_offset, node.end_col_offset or 0))
        if name is not None:
            return name
        if _number(node) is None:
            self.refuse(
                node.col_offset,
                f"{self.source(node)!r} is no column; give positions, or names such as [age, 'my hours']",
            )
        return _number(node)

    def source(self, node: ast.expr) -> str:
        return self.shown[node.col_offset : node.end_col_offset]

    def checked(self, node: ast.expr, made: Callable[[], Kernel]) -> Kernel:
        """What `made` makes; its error has the position, and the names of parameters as they are in an expression."""
        try:
            return made()
        except ParameterError as error:
            self.refuse(node.col_offset, str(error))


def _number(node: ast.expr) -> int | float | None:
    """A number with its sign, or a product of numbers; None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand)
        return None if number is None else -number
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _number(node.left), _number(node.right)
        return None if left is None or right is None else left * right
    found = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return node.value if found else None  # type: ignore[attr-defined]
