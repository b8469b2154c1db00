"""The members of boosting: functions that are fitted to some weighted rows in memory.

With indicators ``t = 1`` of a class and ``-1`` outside it, row weights w, and a sample X (s, p)::

    svm     1/2 |f|^2 + C sum_i w_i max(0, 1 - t_i (f(x_i) + b))    by SMO; the functions are support vectors
    ridge   alpha |f|^2 + sum_i w_i (t_i - b - f(x_i))^2            b the weighted mean of t; of all rows, or some
    kmp     sum_i w_i (t_i - b - f(x_i))^2                          f of few functions, picked by pre-fitting

With two classes there is one function, for the second class; else one for each class, against the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from streamkernel.basis import Basis
from streamkernel.errors import NumericalError
from streamkernel.kernels import Kernel
from streamkernel.linalg import solve_shifted
from streamkernel.linalg.finite import require_finite
from streamkernel.pursuit import pursue
from streamkernel.reductions.boosting import DrawnMember
from streamkernel.reductions.margins import Hinge
from streamkernel.reductions.row_random import stream_generator
from streamkernel.settings.boosting import KMP, RIDGE, BoostingSettings
from streamkernel.solvers import solve_smo
from streamkernel.solvers.margins.smo import CACHE_BYTES
from streamkernel.type_aliases import Float, Int
from streamkernel.wording import option

_STREAM = (32,)
_CANDIDATES = 1000  # of a pursuit: rows of the sample whose functions compete


class Learned(NamedTuple):
    """A member: positions (n,) of its functions in the sample, ascending, coefficients (n, K), constants (K,)."""

    positions: Int
    coefficients: Float
    constants: Float


def learn(
    sample: DrawnMember, classes: int, kernel: Kernel, settings: BoostingSettings, n: int, number: int
) -> Learned:
    """Fit one member.

    Parameters
    ----------
    n : largest number of its functions, but for the learner svm.
    number : number of the member, of which its draws are a function.
    """
    columns = [1] if classes == 2 else list(range(classes))
    T = np.stack([np.where(sample.labels == column, 1.0, -1.0) for column in columns], axis=1)
    X = np.ascontiguousarray(sample.X, np.float64)
    if settings.learner == RIDGE:
        return _ridge(X, T, sample.weights, kernel, settings, n, number)
    if settings.learner == KMP:
        return _pursuit(X, T, sample.weights, kernel, settings, n, number)
    return _machine(X, T, sample.weights, kernel, settings.C)


def _machine(X: Float, T: Float, w: Float, kernel: Kernel, C: float) -> Learned:
    """One support vector machine for each column of T; of a sample of one side, a constant."""
    coefficients, constants = np.zeros(T.shape), np.zeros(T.shape[1])
    for k, t in enumerate(T.T):
        if (t == t[0]).all():
            constants[k] = t[0]
            continue
        found = solve_smo(kernel, X, (t > 0.0).astype(np.float64), Hinge(C), weights=w)
        coefficients[:, k], constants[k] = found.coefficients, found.offset
    used = np.flatnonzero((coefficients != 0.0).any(axis=1))
    return Learned(used, coefficients[used], constants)


def _centred(T: Float, w: Float) -> tuple[Float, Float]:
    """The weighted mean of each column of T, and what is left."""
    mean = w @ T / w.sum()
    return mean, T - mean


def _drawn(count: int, rows: int, settings: BoostingSettings, number: int) -> Int:
    """Some rows of a sample, ascending."""
    if count >= rows:
        return np.arange(rows)
    drawn = stream_generator(settings.seed, (*_STREAM, number)).choice(rows, size=count, replace=False)
    return np.sort(drawn).astype(np.int64)


def _ridge(X: Float, T: Float, w: Float, kernel: Kernel, settings: BoostingSettings, n: int, number: int) -> Learned:
    mean, left = _centred(T, w)
    some = _drawn(n, len(X), settings, number)
    if len(some) == len(X):
        # (K + alpha W^-1) c = t - b
        system = kernel.prepare(X).block(X)
        system[np.diag_indices(len(X))] += settings.member_alpha / w
        return Learned(some, _solved(system, left), mean)
    basis, kept = Basis.empty(kernel, X.shape[1], X.dtype).append(X[some], some)
    G = basis.features(X)
    system = G.T @ (w[:, None] * G)
    system[np.diag_indices(len(basis))] += settings.member_alpha
    b = _solved(system, G.T @ (w[:, None] * left))
    return Learned(some[kept], basis.coefficients(b), mean)


def _solved(system: Float, right: Float) -> Float:
    require_finite(system, "the system of a member")
    found = solve_shifted(system, 0.0, right)
    if found is None:
        raise NumericalError(
            "the system of a member is not positive definite to working precision; give a larger "
            f"{option('member_alpha')}"
        )
    return found


def _pursuit(X: Float, T: Float, w: Float, kernel: Kernel, settings: BoostingSettings, n: int, number: int) -> Learned:
    some = _drawn(max(_CANDIDATES, n), len(X), settings, number)
    D = kernel.prepare(np.ascontiguousarray(X[some])).block(X)
    require_finite(D, "the dictionary of a member")
    mean, left = _centred(T, w)
    root = np.sqrt(w)[:, None]
    columns = D - w @ D / w.sum()
    picked = np.unique(pursue(root * columns, root * left, n).order)
    functions = root * np.column_stack([columns[:, picked], np.ones(len(X))])
    found = np.asarray(scipy.linalg.lstsq(functions, root * left)[0])
    coefficients, constants = found[:-1], found[-1]
    # Columns were less their means.
    constants = mean + constants - (w @ D[:, picked] / w.sum()) @ coefficients
    return Learned(some[picked], coefficients, constants)


def learner_bytes(settings: BoostingSettings, rows: int, width: int, classes: int) -> int:
    """Bytes of a fit of one member to so many rows, beside the sample."""
    K = 1 if classes == 2 else classes
    own = rows * (8 * width * 5 + 24 * K + 100)
    if settings.learner == RIDGE:
        return own + 24 * rows**2
    if settings.learner == KMP:
        return own + 40 * rows * min(rows, _CANDIDATES)
    return own + min(8 * rows**2, CACHE_BYTES)
