"""Stored points follow the basis where a fit cuts it, or joins points to it, after the selection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import BayesianCommitteeMachine, KernelPCA, factorize
from streamkernel.factors import Factor

pytestmark = [
    pytest.mark.filterwarnings("ignore:the committee has"),  # few query points
    pytest.mark.filterwarnings("ignore:only .* basis functions are linearly independent"),  # of two columns
]

X = np.random.default_rng(0).normal(size=(600, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
T = np.eye(3)[:, :2]


@pytest.mark.parametrize("options", [{"scale": "robust"}, {"scale": "rank"}, {"metric": T}])
def test_of_a_factor_that_stops_at_its_bound(options: dict[str, Any], tmp_path: Path) -> None:
    factor = factorize(X, tmp_path / "factor", n_components=100, stop="bound", lengthscale=5.0, **options)
    again = Factor.load(tmp_path / "factor")
    assert len(factor.basis) < 100
    np.testing.assert_allclose(again.points, X[factor.component_indices], rtol=1e-12)


@pytest.mark.parametrize("options", [pytest.param({"scale": "robust"}, marks=pytest.mark.slow), {"metric": T}])
def test_of_a_committee_with_queries(options: dict[str, Any], tmp_path: Path) -> None:
    made = BayesianCommitteeMachine(100, queries=X[:7] + 0.01, block_size=200, tune="none", **options)
    made.fit(X, Y)
    made.save(tmp_path / "model")
    again = BayesianCommitteeMachine.load(tmp_path / "model")
    assert again.components_.shape == (len(made.component_indices_), 3)
    rows = np.flatnonzero(made.component_indices_ >= 0)
    np.testing.assert_allclose(again.components_[rows], X[made.component_indices_[rows]], rtol=1e-12)
    np.testing.assert_array_equal(again.predict(X[:9]), made.predict(X[:9]))


def test_of_a_sparse_kernel_pca(tmp_path: Path) -> None:
    made = KernelPCA(2, basis_size=60, sparse="bound", metric=T).fit(X)
    made.save(tmp_path / "pca")
    assert len(made.components_) < 60
    np.testing.assert_allclose(made.components_, X[made.component_indices_], rtol=1e-12)
