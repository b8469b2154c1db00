"""The rows of the fit, the held-out rows, and the rows drawn as candidates.

A counter-based generator keyed by (seed, stream, row) draws the candidates. A hash of the features selects the
held-out rows (ALGORITHMS 20), so that no held-out row has a copy among the rows of the fit. Neither depends on blocks
or workers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.contract import State
from streamkernel.reductions.gather import Sample
from streamkernel.reductions.row_random import row_uniforms, stream_word
from streamkernel.table import RowBlock
from streamkernel.table.row_keys import joined_keys
from streamkernel.type_aliases import AnyArray, AnyDType, Bool, Float, Int


@dataclass(frozen=True)
class HeldOut:
    """A held-out share of the distinct rows: those with ``u < fraction``, u in [0, 1) a hash of the features.

    Parameters
    ----------
    seed, stream : key of the hash.
    fraction : in (0, 1).
    """

    seed: int
    stream: tuple[int, ...]
    fraction: float

    def of(self, rows: RowBlock | Sample) -> Bool:
        """Mask (b,) of the held-out rows; `rows` must have keys."""
        assert rows.keys is not None
        mixed = joined_keys(rows.keys, np.full(1, stream_word(self.seed, self.stream)))
        # u has 53 bits, as many as a float64 can hold: it never rounds to 1.
        drawn: Bool = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53 < self.fraction
        return drawn


@dataclass(frozen=True)
class ResidualReservoir:
    """Rows drawn without replacement, with probability ~ their residuals: those of the smallest ``-log(u_i) / |r_i|``.

    Efraimidis & Spirakis 2006 (A-Res, the keys ``u^(1/w)`` in logarithms).

    Parameters
    ----------
    size : number of rows to draw.
    seed, stream : key of the u_i.
    chosen : (n,) numbers of rows that must not be drawn again.
    n_features, dtype : number of features and dtype of the table.
    """

    size: int
    seed: int
    stream: tuple[int, ...]
    chosen: Int
    n_features: int
    dtype: AnyDType

    def of(self, start: int, X: AnyArray, residual: Float) -> State:
        """Part of a state: the rows drawn from one block; `residual` (b,) is 0 for rows that must not be drawn."""
        uniforms = row_uniforms(self.seed, self.stream, start, len(X))[:, 1]
        alive = np.flatnonzero(residual > 0.0)
        alive = alive[~np.isin(start + alive, self.chosen)]
        keys = -np.log(uniforms[alive]) / residual[alive]
        first = np.argsort(keys, kind="stable")[: self.size]
        local = alive[first]
        return {"drawn_keys": keys[first], "drawn_rows": start + local.astype(np.int64), "drawn_X": X[local]}

    def merged(self, left: State, right: State) -> State:
        """The draw from both sets of rows. Ties are broken by row number, so that the order does not matter."""
        both = {name: np.concatenate([left[name], right[name]]) for name in left if name.startswith("drawn_")}
        order = np.lexsort((both["drawn_rows"], both["drawn_keys"]))[: self.size]
        return {name: values[order] for name, values in both.items()}

    def sample(self, state: State) -> Sample:
        """The drawn rows, in ascending order of their numbers."""
        order = np.argsort(state["drawn_rows"])
        rows = state["drawn_rows"][order]
        return Sample(rows, state["drawn_X"][order], np.zeros((len(rows), 0)), np.ones(len(rows)))

    def bytes(self) -> int:
        """Bytes of its part of a state."""
        return self.size * (16 + self.n_features * self.dtype.itemsize)
