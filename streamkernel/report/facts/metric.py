"""A metric of the features and the search for it: weights, leading directions, what was tried.

Each function returns None if the model has no such thing, and an `Absent` if there is a reason not to draw it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.factors import SavedBasis
from streamkernel.metric import scales_columns
from streamkernel.records import MetricRound, ModelRecord
from streamkernel.report.facts.fit import Absent
from streamkernel.report.text import plain
from streamkernel.type_aliases import Float

_MOST_DIRECTIONS = 5
_MOST_COMPONENTS = 12  # features that are named in the directions
_LEAST_SHARE = 1e-3  # of the sum of squares, below which directions are noise: their components would look as large
NEGLIGIBLE = 0.05  # size of a component of a unit vector, below which it has neither a number nor a name
_NOT_TAKEN = "no metric lowered the error on held-out rows by more than chance, so that the model has the plain kernel"


@dataclass(frozen=True)
class FeatureWeights:
    """``sqrt(diag(T T^T))``, the largest first: `value` (p,), with the features' names.

    Attributes
    ----------
    learned : whether the fit found them, and the user did not give them.
    standardised : whether they are for steps of a standard deviation, and not of a unit, of the features.
    """

    names: tuple[str, ...]
    value: Float
    learned: bool
    standardised: bool

    @property
    def share(self) -> Float:
        """(p,) share of each feature in the sum of squares, which is 1."""
        squares: Float = (self.value / self.value.max()) ** 2
        return np.asarray(squares / squares.sum())


@dataclass(frozen=True)
class Directions:
    """The longest columns of T, as unit vectors: `value` (k, c), of the k features with the largest components.

    Attributes
    ----------
    names : (k,) names of the features.
    share : (c,) share of each direction in the sum of squares of T.
    count : number of all directions.
    left : number of features that are not among the k.
    """

    names: tuple[str, ...]
    value: Float
    share: Float
    count: int
    left: int


@dataclass(frozen=True)
class MetricTrials:
    """All regressions of the search, and the position of the one that was taken.

    Attributes
    ----------
    error : (t,) error of each on the held-out rows, in the `unit`.
    plain : the least error of the plain kernel.
    """

    rounds: tuple[MetricRound, ...]
    error: Float
    best: int
    plain: float
    sample_rows: int
    unit: str


def feature_weights(model: SavedBasis) -> FeatureWeights | Absent | None:
    """The weight of each feature in the distances that the kernel sees."""
    weights, choice = model.column_weights, model.record.metric_choice
    learned = choice is not None and choice.tried_metrics
    if weights is None:
        return Absent(_NOT_TAKEN) if learned else None
    order, names = np.argsort(-weights, kind="stable"), model.column_names
    shown = tuple(plain(names[index], 40) for index in order)
    return FeatureWeights(shown, weights[order], learned, model.record.settings.scale == "standard")


def directions(model: SavedBasis) -> Directions | None:
    """The leading directions; None if each of them is one feature, and the weights say all."""
    T = model.metric
    if T is None or scales_columns(T):
        return None
    lengths = np.linalg.norm(T, axis=0)
    share = (lengths / lengths.max()) ** 2
    share /= share.sum()
    longest = [index for index in np.argsort(-lengths, kind="stable")[:_MOST_DIRECTIONS] if share[index] > _LEAST_SHARE]
    lead = T[:, longest]
    value = lead / lengths[longest]
    # A feature is named where it is large in a direction; they stand in the order of their weights in these.
    sizes = np.abs(value).max(axis=1)
    found = np.argsort(-sizes, kind="stable")[:_MOST_COMPONENTS]
    found = found[sizes[found] >= min(NEGLIGIBLE, float(sizes.max()))]
    found = found[np.argsort(-np.linalg.norm(lead[found], axis=1), kind="stable")]
    names = tuple(plain(model.column_names[index], 40) for index in found)
    return Directions(names, value[found], share[longest], T.shape[1], len(T) - len(found))


def metric_trials(model: SavedBasis) -> MetricTrials | Absent | None:
    """What the search tried; an `Absent` for a metric that was given."""
    choice = model.record.metric_choice
    if choice is None or not choice.tried_metrics:
        return None if model.metric is None else Absent("the metric was given")
    squares = np.array([each.error for each in choice.rounds])
    record = model.record
    if isinstance(record, ModelRecord) and record.classes is not None:
        error, plain_error, unit = squares, choice.plain_error, "squared error of the classes' indicators"
    else:
        d = max(len(record.target_names), 1) if isinstance(record, ModelRecord) else 1
        error, plain_error = np.sqrt(squares / d), float(np.sqrt(choice.plain_error / d))
        unit = "root mean square, in standard deviations of the target"
    return MetricTrials(tuple(choice.rounds), error, choice.best, plain_error, choice.sample_rows, unit)
