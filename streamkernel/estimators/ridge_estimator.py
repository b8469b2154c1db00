"""The base class of the ridge estimators: their parameters."""

from __future__ import annotations

from typing import Any, Self

from streamkernel.engine import Progress, Session
from streamkernel.estimators.fit import fit_ridge
from streamkernel.estimators.model import RidgeModel
from streamkernel.estimators.settings import RidgeSettings
from streamkernel.estimators.updating_estimator import UpdatingEstimator
from streamkernel.table import Table

__all__ = ["RidgeEstimator"]


class RidgeEstimator(UpdatingEstimator):
    """Parameters and fitted attributes of the kernel ridge estimators; see `KernelRidge`."""

    _model = RidgeModel
    _settings_class = RidgeSettings

    model_: RidgeModel

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "gaussian",
        lengthscale: Any = "median",
        gamma: Any = None,
        degree: Any = None,
        coef0: Any = None,
        kernel_params: dict[str, Any] | None = None,
        alpha: Any = "gcv",
        solver: str = "auto",
        rule: Any = "few-sweep",
        objective: Any = "prediction",
        rule_options: dict[str, Any] | None = None,
        tol: float = 0.0,
        scale: str = "standard",
        fit_intercept: bool = True,
        random_state: Any = 0,
        memory_limit: Any = None,
        client: Any = None,
        progress: Progress | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.lengthscale = lengthscale
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.solver = solver
        self.rule = rule
        self.objective = objective
        self.rule_options = rule_options
        self.tol = tol
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.client = client
        self.progress = progress

    def _fit_model(self, table: Table, settings: Any, session: Session, **options: Any) -> RidgeModel:
        return fit_ridge(table, settings, session, **options)

    def _adopt(self, model: RidgeModel) -> Self:
        self.alpha_ = model.config["alpha"]
        return super()._adopt(model)
