"""What `--estimator` can be: settings, fit, plan and model of each, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from streamkernel.engine import Plan
from streamkernel.errors import ParameterError
from streamkernel.estimators.fit import fit_ridge
from streamkernel.estimators.fit_gaussian import fit_gaussian, plan_gaussian
from streamkernel.estimators.fit_generalised import check_counts, fit_generalised, plan_generalised
from streamkernel.estimators.fit_pursuit import fit_pursuit, plan_pursuit
from streamkernel.estimators.gaussian_model import GaussianModel
from streamkernel.estimators.gaussian_settings import CommitteeSettings, GaussianSettings, GeneralisedSettings
from streamkernel.estimators.generalised_model import GeneralisedModel
from streamkernel.estimators.kept_model import PredictingModel
from streamkernel.estimators.model import RidgeModel
from streamkernel.estimators.plan import plan_ridge
from streamkernel.estimators.pursuit_model import PursuitModel
from streamkernel.estimators.pursuit_settings import PursuitSettings
from streamkernel.estimators.settings import BasisSettings, RidgeSettings
from streamkernel.estimators.supervised import check_numbers
from streamkernel.table import Table

__all__ = ["RECIPES", "SETTINGS", "Recipe", "check_options", "settings_of"]

# Options of the command line whose settings have other names.
SETTINGS = {"basis": "n_components", "intercept": "fit_intercept"}

# Settings of sums over blocks of rows, which only some approximations have.
_OF_BLOCKS = frozenset({"block_size", "partition"})


@dataclass(frozen=True)
class Recipe:
    """One kind of fit.

    Attributes
    ----------
    name : of `--estimator`.
    settings : class of its options.
    fit : ``fit(table, settings, session, estimator=name, ...)``, with the options of `fit_supervised`.
    plan : ``plan(table, settings, machine, n)``.
    model : class of what it gives.
    classify : whether targets are labels, whatever their dtype.
    check : ``check(table, name)`` refuses targets of another kind before anything is read: a plan is of a fit.
    """

    name: str
    settings: type[BasisSettings]
    fit: Callable[..., PredictingModel]
    plan: Callable[..., Plan]
    model: type[PredictingModel]
    classify: bool = False
    check: Callable[[Table, str], None] = check_numbers

    @property
    def options(self) -> frozenset[str]:
        """Names of its settings."""
        return frozenset(field.name for field in fields(self.settings))


def _any(table: Table, estimator: str) -> None:
    """Targets become labels whatever they are."""


def _by_name(*recipes: Recipe) -> dict[str, Recipe]:
    return {recipe.name: recipe for recipe in recipes}


RECIPES: dict[str, Recipe] = _by_name(
    Recipe("ridge", RidgeSettings, fit_ridge, plan_ridge, RidgeModel),
    Recipe("ridge-classifier", RidgeSettings, fit_ridge, plan_ridge, RidgeModel, True, _any),
    # Labels are classes to both; numbers to the second alone.
    Recipe("kmp", PursuitSettings, fit_pursuit, plan_pursuit, PursuitModel, check=_any),
    Recipe("kmp-classifier", PursuitSettings, fit_pursuit, plan_pursuit, PursuitModel, True, _any),
    Recipe("gp", GaussianSettings, fit_gaussian, plan_gaussian, GaussianModel),
    Recipe("gp-classifier", GeneralisedSettings, fit_generalised, plan_generalised, GeneralisedModel, True, _any),
    Recipe("poisson", GeneralisedSettings, fit_generalised, plan_generalised, GeneralisedModel, check=check_counts),
    Recipe("committee", CommitteeSettings, fit_gaussian, plan_gaussian, GaussianModel),
)


def takers(option: str) -> list[str]:
    """Names of the estimators that have a setting of this name."""
    return [recipe.name for recipe in RECIPES.values() if option in recipe.options]


def settings_of(recipe: Recipe, given: dict[str, Any]) -> Any:
    """The recipe's settings; of None stands its default.

    Raises
    ------
    ParameterError
        An option is given that the estimator does not have; or one is out of range.
    """
    wanted = {name: value for name, value in given.items() if value is not None}
    check_options(recipe, wanted)
    settings = recipe.settings(**wanted)
    if isinstance(settings, GaussianSettings) and settings.approximation != "pitc":
        for name in sorted(_OF_BLOCKS & wanted.keys()):
            raise ParameterError(
                f"--{name.replace('_', '-')} means nothing to the approximation {settings.approximation}; it is an "
                "option of pitc (--approximation pitc), and of the estimator committee"
            )
    return settings


def check_options(recipe: Recipe, names: Iterable[str]) -> None:
    """Refuse options that the recipe does not have: `ParameterError`."""
    for name in names:
        if name not in recipe.options:
            option, others = f"--{name.replace('_', '-')}", takers(name)
            raise ParameterError(
                f"{option} means nothing to the estimator {recipe.name}; it is an option of {', '.join(others)}"
                if others
                else f"there is no option {name}{_nearest(recipe, name)}; streamkernel fit --help lists them"
            )


def _nearest(recipe: Recipe, name: str) -> str:
    near = get_close_matches(name, sorted(recipe.options | SETTINGS.keys()), 1)
    return "".join(f", but {SETTINGS.get(one, one)}" for one in near)
