"""A fitted matching pursuit: configuration and named arrays, in memory as on disk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import ClassVar, Self

import numpy as np

from streamkernel.bounds import MatchingPursuitBound, matching_pursuit_bound
from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.models.predicting import PredictingModel
from streamkernel.pursuit import PursuitPath, Stages
from streamkernel.records import Count, ModelRecord, Record, Totals
from streamkernel.reductions import Predictions
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.predictions import OddsProbabilities
from streamkernel.reductions.scores import ClassificationScores, ProbabilityScores, RegressionScores
from streamkernel.settings.pursuit import PursuitSettingsRecord
from streamkernel.type_aliases import Fields, Int


class PursuitTotals(Totals):
    """Sums of weights over the rows of the fit and over those held out; `counted_rows` counts each once."""

    validation_rows: float
    counted_rows: Count = 0


class PursuitSolution(Record):
    """The terms, and the errors on the rows of the fit and on those held out; None where there are none."""

    terms: Count
    terms_tried: Count
    constant: bool
    training_rmse: tuple[float, ...]
    relative_rss: tuple[float, ...]
    validation_rmse: tuple[float, ...] | None
    least_weakness: float
    ridge: float = 0.0
    training_error: float | None = None
    validation_error: float | None = None


class PursuitRecord(ModelRecord):
    """The fields of a matching pursuit."""

    settings: PursuitSettingsRecord
    totals: PursuitTotals
    solution: PursuitSolution

    @property
    def row_count(self) -> int:
        """As of other models. Totals of weighted rows are sums of weights: where the rows of the fit were not counted
        beside them, those of the table are told, with those that were held out of it.
        """
        totals = self.totals
        if totals.counted_rows:
            return totals.counted_rows
        unweighted = totals.rows + totals.validation_rows == self.rows.count
        return round(totals.rows) if unweighted else self.rows.count


@dataclass(frozen=True)
class PursuitModel(PredictingModel):
    """A fitted matching pursuit."""

    KIND: ClassVar[str] = "matching-pursuit"
    RECORD: ClassVar[type[PursuitRecord]] = PursuitRecord
    SHAPES: ClassVar[dict[str, tuple[str, ...]]] = {
        **PredictingModel.SHAPES,
        "dual_coef": ("n", "d"),
        "intercept": ("d",),
        "directions": ("r", "s"),
        "amounts": ("s", "d"),
        "offset": ("d",),
        "path_rows": ("t",),
        "path_rss": ("t + 1", "e"),
        "path_gains": ("t",),
        "path_weakness": ("t",),
        "path_sizes": ("u",),
        "path_losses": ("u", "2"),
        "path_wrong": ("u", "2"),
    }
    OPTIONAL: ClassVar[dict[str, tuple[str, ...]]] = {
        **PredictingModel.OPTIONAL,
        "path_validation": ("t + 1", "e"),
        "path_errors": ("v", "2"),
        "path_outside": ("v",),
        "check_probability": ("c of check", "d of check"),
    }
    WHOLE: ClassVar[frozenset[str]] = PredictingModel.WHOLE | {"path_rows", "path_sizes", "path_outside"}
    _NOUN: ClassVar[str] = "matching pursuit model"

    record: PursuitRecord

    @property
    def terms(self) -> int:
        """Number of steps of the model."""
        return self.record.solution.terms

    @cached_property
    def stages(self) -> Stages:
        """The model step by step, without `arrays["offset"]`, which must be added."""
        arrays = self.arrays
        return Stages(arrays["directions"], arrays["amounts"], self.record.solution.constant)

    @property
    def path(self) -> PursuitPath:
        """The path of the fit, including steps beyond the size that was kept."""
        totals = self.record.totals
        return PursuitPath.from_arrays(self.arrays, totals.rows, totals.validation_rows, totals.counted_rows)

    @property
    def bound(self) -> MatchingPursuitBound | None:
        """Theorem 3 for the first 1, 2, ... terms, with probability .95; None where wrong rows were not counted.

        With two classes, a row is wrong when its predicted class is wrong. With one target, a row is wrong when the
        error is larger than ``bound_gamma``. There is no bound for more classes, or several targets.
        """
        path, labels = self.path, self.classes
        if path.outside is None or len(path.outside) < 2 or (labels is not None and len(labels) != 2):
            return None
        terms = path.rows[: len(path.outside) - 1]
        # Basic may pick a function twice, which does not add a function.
        first = np.unique(terms, return_index=True)[1]
        functions = np.cumsum(np.isin(np.arange(len(terms)), first))
        return matching_pursuit_bound(path.counted, functions, path.outside[1:])

    @property
    def active_set(self) -> Int:
        """(terms,) row number of the function of each step; basic may pick a function twice."""
        return np.asarray(self.arrays["path_rows"][: self.terms])

    def predictions(self, *, argmax: bool = False, terms: int | None = None) -> Predictions:
        """The row map that predicts, on rows that are scaled already; by the first `terms` steps alone where given."""
        coefficients, intercept = self.coefficients, self.intercept
        if terms is not None:
            stages = self.stages.first(terms, len(coefficients))
            coefficients, intercept = stages.coefficients, stages.intercept + self.arrays["offset"]
        return Predictions(self.basis, coefficients, intercept, argmax=argmax, flat=self.flat)

    @property
    def has_probabilities(self) -> bool:
        return self.record.settings.loss == "logistic"

    def checking(self) -> Predictions | OddsProbabilities:
        values = self.predictions()
        return OddsProbabilities(values) if self.has_probabilities else values

    def outputs(self, *, std: bool = False) -> Predictions | OddsProbabilities:
        self.refuse_std(std)
        found = self.checking()
        return found if isinstance(found, OddsProbabilities) else self.predictions(argmax=self.classes is not None)

    def scores(self) -> AnyReduction:
        found = self.checking()
        if isinstance(found, OddsProbabilities):
            return ProbabilityScores(found)
        if self.classes is not None:
            return ClassificationScores(found)
        return RegressionScores(found, self.record.target_scale)

    def checked(self, path: str | PathLike[str]) -> Self:
        super().checked(path)
        if self.has_probabilities and self.record.classes is None:
            self._refuse(path, "its loss is logistic, and it has no classes")
        steps, tried = self.stages.terms, len(self.path.rows)
        fits = self.terms == steps <= tried
        fits = fits and len(self.stages.directions) == len(self.basis) + int(self.stages.constant)
        for counts in (self.path.errors, self.path.outside):
            fits = fits and (counts is None or steps <= len(counts) - 1 <= tried)
        if not fits:
            raise ModelFormatError(f"{path}: its steps are not those of its arrays; {self._AGAIN}")
        try:
            assert self.bound is None or self.bound.minimum is not None
        except ParameterError as error:
            # The bound checks the numbers of rows that it is given.
            self._refuse(path, error)
        return self

    def solution_fields(self) -> Fields:
        solution, settings = self.record.solution, self.record.settings
        fields: Fields = {
            "variant": settings.variant,
            "terms": solution.terms,
            "terms_tried": solution.terms_tried,
            "least_weakness": solution.least_weakness,
        }
        if settings.loss == "squared":
            # Squares of the logistic loss are squares of weighted responses, whose units mean nothing to a user.
            fields["relative_rss"] = float(np.mean(solution.relative_rss))
        if settings.loss == "squared" and solution.validation_rmse is not None:
            rmse = solution.validation_rmse
            fields["validation_rmse"] = rmse[0] if len(rmse) == 1 else list(rmse)
        errors = {"training_error": solution.training_error, "validation_error": solution.validation_error}
        fields |= {name: share for name, share in errors.items() if share is not None}
        bound = self.bound
        if bound is not None:
            # Infinite where hardly a row is right; JSON has no infinity.
            fields["bound"] = bound.minimum if np.isfinite(bound.minimum) else None
            fields |= {"bound_size": bound.best_size, "bound_is_vacuous": bound.says_nothing}
        return fields
