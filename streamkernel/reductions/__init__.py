"""Reductions: the sums and samples that a sweep accumulates over row blocks. One reduction per file."""

from streamkernel.reductions.both import Both
from streamkernel.reductions.collect import Collect
from streamkernel.reductions.contract import Reduction, State
from streamkernel.reductions.gather import Gather, Sample
from streamkernel.reductions.moments import Moments
from streamkernel.reductions.reweighted import Reweighted, WithoutHeldOut
from streamkernel.reductions.row_map import Predictions, RowMap
from streamkernel.reductions.row_random import (
    DrawnRows,
    counted_rows,
    draw_at_once,
    draw_rows,
    row_uniforms,
    stream_generator,
    uniform_rows,
)
from streamkernel.reductions.views import View

__all__ = [
    "Both",
    "Collect",
    "DrawnRows",
    "Gather",
    "Moments",
    "Predictions",
    "Reduction",
    "Reweighted",
    "RowMap",
    "Sample",
    "State",
    "View",
    "WithoutHeldOut",
    "counted_rows",
    "draw_at_once",
    "draw_rows",
    "row_uniforms",
    "stream_generator",
    "uniform_rows",
]
