"""The results of a ridge fit, and the arrays and fields that a model stores of them (docs/model.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.estimators.choosing import Chosen
from streamkernel.estimators.record import basis_arrays, certificate_of, model_record
from streamkernel.estimators.seen import seen_by_fit
from streamkernel.estimators.settings import RidgeSettings
from streamkernel.reductions import Predictions, RidgeSums, TargetSums
from streamkernel.solvers import FalkonSolution, FalkonSystem, RidgeSolution, RidgeSystem

__all__ = ["Fitted", "falkon_arrays", "falkon_record", "solution_arrays", "solution_record"]


@dataclass(frozen=True)
class Fitted:
    """The results of a fit's steps.

    Parameters
    ----------
    chosen : basis, and the scaled rows of the fit.
    settings : options of the fit.
    n : basis size that was asked for.
    solution : coefficients and intercept.
    residual_path : (n + 1,) exact residual traces.
    own_arrays, own_record : arrays and fields of the solution that the model stores; they depend on the solver.
    sweeps : passes over the rows.
    """

    chosen: Chosen
    settings: RidgeSettings
    n: int
    solution: RidgeSolution | FalkonSolution
    residual_path: NDArray[np.float64]
    own_arrays: dict[str, NDArray[Any]]
    own_record: dict[str, Any]
    sweeps: int

    def predictions(self) -> Predictions:
        """The row map that predicts, on rows that are scaled already."""
        return Predictions(self.chosen.selection.basis, self.solution.coefficients, self.solution.intercept)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of the model, by name."""
        return {**basis_arrays(self.chosen, self.residual_path), **self.own_arrays}

    def config(self, estimator: str, targets_are_2d: bool) -> dict[str, Any]:
        """Configuration of the model: the fields that depend only on the rows and the settings, and the software."""
        return {
            **model_record(
                self.chosen,
                self.settings,
                self.n,
                estimator=estimator,
                targets_are_2d=targets_are_2d,
                sweeps=self.sweeps,
            ),
            **seen_by_fit(self.chosen.table),
            **self.own_record,
        }


def solution_arrays(
    sums: RidgeSums, system: RidgeSystem, solution: RidgeSolution, scale: NDArray[np.float64] | None
) -> dict[str, NDArray[Any]]:
    """The sums and what follows from them.

    Parameters
    ----------
    scale : (d,) squared units in which GCV adds the errors of several targets; None for common units.
    """
    path = system.path
    alphas = path.grid()
    return {
        "dual_coef": solution.coefficients,
        "intercept": solution.intercept,
        "sum_H": sums.H,
        "sum_g": sums.g,
        "sum_YY": sums.YY,
        "sum_G1": sums.G1,
        "sum_Y1": sums.Y1,
        "centre": sums.centre,
        "gcv_alphas": alphas,
        "gcv_scores": np.array([path.gcv(float(alpha), scale) for alpha in alphas]),
        "gcv_effective_df": np.array([path.effective_df(float(alpha)) for alpha in alphas]),
    }


def solution_record(sums: RidgeSums, system: RidgeSystem, solution: RidgeSolution) -> dict[str, Any]:
    """The fields of the sums and of the solution that are not arrays."""
    return {
        "alpha": solution.alpha,
        **_of_rows(sums, system.residual_trace),
        "solution": {
            "solver": "direct",
            # Infinite where all degrees of freedom are used; JSON has no infinity.
            "gcv": solution.gcv if math.isfinite(solution.gcv) else None,
            "effective_df": solution.effective_df,
            "training_rmse": _rmse(solution, sums.count),
        },
    }


def falkon_arrays(solution: FalkonSolution) -> dict[str, NDArray[Any]]:
    """The coefficients only: there are no n x n sums, from which other values of alpha could be solved."""
    return {"dual_coef": solution.coefficients, "intercept": solution.intercept}


def falkon_record(system: FalkonSystem, solution: FalkonSolution) -> dict[str, Any]:
    """The fields of `solution_record`, and the record of the iterations."""
    assert system.residual_trace is not None
    return {
        "alpha": solution.alpha,
        **_of_rows(system.sums, system.residual_trace),
        "solution": {
            "solver": "cg",
            "gcv": None,
            "effective_df": None,
            "training_rmse": _rmse(solution, system.sums.count),
            "iterations": solution.iterations,
            "ended": solution.ended,
            "relative_residual": solution.residuals[-1].tolist(),
            "excess": solution.excess.tolist(),
        },
    }


def _of_rows(sums: RidgeSums | TargetSums, residual_trace: float) -> dict[str, Any]:
    return {
        "totals": {"rows": sums.count, "weight": sums.weight, "trace": sums.trace},
        "certificate": certificate_of(sums.trace, residual_trace),
    }


def _rmse(solution: RidgeSolution | FalkonSolution, rows: int) -> list[float]:
    found: list[float] = np.sqrt(solution.residual_square / max(rows, 1)).tolist()
    return found
