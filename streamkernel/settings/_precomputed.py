"""What a precomputed kernel cannot be combined with, and the shape of its matrix: checks before any row is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.errors import ParameterError, ShapeError
from streamkernel.kernels import Kernel, Precomputed
from streamkernel.selection import DENSE_RULES
from streamkernel.table import Table
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import call, estimator, option

if TYPE_CHECKING:
    from streamkernel.settings.basis import BasisSettings

# The rule where none is named: rows of a matrix are wide, and it holds few of them; few-sweep would hold most.
RULE_OF_MATRIX = "rpcholesky"


def check_precomputed(settings: BasisSettings, kernel: Kernel) -> None:
    """Refuse settings that need rows of features, of which a kernel matrix has none.

    Raises
    ------
    ParameterError
        There are some, or this fit takes no precomputed kernel.
    """
    if not isinstance(kernel, Precomputed):
        raise ParameterError(
            f"a part of the {option('kernel')} is precomputed, and the others would see its values as features; add or "
            "multiply the matrices, and give the result"
        )
    if not settings.TAKES_MATRIX:
        raise ParameterError(
            f"this estimator takes no precomputed kernel, it needs rows of features; take another one, such as "
            f"{estimator('KernelRidge')} or {estimator('KernelSVC')}, or give rows and a named {option('kernel')}"
        )
    names = ("lengthscale", "gamma", "degree", "coef0", "kernel_params", "metric_rank")
    given = [name for name in names if _is_given(getattr(settings, name), getattr(type(settings), name))]
    if settings.scale in ("robust", "rank"):
        given.append("scale")
    if _is_given(settings.metric, "none"):
        given.append("metric")
    if given:
        raise ParameterError(
            f"{option(given[0])} is of kernels of features, and the kernel is precomputed, whose values stay as they "
            "are; leave it out"
        )
    if getattr(settings, "partition", "rows") == "cells" or getattr(settings, "fit_inverse_transform", False):
        name = "partition" if hasattr(settings, "partition") else "fit_inverse_transform"
        raise ParameterError(
            f"the kernel is precomputed, and {option(name)} is of rows of features, which are not there; leave it out"
        )
    rule = settings.selection_rule(has_targets=True).name
    if rule in DENSE_RULES:
        raise ParameterError(
            f"the kernel is precomputed, and the rule {rule!r} makes points that are no rows; give another "
            f"{option('rule')}, such as {RULE_OF_MATRIX}"
        )


def _is_given(value: Unchecked, default: Unchecked) -> bool:
    return value is not None and not (isinstance(value, type(default)) and value == default)


def check_square(table: Table) -> None:
    """Refuse rows that are not those of a square matrix.

    Raises
    ------
    ParameterError, ShapeError
        They are sparse, or of another shape.
    """
    if table.sparse:
        raise ParameterError(
            "the kernel is precomputed, and the rows are sparse; give the kernel matrix as a dense array, or name a "
            f"{option('kernel')} of sparse rows"
        )
    rows, columns = table.features.shape[0], table.n_features
    if rows != columns:
        raise ShapeError(
            f"the kernel is precomputed, and its matrix has {rows} rows and {columns} columns; a fit takes the square "
            f"one of its rows, where column i is row i (and {call('predict')} takes K(new rows, rows of the fit))"
        )
