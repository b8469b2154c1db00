"""A fitted pursuit as the sum of its steps; every shorter model is a part of the sum.

With the functions ``k(x) = (1, k(x, z_1), ..., k(x, z_n))``, steps j = 0 .. T, directions V and amounts Z (T + 1, d)::

    f_t(x) = sum_{j <= t} (k(x)^T V)_j Z_j

Least squares (back- and pre-fitting): the QR factorisation ``D = Q R`` of the columns in the order of picking gives
``V = R^-1, Z = Q^T Y``, and f_t is the least squares fit to the first t functions. Basic: a step is one function and
the increment of its coefficient. Without a constant there are no column of ones and no step 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.linalg import solve_lower_t
from streamkernel.type_aliases import Float, Int


@dataclass(frozen=True)
class Stages:
    """The steps of a fitted pursuit.

    Parameters
    ----------
    directions : V, (n + c, T + c); c is 1 with a constant, which is first, else 0.
    amounts : Z, (T + c, d).
    constant : whether the model has a constant.
    """

    directions: Float
    amounts: Float
    constant: bool

    @classmethod
    def least_squares(cls, D: Float, Y: Float, constant: bool, ridge: float = 0.0) -> Stages:
        """Least squares stages of independent columns D (r, n + c), in the order of picking, and Y (r, d).

        With a ridge, in units of the squares of the columns, the columns may depend on each other.
        """
        if D.shape[1] == 0:
            return cls(np.zeros((0, 0)), np.zeros((0, Y.shape[1])), constant)
        if ridge > 0.0:
            penalty = np.diag(np.sqrt(ridge * np.einsum("ij,ij->j", D, D)))
            D, Y = np.concatenate([D, penalty]), np.concatenate([Y, np.zeros((len(penalty), Y.shape[1]))])
        Q, R = np.linalg.qr(D)
        return cls(solve_lower_t(R.T, np.eye(len(R))), Q.T @ Y, constant)

    @classmethod
    def of_steps(cls, D: Float, Y: Float, functions: Int, steps: Float, constant: bool) -> Stages:
        """Stages of basic: step j adds the row ``steps[j]``, (d,), to the coefficient of function ``functions[j]``."""
        c = int(constant)
        V = np.zeros((D.shape[1], len(functions) + c))
        V[functions + c, np.arange(len(functions)) + c] = 1.0
        if not constant:
            return cls(V, steps, constant)
        V[0, 0] = 1.0
        one = D[:, :1]
        return cls(V, np.concatenate([one.T @ Y / float((one**2).sum()), steps]), constant)

    @property
    def terms(self) -> int:
        """Number of terms T."""
        return len(self.amounts) - int(self.constant)

    def first(self, terms: int, functions: int) -> Stages:
        """The first `terms` steps; they must use only the first `functions` functions."""
        c = int(self.constant)
        return Stages(self.directions[: functions + c, : terms + c], self.amounts[: terms + c], self.constant)

    def of_sizes(self) -> tuple[Float, Float]:
        """V and Z with a column and a row for each size t = 0 .. T; without a constant those of t = 0 are zeros."""
        if self.constant:
            return self.directions, self.amounts
        return np.pad(self.directions, ((0, 0), (1, 0))), np.pad(self.amounts, ((1, 0), (0, 0)))

    @property
    def coefficients(self) -> Float:
        """(n, d) coefficients of the functions."""
        return np.asarray(self.directions[int(self.constant) :] @ self.amounts)

    @property
    def intercept(self) -> Float:
        """(d,) intercept; zeros without a constant."""
        d = self.amounts.shape[1]
        return np.asarray(self.directions[0] @ self.amounts) if self.constant else np.zeros(d)

    def errors(self, D: Float, Y: Float) -> Float:
        """``|Y - f_t|^2`` of each target for t = 0 .. T, (T + 1, d), from rows or from a root of their columns."""
        along = D @ self.directions
        found = np.empty((self.terms + 1, Y.shape[1]))
        for target in range(Y.shape[1]):
            left = Y[:, target, None] - np.cumsum(along * self.amounts[:, target], axis=1)
            if not self.constant:
                left = np.concatenate([Y[:, target, None], left], axis=1)
            found[:, target] = np.einsum("ij,ij->j", left, left)
        return found

    def along(self, K: Float) -> Float:
        """``k(x)^T V`` (b, T + c) of rows with kernel values K (b, n): the factor of each step's amount."""
        columns = np.concatenate([np.ones((len(K), 1)), K], axis=1) if self.constant else K
        return np.asarray(columns @ self.directions)

    def values(self, K: Float) -> Float:
        """f_t of rows with kernel values K (b, n), t = 0 .. T: (b, T + 1, d)."""
        steps = self.along(K)[:, :, None] * self.amounts
        if not self.constant:
            steps = np.concatenate([np.zeros((len(K), 1, steps.shape[2])), steps], axis=1)
        return np.asarray(np.cumsum(steps, axis=1))


ALPHAS = (0.0, *(float(10.0**power) for power in range(-6, 3)))  # times the mean of k(z, z)


def ridge_stages(
    D: Float, Y: Float, L: Float, constant: bool, check: tuple[Float, Float], scale: Float
) -> tuple[Stages, float]:
    """The steps of a ridge on the picked functions, with the alpha whose best size has the least held-out error.

    With the columns D (r, n + c) of the constant and the functions in the order of picking, and ``k(Z, Z) = L L^T``::

        |Y - D b|^2 + alpha |L^T b_f|^2        b_f the coefficients of the functions: |f|_H^2 = b_f^T k(Z, Z) b_f

    is the least squares fit of Y, and zeros, to D with sqrt(alpha) L^T below it. L^T is upper triangular, so that the
    first t of its columns are the penalty of the first t functions. One QR factorisation therefore has the ridge fit of
    every size, as it has without the ridge. Returns the steps and alpha.

    Parameters
    ----------
    D, Y : (r, n + c) and (r, d), or a root of them.
    L : (n, n) of the functions.
    check : the same of held-out rows.
    scale : (d,) in whose units squared errors are added.
    """
    n = len(L)
    unit = float(np.einsum("ij,ij->", L, L)) / max(n, 1)
    found: tuple[float, Stages, float] | None = None
    for alpha in ALPHAS:
        penalty = np.zeros((n if alpha else 0, D.shape[1]))
        if alpha:
            penalty[:, int(constant) :] = np.sqrt(alpha * unit) * L.T
        targets = np.concatenate([Y, np.zeros((len(penalty), Y.shape[1]))])
        stages = Stages.least_squares(np.concatenate([D, penalty]), targets, constant)
        error = float((stages.errors(*check) / scale**2).sum(axis=1)[1:].min())
        if found is None or error < found[0]:
            found = error, stages, alpha * unit
    assert found is not None
    return found[1], found[2]
