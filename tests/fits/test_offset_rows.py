"""Rows far from 0: what a kernel sees are differences, and a constant in every column says nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelCCA,
    KernelMatchingPursuit,
    KernelMatchingPursuitClassifier,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
)
from streamkernel.errors import DegenerateBandwidthError

Float = NDArray[np.float64]

rng = np.random.default_rng(0)
# Multiples of 2^-10, of which an offset below 2^42 loses none.
X = np.round(1024.0 * rng.standard_normal((150, 2))) / 1024.0
y = np.round(1024.0 * (np.sin(X[:, 0]) + 0.1 * rng.standard_normal(150))) / 1024.0
labels = (y > 0.0).astype(int)
counts = rng.poisson(np.exp(y)).astype(float)
views = np.column_stack([y, np.round(1024.0 * rng.standard_normal(150)) / 1024.0])

OFFSET = 1e10

pytestmark = [
    pytest.mark.usefixtures("few_points"),
    pytest.mark.filterwarnings("ignore:only .* basis functions"),
]

MODELS: dict[str, tuple[Any, Any]] = {
    "ridge": (KernelRidge(40), y),
    "ridge, lengthscale by GCV": (KernelRidge(40, lengthscale="auto"), y),
    "ridge of classes": (KernelRidgeClassifier(40), labels),
    "gp": (GaussianProcessRegressor(40), y),
    "committee": (BayesianCommitteeMachine(40, block_size=50), y),
    "gp classifier": (GaussianProcessClassifier(40, tune="none", signal_variance=4.0), labels),
    "poisson": (GaussianProcessPoissonRegressor(40, tune="none", signal_variance=1.0), counts),
    "pursuit": (KernelMatchingPursuit(20), y),
    "pursuit of classes": (KernelMatchingPursuitClassifier(20), labels),
    "pca": (KernelPCA(2, basis_size=40), None),
    "sparse pca": (KernelPCA(2, sparse=40), None),
    "nystroem": (Nystroem(40), None),
    "cca": (KernelCCA(1, basis_size=40), views),
}


def _error(model: Any, rows: Float, targets: Any) -> float:
    """Of the fit; of models without targets, a number that tells how good they are."""
    if hasattr(model, "correlations_"):
        return float(model.correlations_[0])
    if targets is None:
        return float(model.residual_trace_)
    return float(np.sqrt(np.mean((model.predict(rows) - targets) ** 2)))


# A scaler is the same for all models of one view, and each of two views has its own.
@pytest.mark.parametrize(
    ("name", "scale"), [*((name, "none") for name in MODELS), ("ridge", "standard"), ("cca", "standard")]
)
def test_columns_far_from_0(name: str, scale: str) -> None:
    model, targets = MODELS[name]
    model.set_params(scale=scale)
    plain = _error(model.fit(X, targets), X, targets)
    # The rows that a pursuit holds out are told by a hash of their features, and are others here.
    most = 0.2 if "pursuit" in name else 0.1
    assert _error(model.fit(X + OFFSET, targets), X + OFFSET, targets) == pytest.approx(plain, rel=most, abs=2e-3)


@pytest.mark.parametrize("pool", ["shared", "all"])
def test_a_second_view_far_from_0(pool: str) -> None:
    model = KernelCCA(1, basis_size=40, pool=pool, scale="none")
    plain = model.fit(X, views).correlations_
    np.testing.assert_allclose(model.fit(X, views + OFFSET).correlations_, plain, atol=1e-3)


def test_what_rounding_has_made_equal() -> None:
    """There the reason is right: no digit of a row is left."""
    with pytest.raises(DegenerateBandwidthError, match="the second view: all 150 sampled rows are equal"):
        KernelCCA(1, basis_size=40, scale="none").fit(X, views + 1e18)


def test_columns_whose_digits_are_few_are_not_constant() -> None:
    """At 1e14 a column of spread 1 has six binary digits left, which no warning takes for none."""
    assert KernelRidge(40).fit(X + 1e14, y).score(X + 1e14, y) > 0.95


def test_offsets_make_no_copies() -> None:
    """Of targets and features that only their first digits have in common nobody is a copy."""
    spread = np.random.default_rng(1).uniform(0.0, 1.0, (20_000, 1))
    targets = np.sin(6.0 * spread[:, 0]) + 0.3 * np.random.default_rng(2).standard_normal(20_000)
    model = KernelRidge(20, lengthscale=0.2, scale="none")
    plain = model.fit(spread, targets)
    assert plain.model_.config.get("independent", 1.0) == 1.0
    far = model.fit(spread + 1e5, targets + 1e4)
    assert far.model_.config.get("independent", 1.0) == 1.0


def test_copies_far_from_0_are_known() -> None:
    of = np.random.default_rng(3).permutation(np.repeat(np.arange(150), 10))
    with pytest.warns(UserWarning, match="about 150 of 1500 rows are distinct"):
        KernelRidge(20, scale="none").fit(X[of] + OFFSET, y[of] + OFFSET)
