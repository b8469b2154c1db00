"""The rows of each member of a committee, and the factor of its covariance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamkernel.errors import NumericalError
from streamkernel.kernels import Kernel
from streamkernel.linalg import InPlaceCholesky
from streamkernel.reductions.sums.row_noise import BlockNoise
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float, Int


def each_member(noise: BlockNoise, block: RowBlock, kernel: Kernel, without: Int | None = None) -> Iterator[Int]:
    """Positions in the block of the rows of each member.

    Rows of weight 0 are left out, and so are the row numbers `without` (ascending). Members without rows are left out.
    """
    everything = np.arange(len(block), dtype=np.int64)
    weighted = np.ones(len(block), np.bool_) if block.weights is None else block.weights > 0.0
    if without is not None:
        first, last = np.searchsorted(without, [block.start, block.stop])
        weighted[without[first:last] - block.start] = False
    for members in noise.members(block.X, kernel):
        for rows in np.split(everything[members.rows], np.cumsum(members.sizes)[:-1]):
            found = rows[weighted[rows]]
            if len(found):
                yield found


def where_of(rows: Int) -> str:
    """Description of a member by its row numbers, for error messages."""
    return f"of a member, {len(rows)} rows of {rows.min()}:{rows.max() + 1},"


def factor_member(C: Float, rows: Int, remedy: str) -> InPlaceCholesky:
    """Cholesky factor of the covariance (b, b) of a member, computed in place.

    Raises
    ------
    NumericalError
        The covariance is not positive definite or not finite; the message names the rows and ends with `remedy`.
    """
    factor = InPlaceCholesky(C)
    if factor.failed is not None:
        raise NumericalError(
            f"the covariance {where_of(rows)} is not positive definite at row {rows[factor.failed]}: {remedy}"
        )
    return factor
