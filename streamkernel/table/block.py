"""The block that a table yields: a few thousand consecutive rows, ready for a kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel.type_aliases import AnyArray, Float


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows `start .. start + b` of a table: `X_b` (b, p), `Y_b` (b, d), `w_b` (b,).

    Attributes
    ----------
    start
        Row number, in the whole table, of the first row.
    X
        (b, p) in the table's dtype, C-contiguous, already scaled. It may be a view of the caller's own rows
        and must not be written to. Sparse rows are in pairs, (b, 2 w) float64 (`streamkernel.pairs`).
    Y
        (b, d) float64: raw targets, or one-hot (b, n_classes) when the table has classes; None without targets.
    weights
        (b,) float64, or None where every row counts once.
    keys
        (b,) `row_keys` of the features as stored, from a table with keys (`Table.with_keys`); else None.
    stored
        (b, p) the rows before they were cast and scaled, from a table that shows them (`Table.with_stored`); else None.
    """

    start: int
    X: AnyArray
    Y: Float | None
    weights: Float | None = None
    keys: NDArray[np.uint64] | None = None
    stored: AnyArray | None = None

    @property
    def stop(self) -> int:
        """Row number after the last row."""
        return self.start + len(self)

    @property
    def row_weights(self) -> Float:
        """(b,) weights; ones where every row counts once."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def __len__(self) -> int:
        return int(self.X.shape[0])
