"""The noise variance is not below what rounding leaves of targets that the functions explain."""

from __future__ import annotations

import numpy as np

from streamkernel.solvers.evidence_curve import EvidenceCurve


def test_targets_that_are_explained_have_the_least_noise() -> None:
    values, squares = np.array([1.0, 5.0, 30.0]), np.array([2.0, 7.0, 11.0])
    # As if rounding had taken more than there was: what is left is below 0.
    square = float((squares / values).sum()) * (1.0 - 1e-12)
    curve = EvidenceCurve(values, squares, square, 100, 0.0, least_noise=1e-9)
    alphas = np.geomspace(1e-16, 1e-13, 7)
    np.testing.assert_array_equal(curve.noise_at(alphas), 1e-9)
    assert np.isfinite(curve.score(alphas)).all()
    assert curve.noise_at(np.array([1.0]))[0] > 1e-3
