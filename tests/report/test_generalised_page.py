"""Pages of classes and counts: their functions are of log odds and log rates, not in units of the targets."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from report.rendered import undrawn

from streamkernel import GaussianProcessClassifier, GaussianProcessPoissonRegressor, GaussianProcessRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (120, 2))
F = np.sin(2 * X[:, 0])
CLASSES = GaussianProcessClassifier, np.where(F + 0.3 * RNG.standard_normal(120) > 0, "yes", "no")
COUNTS = GaussianProcessPoissonRegressor, RNG.poisson(np.exp(1 + F)).astype(float)
VALUES = GaussianProcessRegressor, F + 0.1 * RNG.standard_normal(120)


def page(estimator: Any, y: Any, *drawn: str, **options: Any) -> str:
    return undrawn(estimator(20, **options).fit(X, y).model_, but=drawn)


@pytest.mark.parametrize(("estimator", "y"), [CLASSES, COUNTS])
def test_the_deviation_of_the_function_is_told(estimator: Any, y: Any) -> None:
    drawn = page(estimator, y, lengthscale=1.0, signal_variance=6.25)
    assert '<dt>Signal</dt><dd class="value">2.50</dd>' in drawn


@pytest.mark.parametrize("case", [CLASSES, COUNTS, VALUES])
def test_evidence_and_variances_have_one_unit_on_the_page(case: Any) -> None:
    drawn = page(*case, "tuning", "parameters", lengthscale=1.0)
    assert "Hyper-parameters on the way" in drawn
    for words in ("in units of their standard deviation", "in units of the targets"):
        assert words not in drawn
    assert set(re.findall("nats a row[a-z ]*", drawn)) == {"nats a row"}
