"""Classes from functions of pairs of classes: votes, and probabilities by pairwise coupling.

The function of the pair (i, j), i < j, is above 0 where a row is rather of class j. Each gives a vote to one of its
classes. What all functions of a class say together, in (-1/3, 1/3), decides between equal numbers of votes, as in the
``decision_function`` of scikit-learn's SVC::

    score_c = votes_c + s_c / (3 (|s_c| + 1)),    s_c = sum over pairs of f or -f, from the side of c

Probabilities r of the pairs are coupled by (Wu, Lin & Weng 2004, section 4, the second method, as in libsvm)::

    min_p sum_i sum_(j /= i) (r_ji p_i - r_ij p_j)^2    where sum p = 1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.reductions.margins import class_pairs
from streamkernel.reductions.predictions.curves import Curves
from streamkernel.reductions.row_map import Predictions, ProbabilityMap, RowMap
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Float

_LEAST = 1e-7  # of a pair's probability, as in libsvm: the system is then regular


def pair_scores(f: Float, classes: int) -> Float:
    """Scores (b, C) of the values f (b, C (C - 1) / 2) of all pairs."""
    votes, said = np.zeros((len(f), classes)), np.zeros((len(f), classes))
    for value, (i, j) in zip(f.T, class_pairs(classes), strict=True):
        second = value > 0.0
        votes[:, i] += ~second
        votes[:, j] += second
        said[:, i] -= value
        said[:, j] += value
    return np.asarray(votes + said / (3.0 * (np.abs(said) + 1.0)))


def coupled(q: Float, classes: int) -> Float:
    """Class probabilities (b, C) from q (b, C (C - 1) / 2), those of the second class of each pair."""
    q = np.clip(q, _LEAST, 1.0 - _LEAST)
    r = np.zeros((len(q), classes, classes))
    for value, (i, j) in zip(q.T, class_pairs(classes), strict=True):
        r[:, i, j], r[:, j, i] = 1.0 - value, value
    # The minimum under the constraint: Q p + lambda e = 0 and e^T p = 1, with Q_ii = sum_j r_ji^2, Q_ij = -r_ji r_ij.
    # Q alone is singular where all pairs agree with one p: the whole system is regular.
    system = np.ones((len(q), classes + 1, classes + 1))
    system[:, :classes, :classes] = -r * r.transpose(0, 2, 1)
    each = np.arange(classes)
    system[:, each, each] = (r**2).sum(axis=1)
    system[:, classes, classes] = 0.0
    right = np.zeros((len(q), classes + 1, 1))
    right[:, classes] = 1.0
    p = np.linalg.solve(system, right)[:, :classes, 0]
    return np.asarray(p / p.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class PairwisePredictions(RowMap):
    """Scores of C classes, or with `argmax` the position of the largest.

    Parameters
    ----------
    functions : Predictions of the C (C - 1) / 2 functions of all pairs.
    classes : number C of classes.
    argmax : True to write class codes instead of scores.
    """

    functions: Predictions
    classes: int
    argmax: bool = False

    @property
    def columns(self) -> dict[str, tuple[int | None, AnyDType]]:
        if self.argmax:
            return {"prediction": (None, np.dtype(np.int64))}
        return {"prediction": (self.classes, np.dtype(np.float64))}

    def values(self, X: AnyArray) -> Float:
        """Scores (b, C)."""
        return pair_scores(self.functions.values(X), self.classes)

    def check_values(self, X: AnyArray) -> dict[str, Float]:
        """The values that are compared with the targets."""
        return {"predicted": self.values(X)}

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        values = self.values(block.X)
        return {"prediction": values.argmax(axis=1) if self.argmax else values}

    def scratch_bytes(self, rows: int) -> int:
        return self.functions.scratch_bytes(rows) + 24 * rows * self.classes

    def flops_per_row(self) -> float:
        return self.functions.flops_per_row() + 4.0 * self.classes**2


@dataclass(frozen=True)
class PairwiseProbabilities(ProbabilityMap):
    """Class probabilities by coupling those of all pairs; `prediction` is the class of the votes.

    Parameters
    ----------
    functions : as in `PairwisePredictions`.
    curves : curves of the functions.
    count : number C of classes.
    """

    functions: Predictions
    curves: Curves
    count: int

    @property
    def classes(self) -> int:
        return self.count

    def probabilities(self, X: AnyArray) -> Float:
        return coupled(self.curves.probabilities(self.functions.values(X)), self.classes)

    def map_block(self, block: RowBlock) -> dict[str, AnyArray]:
        f = self.functions.values(block.X)
        probabilities = coupled(self.curves.probabilities(f), self.classes)
        return {"probability": probabilities, "prediction": pair_scores(f, self.classes).argmax(axis=1)}

    def scratch_bytes(self, rows: int) -> int:
        return self.functions.scratch_bytes(rows) + 8 * rows * (4 * self.classes**2 + 4 * self.classes)

    def flops_per_row(self) -> float:
        C = self.classes
        return self.functions.flops_per_row() + 30.0 * C**2 + 0.7 * C**3
