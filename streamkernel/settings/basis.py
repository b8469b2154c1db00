"""Settings of a basis, which the fits of all kinds share: components, kernel, lengthscale, rule, scaling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.kernels import Kernel, as_kernel
from streamkernel.selection import Rule, as_rule
from streamkernel.settings.checks import checked_number, checked_seed
from streamkernel.table import Table
from streamkernel.wording import estimator, option

__all__ = ["BasisSettings", "default_components"]


def default_components(rows: int, most: int = 1000) -> int:
    """Default basis size: ``sqrt(m) log m``, at most `most` (Rudi, Camoriano & Rosasco 2015)."""
    return max(1, min(rows, most, math.ceil(math.sqrt(rows) * max(1.0, math.log(rows)))))


@dataclass(frozen=True)
class BasisSettings:
    """Options of the choice of a basis; the names are those of the command line and the estimators.

    Parameters
    ----------
    n_components : basis size n, or None for `default_components`.
    kernel : name, `Kernel`, or its configuration. A `Kernel` has its own lengthscale.
    lengthscale : "median", "auto", a number, or one number per feature.
    gamma, degree, coef0, kernel_params : as in scikit-learn; `gamma` replaces the lengthscale.
    tol : stop the selection at a residual trace of ``tol * trace``.
    rule, objective, rule_options : rule that chooses the basis, and its options.
    scale : "standard" or "none".
    fit_intercept : whether to fit a constant; targets are centred.
    seed : seed of every draw.
    """

    SAMPLE_ROWS: ClassVar[dict[str, int]] = {"median": 1000, "auto": 4000}
    LENGTHSCALES: ClassVar[tuple[str, ...]] = tuple(SAMPLE_ROWS)
    MOST_COMPONENTS: ClassVar[int] = 1000  # limit on the default size

    n_components: int | None = None
    kernel: str | Kernel | dict[str, Any] = "gaussian"
    lengthscale: Any = "median"
    gamma: Any = None
    degree: Any = None
    coef0: Any = None
    kernel_params: dict[str, Any] | None = None
    tol: float = 0.0
    rule: str | Rule = "few-sweep"
    objective: str | float = "prediction"
    rule_options: dict[str, Any] = field(default_factory=dict)
    scale: str = "standard"
    fit_intercept: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        n = self.n_components
        if n is not None and (isinstance(n, (bool, np.bool_)) or not isinstance(n, (int, np.integer)) or n <= 0):
            raise ParameterError(f"{option('n_components')} must be a whole number > 0, not {n!r}", value=n)
        checked_number("tol", self.tol, least=0.0, most=1.0)
        if self.scale not in ("standard", "none"):
            raise ParameterError(f"scale must be 'standard' or 'none', not {self.scale!r}")
        words = self.LENGTHSCALES
        if isinstance(self.lengthscale, str) and self.lengthscale not in words:
            raise ParameterError(
                f"lengthscale must be {', '.join(map(repr, words))} or a number > 0, not {self.lengthscale!r}"
            )
        kernel = self.kernel_template()
        if self.needs_positive_definite and not kernel.positive_definite:
            raise ParameterError(
                f"the kernel {kernel.name!r} is not positive definite: it has no features to whiten; give another "
                f"{option('kernel')}, or fit by matching pursuit, which takes it ({estimator('KernelMatchingPursuit')})"
            )
        self.selection_rule(has_targets=True)

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Make settings from a scikit-learn estimator's parameters; those of the run (memory, client) are ignored."""
        known = {each.name for each in fields(cls)}
        given = {name: value for name, value in parameters.items() if name in known}
        given |= {
            "rule_options": dict(parameters["rule_options"] or {}),
            "seed": checked_seed(parameters["random_state"]),
        }
        return cls(**given)

    @property
    def needs_positive_definite(self) -> bool:
        """Whether the fit uses whitened features, which only positive definite kernels have."""
        return True

    @property
    def needs_regular_system(self) -> bool:
        """Whether fewer independent functions than asked for are an error, because nothing regularises the fit."""
        return False

    def sampled_rows(self, table: Table) -> int:
        """Number of rows to sample for the lengthscale, or for the shares of the classes."""
        wanted = 0
        if self.searches_lengthscale:
            wanted = self.SAMPLE_ROWS[self.lengthscale]
        elif table.classes is not None:
            wanted = self.SAMPLE_ROWS["median"]
        return min(wanted, table.n_rows)

    @property
    def searches_lengthscale(self) -> bool:
        """Whether the fit finds the lengthscale on a sample of rows."""
        named = not isinstance(self.kernel, (Kernel, dict))
        return (
            isinstance(self.lengthscale, str)
            and self.gamma is None
            and named
            and hasattr(self.kernel_template(), "lengthscale")
        )

    def kernel_template(self) -> Kernel:
        """The kernel, with lengthscale 1 where the fit still has to find it."""
        lengthscale = self.lengthscale
        if isinstance(lengthscale, str):
            lengthscale = None
        options = dict(self.kernel_params or {})
        options |= {name: getattr(self, name) for name in ("degree", "coef0") if getattr(self, name) is not None}
        try:
            return as_kernel(self.kernel, lengthscale=lengthscale, gamma=self.gamma, **options)
        except TypeError as error:
            raise ParameterError(f"kernel_params {self.kernel_params!r} do not fit the kernel ({error})") from None

    def selection_rule(self, *, has_targets: bool) -> Rule:
        """The rule that chooses the basis."""
        return as_rule(self.rule, objective=self.objective, has_targets=has_targets, **self.rule_options)

    def components(self, table: Table) -> int:
        """Basis size for a table, after a check that the kernel fits its number of features.

        Raises
        ------
        ParameterError
            More basis functions than rows, or lengthscales for another number of features.
        """
        self.kernel_template().check_features(table.n_features)
        rows = table.n_rows
        if self.n_components is None:
            return default_components(rows, self.MOST_COMPONENTS)
        if self.n_components > rows:
            raise ParameterError(
                f"{option('n_components')} is {self.n_components}, more than the {rows} rows; give at most {rows}"
            )
        return int(self.n_components)

    def to_config(self) -> dict[str, Any]:
        """Plain JSON: what determines the result, for checkpoints and the model."""
        lengthscale = self.lengthscale
        if not isinstance(lengthscale, str):
            lengthscale = np.asarray(lengthscale, dtype=np.float64).tolist()
        rule = self.rule if isinstance(self.rule, str) else self.rule.name
        return {
            "n_components": None if self.n_components is None else int(self.n_components),
            "kernel": self.kernel_template().to_config(),
            "lengthscale": lengthscale if self.searches_lengthscale else None,
            "tol": float(self.tol),
            "rule": rule,
            "objective": self.objective,
            "rule_options": self.rule_options,
            "scale": self.scale,
            "fit_intercept": bool(self.fit_intercept),
            "seed": int(self.seed),
        }
