"""One Lloyd step over the rows: assign each row to its nearest centre, then move each centre to the mean of its rows.

With ``u = x * weights`` (p,) and centres c_j (n, p) in the same units, row i belongs to the centre with the smallest
``|u_i - c_j|^2``; a tie goes to the lowest j. The new centres are the means ``sum w_i u_i / sum w_i`` (Lloyd 1982),
with row weights w, 1 unless given. The same sweep finds the row nearest to each centre among the rows of that centre.
It also finds the rows farthest from their centres: a centre without rows moves to one of them.

Where centres have classes, a row belongs to the nearest centre of its own class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.kernels import Kernel, StationaryKernel
from streamkernel.reductions.contract import Reduction, State
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float, Int

# Distances this close, relative to their terms, count as equal: centres are sums, and their rounding depends on the
# chunking of the rows.
_TIE = 1e-12


def feature_weights(kernel: Kernel, n_features: int) -> Float:
    """``1 / lengthscale`` of each feature; ones for a kernel without lengthscales."""
    return kernel.weights(n_features) if isinstance(kernel, StationaryKernel) else np.ones(n_features)


@dataclass(frozen=True)
class LloydStep:
    """Result of one Lloyd step.

    Attributes
    ----------
    centres : (n, p) the new centres.
    counts : (n,) weight of the rows of each old centre.
    square : sum of the squared distances of the rows to their old centres, by their weights.
    shift : largest distance that a centre moved, relative to the centres' spread.
    rows, X : (n,), (n, p) number and features of the row nearest to each old centre, among the rows of that centre; -1
        and zeros where it has no row.
    """

    centres: Float
    counts: Int | Float
    square: float
    shift: float
    rows: Int
    X: AnyArray


@dataclass(frozen=True)
class Clusters(Reduction[LloydStep]):
    """Accumulate a `LloydStep`.

    Parameters
    ----------
    centres : (n, p) float64, in units of ``x * weights``.
    weights : (p,) weights of the features: 1 / lengthscale.
    dtype : dtype of the table.
    classes : (n,) class of each centre, a column of the blocks' one-hot Y; None where centres have no classes.
    """

    centres: Float
    weights: Float
    dtype: AnyDType
    classes: Int | None = None

    @cached_property
    def origin(self) -> Float:
        """Mean of the centres. Distances are computed about it, because rows may lie far from 0."""
        return np.asarray(self.centres.mean(axis=0), np.float64)

    @cached_property
    def about_origin(self) -> Float:
        return self.centres - self.origin

    @cached_property
    def _of_class(self) -> dict[int, Int]:
        """Positions of the centres of each class."""
        assert self.classes is not None
        return {int(code): np.flatnonzero(self.classes == code) for code in np.unique(self.classes)}

    def assign(self, U: Float, Y: Float | None = None) -> tuple[Int, Float]:
        """Nearest centre of each row, and the squared distance that counts as 0; (b,) each.

        U is ``x * weights - origin``, (b, p). With classes Y (b, C) is one-hot; -1 for a row whose class has no centre.
        """
        if self.classes is None:
            return self._nearest(U, self.about_origin)
        assert Y is not None
        nearest, none, codes = np.full(len(U), -1, np.int64), np.zeros(len(U)), Y.argmax(axis=1)
        for code, own in self._of_class.items():
            rows = np.flatnonzero(codes == code)
            if len(rows):
                found, none[rows] = self._nearest(U[rows], self.about_origin[own])
                nearest[rows] = own[found]
        return nearest, none

    @staticmethod
    def _nearest(U: Float, centres: Float) -> tuple[Int, Float]:
        # |u - c|^2 without |u|^2, which is the same for all centres: one matrix product gives all distances.
        squares = np.einsum("ij,ij->i", centres, centres)
        distances = squares - 2.0 * (U @ centres.T)
        none = _TIE * (np.einsum("ij,ij->i", U, U) + squares.max())
        nearest = np.argmax(distances <= (distances.min(axis=1) + none)[:, None], axis=1)
        return np.asarray(nearest, np.int64), none

    def map_block(self, block: RowBlock) -> State:
        U = block.X * self.weights - self.origin
        nearest, none = self.assign(U, block.Y)
        if (nearest < 0).any():
            kept = np.flatnonzero(nearest >= 0)
            return self._of_rows(block, kept, U[kept], nearest[kept], none[kept])
        return self._of_rows(block, None, U, nearest, none)

    def _of_rows(self, block: RowBlock, kept: Int | None, U: Float, nearest: Int, none: Float) -> State:
        """The state of the block, or of some of its rows."""
        n, p = self.centres.shape
        X, w = block.X, block.weights
        rows = block.start + np.arange(len(X), dtype=np.int64)
        if kept is not None:
            X, rows, w = X[kept], rows[kept], None if w is None else w[kept]
        apart = U - self.about_origin[nearest]
        squares = np.einsum("ij,ij->i", apart, apart)
        # Distances are compared in single precision: distances that differ by rounding only are then ties.
        keys = squares.astype(np.float32)
        # Sorted by distance, then by row number: the first row of each centre in this order is the nearest one.
        order = np.lexsort((rows, keys))
        if w is not None:
            order = order[w[order] > 0.0]
        members, first = np.unique(nearest[order], return_index=True)
        own = order[first]
        state: State = {
            "square": np.array([squares.sum() if w is None else w @ squares]),
            "counts": np.bincount(nearest, w, minlength=n),
            # One bincount for each feature: np.add.at takes many times as long.
            "sums": np.stack([np.bincount(nearest, column if w is None else w * column, n) for column in U.T], axis=1)
            if p
            else np.zeros((n, 0)),
            "near_keys": np.full(n, np.inf, np.float32),
            "near_rows": np.full(n, -1, np.int64),
            "near_X": np.zeros((n, p), self.dtype),
        }
        for name, values in (("keys", keys), ("rows", rows), ("X", X)):
            state[f"near_{name}"][members] = values[own]
        far = np.lexsort((rows, -keys))
        far = far[:n] if w is None else far[w[far] > 0.0][:n]
        far = far[squares[far] > none[far]]
        state |= {"far_keys": keys[far], "far_rows": rows[far], "far_X": X[far]}
        return state if self.classes is None else state | {"far_classes": self.classes[nearest[far]]}

    def combine(self, left: State, right: State) -> State:
        state = {name: left[name] + right[name] for name in ("square", "counts", "sums")}
        # The left rows have the lower numbers.
        nearer = right["near_keys"] < left["near_keys"]
        for name in ("near_keys", "near_rows", "near_X"):
            state[name] = left[name].copy()
            state[name][nearer] = right[name][nearer]
        far = {name: np.concatenate([left[name], right[name]]) for name in left if name.startswith("far_")}
        kept = np.lexsort((far["far_rows"], -far["far_keys"]))[: len(self.centres)]
        return {**state, **{name: values[kept] for name, values in far.items()}}

    def finalize(self, state: State) -> LloydStep:
        counts = state["counts"]
        occupied = counts > 0
        moved = self.about_origin.copy()
        moved[occupied] = state["sums"][occupied] / counts[occupied, None]
        empty = np.flatnonzero(~occupied)
        for code in [None] if self.classes is None else np.unique(self.classes[empty]).tolist():
            far, places = state["far_X"], empty
            if self.classes is not None:
                far, places = far[state["far_classes"] == code], empty[self.classes[empty] == code]
            # Equal rows would give equal centres.
            _, first = np.unique(far, axis=0, return_index=True) if len(far) else (far, np.zeros(0, np.int64))
            far = far[np.sort(first)][: len(places)]
            moved[places[: len(far)]] = far * self.weights - self.origin
        shifts = np.linalg.norm(moved - self.about_origin, axis=1)
        spread = float(np.linalg.norm(self.about_origin, axis=1).max(initial=0.0))
        largest = float(shifts.max(initial=0.0))
        return LloydStep(
            moved + self.origin,
            counts,
            float(state["square"][0]),
            largest / spread if spread > 0.0 else largest,
            state["near_rows"],
            state["near_X"],
        )

    def state_bytes(self) -> int:
        n, p = self.centres.shape
        return int(n * (8 * p + 2 * p * self.dtype.itemsize + 40) + 8)

    def scratch_bytes(self, rows: int) -> int:
        n, p = self.centres.shape
        return int(8 * rows * (2.25 * n + 4 * p + 10))

    def flops_per_row(self) -> float:
        n, p = self.centres.shape
        return float(2 * n * (p + 4) + 100)
