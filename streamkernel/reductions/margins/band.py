"""The rows whose losses are nearest to a kink of their slope, a bounded number for each problem.

Between two points the second-order expansion of a loss is wrong for the rows that pass a kink; these are among the rows
near it. A sweep gives them to the solver beside its sums, and the solver knows their losses exactly (ALGORITHMS 22).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.contract import State
from streamkernel.reductions.sums.features import Features
from streamkernel.type_aliases import AnyArray, Float

_MOST_ROWS, _MOST_OF_ALL, _ROWS_PER_FUNCTION = 8000, 16_000, 20
_LEAST_BYTES = 4 << 20  # of the rows of a problem; with many functions they may have twice the bytes of its Hessian
_MOST_VALUES = 16_000_000  # of their features on the driver, or as many as the Hessian has
_OWN_BYTES = 40  # of problem, number, distance, target and weight of a row


@dataclass(frozen=True)
class BandRows:
    """The band of one problem: up to so many rows of weight > 0, in the order of their distance from the kink.

    Attributes
    ----------
    X : (s, p), scaled, in the table's dtype.
    targets : (s,) y, in the units of the solver.
    weights : (s,) row weights.
    """

    X: AnyArray
    targets: Float
    weights: Float

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True)
class Band:
    """Keeps the nearest rows of each of K problems in the state of a sweep.

    Parameters
    ----------
    problems : K.
    rows : largest number of rows of a problem; 0 keeps none.
    """

    problems: int
    rows: int

    def add(
        self, state: State, X: AnyArray, numbers: AnyArray, targets: Float, distances: Float, weights: Float
    ) -> None:
        """Add rows of a block in place.

        Parameters
        ----------
        X : (b, p), numbers : (b,) row numbers, targets : (b, K), distances : (b, K), inf for rows of no interest,
        weights : (b,)
        """
        if self.rows == 0:
            return
        # Equal rows of different blocks differ by rounding: in single precision they are equal, and the number decides.
        near = distances.astype(np.float32)
        if "band_problem" in state:
            near[near > state["band_furthest"]] = np.inf
        rows, problems = np.nonzero(np.isfinite(near))
        found: State = {
            "band_problem": problems,
            "band_distance": near[rows, problems],
            "band_number": numbers[rows],
            "band_target": targets[rows, problems],
            "band_weight": weights[rows],
            "band_X": X[rows],
        }
        if "band_problem" in state:
            if not len(rows):
                return
            found = {name: np.concatenate([state[name], each]) for name, each in found.items()}
        state.update(self._nearest(found))

    def combine(self, left: State, right: State) -> State:
        """The rows of both states; `left` and `right` have no other entries."""
        if not left or not right:
            return left or right
        names = left.keys() - {"band_furthest"}
        return self._nearest({name: np.concatenate([left[name], right[name]]) for name in names})

    def _nearest(self, found: State) -> State:
        order = np.lexsort((found["band_number"], found["band_distance"], found["band_problem"]))
        counts = np.bincount(found["band_problem"], minlength=self.problems)
        first = np.cumsum(counts) - counts
        rank = np.arange(len(order)) - np.repeat(first, counts)
        kept = {name: values[order[rank < self.rows]] for name, values in found.items()}
        # From here on rows that are further away than the last of a full band do not enter it.
        furthest = np.full(self.problems, np.inf, np.float32)
        full = np.flatnonzero(counts >= self.rows)
        furthest[full] = found["band_distance"][order[first[full] + self.rows - 1]]
        return kept | {"band_furthest": furthest}

    def of(self, state: State) -> tuple[BandRows | None, ...]:
        """The rows of each problem; None where no row has a kink."""
        if "band_problem" not in state:
            return (None,) * self.problems
        ends = np.searchsorted(state["band_problem"], np.arange(self.problems + 1))
        parts = [slice(first, last) for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
        return tuple(
            BandRows(state["band_X"][part], state["band_target"][part], state["band_weight"][part])
            if part.stop > part.start
            else None
            for part in parts
        )

    def bytes(self, features: Features) -> int:
        """Bytes of the rows of all problems at most."""
        return self.problems * self.rows * _row_bytes(features)


def split_band(state: State) -> tuple[State, State]:
    """The sums of a state, and its band."""
    band = {name: values for name, values in state.items() if name.startswith("band_")}
    return {name: values for name, values in state.items() if name not in band}, band


def largest_band(features: Features, problems: int) -> int:
    """Number of rows of the band of each of K problems on these features.

    Its bytes are of the order of those of the problem's Hessian. All bands together have no more rows than two large
    ones: the driver whitens them between two sweeps.
    """
    n = features.width
    by_bytes = max(_LEAST_BYTES, 16 * (n + 1) ** 2) // _row_bytes(features)
    rows = min(_MOST_ROWS, _MOST_OF_ALL // problems, _ROWS_PER_FUNCTION * n, by_bytes, max(n, _MOST_VALUES // n))
    return max(rows, 1)


def _row_bytes(features: Features) -> int:
    basis = features.basis
    return _OWN_BYTES + (8 * features.width if basis is None else basis.points[:1].nbytes)
