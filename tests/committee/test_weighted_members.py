"""Committees of rows with weights are those of repeated rows, where copies belong to the same member."""

from __future__ import annotations

import numpy as np
import pytest
from problems import basis_of
from weighted_rows import assert_same, weighted_rows

from streamkernel.committee import committee_predict, fit_generalised_committee
from streamkernel.kernels import Gaussian

QUERIES = np.random.default_rng(1).standard_normal((25, 3))


@pytest.mark.parametrize("combiner", ["poe", "gpoe", "bcm", "rbcm"])
def test_predictions_of_members(combiner: str) -> None:
    rows = weighted_rows()
    found = [
        committee_predict(table, Gaussian(1.2), 1.5, 0.1, QUERIES, combiner=combiner, block_size=1000, partition="rows")
        for table in rows.both
    ]
    assert_same(found[0].mean, found[1].mean, "mean", 1e-9)
    assert_same(found[0].variance, found[1].variance, "variance", 1e-9)


@pytest.mark.parametrize(("targets", "likelihood"), [("classes", "bernoulli"), ("counts", "poisson")])
def test_generalised_members(targets: str, likelihood: str) -> None:
    """With the prior mean of the constant that fits best, which counts weights too."""
    rows = weighted_rows(targets)
    kernel = Gaussian(1.2)
    basis = basis_of(rows.X, rows.numbers[:12], kernel)
    found = [fit_generalised_committee(table, basis, likelihood, 1.5) for table in rows.both]
    one, other = (committee.latents[0] for committee in found)
    assert_same(one.coefficients, other.coefficients, "coefficients", 1e-7)
    assert_same(one.intercept, other.intercept, "constants", 1e-10)
