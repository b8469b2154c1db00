"""The registry of kinds: what can be fitted, saved, loaded and served. All other tables of kinds are derived from it.

A new estimator is a class in `estimators/` and a row here. Its class is imported when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from streamkernel.engine import Plan
from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.factors import Factor
from streamkernel.fits.boosting import fit_boosting, plan_boosting
from streamkernel.fits.fold_rows import SharedSums
from streamkernel.fits.gaussian import fit_gaussian, plan_gaussian
from streamkernel.fits.gaussian_folds import GAUSSIAN_FOLDS
from streamkernel.fits.generalised import check_counts, fit_generalised, plan_generalised
from streamkernel.fits.kernel_cca import fit_kernel_cca
from streamkernel.fits.kernel_cca_plan import plan_kernel_cca
from streamkernel.fits.margins import fit_margins, plan_margins
from streamkernel.fits.one_class import fit_one_class, plan_one_class
from streamkernel.fits.pursuit import fit_pursuit, plan_pursuit
from streamkernel.fits.ridge import fit_ridge, plan_ridge
from streamkernel.fits.ridge_folds import RIDGE_FOLDS
from streamkernel.fits.supervised import check_numbers
from streamkernel.fits.transformer import fit_kernel_pca, fit_nystroem, plan_transformer
from streamkernel.models.boosting import BoostingModel
from streamkernel.models.gaussian import GaussianModel
from streamkernel.models.generalised import GeneralisedModel
from streamkernel.models.kernel_cca import KernelCCAModel
from streamkernel.models.linear import LinearClassifierModel, LinearRegressorModel
from streamkernel.models.margins import MarginClassifierModel, MarginRegressorModel, OneClassModel, QuantileModel
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.pursuit import PursuitModel
from streamkernel.models.ridge import RidgeModel
from streamkernel.models.saved import SavedModel
from streamkernel.models.transformers import KernelPCAModel, NystroemModel, TransformerModel
from streamkernel.models.updatable import UpdatableModel
from streamkernel.pursuit import AUTO
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.boosting import BoostingSettings
from streamkernel.settings.classes import (
    GeneralisedClassifierSettings,
    PursuitClassifierSettings,
    RidgeClassifierSettings,
)
from streamkernel.settings.gaussian import CommitteeSettings, GaussianSettings
from streamkernel.settings.generalised import GeneralisedSettings
from streamkernel.settings.linear import LinearClassifierSettings, LinearRegressorSettings
from streamkernel.settings.margins import MarginClassifierSettings, MarginRegressorSettings
from streamkernel.settings.one_class import OneClassSettings
from streamkernel.settings.parameter import parameters_in
from streamkernel.settings.pursuit import PursuitSettings
from streamkernel.settings.quantile import QuantileSettings
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.settings.transformers import KernelCCASettings, KernelPCASettings, TransformerSettings
from streamkernel.table import Table, open_table
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import call, help_of, option

if TYPE_CHECKING:
    from streamkernel.estimators.base import SavedEstimator

_MOST_QUERIES = 5000

# Names of scores of which less is better, the usual one first; "error" is the share of wrong classes.
_OF_NUMBERS = ("rmse", "mae")
_OF_CLASSES = ("error",)
_OF_PROBABILITIES = (*_OF_CLASSES, "log_loss", "brier")

# Settings of sums over blocks of rows, which only some approximations have.
_OF_BLOCKS = frozenset({"block_size", "partition"})


def _any(table: Table, estimator: str) -> None:
    """Accept targets of any kind."""


@dataclass(frozen=True)
class Kind:
    """A kind of model.

    Attributes
    ----------
    name : value of ``record.estimator``, and of `--estimator`.
    class_name : name of its scikit-learn class.
    title : its name on pages and in messages.
    settings : class of the settings.
    model : class of the fitted model.
    fit : ``fit(table, settings, session, **kind.options_of_fit(whole), ...)``.
    plan : ``plan(table, settings, machine, n)``.
    check : ``check(table, name)`` refuses targets of a wrong kind before any row is read.
    classify : whether targets are labels, whatever their dtype.
    multilabel : whether several targets of a classifier may be labels that a row has (1) or has not (0).
    """

    name: str
    class_name: str
    title: str
    settings: type[BasisSettings]
    model: type[SavedModel]
    fit: Callable[..., Any]
    plan: Callable[..., Plan]
    check: Callable[[Table, str], None] = _any
    classify: bool = False
    multilabel: bool = False

    def open(self, X: Unchecked, y: Unchecked = None, *, weights: Unchecked = None) -> Table:
        """The table of a fit of this kind."""
        return open_table(X, y, classify=self.classify, multilabel=self.multilabel, weights=weights, sparse=True)

    @property
    def estimator(self) -> type[SavedEstimator]:
        """Its scikit-learn class, which states the same name, settings and model.

        It is imported here: commands, jobs and workers do without scikit-learn, which takes a second and 100 MB.
        """
        found: type[SavedEstimator] = getattr(import_module("streamkernel.estimators"), self.class_name)
        return found

    @property
    def options(self) -> frozenset[str]:
        """Names of the settings."""
        return frozenset(field.name for field in fields(self.settings))

    def options_of_fit(self, whole: Table) -> Fields:
        """Options of `fit` that only some kinds have; `whole` is the table that the rows of the fit are a slice of."""
        return {}


@dataclass(frozen=True)
class Predictor(Kind):
    """A kind of model that predicts.

    Attributes
    ----------
    std : whether predictions can have standard deviations.
    probabilities : whether predictions can have class probabilities, for some settings at least.
    updates : whether new rows can be folded into a model, for some settings at least.
    errors : names of its errors, the usual one first, for some settings at least; none without targets.
    folds : how fits that leave out one fold each are made together; None where each is a fit of its own.
    """

    model: type[PredictingModel]
    check: Callable[[Table, str], None] = check_numbers
    std: bool = False
    probabilities: bool = False
    updates: bool = False
    errors: tuple[str, ...] = _OF_NUMBERS
    folds: SharedSums | None = None

    def errors_for(self, table: Table) -> tuple[str, ...]:
        """Those of its `errors` that are of the targets of a table: of classes, or of numbers."""
        classes = table.classes is not None
        return tuple(name for name in self.errors if (name in _OF_PROBABILITIES) == classes)

    def options_of_fit(self, whole: Table) -> Fields:
        # Several kinds share a fit. Rows of the whole table that are not of the fit are compared with predictions.
        return {"estimator": self.name, "whole": whole}


@dataclass(frozen=True)
class Transformer(Kind):
    """A kind of model that transforms rows."""

    model: type[TransformerModel]


PREDICTORS: dict[str, Predictor] = {
    kind.name: kind
    for kind in (
        Predictor(
            "ridge",
            "KernelRidge",
            "kernel ridge regression",
            RidgeSettings,
            RidgeModel,
            fit_ridge,
            plan_ridge,
            updates=True,
            folds=RIDGE_FOLDS,
        ),
        Predictor(
            "ridge-classifier",
            "KernelRidgeClassifier",
            "kernel ridge classifier",
            RidgeClassifierSettings,
            RidgeModel,
            fit_ridge,
            plan_ridge,
            probabilities=True,
            updates=True,
            check=_any,
            classify=True,
            multilabel=True,
            errors=_OF_PROBABILITIES,
            folds=RIDGE_FOLDS,
        ),
        Predictor(
            "svc",
            "KernelSVC",
            "support vector classifier",
            MarginClassifierSettings,
            MarginClassifierModel,
            fit_margins,
            plan_margins,
            probabilities=True,
            check=_any,
            classify=True,
            errors=_OF_PROBABILITIES,
        ),
        Predictor(
            "svr",
            "KernelSVR",
            "support vector regression",
            MarginRegressorSettings,
            MarginRegressorModel,
            fit_margins,
            plan_margins,
        ),
        Predictor(
            "quantile",
            "KernelQuantileRegressor",
            "quantile regression",
            QuantileSettings,
            QuantileModel,
            fit_margins,
            plan_margins,
            errors=("pinball",),
        ),
        Predictor(
            "one-class",
            "KernelOneClass",
            "one-class support vector machine",
            OneClassSettings,
            OneClassModel,
            fit_one_class,
            plan_one_class,
            check=_any,
            errors=(),
        ),
        Predictor(
            "boosting",
            "KernelBoostingClassifier",
            "boosting",
            BoostingSettings,
            BoostingModel,
            fit_boosting,
            plan_boosting,
            probabilities=True,
            check=_any,
            classify=True,
            errors=_OF_PROBABILITIES,
        ),
        Predictor(
            "lp",
            "KernelLPClassifier",
            "linear programming classifier",
            LinearClassifierSettings,
            LinearClassifierModel,
            fit_margins,
            plan_margins,
            probabilities=True,
            check=_any,
            classify=True,
            errors=_OF_PROBABILITIES,
        ),
        Predictor(
            "lp-regressor",
            "KernelLPRegressor",
            "linear programming regression",
            LinearRegressorSettings,
            LinearRegressorModel,
            fit_margins,
            plan_margins,
        ),
        # Class labels make a classifier of this one too.
        Predictor(
            "kmp",
            "KernelMatchingPursuit",
            "matching pursuit regression",
            PursuitSettings,
            PursuitModel,
            fit_pursuit,
            plan_pursuit,
            probabilities=True,
            check=_any,
            errors=(*_OF_NUMBERS, *_OF_PROBABILITIES),
        ),
        Predictor(
            "kmp-classifier",
            "KernelMatchingPursuitClassifier",
            "matching pursuit classifier",
            PursuitClassifierSettings,
            PursuitModel,
            fit_pursuit,
            plan_pursuit,
            probabilities=True,
            check=_any,
            classify=True,
            errors=_OF_PROBABILITIES,
        ),
        Predictor(
            "gp",
            "GaussianProcessRegressor",
            "Gaussian process regression",
            GaussianSettings,
            GaussianModel,
            fit_gaussian,
            plan_gaussian,
            std=True,
            updates=True,
            errors=(*_OF_NUMBERS, "nlpd"),
            folds=GAUSSIAN_FOLDS,
        ),
        Predictor(
            "gp-classifier",
            "GaussianProcessClassifier",
            "Gaussian process classifier",
            GeneralisedClassifierSettings,
            GeneralisedModel,
            fit_generalised,
            plan_generalised,
            probabilities=True,
            check=_any,
            classify=True,
            errors=_OF_PROBABILITIES,
        ),
        Predictor(
            "poisson",
            "GaussianProcessPoissonRegressor",
            "Poisson regression by a Gaussian process",
            GeneralisedSettings,
            GeneralisedModel,
            fit_generalised,
            plan_generalised,
            std=True,
            check=check_counts,
            errors=(*_OF_NUMBERS, "nlpd", "deviance"),
        ),
        Predictor(
            "committee",
            "BayesianCommitteeMachine",
            "Bayesian committee machine",
            CommitteeSettings,
            GaussianModel,
            fit_gaussian,
            plan_gaussian,
            std=True,
            updates=True,
            errors=(*_OF_NUMBERS, "nlpd"),
        ),
    )
}

TRANSFORMERS: dict[str, Transformer] = {
    kind.name: kind
    for kind in (
        Transformer(
            "nystroem",
            "Nystroem",
            "Nystroem transformer",
            TransformerSettings,
            NystroemModel,
            fit_nystroem,
            plan_transformer,
        ),
        Transformer(
            "kernel-pca", "KernelPCA", "kernel PCA", KernelPCASettings, KernelPCAModel, fit_kernel_pca, plan_transformer
        ),
        Transformer(
            "kernel-cca", "KernelCCA", "kernel CCA", KernelCCASettings, KernelCCAModel, fit_kernel_cca, plan_kernel_cca
        ),
    )
}

KINDS: dict[str, Kind] = {**PREDICTORS, **TRANSFORMERS}

# Options of the command line whose settings have other names.
OPTION_SETTINGS = {
    stated.flag: name
    for kind in KINDS.values()
    for name, (stated, _) in parameters_in(kind.settings).items()
    if stated.flag
}

# Several predictors may share a class of models, and so what is stored as its kind.
_PREDICTING = {kind.model.KIND: kind.model for kind in PREDICTORS.values()}


def kind_of_class(name: str) -> str:
    """The name of the kind whose estimator's class has this name; an unknown name, of another release, itself."""
    return next((kind.name for kind in KINDS.values() if kind.class_name == name), name)


