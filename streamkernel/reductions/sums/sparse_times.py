"""Linear functions of sparse rows, ``X A + offset``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.pairs import as_csr
from streamkernel.reductions.row_map import RowMap
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float


@dataclass(frozen=True)
class SparseTimes(RowMap):
    """``X A + offset`` (m, q) of sparse rows X (m, p) in pairs (`streamkernel.pairs`); no dense row is made.

    Parameters
    ----------
    coefficients : (p, q), A.
    offset : (q,), added to every row.
    width : numbers of a row in pairs.
    name : name of the output.
    """

    coefficients: Float
    offset: Float
    width: int
    name: str = "values"

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        return {self.name: (self.coefficients.shape[1], np.dtype(np.float64))}

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        return {self.name: as_csr(block.X, len(self.coefficients)) @ self.coefficients + self.offset}

    def scratch_bytes(self, rows: int) -> int:
        return int(8 * rows * (3 * self.width + 2 * self.coefficients.shape[1]))

    def flops_per_row(self) -> float:
        return float(self.width * self.coefficients.shape[1])
