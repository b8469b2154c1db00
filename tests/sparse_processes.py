"""Small sparse Gaussian processes: rows, basis, sums, and the dense Gaussian that each is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import naive
import numpy as np
from problems import FLOAT64, Float, basis_of, blocks

from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import (
    BlockNoise,
    ConstantNoise,
    DiagonalNoise,
    GaussianEquations,
    GaussianSums,
    RowNoise,
)
from streamkernel.solvers import GaussianSolution, GaussianSystem


def sums_of(X: Any, Y: Float, basis: Basis, noise: RowNoise, centre: Any = None, weights: Any = None) -> GaussianSums:
    reduction = GaussianEquations(basis, np.zeros(Y.shape[1]) if centre is None else centre, noise)
    return reduction.finalize(reduction.map_block(next(blocks(X, Y, [len(X)], weights))))


def solved(
    X: Any, Y: Float, basis: Basis, noise: RowNoise, signal: Any = 1.0, variance: Any = 0.1, **options: Any
) -> GaussianSolution:
    return GaussianSystem(basis, sums_of(X, Y, basis, noise, **options), noise).solve(signal, variance)


def latent(solution: GaussianSolution, basis: Basis, X: Any) -> tuple[Float, Float]:
    return solution.predictions(basis, latent=True).moments(X)


def noise_of(kind: str, signal: float, noise: float, block_size: int = 7) -> RowNoise:
    return {
        "dtc": ConstantNoise(),
        "fitc": DiagonalNoise(signal, noise),
        "pitc": BlockNoise(signal, noise, block_size),
    }[kind]


def members_of(kind: str, m: int, block_size: int = 7) -> list[range] | None:
    size = {"dtc": 0, "fitc": 1, "pitc": block_size}[kind]
    return [range(first, min(first + size, m)) for first in range(0, m, size)] if size else None


KINDS = ["dtc", "fitc", "pitc"]


@dataclass(frozen=True)
class Case:
    X: Any
    Y: Float
    basis: Basis
    queries: Float
    signal: float
    noise: float

    @property
    def lengthscale(self) -> float:
        return self.basis.kernel.lengthscale  # type: ignore[attr-defined,no-any-return]

    def oracle(
        self, members: Any, Y: Any = None, *, signal: float = 0.0, noise: float = 0.0, weights: Any = None
    ) -> naive.SparseProcess:
        k = [naive.gaussian(A, B, self.lengthscale) for A, B in self._pairs()]
        K_mI, K_II, k_mm, K_qI, K_qq = k
        R = k_mm - K_mI @ np.linalg.lstsq(K_II, K_mI.T, rcond=1e-15)[0]
        signal, noise = signal or self.signal, noise or self.noise
        Om = naive.conditional_covariance(R, noise, signal, members, weights)
        return naive.sparse_process(K_mI, K_II, k_mm, self.Y if Y is None else Y, Om, K_qI, K_qq, signal)

    def _pairs(self) -> list[tuple[Any, Any]]:
        Z, X, q = self.basis.points, self.X, self.queries
        return [(X, Z), (Z, Z), (X, X), (q, Z), (q, q)]


def case(seed: int = 0, m: int = 45, n: int = 8, d: int = 2, dtype: Any = FLOAT64) -> Case:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 2)).astype(dtype)
    Y = np.sin(X @ rng.standard_normal((2, d))) + 0.2 * rng.standard_normal((m, d))
    basis = basis_of(X, rng.choice(m, n, replace=False), Gaussian(float(rng.uniform(0.6, 1.2))))
    queries = np.concatenate([rng.standard_normal((5, 2)), [[40.0, 0.0]]])
    return Case(X, Y, basis, queries, float(rng.uniform(0.3, 3.0)), float(10 ** rng.uniform(-2, 0)))


def assert_is(solution: GaussianSolution, basis: Basis, expected: naive.SparseProcess, queries: Float) -> None:
    tolerance = {"rtol": 1e-7, "atol": 1e-8}
    predictions = solution.predictions(basis, latent=True)
    mean, variance = predictions.moments(queries)
    np.testing.assert_allclose(mean, expected.mean, **tolerance)
    np.testing.assert_allclose(solution.log_evidence, expected.log_evidence, **tolerance)
    covariance = predictions.covariance(queries)
    for t in range(mean.shape[1]):
        np.testing.assert_allclose(variance[:, t], expected.variance, **tolerance)
        np.testing.assert_allclose(covariance[:, :, t], expected.covariance, **tolerance)
        np.testing.assert_array_equal(covariance[:, :, t], covariance[:, :, t].T)
