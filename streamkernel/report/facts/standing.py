"""The score of a model on its held-out rows, and which models may be ranked by it: those with the same rows.

Errors on other rows are not comparable: their targets may be easier. Residual traces are not comparable either: they
measure how well a basis spans its own kernel matrix, and are tiny for a kernel that is too smooth for the targets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from streamkernel.models.margins import QuantileModel
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.ridge import RidgeModel
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.labels import label_pairs
from streamkernel.report.facts.pairs import CheckedRows, Targets, check_pairs, checked_rows
from streamkernel.report.facts.quantiles import quantile_check

HELD_OUT = "held-out rows"


@dataclass(frozen=True)
class Standing:
    """A score on held-out rows.

    Attributes
    ----------
    measure : "accuracy", of which more is better, "rmse", "relative_rmse" (of several targets, in the deviation of
        each) or "pinball", of which less is better.
    score, standard_error : its value, and the standard error, NaN where that is not known.
    rows : number of the rows.
    same_rows : equal for models with scores on the same rows of the same table, and for no others.
    """

    measure: str
    score: float
    standard_error: float
    rows: int
    same_rows: str

    @property
    def loss(self) -> float:
        """The score, or its negative: less is better. NaN is worst."""
        loss = -self.score if self.measure == "accuracy" else self.score
        return loss if np.isfinite(loss) else np.inf

    @property
    def rankable(self) -> Hashable:
        """Equal for those that may be ranked among each other."""
        return self.measure, self.same_rows


def standing(model: PredictingModel) -> Standing | Absent:
    """The score of a model on the rows that it keeps for its page, where these stayed out of the fit."""
    checked = checked_rows(model)
    if isinstance(checked, Absent):
        return checked
    if checked.where != HELD_OUT:
        return Absent("no rows were held out")
    rows, key = len(checked.true), _digest(model.record.table_fingerprint, checked)
    if isinstance(model, QuantileModel):
        quantiles = quantile_check(model)
        if quantiles is None or isinstance(quantiles, Absent):
            return quantiles or Absent("there are no quantiles")
        scores, levels = quantiles.calibration.scalars, ",".join(f"{level:g}" for level in model.levels)
        # Losses of other levels are of another size.
        return Standing("pinball", scores["pinball"], scores["pinball_se"], rows, f"{key}:{levels}")
    if isinstance(model, RidgeModel) and model.multilabel:
        labels = label_pairs(model)
        if isinstance(labels, Absent):
            return labels
        return Standing("accuracy", labels.all_right, labels.all_right_se, rows, key)
    pairs = check_pairs(model)
    if isinstance(pairs, Absent):
        return pairs
    if isinstance(pairs, Targets):
        if len(pairs.targets) == 1:
            return Standing("rmse", pairs.targets[0].rmse, pairs.targets[0].rmse_se, rows, key)
        # Errors of several targets may be in different units.
        return Standing("relative_rmse", *pairs.relative_error(model.record.target_scale), rows, key)
    return Standing("accuracy", pairs.accuracy, pairs.accuracy_se, rows, key)


def _digest(fingerprint: str, checked: CheckedRows) -> str:
    found = hashlib.sha256(f"{fingerprint} {checked.true.dtype} {checked.true.shape} ".encode())
    found.update(np.ascontiguousarray(checked.true).tobytes())
    if checked.weights is not None:
        found.update(np.ascontiguousarray(checked.weights).tobytes())
    return found.hexdigest()[:16]


_Item = TypeVar("_Item")


def ranks(items: Iterable[_Item], of: Callable[[_Item], Standing | Absent]) -> dict[int, tuple[int, int]]:
    """Rank, from 1, and number of those that are ranked together, by the position of each item.

    Equal scores share a rank. An item that is alone with its rows, or has no score, is left out.
    """
    found = {index: each for index, each in enumerate(map(of, items)) if isinstance(each, Standing)}
    together: dict[Hashable, list[int]] = {}
    for index, each in found.items():
        together.setdefault(each.rankable, []).append(index)
    return {
        index: (1 + sum(found[other].loss < found[index].loss for other in group), len(group))
        for group in together.values()
        if len(group) > 1
        for index in group
    }