def predictor_of(model: SavedModel) -> Predictor | None:
    """The kind of a model that predicts; None for a name that this release does not know."""
    return PREDICTORS.get(model.record.estimator)


def title_of(model: SavedModel) -> str:
    """The title of a model's kind; a name that this release does not know stands for itself."""
    kind = predictor_of(model)
    return model.record.estimator if kind is None else kind.title


def transformer_class(stored: str | None) -> type[TransformerModel] | None:
    """The class that loads a transformer of a stored kind; None if that is no transformer's."""
    return next((kind.model for kind in TRANSFORMERS.values() if stored == kind.model.KIND), None)


def predicting_class(stored: str | None, where: str) -> type[PredictingModel]:
    """The class that loads a model that predicts.

    Parameters
    ----------
    stored : the kind that is stored at `where`; None, or an unknown one, is left to `KernelRidge`'s model to refuse.
    where : its path or name, for the message.

    Raises
    ------
    ModelFormatError
        The kind does not predict.
    """
    if stored == Factor.KIND:
        raise ModelFormatError(f"{where} is a factor, not a model that predicts; make a model with {call('fit')}")
    for kind in TRANSFORMERS.values():
        if stored == kind.model.KIND:
            raise ModelFormatError(
                f"{where} is a {kind.title}, not a model that predicts; {call('transform')} is for it"
            )
    return _PREDICTING.get(stored or "", RidgeModel)


