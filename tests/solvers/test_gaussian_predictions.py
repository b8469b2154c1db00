"""What a sparse Gaussian process predicts: shapes, variances, bytes."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from problems import FLOAT64, basis_of
from sparse_processes import Case, case, solved, sums_of

from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian, Kernel, Laplacian, Matern
from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions.predictions import GaussianPredictions
from streamkernel.reductions.sums import ConstantNoise
from streamkernel.solvers import GaussianSystem
from streamkernel.table import RowBlock


# ---------------------------------------------------------------------------------------------------------- predictions
def predictor(seed: int = 0, kernel: Kernel | None = None, **options: Any) -> tuple[GaussianPredictions, Case]:
    c = case(seed)
    basis = c.basis if kernel is None else Basis(kernel, c.basis.points, c.basis.rows)
    return solved(c.X, c.Y, basis, ConstantNoise(), [1.0, 2.0], [0.1, 0.3]).predictions(basis, **options), c


def test_of_a_target_the_noise_is_added() -> None:
    of_f, c = predictor(latent=True)
    of_y, _ = predictor()
    np.testing.assert_array_equal(of_f.moments(c.queries)[0], of_y.moments(c.queries)[0])
    np.testing.assert_allclose(of_y.moments(c.queries)[1], of_f.moments(c.queries)[1] + [0.1, 0.3], rtol=1e-14)
    difference = of_y.covariance(c.queries) - of_f.covariance(c.queries)
    np.testing.assert_allclose(difference, np.eye(6)[:, :, None] * [0.1, 0.3], atol=1e-15)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("std", [False, True])
def test_what_is_written_has_the_shape_it_says(std: bool, flat: bool, d: int) -> None:
    work, c = predictor(std=std, flat=flat)
    if d == 1:
        parts = {
            name: getattr(work, name)[..., :1] for name in ("coefficients", "intercept", "shares", "signal", "noise")
        }
        work = replace(work, **parts)
    written = work.map_block(RowBlock(0, c.queries, None))
    assert list(written) == list(work.columns) == (["prediction", "std"] if std else ["prediction"])
    for name, (width, dtype) in work.columns.items():
        assert written[name].shape == ((6,) if width is None else (6, width))
        assert written[name].dtype == dtype
    mean, variance = work.moments(c.queries)
    np.testing.assert_array_equal(written["prediction"].reshape(mean.shape), mean)
    np.testing.assert_array_equal(mean, work.values(c.queries))
    if std:
        np.testing.assert_array_equal(written["std"].reshape(mean.shape), np.sqrt(variance))


@pytest.mark.parametrize("kernel", [Matern(1.5, nu=1.5), Laplacian(2.0), Gaussian(0.7) * Matern(2.0, nu=2.5)])
def test_other_kernels_have_the_variance_of_their_features(kernel: Kernel) -> None:
    work, c = predictor(kernel=kernel, latent=True)
    z = work.basis.features(c.queries) @ work.rotation
    expected = work.signal * (kernel.diagonal(c.queries)[:, None] - z**2 @ work.shares)
    np.testing.assert_allclose(work.moments(c.queries)[1], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("lengthscale", [1.0, 8.0, 30.0])
def test_a_basis_that_is_nearly_dependent_costs_the_variance_no_digits(lengthscale: float) -> None:
    """Against features that are whitened before they are rotated; never below 0."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 2))
    basis, _ = Basis.empty(Gaussian(lengthscale), 2, FLOAT64).append(X[:120], np.arange(120))
    y = np.sin(2 * X[:, :1])
    sums = sums_of(X, y, basis, ConstantNoise())
    work = GaussianSystem(basis, sums, ConstantNoise()).solve(2.0, 0.05).predictions(basis, latent=True)
    expected = 2.0 * (1.0 - (basis.features(X) @ work.rotation) ** 2 @ work.shares)[:, 0]
    variance = work.moments(X)[1][:, 0]
    assert (variance >= 0.0).all()
    np.testing.assert_allclose(variance, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.diagonal(work.covariance(X[:50])[:, :, 0]), expected[:50], rtol=0, atol=1e-9)


def test_what_is_sent_to_a_worker_is_the_parameters_alone() -> None:
    work, c = predictor(std=True)
    before = len(pickle.dumps(work))
    written = work.map_block(RowBlock(0, c.queries, None))
    sent = pickle.loads(pickle.dumps(work))
    assert len(pickle.dumps(work)) == before
    for name, values in sent.map_block(RowBlock(0, c.queries, None)).items():
        assert values.tobytes() == written[name].tobytes()
    assert work.flops_per_row() > replace(work, std=False).flops_per_row()


@pytest.mark.parametrize("std", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_block_of_predictions_holds_what_it_promises(dtype: Any, std: bool) -> None:
    rng = np.random.default_rng(0)
    n, d = 300, 3
    basis = basis_of(rng.standard_normal((n, 10)), range(n), Gaussian(1.0))
    work = GaussianPredictions(
        basis, np.ones((n, d)), np.zeros(d), np.eye(n), np.full((n, d), 0.5), np.ones(d), np.ones(d), std=std
    )
    block = RowBlock(0, rng.standard_normal((5000, 10)).astype(dtype), None)
    with single_threaded_blas():
        work.map_block(RowBlock(0, block.X[:3], None))
        tracemalloc.start()
        try:
            work.map_block(block)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert 0.6 * work.scratch_bytes(5000) < peak <= work.scratch_bytes(5000) + 20_000
