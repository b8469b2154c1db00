"""Sums of a reduced least squares fit, kept apart by folds of the rows.

The sums of `NormalEquations` for each of V validation folds and for the rows that are only trained on, from one sweep
(ALGORITHMS 20). Rows of a block are sorted by fold, so that SYRK does the same work as without folds. One triangle
of a symmetric sum is enough, so that two sums share the memory of one, ``(n + 1, n)``, the upper triangle of the one
above the lower triangle of the other::

    packed[:n]  = upper triangle of H_0          packed[1:] = lower triangle of H_1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.contract import State, Sums
from streamkernel.reductions.sums._fold_weights import GROUPS, effective_rows, group_weights
from streamkernel.reductions.sums.each_fold import rows_of
from streamkernel.reductions.sums.normal_equations import Factors, NormalEquations, RidgeSums
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
        count = self.folds.count + 1
        shapes = {name: (count, *shape) for name, shape in self.equations.shapes.items() if name != "H"}
        n = len(self.equations.basis)
        return {"H": (-(-count // 2), n + 1, n), **shapes, "weights": (count - 1, GROUPS)}

    def fold(self, state: State, block: RowBlock) -> State:
        if block.keys is None:
            raise ValueError("folds need keys of the rows: give a table with keys")
        of = self.folds.of(block.keys)
        order = np.argsort(of, kind="stable")
        ends = np.searchsorted(of[order], np.arange(self.folds.count + 2))
        ordered = rows_of(block, order)
        rows = self.equations.factors(self.equations.values(ordered.X), ordered)
        keys, weights = block.keys[order], block.row_weights[order]
        for fold in range(self.folds.count + 1):
            start, stop = int(ends[fold]), int(ends[fold + 1])
            if start == stop:
                continue
            self._add(rows.part(start, stop), state, fold)
            if fold < self.folds.count:
                state["weights"][fold] += group_weights(self.folds, keys[start:stop], weights[start:stop])
        return state

    @staticmethod
    def _add(rows: Factors, state: State, fold: int) -> None:
        pair, lower = state["H"][fold // 2], fold % 2 == 1
        parts = {name: values[fold] for name, values in state.items() if name not in ("H", "weights")}
        rows.add_to({"H": pair[1:] if lower else pair[:-1], **parts}, lower=lower)

    def finalize(self, state: State) -> FoldSums:
        count = self.folds.count
        everything = {name: values.sum(axis=0) for name, values in state.items() if name not in ("H", "weights")}
        everything["H"] = sum(_upper(state["H"], fold) for fold in range(count + 1))
        total = self.equations.finalize(everything)
        folds = []
        for fold in range(count):
            parts = {name: values[fold] for name, values in state.items() if name not in ("H", "weights")}
            folds.append(self.equations.finalize({"H": _upper(state["H"], fold), **parts}))
        return FoldSums(total, tuple(folds), effective_rows(state["weights"]))

    def scratch_bytes(self, rows: int) -> int:
        p = self.equations.basis.points.shape[1]
        # The rows in the order of their folds; keys, folds, groups and weights.
        return int(self.equations.scratch_bytes(rows) + 8 * rows * (p + len(self.equations.centre) + 10))

    def flops_per_row(self) -> float:
        return self.equations.flops_per_row()


def _upper(packed: Float, fold: int) -> Float:
    """The upper triangle (n, n) of one fold's H; below the diagonal it holds other numbers."""
    pair = packed[fold // 2]
    return np.ascontiguousarray(pair[1:].T) if fold % 2 else pair[:-1].copy()
