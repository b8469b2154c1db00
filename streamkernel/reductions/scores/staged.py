"""Errors of a staged model at all its sizes, from one sweep.

A staged model has S sizes; each size adds one step to the previous one. With directions V (n + c, S), amounts Z (S, d)
and ``k(x) = (1, k(x, z_1), ..., k(x, z_n))``, ::

    f_s(x) = offset + sum_{j <= s} (k(x)^T V)_j Z_j,     s = 0 .. S - 1

are cumulative sums of one row of products, so that all sizes together cost as much as the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.reductions.contract import Reduction, State
from streamkernel.reductions.pools.dictionary_rows import HeldOut
from streamkernel.table import RowBlock
from streamkernel.type_aliases import Float, Int


@dataclass(frozen=True)
class StagedSums:
    """Result of `StagedScores`: sums over the rows of the fit (0) and the held-out rows (1), for each of S sizes.

    Attributes
    ----------
    rows : (2,) sums of the weights.
    squares : (2, S, d) squared error of each target.
    wrong : (2, S) weight of the rows with a wrong class, or with an error above gamma in a target; 0 without classes
        and gamma.
    losses : (2, S) sums of the logistic loss, or of the softmax loss if there is one target per class; 0 without
        `logistic`.
    outside : (S,) number of wrong rows of the fit that are not functions of this size, each of weight > 0 once.
    counted : number of rows of the fit of weight > 0.
    """

    rows: Float
    squares: Float
    wrong: Float
    losses: Float
    outside: Int
    counted: int


@dataclass(frozen=True)
class StagedScores(Reduction[StagedSums]):
    """Accumulate `StagedSums`.

    Parameters
    ----------
    basis : the n functions.
    directions, amounts, offset : V, Z and the offset (d,) of all sizes.
    constant : True for a column of ones before the functions (c = 1).
    chosen : (S - 1,) row number of the function that each step after the first adds; shorter if functions are not
        rows of the table.
    coding : (classes, d) map from class indicators to targets; None to use the targets as they are.
    held_out : HeldOut, which selects the rows that were not in the fit; None for none.
    gamma : a row is wrong if a target has a larger error; None for classes.
    logistic : True to sum the logistic loss.
    """

    basis: Basis
    directions: Float
    amounts: Float
    offset: Float
    constant: bool
    chosen: Int
    coding: Float | None = None
    held_out: HeldOut | None = None
    gamma: float | None = None
    logistic: bool = False

    @property
    def sizes(self) -> int:
        """Number of sizes S."""
        return len(self.amounts)

    def map_block(self, block: RowBlock) -> State:
        assert block.Y is not None
        Y = block.Y if self.coding is None else block.Y @ self.coding
        weights = block.row_weights
        held = np.zeros(len(Y), dtype=np.bool_)
        if self.held_out is not None:
            held = self.held_out.of(block)
        both = np.stack([np.where(held, 0.0, weights), np.where(held, weights, 0.0)])
        along = self._along(block)
        squares = np.empty((2, self.sizes, Y.shape[1]))
        losses = np.zeros((2, self.sizes))
        total, own = None, np.zeros((len(Y), self.sizes))  # log sum exp over the classes; f of the true class
        wrong = np.zeros((len(Y), self.sizes), dtype=np.bool_)
        best = np.full((len(Y), self.sizes), -np.inf) if self.coding is not None and Y.shape[1] > 1 else None
        # One target at a time, so that no array has more than rows times sizes numbers.
        for target in range(Y.shape[1]):
            f = np.cumsum(along * self.amounts[:, target], axis=1)
            f += self.offset[target]
            y = Y[:, target, None]
            squares[:, :, target] = both @ (y - f) ** 2
            if self.logistic and Y.shape[1] == 1:
                losses = both @ np.logaddexp(0.0, -y * f)
            elif self.logistic:
                total = f if total is None else np.logaddexp(total, f)
                own += y * f
            if best is not None:
                # The first of equal values wins, as in argmax.
                larger = f > best
                wrong = np.where(larger, (Y.argmax(axis=1) != target)[:, None], wrong)
                np.maximum(best, f, out=best)
            elif self.coding is not None:
                wrong = (f > 0.0) != (y > 0.0)
            elif self.gamma is not None:
                wrong |= np.abs(y - f) > self.gamma
        if total is not None:
            losses = both @ (total - own)
        sums = both @ wrong
        for step in np.flatnonzero((self.chosen >= block.start) & (self.chosen < block.start + len(Y))):
            wrong[self.chosen[step] - block.start, step + 1 :] = False
        return {
            "rows": both.sum(axis=1),
            "squares": squares,
            "wrong": sums,
            "losses": losses,
            "outside": wrong[~held & (weights > 0.0)].sum(axis=0, dtype=np.int64),
            "counted": np.array([np.count_nonzero(~held & (weights > 0.0))]),
        }

    def _along(self, block: RowBlock) -> Float:
        """Products ``k(x)^T V``, (b, S), the factors of the amounts."""
        c = int(self.constant)
        along = np.zeros((len(block), self.sizes))
        if len(self.basis):
            along += self.basis.block(block.X) @ self.directions[c:]
        if self.constant:
            along += self.directions[0]
        return along

    def finalize(self, state: State) -> StagedSums:
        sums = {name: state[name] for name in ("rows", "squares", "wrong", "losses")}
        return StagedSums(**sums, outside=state["outside"].astype(np.int64), counted=int(state["counted"][0]))

    def state_bytes(self) -> int:
        return int(8 * (3 + self.sizes * (2 * self.amounts.shape[1] + 5)))

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.basis.points.shape
        return int(8 * rows * (2 * n + p + 8 * self.sizes + 4))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        return float(2 * n * (p + self.sizes) + 8 * self.sizes * self.amounts.shape[1])
