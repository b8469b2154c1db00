"""Labels of rows that may have several: a row has a label where its indicator is above one half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.row_map import Predictions, RowMap
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType

THRESHOLD = 0.5  # halfway from 0, without the label, to 1


@dataclass(frozen=True)
class LabelPredictions(RowMap):
    """``1`` where ``f(x) > 1/2``, else ``0``: (b, d), for d labels.

    Parameters
    ----------
    indicators : Predictions of one function f for each label.
    """

    indicators: Predictions

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        return {"prediction": (self.indicators.coefficients.shape[1], np.dtype(np.int64))}

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        return {"prediction": (self.indicators.values(block.X) > THRESHOLD).astype(np.int64)}

    def scratch_bytes(self, rows: int) -> int:
        return self.indicators.scratch_bytes(rows) + 16 * rows * int(self.indicators.coefficients.shape[1])

    def flops_per_row(self) -> float:
        return self.indicators.flops_per_row()
