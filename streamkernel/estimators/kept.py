"""What a fit leaves, and what of it a model keeps: named arrays and a configuration (docs/model.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.estimators.settings import RidgeSettings
from streamkernel.kernels import Kernel
from streamkernel.reductions import Predictions, RidgeSums
from streamkernel.selection import Selection
from streamkernel.solvers import LengthscaleChoice, RidgeSolution, RidgeSystem
from streamkernel.table import Scaler, Table

__all__ = ["Fitted"]


@dataclass(frozen=True)
class Fitted:
    """The results of a fit's steps.

    Parameters
    ----------
    table : rows of the fit, scaled by `scaler`.
    settings : what was asked.
    n : basis size that was asked for.
    target_scale : (d,) spread of each target.
    kernel : with its lengthscale.
    lengthscale : how that was found; None where it was given.
    sweeps : passes over the rows.
    """

    table: Table
    settings: RidgeSettings
    n: int
    scaler: Scaler | None
    target_scale: NDArray[np.float64]
    kernel: Kernel
    lengthscale: LengthscaleChoice | None
    selection: Selection
    sums: RidgeSums
    system: RidgeSystem
    solution: RidgeSolution
    sweeps: int

    def predictions(self) -> Predictions:
        """The row map that predicts, on rows that are scaled already."""
        return Predictions(self.selection.basis, self.solution.coefficients, self.solution.intercept)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of the model, by name."""
        basis, sums, path = self.selection.basis, self.sums, self.system.path
        alphas = path.grid()
        scale = None if self.table.classes is not None else self.target_scale**2
        return {
            "components": basis.points,
            "component_indices": basis.rows,
            "dual_coef": self.solution.coefficients,
            "intercept": self.solution.intercept,
            "sum_H": sums.H,
            "sum_g": sums.g,
            "sum_YY": sums.YY,
            "sum_G1": sums.G1,
            "sum_Y1": sums.Y1,
            "centre": sums.centre,
            "residual_path": self.system.residual_path,
            "gains": self.selection.gains,
            "gcv_alphas": alphas,
            "gcv_scores": np.array([path.gcv(float(alpha), scale) for alpha in alphas]),
            "gcv_effective_df": np.array([path.effective_df(float(alpha)) for alpha in alphas]),
        }

    def config(self, estimator: str, targets_are_2d: bool) -> dict[str, Any]:
        """Configuration of the model: all of it that is a function of the rows and the settings."""
        table, solution = self.table, self.solution
        lengthscale = getattr(self.kernel, "lengthscale", None)
        classes = table.classes
        return {
            "estimator": estimator,
            "settings": self.settings.to_config(),
            "kernel": self.kernel.to_config(),
            "lengthscale": list(lengthscale) if isinstance(lengthscale, tuple) else lengthscale,
            "lengthscale_choice": None if self.lengthscale is None else self.lengthscale.to_config(),
            "alpha": solution.alpha,
            "scaler": None if self.scaler is None else self.scaler.to_config(),
            "columns": list(table.columns),
            "target_names": list(table.target_names),
            "classes": None if classes is None else classes.tolist(),
            "targets_are_2d": targets_are_2d,
            "target_scale": self.target_scale.tolist(),
            "dtype": str(table.dtype),
            "rows": {"start": table.start, "stop": table.stop, "count": table.n_rows},
            "table_fingerprint": table.fingerprint,
            "requested_basis": self.n,
            "basis_size": len(self.selection.basis),
            "rule": self.settings.selection_rule(has_targets=table.n_targets > 0).name,
            "ended": self.selection.ended,
            "rounds": [record.to_config() for record in self.selection.rounds],
            "sweep_count": self.sweeps,
            "totals": {"rows": self.sums.count, "weight": self.sums.weight, "trace": self.sums.trace},
            "certificate": {
                "trace": self.sums.trace,
                "residual_trace": self.system.residual_trace,
                "relative_residual_trace": self.system.residual_trace / self.sums.trace if self.sums.trace else 0.0,
            },
            "solution": {
                # Infinite where all degrees of freedom are used, for which JSON has no word.
                "gcv": solution.gcv if math.isfinite(solution.gcv) else None,
                "effective_df": solution.effective_df,
                "training_rmse": np.sqrt(solution.residual_square / max(self.sums.count, 1)).tolist(),
            },
        }
