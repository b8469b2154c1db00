"""Small committees: rows, kernels and query points, and what the oracles of naive say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import naive
import numpy as np
from numpy.typing import NDArray

from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian, Kernel
from streamkernel.table import Table, open_table

Float = NDArray[np.float64]

CARD = naive.card()
CARD_PARTS = [list(range(first, first + 10)) for first in range(0, 40, 10)]
CARD_MEAN = [-0.467987, -0.487493, -0.168396, 0.220735, 0.367288, 0.271083]
CARD_VARIANCE = [0.0417301, 0.0543894, 0.0935347, 0.156129, 0.139157, 0.139913]


def printed(values: Any, expected: Any) -> None:
    """Every value agrees with its printed form to the six digits printed."""
    np.testing.assert_allclose(values, expected, rtol=6e-6)


def basis_at(points: Float, kernel: Kernel | None = None) -> Basis:
    """Query points that are no rows of a table."""
    return Basis(kernel or Gaussian(1.0), np.ascontiguousarray(points), np.full(len(points), -1))


@dataclass(frozen=True)
class Committee:
    """Rows (m, p), targets (m, d) and queries (q, p) of a Gaussian process with a Gaussian kernel."""

    X: Float
    Y: Float
    queries: Float
    lengthscale: float = 1.0
    signal: float = 1.0
    noise: float = 0.1

    @property
    def kernel(self) -> Gaussian:
        return Gaussian(self.lengthscale)

    @property
    def table(self) -> Table:
        return open_table(self.X, self.Y)

    def covariance(self, A: Float, B: Float) -> Float:
        return self.signal * naive.gaussian(A, B, self.lengthscale)

    @property
    def K(self) -> Float:
        return self.covariance(self.X, self.X)

    @property
    def K_qm(self) -> Float:
        return self.covariance(self.queries, self.X)

    @property
    def K_qq(self) -> Float:
        return self.covariance(self.queries, self.queries)

    def posteriors(self, parts: Sequence[Any], weights: Any = 1.0) -> list[tuple[Float, Float]]:
        noise = self.noise / np.broadcast_to(weights, len(self.X))
        return [naive.member_posterior(self.K, self.Y, noise, self.K_qm, self.K_qq, part) for part in parts]

    def moments(self, parts: Sequence[Any], weights: Any = 1.0) -> tuple[Float, Float]:
        """Means (B, q, d) and variances (B, q) of the members."""
        found = self.posteriors(parts, weights)
        return np.stack([mean for mean, _ in found]), np.stack([np.diag(covariance) for _, covariance in found])


def friendly(m: int = 60, q: int = 7, d: int = 2, seed: int = 0, **more: Any) -> Committee:
    """Three features, targets of scale 1; queries drawn as the rows are."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    Y = np.stack([np.sin(X[:, 0]) + 0.5 * X[:, 1], np.cos(X[:, 2] - X[:, 0]), X[:, 1] ** 2], axis=1)[:, :d]
    Y = Y + 0.2 * rng.standard_normal(Y.shape)
    return Committee(X, Y, rng.standard_normal((q, 3)), **{"lengthscale": 1.3, "signal": 1.7, "noise": 0.04} | more)
