"""Which rows of a block are fitted, which are watched, and which are drawn as candidates.

Candidates are told by a counter-based generator keyed by (seed, stream, row), watched rows by a hash of their features
(ALGORITHMS 20): neither depends on blocks or workers, and a row that is watched has no copy among those fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.reductions.contract import State
from streamkernel.reductions.counter import row_uniforms, stream_word
from streamkernel.reductions.gather import Sample
from streamkernel.table import RowBlock
from streamkernel.table.row_keys import joined_keys

__all__ = ["HeldOut", "ResidualReservoir"]

Float = NDArray[np.float64]
Int = NDArray[np.int64]


@dataclass(frozen=True)
class HeldOut:
    """A share of the distinct features that stays out of the fit: rows whose ``u < fraction``, u a hash of features.

    Parameters
    ----------
    seed, stream : key of the hash.
    fraction : in (0, 1).
    """

    seed: int
    stream: tuple[int, ...]
    fraction: float

    def of(self, rows: RowBlock | Sample) -> NDArray[np.bool_]:
        """(b,) of rows that have keys."""
        assert rows.keys is not None
        mixed = joined_keys(rows.keys, np.full(1, stream_word(self.seed, self.stream)))
        # To 53 bits: a share of 1 - 1e-17 has no word of its own.
        drawn: NDArray[np.bool_] = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53 < self.fraction
        return drawn


@dataclass(frozen=True)
class ResidualReservoir:
    """Rows drawn without replacement with probability ~ their residual: the smallest keys ``-log(u_i) / |r_i|``.

    Efraimidis & Spirakis 2006 (A-Res, the keys ``u^(1/w)`` in logarithms).

    Parameters
    ----------
    size : how many.
    seed, stream : key of the u_i.
    chosen : (n,) row numbers that are not to be drawn again.
    n_features, dtype : of the table.
    """

    size: int
    seed: int
    stream: tuple[int, ...]
    chosen: Int
    n_features: int
    dtype: np.dtype[Any]

    def of(self, start: int, X: NDArray[Any], residual: Float) -> State:
        """The rows of one block; `residual` (b,) is 0 for rows that are no candidates."""
        uniforms = row_uniforms(self.seed, self.stream, start, len(X))[:, 1]
        alive = np.flatnonzero(residual > 0.0)
        alive = alive[~np.isin(start + alive, self.chosen)]
        keys = -np.log(uniforms[alive]) / residual[alive]
        first = np.argsort(keys, kind="stable")[: self.size]
        local = alive[first]
        return {"drawn_keys": keys[first], "drawn_rows": start + local.astype(np.int64), "drawn_X": X[local]}

    def merged(self, left: State, right: State) -> State:
        """Of both lots of rows, ties by row number: the same in whatever order they came."""
        both = {name: np.concatenate([left[name], right[name]]) for name in left if name.startswith("drawn_")}
        order = np.lexsort((both["drawn_rows"], both["drawn_keys"]))[: self.size]
        return {name: values[order] for name, values in both.items()}

    def sample(self, state: State) -> Sample:
        """The rows by number."""
        order = np.argsort(state["drawn_rows"])
        rows = state["drawn_rows"][order]
        return Sample(rows, state["drawn_X"][order], np.zeros((len(rows), 0)), np.ones(len(rows)))

    def bytes(self) -> int:
        """Of its part of a state."""
        return self.size * (16 + self.n_features * self.dtype.itemsize)