def transforming_class(stored: str | None, where: str) -> type[TransformerModel]:
    """The class that loads a transformer; parameters are those of `predicting_class`.

    Raises
    ------
    ModelFormatError
        The object at `where` is no transformer.
    """
    found = transformer_class(stored)
    if found is not None:
        return found
    if stored == Factor.KIND:
        raise ModelFormatError(f"{where} is a factor, not a transformer; make one with {call('fit', 'estimator')}")
    if stored in _PREDICTING:
        raise ModelFormatError(f"{where} is a model that predicts, not a transformer; {call('predict')} is for it")
    # Its loader tells what is wrong with the path.
    return NystroemModel


def updatable(model: PredictingModel, where: str | PathLike[str]) -> UpdatableModel:
    """The same model, as one into which new rows can be folded.

    Raises
    ------
    ModelFormatError
        Its kind cannot be updated.
    """
    kind = predictor_of(model)
    if kind is None or not kind.updates or not isinstance(model, UpdatableModel):
        able = ", ".join(each.name for each in PREDICTORS.values() if each.updates)
        name = model.record.estimator
        raise ModelFormatError(f"{where} is a {name} model, which cannot be updated (these can: {able}); fit it again")
    return model


def takers(name: str) -> list[str]:
    """Names of the estimators that have a setting of this name."""
    return [kind.name for kind in KINDS.values() if name in kind.options]


