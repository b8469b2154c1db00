"""The base class of the estimators of matching pursuit: parameters, path and stages."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Self

import numpy as np

from streamkernel.engine import Progress
from streamkernel.errors import ParameterError
from streamkernel.estimators.base import SupervisedEstimator, is_array_like
from streamkernel.fits.pursuit import fit_pursuit
from streamkernel.models.pursuit import PursuitModel
from streamkernel.pursuit import AUTO, PursuitPath
from streamkernel.settings.pursuit import PursuitSettings
from streamkernel.table import open_table
from streamkernel.type_aliases import ArrayOrDask, Fields, Unchecked, Untyped
from streamkernel.wording import option

_ROWS = 4096  # of a block in staged predictions


class PursuitEstimator(SupervisedEstimator):
    """Parameters and fitted attributes of the estimators of matching pursuit; see `KernelMatchingPursuit`."""

    _model = PursuitModel
    _settings_class = PursuitSettings
    _fit = staticmethod(fit_pursuit)

    model_: PursuitModel

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Unchecked = "gaussian",
        lengthscale: Unchecked = "median",
        gamma: Unchecked = None,
        degree: Unchecked = None,
        coef0: Unchecked = None,
        kernel_params: Fields | None = None,
        variant: str = "pre-fitting",
        shrinkage: float = 1.0,
        pool: str = "shared",
        draw: str = "uniform",
        candidates: int | None = None,
        picks: int | None = None,
        eps: float = 0.05,
        quantile: float = 0.95,
        validation: Unchecked = AUTO,
        patience: int | None = None,
        choose_by: str = "loss",
        bound_gamma: float | None = None,
        loss: str = "squared",
        tol: float = 0.0,
        scale: str = "standard",
        fit_intercept: bool = True,
        random_state: Unchecked = 0,
        memory_limit: Unchecked = None,
        client: Untyped = None,
        progress: Progress | None = None,
    ) -> None:
        self._set_parameters(locals())

    def _settings(self) -> PursuitSettings:
        given = {**self.get_params(deep=False), "rule_options": None}
        other = self.validation
        if isinstance(other, (tuple, list)):
            if len(other) != 2:
                raise ParameterError(f"{option('validation')} has {len(other)} parts; give a share, (X, y) or a table")
            given["validation"] = open_table(*other, classify=self._classify and other[1] is not None)
        elif isinstance(other, (str, PathLike)) and other != AUTO:
            given["validation"] = open_table(other, classify=self._classify)
        return PursuitSettings.from_parameters(given)

    def _adopt(self, model: PursuitModel) -> Self:
        super()._adopt(model)
        self.active_set_ = model.active_set
        self.path_: PursuitPath = model.path
        return self

    def _staged(self, X: Unchecked, *, argmax: bool) -> Iterator[ArrayOrDask]:
        """Predictions by the first 1, 2, ... steps; lazy ones for rows that are not in memory."""
        model: PursuitModel = self._fitted()
        if is_array_like(X):
            yield from self._staged_here(model, X, argmax)
            return
        for terms in range(1, model.terms + 1):
            yield self._values(X, model.predictions(argmax=argmax, terms=terms))

    def _staged_here(self, model: PursuitModel, X: Unchecked, argmax: bool) -> Iterator[ArrayOrDask]:
        """Stages for rows in memory: all columns are computed once, then each step adds one."""
        table, stages = self._here(X), model.stages
        along = np.concatenate(
            [
                stages.along(model.basis.block(table.read(start, min(start + _ROWS, table.n_rows)).X))
                for start in range(0, table.n_rows, _ROWS)
            ]
        )
        c = int(stages.constant)
        values = model.arrays["offset"] + along[:, :c] @ stages.amounts[:c]
        flat = model.predictions().columns["prediction"][0] is None
        for step, amount in enumerate(stages.amounts[c:], start=c):
            values = values + np.outer(along[:, step], amount)
            yield values.argmax(axis=1) if argmax else values[:, 0] if flat else values
