"""The curves of a matching pursuit: errors of every size, losses, weakness, and the bound beside them.

Each function returns its curve, or an `Absent` with the reason; None if the model is of another kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.bounds import MatchingPursuitBound
from streamkernel.models.kernel_cca import KernelCCAModel
from streamkernel.models.pursuit import PursuitModel
from streamkernel.report.facts.fit import Absent, fitted_to_rows, target_names
from streamkernel.type_aliases import Float, Int


@dataclass(frozen=True)
class PathCurve:
    """A number for each size of the model.

    Attributes
    ----------
    terms : (s,) sizes.
    training, held_out : (s,) on the rows of the fit, and on held-out rows; None if there are none.
    chosen : number of terms of the model.
    label, unit : names of the numbers and of their unit.
    """

    terms: Int
    training: Float
    held_out: Float | None
    chosen: int
    label: str
    unit: str

    def at_chosen(self, held_out: bool) -> float | None:
        """The value at the model's own size; None if it is not on the curve."""
        values = self.held_out if held_out else self.training
        place = np.flatnonzero(self.terms == self.chosen)
        return None if values is None or not len(place) else float(values[place[0]])


@dataclass(frozen=True)
class PursuitBound:
    """The bound of Theorem 3 or 4 along a path, and the shares of wrong rows that it bounds.

    Attributes
    ----------
    bound : values for the first 1, 2, ... functions.
    at : (s,) places of its values on the axis: terms, or functions.
    held_out : (s,) share of wrong rows among the held-out rows, or None.
    wrong : condition under which a row counts as wrong, for the caption.
    fitted : parts of the kernel that were fitted to the rows.
    """

    bound: MatchingPursuitBound
    at: Int
    held_out: Float | None
    wrong: str
    fitted: list[str]


def _is_logistic(model: PursuitModel) -> bool:
    return model.record.settings.loss == "logistic"


def squared_errors(model: PursuitModel) -> PathCurve | Absent:
    """Root of the mean squared error; for several targets in units of their spread, for classes of the indicators."""
    path = model.path
    if _is_logistic(model):
        return Absent(
            "the logistic loss was fitted: its squared errors are of weighted responses, in the last step alone"
        )
    if path.terms == 0:
        return Absent("the path has no terms")
    if model.classes is None:
        d = path.rss.shape[1]
        scale = np.asarray(model.record.target_scale)
        unit = f"units of {target_names(model)[0]}" if d == 1 else "standard deviations of the targets"
        scale = np.ones(1) if d == 1 else scale
    else:
        scale = np.ones(path.rss.shape[1])
        unit = "signs of the classes" if len(scale) == 1 else "indicators of the classes"

    def root(squares: Float, rows: float) -> Float:
        return np.asarray(np.sqrt((np.maximum(squares, 0.0) / scale**2).mean(axis=1) / max(rows, 1.0)))

    held_out = None if path.validation is None else root(path.validation, path.validation_rows)
    training, label = root(path.rss, path.fitted_rows), "Root mean squared error"
    return PathCurve(np.arange(path.terms + 1), training, held_out, model.terms, label, unit)


def error_text(model: PursuitModel) -> str:
    """The condition under which a row counts as wrong."""
    gamma = model.record.settings.bound_gamma
    return "its predicted class is wrong" if gamma is None else f"its target is missed by more than {gamma:g}"


def error_rates(model: PursuitModel) -> PathCurve | Absent | None:
    """Share of wrong rows at each size."""
    path = model.path
    if path.errors is None:
        return None if model.classes is None else Absent("the model keeps no counts of wrong rows")
    if len(path.errors) < 2:
        return Absent("the path has no terms")
    held_out = path.errors[:, 1] / path.validation_rows if path.validation_rows > 0.0 else None
    training = path.errors[:, 0] / max(path.fitted_rows, 1.0)
    return PathCurve(np.arange(len(path.errors)), training, held_out, model.terms, "Wrong rows", "of the rows")


def loss_curve(model: PursuitModel) -> PathCurve | None:
    """Logistic loss per row, for the models with which sweeps began."""
    path = model.path
    if not _is_logistic(model) or len(path.sizes) < 2:
        return None
    held_out = path.losses[:, 1] / path.validation_rows if path.validation_rows > 0.0 else None
    training, label = path.losses[:, 0] / max(path.fitted_rows, 1.0), "Logistic loss, nats a row"
    return PathCurve(path.sizes, training, held_out, model.terms, label, "nats")


def weakness(model: PursuitModel) -> Float | Absent:
    """(T,) realised weakness of each pick."""
    found = model.path.weakness
    if len(found) == 0:
        return Absent("the path has no terms")
    if np.all(found >= 1.0):
        return Absent("it is 1 throughout: at each pick all candidates of the sweep competed, and the best was taken")
    return np.asarray(found)


def pursuit_bound(model: PursuitModel) -> PursuitBound | Absent:
    """The bound of Theorem 3 along the path."""
    found, path = model.bound, model.path
    if found is not None:
        assert path.errors is not None
        held_out = path.errors[1:, 1] / path.validation_rows if path.validation_rows > 0.0 else None
        at = np.arange(1, len(path.errors))
        return PursuitBound(found, at, held_out, error_text(model), fitted_to_rows(model.record))
    if model.classes is not None and len(model.classes) != 2:
        return Absent(f"Theorem 3 is about two classes, and there are {len(model.classes)}")
    if model.classes is None and model.target_count > 1:
        return Absent(f"Theorem 3 is about one target, and there are {model.target_count}")
    if model.classes is None and path.errors is None:
        return Absent("it needs a bound_gamma, the error from which a row counts as wrong, chosen before the fit")
    return Absent("the model keeps no counts of wrong rows")


def variates_bound(model: KernelCCAModel) -> PursuitBound | Absent:
    """The bound of Theorem 4 along the path."""
    found = model.bound
    if found is None:
        return Absent(
            "it needs a bound_gamma, the largest difference of variates that is not wrong, chosen before the fit"
        )
    assert model.record.bound is not None
    wrong = f"its variates of the first pair differ by more than {model.record.bound.gamma:g} of their deviation"
    fitted = [words for view in model.record.views for words in fitted_to_rows(view)]
    return PursuitBound(found, np.asarray(found.functions), None, wrong, list(dict.fromkeys(fitted)))
