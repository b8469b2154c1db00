"""How well predictions match targets: sums over rows, from which every score follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.contract import Reduction, State, add_states
from streamkernel.reductions.rows import Predictions
from streamkernel.table import ColumnStatistics, RowBlock

__all__ = ["ClassificationScores", "RegressionScores"]


@dataclass(frozen=True)
class RegressionScores(Reduction[dict[str, float]]):
    """Root mean squared error, mean absolute error and R^2, averaged over targets.

    ``R^2 = 1 - sum (y - f)^2 / sum (y - mean y)^2`` per target, as scikit-learn's ``r2_score``.
    """

    predictions: Predictions

    def map_block(self, block: RowBlock) -> State:
        assert block.Y is not None
        error = block.Y - self.predictions.values(block.X)
        errors = {"squared_error": (error**2).sum(axis=0), "absolute_error": np.abs(error).sum(axis=0)}
        return errors | ColumnStatistics.of(block.Y).to_arrays("y_")

    def combine(self, left: State, right: State) -> State:
        errors = {name: left[name] + right[name] for name in ("squared_error", "absolute_error")}
        spread = ColumnStatistics.from_arrays(left, "y_").merge(ColumnStatistics.from_arrays(right, "y_"))
        return errors | spread.to_arrays("y_")

    def finalize(self, state: State) -> dict[str, float]:
        targets = ColumnStatistics.from_arrays(state, "y_")
        rows, spread = targets.count, targets.count * targets.std**2
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(
                spread > 0.0, state["squared_error"] / spread, np.where(state["squared_error"] > 0.0, 1.0, 0.0)
            )
        return {
            "rows": rows,
            "rmse": float(np.sqrt(state["squared_error"] / rows).mean()),
            "mae": float((state["absolute_error"] / rows).mean()),
            "r2": float((1.0 - share).mean()),
        }

    def state_bytes(self) -> int:
        return int(64 * self.predictions.coefficients.shape[1])

    def scratch_bytes(self, rows: int) -> int:
        return self.predictions.scratch_bytes(rows)

    def flops_per_row(self) -> float:
        return self.predictions.flops_per_row()


@dataclass(frozen=True)
class ClassificationScores(Reduction[dict[str, float]]):
    """Share of rows whose largest value is that of their class."""

    predictions: Predictions

    def map_block(self, block: RowBlock) -> State:
        assert block.Y is not None
        right = self.predictions.values(block.X).argmax(axis=1) == block.Y.argmax(axis=1)
        return {"totals": np.array([len(right), np.count_nonzero(right)], dtype=np.float64)}

    def combine(self, left: State, right: State) -> State:
        return add_states(left, right)

    def finalize(self, state: State) -> dict[str, float]:
        rows, right = state["totals"]
        return {"rows": int(rows), "accuracy": float(right / rows)}

    def state_bytes(self) -> int:
        return 16

    def scratch_bytes(self, rows: int) -> int:
        return self.predictions.scratch_bytes(rows)

    def flops_per_row(self) -> float:
        return self.predictions.flops_per_row()
