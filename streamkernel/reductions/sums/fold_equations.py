"""Sums of a reduced least squares fit, kept apart by folds of the rows.

The sums of `NormalEquations` for each of V validation folds and for the rows that are only trained on, from one sweep
(ALGORITHMS 20). Rows of a block are sorted by fold, so that SYRK does the same work as without folds. One triangle
of a symmetric sum is enough, so that two sums of w = n + 1 + d columns share the memory of one, ``(w + 1, w)``, the
upper triangle of the one above the lower triangle of the other::

    packed[:w]  = upper triangle of gram_0          packed[1:] = lower triangle of gram_1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.sums._fold_weights import GROUPS, effective_rows, group_weights
from streamkernel.reductions.sums.each_fold import rows_of
from streamkernel.reductions.sums.normal_equations import NormalEquations, RidgeSums
from streamkernel.table import RowBlock
from streamkernel.table.parts.folds import Folds
from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class FoldSums:
    """The sums of all rows, and those of each validation fold.

    Attributes
    ----------
    total : RidgeSums of all rows.
    folds : V RidgeSums, one for each validation fold.
    effective : (V,) effective number of independent rows in each fold: copies and weights count as one row.
    """

    total: RidgeSums
    folds: tuple[RidgeSums, ...]
    effective: Float


@dataclass(frozen=True)
class FoldEquations(Sums[FoldSums]):
    """Accumulate `FoldSums` over the rows of a table with keys.

    Parameters
    ----------
    equations : sums of each fold.
    folds : assignment of the rows to folds.
    """

    equations: NormalEquations
    folds: Folds

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        count, width = self.folds.count + 1, self.equations.width
        return {
            "gram": (-(-count // 2), width + 1, width),
            "totals": (count, 3),
            "weights": (count - 1, GROUPS),
        }

    def fold(self, state: State, block: RowBlock) -> State:
        if block.keys is None:
            raise ValueError("folds need keys of the rows: give a table with keys")
        of = self.folds.of(block.keys)
        order = np.argsort(of, kind="stable")
        ends = np.searchsorted(of[order], np.arange(self.folds.count + 2))
        ordered = rows_of(block, order)
        rows = self.equations.factors(self.equations.columns(ordered.X), ordered)
        keys, weights = block.keys[order], block.row_weights[order]
        for fold in range(self.folds.count + 1):
            start, stop = int(ends[fold]), int(ends[fold + 1])
            if start == stop:
                continue
            pair, lower = state["gram"][fold // 2], fold % 2 == 1
            rows.part(start, stop).add_to(pair[1:] if lower else pair[:-1], state["totals"][fold], lower=lower)
            if fold < self.folds.count:
                state["weights"][fold] += group_weights(self.folds, keys[start:stop], weights[start:stop])
        return state

    def finalize(self, state: State) -> FoldSums:
        packed, totals = state["gram"], state["totals"]
        gram = _upper(packed, 0)
        for fold in range(1, len(totals)):
            gram += _upper(packed, fold)
        total = self.equations.finalize({"gram": gram, "totals": totals.sum(axis=0)})
        del gram  # of many targets it takes as much as all that is made of it
        folds = tuple(
            self.equations.finalize({"gram": _upper(packed, fold), "totals": totals[fold]})
            for fold in range(self.folds.count)
        )
        return FoldSums(total, folds, effective_rows(state["weights"]))

    def scratch_bytes(self, rows: int) -> int:
        p = self.equations.basis.points.shape[1]
        # The rows in the order of their folds; keys, folds, groups and weights.
        return int(self.equations.scratch_bytes(rows) + 8 * rows * (p + len(self.equations.centre) + 10))

    def flops_per_row(self) -> float:
        return self.equations.flops_per_row()


def _upper(packed: Float, fold: int) -> Float:
    """The upper triangle (w, w) of one fold's Gram matrix; below the diagonal it holds other numbers."""
    pair = packed[fold // 2]
    return np.ascontiguousarray(pair[1:].T) if fold % 2 else pair[:-1].copy()
