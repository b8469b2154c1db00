"""Pool CSI: exact gains, classes as their indicators, and what it is at its ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import FLOAT64, cut_session, problem_of, select
from strategies import cuts, rows, seeds

from streamkernel.kernels import Gaussian
from streamkernel.selection import Problem, as_rule
from streamkernel.table import open_table


def data(m: int = 120) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 3))
    return X, np.stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2], axis=1) + 0.1 * rng.standard_normal((m, 2))


@given(
    X=rows(min_rows=8, max_rows=40, dtype=FLOAT64, duplicates=False),
    seed=seeds,
    kappa=st.sampled_from([0.3, 0.99, 1.0]),
    centre=st.booleans(),
    chunks=st.data(),
)
def test_gains_are_what_the_criterion_drops_by(
    X: Any, seed: int, kappa: float, centre: bool, chunks: st.DataObject
) -> None:
    kernel = Gaussian(0.3 * float(np.abs(X).max()))
    Y = np.random.default_rng(seed).standard_normal((len(X), 2))
    rule = as_rule("csi", kappa=kappa, centre=centre, candidates=3, picks=2)
    found, _ = select(rule, problem_of(X, Y, n=5, kernel=kernel, seed=seed), cut_session(chunks.draw(cuts(len(X))), 3))
    K, picks = naive.gaussian(X, X, kernel.lengthscale), found.basis.rows.tolist()
    bases = [picks[:t] for t in range(len(picks) + 1)]
    J = [naive.csi_objective(K, basis, Y, kappa=kappa, centred=centre) for basis in bases]
    np.testing.assert_allclose(found.gains, -np.diff(J), atol=1e-9)


def test_classes_are_their_indicators() -> None:
    X, Y = data()
    labels = np.where(Y[:, 0] > 0.5, "high", np.where(Y[:, 0] < -0.5, "low", "middle"))
    indicators = (labels[:, None] == np.unique(labels)).astype(float)
    centre, scale = indicators.mean(axis=0), np.ones(3)
    rule = as_rule("csi", candidates=6, picks=3)
    plain = Problem(open_table(X, indicators), Gaussian(1.0), 9, centre=centre, scale=scale)
    found, expected = (
        select(rule, problem)[0] for problem in (replace(plain, table=open_table(X, labels, classify=True)), plain)
    )
    np.testing.assert_array_equal(found.basis.rows, expected.basis.rows)
    np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-12)
    J = [
        naive.csi_objective(naive.gaussian(X, X), b, indicators, kappa=0.99, centred=True)
        for b in ([], found.basis.rows)
    ]
    np.testing.assert_allclose(found.gains.sum(), J[0] - J[1], atol=1e-10)


@pytest.mark.parametrize("centre", [False, True])
def test_without_a_share_of_the_targets_it_is_sgma(centre: bool) -> None:
    X, Y = data()
    csi, _ = select(as_rule("csi", kappa=0.0, centre=centre, candidates=5, picks=4), problem_of(X, Y, n=12))
    sgma, _ = select(as_rule("sgma", pool="shared", candidates=5, picks=4), problem_of(X, n=12))
    np.testing.assert_array_equal(csi.basis.rows, sgma.basis.rows)
    np.testing.assert_allclose(120 * csi.gains, sgma.gains, rtol=1e-9)


def test_targets_are_centred_and_scaled_by_the_problem() -> None:
    X, Y = data()
    rule = as_rule("csi", candidates=5, picks=4)
    plain = problem_of(X, Y, n=10)
    moved = replace(
        plain,
        table=open_table(X, Y * [1.0, 50.0] + [3.0, -7.0]),
        centre=np.array([3.0, -7.0]),
        scale=np.array([1.0, 50.0]),
    )
    found, expected = select(rule, moved)[0], select(rule, plain)[0]
    np.testing.assert_array_equal(found.basis.rows, expected.basis.rows)
    np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-9)


@pytest.mark.parametrize("value", [3.0, 1e6 / 3])
def test_constant_targets_leave_the_trace(value: float) -> None:
    """Centred they are rounding, which nothing must be divided by."""
    X, _ = data()
    rule = as_rule("csi", candidates=5, picks=4)
    constant, _ = select(rule, problem_of(X, np.full((120, 2), value), n=10))
    trace, _ = select(as_rule("csi", kappa=0.0, candidates=5, picks=4), problem_of(X, n=10))
    np.testing.assert_array_equal(constant.basis.rows, trace.basis.rows)


@pytest.mark.parametrize(("name", "options"), [("csi", {}), ("sgma", {"pool": "split"}), ("sgma", {"pool": "shared"})])
@pytest.mark.parametrize("n", [8, 13])
def test_the_plan_counts_a_last_round_that_is_smaller(name: str, options: Any, n: int) -> None:
    X, Y = data()
    rule, problem = as_rule(name, candidates=3, picks=4, **options), problem_of(X, Y, n=n)
    _, session = select(rule, problem)
    planned = sum(step.times for step in rule.steps(problem) if step.where == "sweep")
    assert len(session.records) == planned == 1 + -(-n // 4)
