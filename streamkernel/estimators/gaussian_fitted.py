"""The results of a Gaussian process fit, and the arrays and fields that a model stores of them (docs/model.md)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.committee import QuerySetRule
from streamkernel.estimators.choosing import Chosen
from streamkernel.estimators.gaussian_settings import GaussianSettings
from streamkernel.estimators.record import basis_arrays, certificate_of, model_record, path_of
from streamkernel.estimators.seen import seen_by_fit
from streamkernel.estimators.tuning import tuning_arrays, tuning_record
from streamkernel.reductions import BlockNoise, DiagonalNoise, GaussianPredictions, GaussianSums, RowNoise
from streamkernel.solvers import GaussianSolution

__all__ = ["GaussianFitted", "gaussian_arrays", "gaussian_record"]


@dataclass(frozen=True)
class GaussianFitted:
    """The results of a fit's steps.

    Parameters
    ----------
    chosen : the basis, how hyper-parameters were tuned, and the rows as the basis sees them.
    settings : options of the fit.
    n : basis size that was asked for.
    sums : sums of the final sweep.
    row_noise : noise model that the sums were computed with.
    solution : the posterior.
    member_weights : (B,) share of each block in the combined prediction, for "pitc".
    query_set : check that the basis is large enough for blocks to be independent given f there, for "pitc".
    sweeps : passes over the rows.
    """

    chosen: Chosen
    settings: GaussianSettings
    n: int
    sums: GaussianSums
    row_noise: RowNoise
    solution: GaussianSolution
    member_weights: NDArray[np.float64] | None
    query_set: QuerySetRule | None
    sweeps: int

    def predictions(self) -> GaussianPredictions:
        """The row map that predicts, on rows that are scaled already."""
        return self.solution.predictions(self.chosen.selection.basis)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of the model, by name."""
        cells = self.row_noise.cells if isinstance(self.row_noise, BlockNoise) else None
        optional = {"member_weights": self.member_weights, "cells": cells}
        return {
            **basis_arrays(self.chosen, path_of(self.sums.trace, self.sums.squares)),
            **gaussian_arrays(self.sums, self.solution),
            **tuning_arrays(self.chosen),
            **{name: values for name, values in optional.items() if values is not None},
        }

    def config(self, estimator: str, targets_are_2d: bool) -> dict[str, Any]:
        """Configuration of the model: the fields that depend only on the rows and the settings, and the software."""
        noise = self.row_noise
        made = [noise.signal, noise.noise] if isinstance(noise, (DiagonalNoise, BlockNoise)) else None
        return {
            **model_record(
                self.chosen,
                self.settings,
                self.n,
                estimator=estimator,
                targets_are_2d=targets_are_2d,
                sweeps=self.sweeps,
            ),
            "approximation": self.settings.approximation,
            "row_noise": made,
            "block_size": self.settings.block_size if isinstance(noise, BlockNoise) else None,
            "tuning": tuning_record(self.chosen),
            "query_set": None if self.query_set is None else asdict(self.query_set),
            **seen_by_fit(self.chosen.table),
            **gaussian_record(self.sums, self.solution),
        }


def gaussian_arrays(sums: GaussianSums, solution: GaussianSolution) -> dict[str, NDArray[Any]]:
    """Arrays that follow from the sums."""
    return {
        "dual_coef": solution.coefficients,
        "intercept": solution.intercept,
        "rotation": solution.rotation,
        "shares": solution.shares,
        "signal_variance": solution.signal,
        "noise_variance": solution.noise,
        "sum_H": sums.H,
        "sum_g": sums.g,
        "sum_YY": sums.YY,
        "sum_G1": sums.G1,
        "sum_Y1": sums.Y1,
        "sum_squares": sums.squares,
        "centre": sums.centre,
    }


def gaussian_record(sums: GaussianSums, solution: GaussianSolution) -> dict[str, Any]:
    """Fields that follow from the sums."""
    return {
        "totals": {
            "rows": sums.count,
            "trace": sums.trace,
            "residual_trace": sums.residual_trace,
            "log_det": sums.log_det,
        },
        "certificate": certificate_of(sums.trace, sums.residual_trace),
        "solution": {
            "log_evidence": float(solution.log_evidence.sum()),
            "bound": None if solution.bound is None else float(solution.bound.sum()),
            "effective_df": solution.effective_df.tolist(),
        },
    }
