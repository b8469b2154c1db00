"""The active set method: its iterations are those of the dual as it is printed, and its end is Newton's."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from problems import basis_of, cut_session
from sklearn.svm import LinearSVC

from streamkernel.engine import Session
from streamkernel.errors import StreamKernelWarning
from streamkernel.reductions.margins import ActiveSetStep
from streamkernel.reductions.sums import Features
from streamkernel.solvers import MarginSolution, solve_active_set
from streamkernel.table import open_table

CARD = naive.card()
CLASS = (CARD.t > 0).astype(float)
RNG = np.random.default_rng(3)
X = RNG.standard_normal((500, 6))
SIGNS = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.7 * RNG.standard_normal(500) > 0.4).astype(float)


def solved(
    rows: Any,
    y: Any,
    C: float,
    *,
    features: Features | None = None,
    session: Session | None = None,
    weights: Any = None,
    **options: Any,
) -> MarginSolution:
    table, session = open_table(rows, y, weights=weights), session or Session()
    features = features or Features(None, rows.shape[1])
    options = {"tolerance": 0.0, **options}
    return solve_active_set(lambda step, name: session.sweep(step, table, name), features, C, **options)


def design(G: Any, y: Any) -> Any:
    return (2.0 * y - 1.0)[:, None] * np.column_stack([G, np.ones(len(G))])


def test_the_example_of_the_card() -> None:
    """ALGORITHMS 8.1: C = 2 on X; its constant has the other sign, and its last iteration needs no other sweep."""
    found = solved(CARD.X, CLASS, 2.0)
    np.testing.assert_allclose(found.coefficients, [1.32562, 1.36352, -0.685143], atol=5e-6)
    assert found.primal == pytest.approx(8.25794, abs=5e-6)
    assert found.dual == pytest.approx(found.primal, rel=1e-13)
    u, sets = naive.active_sets(design(CARD.X, CLASS), 4.0)
    assert (len(sets), int((u > 0).sum())) == (6, 7)
    assert len(found.iterations) == 1 + len(sets)  # the first sweep has all rows, and no point of its own


@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 30.0])
def test_iterations_are_those_of_the_dual(C: float) -> None:
    steps: list[ActiveSetStep] = []
    table, session = open_table(X, SIGNS), Session()

    def sweep(step: ActiveSetStep, name: str) -> Any:
        steps.append(step)
        return session.sweep(step, table, name)

    found = solve_active_set(sweep, Features(None, 6), C, tolerance=0.0)
    H = design(X, SIGNS)
    u, sets = naive.active_sets(H, 2 * C)
    assert found.converged
    np.testing.assert_allclose(found.coefficients, H.T @ u, rtol=1e-9, atol=1e-12)
    assert len(steps) == 1 + len(sets)
    for step, B in zip(steps[1:], sets, strict=True):
        np.testing.assert_array_equal((H @ step.points[:-1].T < 1.0).all(axis=1), B)


def test_the_end_is_the_minimum_on_kernel_features() -> None:
    basis = basis_of(X, list(range(40)))
    found = solved(X, SIGNS, 3.0, features=Features.of_basis(basis))
    H = design(basis.features(X), SIGNS)
    b = found.coefficients
    gradient = b - 6.0 * H.T @ np.maximum(1.0 - H @ b, 0.0)
    assert np.abs(gradient).max() < 1e-10
    assert found.primal == pytest.approx(naive.squared_hinge(H, 6.0, b), rel=1e-12)
    assert found.dual == pytest.approx(found.primal, rel=1e-12)
    assert len(found.iterations) <= 10


def test_the_answer_of_liblinear() -> None:
    theirs = LinearSVC(C=0.7, loss="squared_hinge", dual=True, tol=1e-10, max_iter=100_000).fit(X, SIGNS)
    found = solved(X, SIGNS, 0.7)
    np.testing.assert_allclose(found.coefficients[:-1], theirs.coef_[0], rtol=1e-5)
    assert found.coefficients[-1] == pytest.approx(theirs.intercept_[0], rel=1e-5)


def test_without_a_constant() -> None:
    found = solved(X, SIGNS, 0.7, intercept=False)
    H = design(X, SIGNS)[:, :-1]
    assert found.coefficients[-1] == 0.0
    b = found.coefficients[:-1]
    np.testing.assert_allclose(b, 1.4 * H.T @ np.maximum(1.0 - H @ b, 0.0), rtol=1e-9)


def test_chunks_and_workers_do_not_matter() -> None:
    cuts = (200, 1, 150, 149)
    one = solved(X, SIGNS, 5.0, session=cut_session(cuts, 64, 1))
    two = solved(X, SIGNS, 5.0, session=cut_session(cuts, 64, 2))
    np.testing.assert_array_equal(one.coefficients, two.coefficients)
    assert one.iterations == two.iterations
    np.testing.assert_allclose(solved(X, SIGNS, 5.0).coefficients, one.coefficients, rtol=1e-9)


def test_integer_weights_are_repeated_rows() -> None:
    w = np.arange(500) % 4
    some = np.repeat(np.arange(500), w)
    weighted = solved(X, SIGNS, 0.7, weights=w.astype(float))
    repeated = solved(X[some], SIGNS[some], 0.7)
    np.testing.assert_allclose(weighted.coefficients, repeated.coefficients, rtol=1e-9)
    assert weighted.primal == pytest.approx(repeated.primal, rel=1e-11)


def test_a_start_near_the_solution_saves_sweeps() -> None:
    first = solved(X, SIGNS, 0.7)
    warm = solved(X, SIGNS, 0.75, start=first.coefficients)
    assert len(warm.iterations) < len(solved(X, SIGNS, 0.75).iterations)


@pytest.mark.parametrize("seed", [47, 363])
def test_circles_are_left(seed: int) -> None:
    """Without a safeguard the method goes round in a circle on these rows, whose labels no feature tells."""
    rng = np.random.default_rng(seed)
    m, p = int(rng.integers(15, 60)), int(rng.integers(2, 7))
    rows = 10 ** rng.uniform(-1, 1) * rng.standard_normal((m, p))
    y, C = (rng.random(m) < 0.5).astype(float), 10 ** rng.uniform(1.5, 3.5)
    H = design(rows, y)
    with pytest.raises(AssertionError, match="circle"):
        naive.active_sets(H, 2 * C)
    found = solved(rows, y, C)
    assert found.converged
    b = found.coefficients
    gradient = b - 2 * C * H.T @ np.maximum(1.0 - H @ b, 0.0)
    assert 0.5 * gradient @ gradient <= 1e-12 * found.primal


def test_equal_rows_and_one_class() -> None:
    for rows in (np.ones((50, 3)), np.zeros((50, 3)), X[:50]):
        for y in (SIGNS[:50], np.ones(50), np.zeros(50)):
            found = solved(rows, y, 10.0)
            assert found.converged
            assert found.relative_gap < 1e-9


def test_too_few_sweeps_are_told() -> None:
    with pytest.warns(StreamKernelWarning, match="active set method made 2 sweeps"):
        found = solved(X, SIGNS, 100.0, most_sweeps=2)
    assert not found.converged
    assert found.dual <= found.primal
