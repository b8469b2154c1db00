"""Calibration of predicted distributions, on rows with known targets: arrays in the units of the axes.

Each function returns None if the model predicts no such thing, and an `Absent` if there is a reason not to draw it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are used: this one takes long

from streamkernel.models.predicting import PredictingModel
from streamkernel.reductions.scores import (
    CountCalibration,
    GaussianCalibration,
    Reliability,
    score_counts,
    score_gaussian,
    score_probabilities,
)
from streamkernel.report.facts.fit import Absent, class_names, target_names
from streamkernel.report.facts.pairs import CheckedRows, checked_rows
from streamkernel.type_aliases import AnyArray, Bool, FieldsView, Float

_MOST_INTERVALS = 80
_BAND = 0.95


@dataclass(frozen=True)
class _Check:
    """Predictions of `count` rows, of equal weight that tell as much; `rows` and `where` as in `Targets`."""

    rows: str
    where: str
    count: int


@dataclass(frozen=True)
class DistributionCheck(_Check):
    """Distributions of d targets, with their names."""

    names: tuple[str, ...]
    calibration: GaussianCalibration | CountCalibration

    @property
    def transform(self) -> Float:
        """(20,) number of rows by their probability integral transform, averaged over targets."""
        return np.asarray(self.calibration.transform.mean(axis=0))


@dataclass(frozen=True)
class GaussianCheck(DistributionCheck):
    """Normal distributions."""

    calibration: GaussianCalibration


@dataclass(frozen=True)
class CountCheck(DistributionCheck):
    """Poisson distributions."""

    calibration: CountCalibration


@dataclass(frozen=True)
class ProbabilityCheck(_Check):
    """Class probabilities; `label` is their class, empty if they belong to each row's likeliest class."""

    label: str
    calibration: Reliability


Check = DistributionCheck | ProbabilityCheck | Absent | None


@dataclass(frozen=True)
class RowIntervals:
    """Some of the `count` rows, (k,) each, by ascending prediction and spread evenly over them.

    `inside` is the share of all rows, by weight, whose target is within two standard deviations.
    """

    rows: str
    name: str
    predicted: Float
    std: Float
    true: Float
    count: int
    inside: float


def distribution_check(model: PredictingModel, pairs: FieldsView | None = None) -> Check:
    """Calibration of the model's distributions on its check rows, or on `pairs` instead."""
    checked = checked_rows(model, pairs)
    if isinstance(checked, Absent):
        return None
    labels = class_names(model)
    if labels is not None:
        return _probability_check(checked, labels) if "probability" in checked.values else None
    counts = is_of_counts(model)
    if not counts and "std" not in checked.values:
        return None
    finite = _finite(checked)
    if not finite.any():
        return Absent("no row has a finite prediction of every target")
    true, predicted = _columns(checked.true[finite]), _columns(checked.values["predicted"][finite])
    weights = checked.equal_rows(finite)
    about = checked.rows, checked.where, _rows_of(weights, len(true)), tuple(target_names(model))
    if counts:
        return CountCheck(*about, score_counts(true, predicted, weights))
    variance = _columns(checked.values["std"][finite]) ** 2
    return GaussianCheck(*about, score_gaussian(true, predicted, variance, weights))


def _rows_of(weights: Float | None, rows: int) -> int:
    return rows if weights is None else max(1, round(float(weights.sum())))


def is_of_counts(model: PredictingModel) -> bool:
    """Whether the predictions are rates of a Poisson distribution."""
    return model.record.estimator == "poisson"


def _columns(values: AnyArray) -> Float:
    return np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def _finite(checked: CheckedRows) -> Bool:
    values = [checked.true, *checked.values.values()]
    return np.asarray(np.isfinite(np.hstack([_columns(each) for each in values])).all(axis=1))


def _probability_check(checked: CheckedRows, labels: list[str]) -> ProbabilityCheck | Absent:
    finite = _finite(checked)
    if not finite.any():
        return Absent("no row has finite probabilities")
    label = labels[1] if len(labels) == 2 else ""
    weights = checked.equal_rows(finite)
    true, claimed = _columns(checked.true[finite]), _columns(checked.values["probability"][finite])
    found = score_probabilities(true, claimed, weights)
    return ProbabilityCheck(checked.rows, checked.where, _rows_of(weights, len(true)), label, found)


def row_intervals(model: PredictingModel, pairs: FieldsView | None = None) -> RowIntervals | None:
    """The first target of some rows, with its predictions."""
    checked = checked_rows(model, pairs)
    if isinstance(checked, Absent) or "std" not in checked.values or class_names(model) is not None:
        return None
    finite = _finite(checked)
    if not finite.any():
        return None
    true, predicted, std = (
        _columns(values[finite])[:, 0] for values in (checked.true, checked.values["predicted"], checked.values["std"])
    )
    inside = float(np.average(np.abs(true - predicted) <= 2.0 * std, weights=checked.equal_rows(finite)))
    order = np.argsort(predicted, kind="stable")
    order = order[np.unique(np.linspace(0, len(order) - 1, min(len(order), _MOST_INTERVALS)).round().astype(np.int64))]
    name = target_names(model)[0]
    return RowIntervals(checked.rows, name, predicted[order], std[order], true[order], len(true), inside)


def binomial_band(shares: Float, rows: Float | int) -> tuple[Float, Float]:
    """Lower and upper shares between which 95 % of samples of `rows` independent rows lie, if `shares` are true."""
    tail = 0.5 * (1.0 - _BAND)
    rows = np.maximum(rows, 1)
    low, high = (scipy.stats.binom.ppf(q, rows, np.clip(shares, 0.0, 1.0)) / rows for q in (tail, 1.0 - tail))
    return np.asarray(low), np.asarray(high)
