"""The likelihoods, and their names.

::

    name        y (b, c)             A(f)               h(y)      mean A'(f)       curvature A''(f)
    bernoulli   0 or 1, c = 1        log(1 + e^f)       0         1 / (1 + e^-f)   p (1 - p)
    poisson     counts, c = 1        e^f                log y!    e^f              e^f
    softmax     indicators, c = C    log sum_c e^f_c    0         e^f / sum e^f    diag p - p p^T
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np
from scipy.special import expit, gammaln

from streamkernel.errors import DataError, ParameterError
from streamkernel.reductions.likelihoods.likelihood import (
    LEAST_CURVATURE,
    Likelihood,
    check_indicators,
    least_count,
    require_targets,
    target_columns,
)
from streamkernel.type_aliases import Float, Int

_MOST_LOG_RATE = 230.0  # e^230 = 1e100: in steps that are refused later, sums of rates and of their squares stay finite


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """Two classes, ``p(y = 1 | f) = 1 / (1 + e^-f)``.

    Targets are one column of 0 and 1, or two columns of indicators; the second column is y.
    """

    name: ClassVar[str] = "bernoulli"

    def targets(self, Y: Float | None, start: int) -> Float:
        Y = target_columns(Y, self.name)
        if Y.shape[1] > 2:
            raise DataError(
                f"a bernoulli likelihood takes one column of 0 and 1 or two of indicators, Y has {Y.shape[1]} columns; "
                "use softmax for more than two classes"
            )
        if Y.shape[1] == 2:
            check_indicators(Y, start, self.name)
        y = Y[:, -1:]
        require_targets((y == 0.0) | (y == 1.0), y, start, "a bernoulli likelihood takes 0 and 1")
        return y

    def cumulant(self, f: Float) -> Float:
        return np.asarray(np.logaddexp(0.0, f[:, 0]))

    def loss(self, y: Float, f: Float) -> Float:
        # For y = 0 or 1 this equals A(f) - y f, without a difference of two large numbers.
        return np.asarray(np.logaddexp(0.0, (1.0 - 2.0 * y[:, 0]) * f[:, 0]))

    def mean(self, f: Float) -> Float:
        return np.asarray(expit(f))

    def weights(self, f: Float) -> Float:
        # Not p (1 - p): 1 - p has no digits where p is near 1.
        return np.maximum(expit(f) * expit(-f), LEAST_CURVATURE)

    def weights_slope(self, f: Float, v: Float) -> Float:
        p = expit(f)
        return np.asarray(v * p * (1.0 - p) * (1.0 - 2.0 * p))

    def constants(self, share: Float) -> Float:
        return np.log(share) - np.log1p(-share)

    def shares(self, total: Float, weight: float) -> Float:
        least = least_count(weight)
        return np.asarray(np.clip(total, least, weight - least) / weight)


@dataclass(frozen=True)
class Poisson(Likelihood):
    """Counts, ``p(y | f) = e^(y f - e^f) / y!``: the rate is e^f."""

    name: ClassVar[str] = "poisson"

    def targets(self, Y: Float | None, start: int) -> Float:
        y = target_columns(Y, self.name)
        if y.shape[1] != 1:
            raise DataError(f"a poisson likelihood takes one column of counts, Y has {y.shape[1]}; choose one")
        require_targets(np.isfinite(y) & (y >= 0.0), y, start, "a poisson likelihood takes finite counts >= 0")
        return y

    def cumulant(self, f: Float) -> Float:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(f[:, 0]))

    def loss(self, y: Float, f: Float) -> Float:
        return np.asarray(self.cumulant(f) - y[:, 0] * f[:, 0] + gammaln(y[:, 0] + 1.0))

    def mean(self, f: Float) -> Float:
        return np.asarray(np.exp(np.minimum(f, _MOST_LOG_RATE)))

    def weights(self, f: Float) -> Float:
        return np.maximum(self.mean(f), LEAST_CURVATURE)

    def cautious(self, a: Float) -> Float:
        return a

    def weights_slope(self, f: Float, v: Float) -> Float:
        return np.asarray(v * self.mean(f))

    def constants(self, share: Float) -> Float:
        return np.log(share)


@dataclass(frozen=True)
class Softmax(Likelihood):
    """C classes, ``p(y = c | f) = e^f_c / sum_d e^f_d``; targets are C columns of indicators.

    A softmax of two classes with signal variance s equals a Bernoulli likelihood with signal variance 2 s.

    Parameters
    ----------
    classes : number of classes C, at least 2.
    """

    classes: int

    name: ClassVar[str] = "softmax"

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise ParameterError(f"a softmax likelihood needs at least two classes, not {self.classes}")

    @property
    def width(self) -> int:
        return self.classes

    @property
    def pairs(self) -> Float:
        first, second = self._pair_classes
        identity = np.eye(self.classes)
        return np.asarray(identity[second] - identity[first])

    @cached_property
    def _pair_classes(self) -> tuple[Int, Int]:
        both = np.asarray(list(combinations(range(self.classes), 2)), dtype=np.int64)
        return both[:, 0], both[:, 1]

    @cached_property
    def contrasts(self) -> Float:
        # Helmert contrasts: class j + 1 against the mean of the classes before it.
        Q = np.zeros((self.classes, self.classes - 1))
        for j in range(self.classes - 1):
            Q[: j + 1, j] = -1.0
            Q[j + 1, j] = j + 1.0
            Q[:, j] /= np.sqrt((j + 1.0) * (j + 2.0))
        return Q

    def targets(self, Y: Float | None, start: int) -> Float:
        Y = target_columns(Y, self.name)
        if Y.shape[1] != self.classes:
            raise DataError(
                f"a softmax likelihood of {self.classes} classes takes a column of indicators for each, Y has "
                f"{Y.shape[1]}; give the classes of the fit"
            )
        check_indicators(Y, start, self.name)
        return Y

    # The code works on transposed arrays, class by class: a sum along an axis of a few columns takes 20 times as long.

    def cumulant(self, f: Float) -> Float:
        return _log_sum_exp(np.array(f.T, order="C"))

    def loss(self, y: Float, f: Float) -> Float:
        # Shifted by the function of the true class, whose term is then 1.
        return _log_sum_exp(np.subtract(f.T, np.einsum("bc,bc->b", y, f), order="C"))

    def mean(self, f: Float) -> Float:
        return self._probabilities(f).T

    def _probabilities(self, f: Float) -> Float:
        """Softmax of f, transposed, (c, b)."""
        p = np.array(f.T, order="C")
        # With the largest f at 0 no exponential overflows.
        p -= p.max(axis=0)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        return p

    def weights(self, f: Float) -> Float:
        p = self._probabilities(f)
        first, second = self._pair_classes
        products = p[first]
        products *= p[second]
        return np.maximum(products, LEAST_CURVATURE, out=products).T

    def weights_slope(self, f: Float, v: Float) -> Float:
        p = self.mean(f)
        first, second = self._pair_classes
        weighted = v * p[:, first] * p[:, second]
        # d(p_c p_d) / df = p_c p_d (e_c + e_d - 2 p)
        return np.asarray(weighted @ np.abs(self.pairs) - 2.0 * weighted.sum(axis=1, keepdims=True) * p)

    def curvature(self, f: Float) -> Float:
        # Not by pairs: their number grows with the square of the number of classes.
        p = self.mean(f)
        found = -p[:, :, None] * p[:, None, :]
        each = np.arange(self.classes)
        found[:, each, each] += p
        return np.asarray(found)

    def diagonal(self, f: Float) -> Float:
        p = self.mean(f)
        return np.maximum(p * (1.0 - p), LEAST_CURVATURE)

    def total_curvature(self, f: Float, weights: Float) -> Float:
        p = self.mean(f)
        weighted = weights[:, None] * p
        return np.asarray(np.diag(weighted.sum(axis=0)) - weighted.T @ p)

    def constants(self, share: Float) -> Float:
        f = np.log(share)
        return np.asarray(f - f.mean())

    def shares(self, total: Float, weight: float) -> Float:
        share = super().shares(total, weight)
        return np.asarray(share / share.sum())


LIKELIHOODS = ("bernoulli", "poisson", "softmax")


def likelihood_of(name: str, n_targets: int) -> Likelihood:
    """The likelihood with this name, for `n_targets` columns of targets.

    Raises
    ------
    ParameterError
        No likelihood has this name.
    """
    if name == "bernoulli":
        return Bernoulli()
    if name == "poisson":
        return Poisson()
    if name == "softmax":
        return Softmax(n_targets)
    raise ParameterError(f"likelihood = {name!r} is not known; choose one of {', '.join(LIKELIHOODS)}")


def _log_sum_exp(f: Float) -> Float:
    """``log sum_c e^f_c``, (b,), for f (c, b), which is overwritten."""
    # With the largest f at 0 no exponential overflows, and the sum is at least 1.
    top = f.max(axis=0)
    f -= top
    np.exp(f, out=f)
    return np.asarray(top + np.log(f.sum(axis=0)))
