"""Predicted labels of rows that may have several, beside the true ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.errors import ShapeMismatchError
from streamkernel.models.ridge import RidgeModel
from streamkernel.reductions.predictions.labels import THRESHOLD
from streamkernel.reductions.scores.standard_errors import mean_error, share_error
from streamkernel.report.facts.fit import Absent, target_names
from streamkernel.report.facts.pairs import checked_rows
from streamkernel.type_aliases import Bool, FieldsView, Float


@dataclass(frozen=True)
class OneLabel:
    """One label on the rows.

    Attributes
    ----------
    has : (rows,) whether a row has it.
    value : (rows,) the function whose values above 1/2 predict it.
    having : share of the rows that have it.
    missed, added : shares of the rows that have it without its being predicted, and the other way round.
    wrong_se : standard error of `wrong`.
    """

    name: str
    has: Bool
    value: Float
    having: float
    missed: float
    added: float
    wrong_se: float

    @property
    def wrong(self) -> float:
        """Share of the rows for which it is wrong."""
        return self.missed + self.added

    @property
    def recall(self) -> float:
        """Share of the rows with it for which it is predicted; NaN if no row has it."""
        return (self.having - self.missed) / self.having if self.having > 0.0 else float("nan")

    @property
    def precision(self) -> float:
        """Share of the rows for which it is predicted that have it; NaN if it never is."""
        named = self.having - self.missed + self.added
        return (self.having - self.missed) / named if named > 0.0 else float("nan")


@dataclass(frozen=True)
class LabelPairs:
    """All labels on some rows; `rows` names the rows and their number, `where` names the rows in two words.

    Attributes
    ----------
    all_right, all_right_se : share of the rows whose labels are all right, and its standard error.
    commonest : the same for a guess that names one set of labels for all rows, the commonest.
    wrong, wrong_se : share of wrong labels among all labels of all rows.
    """

    rows: str
    where: str
    labels: tuple[OneLabel, ...]
    all_right: float
    all_right_se: float
    commonest: float
    wrong: float
    wrong_se: float


def label_pairs(model: RidgeModel, pairs: FieldsView | None = None) -> LabelPairs | Absent:
    """Predicted labels of some rows, beside the true ones; shares are by weight where rows have weights.

    Parameters
    ----------
    pairs : values to use instead of the model's check rows; see `streamkernel.report.write_report`.

    Raises
    ------
    ParameterError, ShapeMismatchError
        `pairs` lacks a part, or does not fit the model.
    """
    checked = checked_rows(model, pairs)
    if isinstance(checked, Absent):
        return checked
    names = target_names(model)
    true, value = (
        np.asarray(values, dtype=np.float64).reshape(len(checked.true), -1)
        for values in (checked.true, checked.values["predicted"])
    )
    if true.shape[1] != len(names):
        raise ShapeMismatchError(f"pairs have {true.shape[1]} labels, the model {len(names)}; give as many")
    finite = np.asarray(np.isfinite(value).all(axis=1))
    if not finite.any():
        return Absent("no value of any row is finite")
    has, value, w = true[finite] > THRESHOLD, value[finite], checked.equal_rows(finite)
    named, m = value > THRESHOLD, float(finite.sum() if w is None else w.sum())
    missed, added = has & ~named, ~has & named
    every, kinds = np.unique(has, axis=0, return_inverse=True)
    share, of_row = (missed | added).mean(axis=1), (missed | added).any(axis=1)
    all_right, wrong = 1.0 - float(np.average(of_row, weights=w)), float(np.average(share, weights=w))
    shares = [np.average(each, axis=0, weights=w).tolist() for each in (has, missed, added)]
    return LabelPairs(
        checked.rows,
        checked.where,
        tuple(
            OneLabel(name, t, f, having, lost, extra, float(share_error(lost + extra, m)))
            for name, t, f, having, lost, extra in zip(names, has.T, value.T, *shares, strict=True)
        ),
        all_right,
        float(share_error(all_right, m)),
        float(np.bincount(kinds.reshape(-1), w, minlength=len(every)).max() / m),
        wrong,
        float(mean_error(wrong, float(np.average(share**2, weights=w)), m)),
    )
