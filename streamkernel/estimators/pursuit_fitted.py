"""The results of a matching pursuit, and the arrays and fields that a model stores of them (docs/model.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.estimators.choosing import Chosen
from streamkernel.estimators.pursuit_settings import PursuitSettings
from streamkernel.estimators.record import basis_arrays, certificate_of, model_record, path_of
from streamkernel.pursuit import PursuitSelection, Stages
from streamkernel.reductions import OddsProbabilities, Predictions

__all__ = ["PursuitFitted"]

Float = NDArray[np.float64]


@dataclass(frozen=True)
class PursuitFitted:
    """The results of a fit's steps.

    Parameters
    ----------
    chosen : functions with their coefficients, and the scaled rows of the fit.
    settings : options of the fit.
    n : number of terms that was asked for.
    sweeps : passes over the rows.
    """

    chosen: Chosen
    settings: PursuitSettings
    n: int
    sweeps: int

    @property
    def selection(self) -> PursuitSelection:
        """The chosen functions, with their coefficients and path."""
        assert isinstance(self.chosen.selection, PursuitSelection)
        return self.chosen.selection

    def _values(self) -> tuple[Stages, Float]:
        """The stages of the predictions, and the offset (d,) to add; two classes have one column each.

        For two classes the target is f = -1 or 1, and the indicators are ``(1 - f) / 2, (1 + f) / 2``.
        """
        stages, offset = self.selection.stages, self.selection.offset
        classes = self.chosen.table.classes
        if classes is None or len(classes) > 2:
            return stages, offset
        halves = np.array([[-0.5, 0.5]])
        return Stages(stages.directions, stages.amounts @ halves, stages.constant), (offset @ halves) + 0.5

    def predictions(self) -> Predictions | OddsProbabilities:
        """The row map that predicts, on rows that are scaled already."""
        stages, offset = self._values()
        values = Predictions(self.selection.basis, stages.coefficients, stages.intercept + offset)
        return OddsProbabilities(values) if self.settings.loss == "logistic" else values

    def _residual_path(self) -> Float:
        """(n + 1,) residual traces; all of the trace for kernels without whitened features, which certifies nothing."""
        trace, squares = self.selection.trace, self.selection.squares
        if squares is None:
            return np.full(len(self.selection.basis) + 1, max(trace, 0.0))
        return path_of(trace, squares)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of the model, by name."""
        stages, offset = self._values()
        return {
            **basis_arrays(self.chosen, self._residual_path()),
            "dual_coef": stages.coefficients,
            "intercept": stages.intercept + offset,
            "directions": stages.directions,
            "amounts": stages.amounts,
            "offset": offset,
            **self.selection.path.to_arrays(),
        }

    def config(self, estimator: str, targets_are_2d: bool) -> dict[str, Any]:
        """Configuration of the model: the fields that depend only on the rows and the settings, and the software."""
        selection = self.selection
        path, terms, trail = selection.path, selection.stages.terms, self._residual_path()
        return {
            **model_record(
                self.chosen,
                self.settings,
                self.n,
                estimator=estimator,
                targets_are_2d=targets_are_2d,
                sweeps=self.sweeps,
            ),
            "totals": {
                "rows": path.fitted_rows,
                "validation_rows": path.validation_rows,
                "counted_rows": path.counted,
                "trace": selection.trace,
            },
            "certificate": certificate_of(float(trail[0]), float(trail[-1])),
            "solution": {
                "terms": terms,
                "terms_tried": path.terms,
                "constant": selection.stages.constant,
                "ridge": selection.ridge,
                "training_rmse": np.sqrt(path.rss[terms] / max(path.fitted_rows, 1.0)).tolist(),
                "relative_rss": _share(path.rss, terms),
                "validation_rmse": None
                if path.validation is None
                else np.sqrt(path.validation[terms] / path.validation_rows).tolist(),
                "training_error": path.error_rate(terms, held_out=False),
                "validation_error": path.error_rate(terms, held_out=True),
                "least_weakness": float(path.weakness.min(initial=1.0)),
            },
        }


def _share(rss: Float, terms: int) -> list[float]:
    """Residual squares of each target as a share of those of a constant; 0 for a constant target."""
    first = np.where(rss[0] > 0.0, rss[0], 1.0)
    shares: list[float] = (rss[terms] / first).tolist()
    return shares
