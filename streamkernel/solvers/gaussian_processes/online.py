"""Online Gaussian process regression, whose basis grows with the rows: Csato & Opper 2002, without deletion.

The state is the posterior N(mu, P) of ``f^I``, the function at the n basis points so far; n starts at 0. A row (x, y)
with ``k_I = k(Z, x)``, ``h = k(Z, Z)^-1 k_I`` and novelty ``gamma = k(x, x) - k_I^T h`` updates it (ALGORITHMS 10.4)::

    gamma > tolerance:   x joins the basis:  mu <- [mu; h^T mu],  P <- [[P, P h], [h^T P, h^T P h + gamma]],
                         then a Kalman step with noise s2 on the new coordinate
    otherwise            a Kalman step with row h and noise s2 + gamma

If every row joins, this is the exact Gaussian process.

In whitened coordinates ``f^I = L u``, with the prior ``u ~ N(0, I)``, a row observes ``v^T u`` with ``v = L^-1 k_I``,
and with a last entry ``sqrt gamma`` if it joins. A new point only adds an entry to u. In the information form

    A = I + sum_i v_i v_i^T / s2_i,    c = sum_i v_i y_i / s2_i,    u ~ N(A^-1 c, A^-1)

rows are therefore summed, any number at once. The rows that join depend on the features only: a block is searched in
order for novel rows, with one column of features for each row that joins, and then summed by one product. This is
exactly the row-by-row form.

This is not a `Reduction`, because the effect of a row depends on the rows before it. One thread takes rows in order.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.basis import PIVOT_TOLERANCE, Basis
from streamkernel.errors import NonFiniteDataError, ParameterError, ShapeMismatchError
from streamkernel.kernels import Kernel
from streamkernel.kernels.parameters import checked_integer, checked_number, checked_rows
from streamkernel.linalg import cholesky, single_threaded_blas, solve_lower, solve_lower_t, syrk
from streamkernel.reductions import Predictions
from streamkernel.table import Table
from streamkernel.type_aliases import AnyArray, Float
from streamkernel.wording import option

_BLOCK_ROWS = 2048


class OnlineGaussianProcess:
    """Online Gaussian process. It takes rows in order; rows that are novel join the basis.

    Parameters
    ----------
    kernel : unit kernel k; the prior is ``f ~ GP(0, signal k)``.
    noise : noise variance s2 > 0.
    signal : signal variance.
    tolerance : a row joins when ``gamma > tolerance k(x, x)``; at least 1e-12, the limit of numerical rank.
    most : largest number of basis functions; None for no limit. At the limit, rows only update the posterior.
    centre : (d,) constant subtracted from the targets; zeros by default.

    Attributes
    ----------
    basis : Basis, in the order of joining; its row numbers count the rows in the order in which they were taken.
    count : number of rows taken.
    """

    def __init__(
        self,
        kernel: Kernel,
        noise: float,
        *,
        signal: float = 1.0,
        tolerance: float = 1e-6,
        most: int | None = None,
        centre: ArrayLike | None = None,
    ) -> None:
        self.kernel = kernel
        self.noise, self.signal = checked_number("noise", noise), checked_number("signal", signal)
        self.tolerance = max(checked_number("tolerance", tolerance, zero=True), PIVOT_TOLERANCE)
        self.most = None if most is None else checked_integer("most", most)
        self._given = centre
        self._centre = np.zeros(1)
        self.count = 0
        self._Z: AnyArray = np.zeros((0, 0))
        self._rows: list[int] = []
        self._L, self._A, self._c = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0))

    def __len__(self) -> int:
        return len(self._rows)

    # --- taking rows --------------------------------------------------------------------------------------------------

    def take_table(self, table: Table) -> OnlineGaussianProcess:
        """Take all rows of a table with targets and perhaps weights, in their order.

        Raises
        ------
        ParameterError
            The table has no targets.
        """
        if table.n_targets == 0:
            raise ParameterError(f"the table has no targets; ingest it with {option('target')}, or give y")
        for block in table.blocks(table.start, table.stop, _BLOCK_ROWS):
            assert block.Y is not None
            self.take(block.X, block.Y, block.weights)
        return self

    def take(self, X: ArrayLike, y: ArrayLike, weights: Float | None = None) -> OnlineGaussianProcess:
        """Take rows X (b, p) with targets (b,) or (b, d), in their order. The state does not depend on the blocks.

        A row of weight w counts as w rows in a run; one of weight 0 joins neither the points nor the sums.

        Raises
        ------
        ShapeError, ShapeMismatchError, NonFiniteDataError
        """
        rows = checked_rows(X)
        Y = np.asarray(y, dtype=np.float64)
        Y = Y[:, None] if Y.ndim == 1 else Y
        if Y.ndim != 2 or len(Y) != len(rows):
            raise ShapeMismatchError(f"y has shape {np.shape(y)} for {len(rows)} rows; give one target row each")
        if not (np.isfinite(rows).all() and np.isfinite(Y).all()):
            raise NonFiniteDataError("the rows or targets hold NaN or infinity; remove those rows or fill them in")
        if self.count == 0:
            self._begin(rows, Y.shape[1])
        elif rows.shape[1] != self._Z.shape[1] or Y.shape[1] != self._c.shape[1]:
            raise ShapeMismatchError(
                f"rows of {rows.shape[1]} features and {Y.shape[1]} targets after such of {self._Z.shape[1]} and "
                f"{self._c.shape[1]}; give the same"
            )
        with single_threaded_blas():
            for first in range(0, len(rows), _BLOCK_ROWS):
                part = slice(first, first + _BLOCK_ROWS)
                self._block(rows[part], Y[part] - self._centre, None if weights is None else weights[part])
        return self

    def _begin(self, rows: AnyArray, d: int) -> None:
        self.kernel.check_features(rows.shape[1])
        self._Z, self._c = np.zeros((0, rows.shape[1]), rows.dtype), np.zeros((0, d))
        self._centre = np.zeros(d) if self._given is None else np.atleast_1d(np.asarray(self._given, np.float64))
        if self._centre.shape != (d,):
            raise ShapeMismatchError(f"centre has shape {self._centre.shape} for {d} targets; give one for each")

    def _block(self, rows: AnyArray, Y: Float, weights: Float | None) -> None:
        numbers = self.count + np.arange(len(rows))
        self.count += len(rows)
        if weights is not None:
            heard = np.flatnonzero(weights)
            rows, Y, weights, numbers = rows[heard], Y[heard], weights[heard], numbers[heard]
        V, gamma, joined = self._features(rows.astype(np.float64))
        n, grown = len(self), V.shape[1]
        if joined:
            self._Z = np.concatenate([self._Z, rows[joined].astype(self._Z.dtype)])
            self._rows += numbers[joined].tolist()
            L = np.zeros((grown, grown))
            L[:n, :n] = self._L
            L[n:] = V[joined]
            self._L = L
            A = np.eye(grown)
            A[:n, :n] = self._A
            self._A = A
            self._c = np.concatenate([self._c, np.zeros((grown - n, Y.shape[1]))])
        noise = self.noise / self.signal + gamma
        if weights is not None:
            noise /= weights
        V /= np.sqrt(noise)[:, None]
        # SYRK fills one triangle, at half the operations of V^T V; the other one is mirrored.
        upper = np.zeros_like(self._A)
        syrk(V, into=upper)
        self._A += np.triu(upper) + np.triu(upper, 1).T
        # y in units of sqrt(signal), as u is.
        self._c += V.T @ (Y / (math.sqrt(self.signal) * np.sqrt(noise))[:, None])

    def _features(self, X: Float) -> tuple[Float, Float, list[int]]:
        """Features v of the rows (b, n + number that join), their novelties (b,), and the positions that join.

        A row depends on the points that joined before it; its features of later points are 0.
        """
        n, b = len(self), len(X)
        most = b if self.most is None else min(self.most - n, b)
        V = np.zeros((b, n + max(most, 0)))
        if n:
            V[:, :n] = solve_lower(self._L, self.kernel.prepare(self._Z.astype(np.float64)).block(X).T).T
        diagonal = self.kernel.diagonal(X)
        gamma = np.maximum(diagonal - np.einsum("ij,ij->i", V[:, :n], V[:, :n]), 0.0)
        joined: list[int] = []
        start = 0
        while len(joined) < most:
            novel = np.flatnonzero(gamma[start:] > self.tolerance * diagonal[start:])
            if not len(novel):
                break
            at, t = start + int(novel[0]), n + len(joined)
            # Column t of the features of this row and those after it.
            values = self.kernel.prepare(X[at : at + 1]).block(X[at:])[:, 0] - V[at:, :t] @ V[at, :t]
            root = math.sqrt(gamma[at])
            values /= root
            values[0] = root
            V[at:, t] = values
            gamma[at:] = np.maximum(gamma[at:] - values**2, 0.0)
            gamma[at] = 0.0
            joined.append(at)
            start = at + 1
        return np.ascontiguousarray(V[:, : n + len(joined)]), gamma, joined

    # --- posterior and predictions ------------------------------------------------------------------------------------

    @property
    def basis(self) -> Basis:
        """The points, in the order in which they joined."""
        return Basis(self.kernel, self._Z, np.asarray(self._rows, dtype=np.int64))

    def _posterior(self) -> tuple[Float, Float]:
        """Factor R of ``A = R R^T``, and the mean of u (n, d)."""
        if self.count == 0:
            raise ParameterError("no rows were taken yet, and nothing is known but the prior; take some")
        with single_threaded_blas():
            R = cholesky(self._A, "the precision of the posterior")
            return R, solve_lower_t(R, solve_lower(R, self._c))

    @property
    def mu(self) -> Float:
        """Posterior mean of f at the basis points, (n, d)."""
        return np.asarray(math.sqrt(self.signal) * (self._L @ self._posterior()[1]))

    @property
    def P(self) -> Float:
        """Posterior covariance of f at the basis points, (n, n)."""
        R, _ = self._posterior()
        half = solve_lower(R, self._L.T)
        return np.asarray(self.signal * (half.T @ half))

    def predictions(self) -> Predictions:
        """Row map of the posterior mean, ``k(x, Z) L^-T u + centre``."""
        _, u = self._posterior()
        with single_threaded_blas():
            coefficients = np.ascontiguousarray(solve_lower_t(self._L, math.sqrt(self.signal) * u))
        return Predictions(self.basis, coefficients, self._centre)

    def moments(self, X: ArrayLike) -> tuple[Float, Float]:
        """Mean (q, d) and variance (q,) of f at rows X: ``signal (k(x, x) - |v|^2 + v^T A^-1 v)``."""
        R, u = self._posterior()
        rows = checked_rows(X, "X", self._Z.shape[1]).astype(np.float64)
        with single_threaded_blas():
            K = self.kernel.prepare(self._Z.astype(np.float64)).block(rows)
            V = solve_lower(self._L, K.T)
            left = solve_lower(R, V)
            mean = math.sqrt(self.signal) * (V.T @ u) + self._centre
        spread = self.kernel.diagonal(rows) - np.einsum("ij,ij->j", V, V) + np.einsum("ij,ij->j", left, left)
        return mean, self.signal * np.maximum(spread, 0.0)
