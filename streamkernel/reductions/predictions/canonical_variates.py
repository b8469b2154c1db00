"""Canonical variates: values of one view, written for every row."""

from __future__ import annotations

from dataclasses import dataclass

from streamkernel.reductions.row_map import RowMap
from streamkernel.reductions.sums.feature_maps import FeatureTimes
from streamkernel.reductions.views import View
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType


@dataclass(frozen=True)
class ViewTimes(RowMap):
    """``G_v A + offset`` for a view v.

    Parameters
    ----------
    view : the view v.
    times : row map of the view.
    """

    view: View
    times: FeatureTimes

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        return self.times.columns

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        return self.times.map_block(self.view.block(block))

    def scratch_bytes(self, rows: int) -> int:
        basis = self.times.features.basis
        assert basis is not None
        width = basis.points.shape[1]
        return int(self.times.scratch_bytes(rows) + 8 * rows * width + self.view.scratch_bytes(rows, width))

    def flops_per_row(self) -> float:
        return self.times.flops_per_row()


@dataclass(frozen=True)
class BothVariates(RowMap):
    """The variates of both views of the same rows; the output of the second view has ``_y`` after its name.

    Parameters
    ----------
    first, second : row maps of the views.
    """

    first: ViewTimes
    second: ViewTimes

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        return self.first.columns | {f"{name}_y": column for name, column in self.second.columns.items()}

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        second = self.second.map_block(block)
        return self.first.map_block(block) | {f"{name}_y": values for name, values in second.items()}

    def scratch_bytes(self, rows: int) -> int:
        # One view after the other; the values of both are held.
        values = sum(8 * rows * (width or 1) for width, _ in self.columns.values())
        return max(self.first.scratch_bytes(rows), self.second.scratch_bytes(rows)) + values

    def flops_per_row(self) -> float:
        return self.first.flops_per_row() + self.second.flops_per_row()
