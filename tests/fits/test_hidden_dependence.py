"""Functions in the order of a rule with targets may be dependent together, without a small pivot: some are left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from slow_cases import slow_but

from streamkernel import KernelRidge


def exact_residual_trace(X: Any, Z: Any) -> float:
    """Mean of k(x, x) - |L^-1 k(Z, x)|^2 of a Gaussian kernel of lengthscale 1, in extended precision."""
    X, Z = X.astype(np.longdouble), Z.astype(np.longdouble)
    K = np.exp(-((np.concatenate([Z, X])[:, None] - Z) ** 2).sum(axis=2) / 2)
    for j in range(len(Z)):
        K[j:, j] -= K[j:, :j] @ K[j, :j]
        K[j:, j] /= np.sqrt(K[j, j])
    return float(1 - (K[len(Z) :] ** 2).sum() / len(X))


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="there is no longer number than float64 here")
@pytest.mark.filterwarnings("ignore:only .* basis functions")
@pytest.mark.parametrize("seed", slow_but([3, 10], [3, 10, 13, 14]))
def test_the_certificate_is_exact_with_few_distinct_values(seed: int) -> None:
    """It was 0 for half a percent where pivots of 1e-9 and more were right in no digit."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-0.5, 0.5, 1000), rng.integers(0, 3, 1000), rng.integers(0, 4, 1000)])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = rng.uniform(-0.5, 0.5, 1000)
    model = KernelRidge(150, lengthscale=1.0, alpha=1.0, random_state=seed, scale="none").fit(X, y)
    assert 40 < len(model.components_) < 150
    assert model.relative_residual_trace_ == pytest.approx(exact_residual_trace(X, model.components_), abs=2e-5)
