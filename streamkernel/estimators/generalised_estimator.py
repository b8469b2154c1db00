"""The base class of the generalised Gaussian process estimators: their parameters."""

from __future__ import annotations

from typing import Any, Self

from streamkernel.engine import Progress, Session
from streamkernel.estimators.base import SupervisedEstimator
from streamkernel.estimators.fit_generalised import fit_generalised
from streamkernel.estimators.gaussian_settings import GeneralisedSettings
from streamkernel.estimators.generalised_model import GeneralisedModel
from streamkernel.table import Table

__all__ = ["GeneralisedEstimator"]


class GeneralisedEstimator(SupervisedEstimator):
    """Parameters and fitted attributes of `GaussianProcessClassifier` and `GaussianProcessPoissonRegressor`."""

    _model = GeneralisedModel
    _settings_class = GeneralisedSettings

    model_: GeneralisedModel

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "gaussian",
        lengthscale: Any = "evidence",
        ard: bool = False,
        gamma: Any = None,
        degree: Any = None,
        coef0: Any = None,
        kernel_params: dict[str, Any] | None = None,
        signal_variance: Any = "evidence",
        tune: str = "sample",
        newton_tol: float = 1e-6,
        max_iterations: int = 30,
        rule: Any = "few-sweep",
        objective: Any = "prediction",
        rule_options: dict[str, Any] | None = None,
        tol: float = 0.0,
        scale: str = "standard",
        random_state: Any = 0,
        memory_limit: Any = None,
        client: Any = None,
        progress: Progress | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.lengthscale = lengthscale
        self.ard = ard
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.signal_variance = signal_variance
        self.tune = tune
        self.newton_tol = newton_tol
        self.max_iterations = max_iterations
        self.rule = rule
        self.objective = objective
        self.rule_options = rule_options
        self.tol = tol
        self.scale = scale
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.client = client
        self.progress = progress

    def _fit_model(self, table: Table, settings: Any, session: Session, **options: Any) -> GeneralisedModel:
        return fit_generalised(table, settings, session, **options)

    def _adopt(self, model: GeneralisedModel) -> Self:
        super()._adopt(model)
        solution = model.config["solution"]
        self.signal_variance_ = model.config["signal_variance"]
        self.log_marginal_likelihood_value_ = solution["log_evidence"]
        self.n_iter_ = solution["iterations"]
        return self
