"""The results of a generalised Gaussian process fit, and what a model stores of them (docs/model.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.estimators.choosing import Chosen
from streamkernel.estimators.gaussian_settings import GeneralisedSettings
from streamkernel.estimators.record import basis_arrays, certificate_of, model_record, path_of
from streamkernel.estimators.tuning import tuning_arrays, tuning_record
from streamkernel.reductions import ClassProbabilities, LatentPosterior, Likelihood, PoissonPredictions, StartSums
from streamkernel.solvers import LaplaceApproximation

__all__ = ["GeneralisedFitted"]


@dataclass(frozen=True)
class GeneralisedFitted:
    """The results of a fit's steps.

    Parameters
    ----------
    chosen : the basis, how hyper-parameters were tuned, and the rows as the basis sees them.
    settings : options of the fit.
    n : basis size that was asked for.
    likelihood : likelihood of the targets.
    start : sums of the first sweep.
    laplace : the minimum, and the normal distribution around it.
    posterior : calibrated posterior, which predicts.
    sweeps : passes over the rows.
    """

    chosen: Chosen
    settings: GeneralisedSettings
    n: int
    likelihood: Likelihood
    start: StartSums
    laplace: LaplaceApproximation
    posterior: LatentPosterior
    sweeps: int

    def predictions(self) -> ClassProbabilities | PoissonPredictions:
        """The row map that predicts, on rows that are scaled already."""
        posterior = self.posterior
        return PoissonPredictions(posterior) if self.likelihood.name == "poisson" else ClassProbabilities(posterior)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of the model, by name."""
        posterior = self.posterior
        squares = np.diagonal(self.start.gram)[:-1]
        return {
            **basis_arrays(self.chosen, path_of(self.start.trace, squares)),
            "dual_coef": posterior.coefficients,
            "intercept": posterior.intercept,
            "contrasts": posterior.contrasts,
            **posterior.covariance.to_arrays(),
            **tuning_arrays(self.chosen),
        }

    def config(self, estimator: str, targets_are_2d: bool) -> dict[str, Any]:
        """Configuration of the model: the fields that depend only on the rows and the settings, and the software."""
        fit = self.laplace.fit
        return {
            **model_record(
                self.chosen,
                self.settings,
                self.n,
                estimator=estimator,
                targets_are_2d=targets_are_2d,
                sweeps=self.sweeps,
            ),
            "likelihood": self.likelihood.name,
            "signal_variance": fit.signal_variance,
            "residual_share": self.posterior.residual_share,
            "covariance_share": self.posterior.covariance_share,
            "totals": {"rows": self.start.count, "trace": self.start.trace},
            "certificate": certificate_of(self.start.trace, self.start.residual_trace),
            "tuning": tuning_record(self.chosen),
            "solution": {
                **{name: value for name, value in fit.to_config().items() if name != "iterations"},
                "path": fit.to_config()["iterations"],
                "iterations": len(fit.iterations),
                "log_evidence": self.laplace.log_evidence,
                "effective_df": self.laplace.effective_parameters,
            },
        }
