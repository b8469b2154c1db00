"""What a kind of model is: its classes, its fit and plan, its targets and its errors.

What fits a kind, and the classes of its settings and models, are named and not imported: a command, a job or a worker
loads the code of the kind that it works with, and none of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from streamkernel.fits.steps.target_checks import any_targets, check_numbers
from streamkernel.type_aliases import Fields, Unchecked

if TYPE_CHECKING:
    from streamkernel.engine import Plan
    from streamkernel.estimators.base import SavedEstimator
    from streamkernel.fits.steps.fold_rows import SharedSums
    from streamkernel.models.predicting import PredictingModel
    from streamkernel.models.saved import SavedModel
    from streamkernel.models.transformers import TransformerModel
    from streamkernel.settings.basis import BasisSettings
    from streamkernel.table import Table

# Names of scores of which less is better, the usual one first; "error" is the share of wrong classes.
OF_NUMBERS = ("rmse", "mae")
OF_SEVERAL = "relative_rmse"  # of several numbers, which may be in different units
OF_CLASSES = ("error",)
OF_PROBABILITIES = (*OF_CLASSES, "log_loss", "brier")


class Named(NamedTuple):
    """A function or a class, by the names of its module and its own."""

    module: str
    name: str

    def imported(self) -> Any:
        """The function or class itself."""
        return getattr(import_module(self.module), self.name)


@dataclass(frozen=True)
class Kind:
    """A kind of model.

    Attributes
    ----------
    name : value of ``record.estimator``, and of `--estimator`.
    class_name : name of its scikit-learn class.
    title : its name on pages and in messages.
    stored : the kind that is stored with its models; kinds with the same class of models share it.
    named_settings, named_model, named_fit, named_plan : names of `settings`, `model`, `fit` and `plan`.
    check : ``check(table, name)`` refuses targets of a wrong kind before any row is read.
    classify : whether targets are labels, whatever their dtype.
    multilabel : whether several targets of a classifier may be labels that a row has (1) or has not (0).
    """

    name: str
    class_name: str
    title: str
    named_settings: Named
    stored: str
    named_model: Named
    named_fit: Named
    named_plan: Named
    check: Callable[[Table, str], None] = any_targets
    classify: bool = False
    multilabel: bool = False

    def open(self, X: Unchecked, y: Unchecked = None, *, weights: Unchecked = None) -> Table:
        """The table of a fit of this kind."""
        # Here, because commands that only name kinds open no table.
        from streamkernel.table import open_table

        return open_table(X, y, classify=self.classify, multilabel=self.multilabel, weights=weights, sparse=True)

    @property
    def settings(self) -> type[BasisSettings]:
        """Class of the settings."""
        found: type[BasisSettings] = self.named_settings.imported()
        return found

    @property
    def model(self) -> type[SavedModel]:
        """Class of the fitted model."""
        found: type[SavedModel] = self.named_model.imported()
        return found

    @property
    def fit(self) -> Callable[..., Any]:
        """``fit(table, settings, session, **kind.options_of_fit(whole), ...)``."""
        found: Callable[..., Any] = self.named_fit.imported()
        return found

    @property
    def plan(self) -> Callable[..., Plan]:
        """``plan(table, settings, machine, n)``."""
        found: Callable[..., Plan] = self.named_plan.imported()
        return found

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
    named_folds : name of `folds`.
    """

    check: Callable[[Table, str], None] = check_numbers
    std: bool = False
    probabilities: bool = False
    updates: bool = False
    errors: tuple[str, ...] = OF_NUMBERS
    named_folds: Named | None = None

    @property
    def model(self) -> type[PredictingModel]:
        found: type[PredictingModel] = self.named_model.imported()
        return found

    @property
    def folds(self) -> SharedSums | None:
        """How fits that leave out one fold each are made together; None where each is a fit of its own."""
        return None if self.named_folds is None else self.named_folds.imported()

    def errors_for(self, table: Table) -> tuple[str, ...]:
        """Those of its `errors` that are of the targets of a table: of classes, or of one or several numbers."""
        classes = table.classes is not None
        errors = tuple(name for name in self.errors if (name in OF_PROBABILITIES) == classes)
        return (OF_SEVERAL, *errors) if table.n_targets > 1 and set(OF_NUMBERS) <= set(errors) else errors

    def options_of_fit(self, whole: Table) -> Fields:
        # Several kinds share a fit. Rows of the whole table that are not of the fit are compared with predictions.
        return {"estimator": self.name, "whole": whole}


@dataclass(frozen=True)
class Transformer(Kind):
    """A kind of model that transforms rows."""

    @property
    def model(self) -> type[TransformerModel]:
        found: type[TransformerModel] = self.named_model.imported()
        return found
