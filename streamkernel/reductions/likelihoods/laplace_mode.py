"""The mode of a generalised Gaussian process on a few rows, and the normal targets that replace the rows there.

The prior is ``f ~ N(mu, K)`` on b rows, and ``-log p(y | f)`` is a convex function of each f_i. Newton steps (iterated
re-weighted least squares) solve with S, whose eigenvalues are all 1 or more: this is stable for every K (ALGORITHMS
5.2; cf. Rasmussen & Williams 2006, algorithm 3.1)::

    W = diag(w A''(f))    S = I + W^1/2 K W^1/2    z = f + W^-1 w (y - A'(f))
    a <- W^1/2 S^-1 W^1/2 (z - mu)                 f <- mu + K a

A step is halved until the objective ``a^T K a / 2 - log p(y | f)`` does not increase. At the mode ``a = w (y -
A'(f))``. There the rows give the same posterior of f as normal targets ``z = f + W^-1 a`` with noise variances ``W^-1``
(Laplace's approximation; Tresp 2001, section 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.errors import NumericalError
from streamkernel.linalg import InPlaceCholesky, add_to_diagonal, solve_lower, solve_lower_t
from streamkernel.reductions.likelihoods.likelihood import Likelihood
from streamkernel.type_aliases import Float

_STILL = 1e-9  # the last step is this small relative to f: the error after it is of the order of its square
_MOST_STEPS, _MOST_HALVINGS = 100, 60
_ROUNDING = 1e-13  # of an objective, relative


@dataclass(frozen=True)
class Mode:
    """The mode of the posterior of f, and the weights and targets there.

    Attributes
    ----------
    f : (b,) the mode.
    roots : (b,) ``W^1/2``.
    scaled : (b,) ``W^1/2 (z - mu)``.
    steps : number of Newton steps.
    """

    f: Float
    roots: Float
    scaled: Float
    steps: int


def find_mode(
    K: Float, y: Float, likelihood: Likelihood, centre: float, weights: Float | None, where: str = "of a member"
) -> Mode:
    """The mode for the rows of one member.

    Parameters
    ----------
    K : (b, b) prior covariance of f, both triangles.
    y : (b,) targets.
    likelihood : likelihood of one function.
    centre : prior mean mu.
    weights : (b,) weights of the rows, > 0; None for ones.
    where : name of the rows in error messages.

    Raises
    ------
    NumericalError
        No mode after 100 steps, or a covariance that is not finite.
    """
    targets, w = y[:, None], np.ones(len(y)) if weights is None else weights
    a, f = np.zeros(len(y)), np.full(len(y), centre)

    def objective(a: Float, f: Float) -> float:
        return float(0.5 * a @ (f - centre) + w @ likelihood.loss(targets, f[:, None]))

    value = objective(a, f)
    for step in range(1, _MOST_STEPS + 1):
        roots, scaled = _stand_ins(f, targets, likelihood, centre, w)
        S = K * roots[:, None] * roots
        add_to_diagonal(S, 1.0)
        factor = InPlaceCholesky(S)
        if factor.failed is not None:
            raise NumericalError(
                f"the covariance {where} is not finite; look at the scale of the features and the kernel"
            )
        along_a = roots * solve_lower_t(factor.L, solve_lower(factor.L, scaled)) - a
        along_f = K @ along_a
        length = 1.0
        for _ in range(_MOST_HALVINGS):
            reached = objective(a + length * along_a, f + length * along_f)
            if reached <= value + _ROUNDING * abs(value):
                break
            length *= 0.5
        else:
            # No step length decreases the objective: it is at its minimum up to rounding.
            return _mode(K, a, targets, likelihood, centre, w, step)
        a, f, value = a + length * along_a, f + length * along_f, reached
        if np.abs(length * along_f).max() <= _STILL * (1.0 + np.abs(f).max()):
            return _mode(K, a, targets, likelihood, centre, w, step)
    raise NumericalError(
        f"the mode {where} was not found in {_MOST_STEPS} Newton steps; give a smaller signal variance"
    )


def _mode(K: Float, a: Float, targets: Float, likelihood: Likelihood, centre: float, w: Float, steps: int) -> Mode:
    f = centre + K @ a
    return Mode(f, *_stand_ins(f, targets, likelihood, centre, w), steps)


def _stand_ins(f: Float, targets: Float, likelihood: Likelihood, centre: float, w: Float) -> tuple[Float, Float]:
    """``W^1/2`` and ``W^1/2 (z - mu)``."""
    roots = np.sqrt(w * likelihood.weights(f[:, None])[:, 0])
    slope = w * (targets - likelihood.mean(f[:, None]))[:, 0]
    return roots, roots * (f - centre) + slope / roots
