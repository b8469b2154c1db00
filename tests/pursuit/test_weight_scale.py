"""A pursuit does not depend on the size of the weights: distinct rows decide whether some are held out."""

from __future__ import annotations

import numpy as np
import pytest

from streamkernel import KernelMatchingPursuit, KernelMatchingPursuitClassifier

RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((300, 3)), RNG.random(300) + 0.5
Y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(300)


@pytest.mark.parametrize("scale", [1e-29, 1e-3, 1e6, 1e29])
def test_picks_and_validation_stay(scale: float) -> None:
    for make, y in ((KernelMatchingPursuit, Y), (KernelMatchingPursuitClassifier, Y > 0.5)):
        one, other = make(8).fit(X, y, sample_weight=W), make(8).fit(X, y, sample_weight=scale * W)
        np.testing.assert_array_equal(one.active_set_, other.active_set_)
        assert one.model_.record.settings.validation == other.model_.record.settings.validation is not None


def test_few_rows_of_large_weights_are_few_rows() -> None:
    found = KernelMatchingPursuit(4).fit(X[:12], Y[:12], sample_weight=100.0 * W[:12])
    assert found.model_.record.settings.validation is None
