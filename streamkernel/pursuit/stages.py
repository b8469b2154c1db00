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
from scipy.linalg import solve_triangular

from streamkernel.type_aliases import Float, Int


@dataclass(frozen=True)
class Stages:
    """Parameters
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
        inverse: Float = solve_triangular(R, np.eye(len(R)), check_finite=False)
        return cls(inverse, Q.T @ Y, constant)

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