def settings_of(kind: Kind, given: Fields) -> Any:
    """The kind's settings. A value of None stands for the default.

    Raises
    ------
    ParameterError
        An option is given that the estimator does not have; or one is out of range.
    """
    wanted = {name: value for name, value in given.items() if value is not None}
    check_options(kind, wanted)
    _check_used(kind, wanted)
    settings = kind.settings(**wanted)
    if isinstance(settings, GaussianSettings) and settings.approximation != "pitc":
        for name in sorted(_OF_BLOCKS & wanted.keys()):
            raise ParameterError(
                f"{option(name)} means nothing to the approximation {settings.approximation}; it is an option of pitc "
                f"({option('approximation', 'pitc')}), and of the estimator committee"
            )
    return settings


def with_stores_opened(kind: Kind, given: Fields) -> Fields:
    """Return the settings with the stores opened that they name in place of rows: query points, held-out rows.

    Raises
    ------
    ParameterError
        The estimator has no such setting (the store is then not opened), or there are too many query points.
    """
    found = dict(given)
    if isinstance(given.get("queries"), str):
        check_options(kind, ["queries"])
        found["queries"] = _query_points(given["queries"])
    if isinstance(given.get("validation"), str) and given["validation"] != AUTO:
        check_options(kind, ["validation"])
        found["validation"] = open_table(given["validation"], classify=kind.classify, sparse=True)
    return found


def _query_points(store: str) -> Table:
    """Open a store of at most 5000 query points."""
    table = open_table(store).without_targets()
    if table.n_rows > _MOST_QUERIES:
        raise ParameterError(
            f"{option('queries', store)} has {table.n_rows} rows; query points cost as basis functions do: "
            f"give at most {_MOST_QUERIES}"
        )
    return table


def check_options(kind: Kind, names: Iterable[str]) -> None:
    """Refuse options that the kind does not have: `ParameterError`."""
    for name in names:
        if name not in kind.options:
            others = takers(name)
            raise ParameterError(
                f"{option(name)} means nothing to the estimator {kind.name}; it is an option of {', '.join(others)}"
                if others
                else f"there is no option {name}{_nearest(kind, name)}; {help_of(kind.class_name)} lists them"
            )


def _check_used(kind: Kind, given: Fields) -> None:
    """Refuse values of settings that the kind has with their defaults only: `ParameterError`."""
    stated = parameters_in(kind.settings)
    for name in kind.settings.UNUSED:
        # Settings without rules check the options of their own pools, which the command line passes among these.
        if name == "rule_options" or name not in given:
            continue
        # No default is an array, whose comparison would be one too.
        if isinstance(given[name], np.ndarray) or given[name] != stated[name][1]:
            raise ParameterError(
                f"{option(name, given[name])} means nothing to the estimator {kind.name}, leave it out"
            )


def _nearest(kind: Kind, name: str) -> str:
    near = get_close_matches(name, sorted(kind.options | OPTION_SETTINGS.keys()), 1)
    return "".join(f", but {OPTION_SETTINGS.get(one, one)}" for one in near)
