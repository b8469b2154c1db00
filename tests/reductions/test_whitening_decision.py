"""Whether blocks are whitened before they are summed: by the rounding that whitening the sum would lift."""

from __future__ import annotations

import numpy as np
import pytest

from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian
from streamkernel.reductions import FeatureGram, Features, NormalEquations

EPS = float(np.finfo(np.float64).eps)
N, ROWS = 144, 10_000


@pytest.fixture(scope="module")
def basis() -> Basis:
    """Points that have nothing to do with each other, but for two that are near."""
    X = 50.0 * np.arange(N, dtype=np.float64)[:, None]
    X[-1] = X[-2] + 0.01
    return Basis(Gaussian(1.0), X, np.arange(N))


@pytest.mark.parametrize(("times", "whitened"), [(0.5, True), (11.0, True), (13.0, False)])
def test_rounding_of_a_sum_of_squares_grows_with_the_root_of_n(basis: Basis, times: float, whitened: bool) -> None:
    """``eps m sqrt(n) / pivot``, with sqrt(n) = 12 here, against the alpha that was asked for or the share of m."""
    assert basis.least_pivot == pytest.approx(1e-4, rel=0.01)
    unit = EPS / basis.least_pivot
    assert NormalEquations.of(basis, np.zeros(1), ROWS, times * ROWS * unit).whiten_first == whitened
    assert FeatureGram.within(Features.of_basis(basis), times * unit).whiten_first == whitened
    # Of a chosen alpha no more is known than that rounding must not be noticed; many rows bring it.
    assert not NormalEquations.of(basis, np.zeros(1), ROWS).whiten_first
    assert NormalEquations.of(basis, np.zeros(1), 10**9).whiten_first
