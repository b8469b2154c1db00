"""The formulas of AdaBoost: printed numbers, and what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from streamkernel.solvers.boosting import filtering_bound, mass_change, member_factor, training_bound


def test_the_card() -> None:
    """ALGORITHMS 6.4, 6.5: e = .3, and e = .2 of three machines."""
    a = member_factor(0.3, 2)
    assert a == pytest.approx(0.423649, abs=5e-7)
    assert mass_change(0.3, a) == pytest.approx(0.916515, abs=5e-7)
    assert 0.3 * np.exp(a) / mass_change(0.3, a) == pytest.approx(0.5, rel=1e-14)
    assert filtering_bound(0.2) == pytest.approx(0.104)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_wrong_rows_get_the_share_of_the_other_classes(classes: int) -> None:
    for e in (1e-6, 0.1, 0.4, 0.99 * (1.0 - 1.0 / classes)):
        a = member_factor(e, classes)
        assert a > 0.0
        assert e * np.exp(a) / mass_change(e, a) == pytest.approx(1.0 - 1.0 / classes, rel=1e-12)


def test_bound_of_two_classes() -> None:
    errors = np.array([0.3, 0.4, 0.1])
    factors = np.array([member_factor(e, 2) for e in errors])
    expected = np.cumprod(2.0 * np.sqrt(errors * (1.0 - errors)))
    np.testing.assert_allclose(training_bound(errors, factors), expected, rtol=1e-14)
