"""Held-out errors from sums, against fits without the rows of each fold."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import naive
import numpy as np
import pytest
from problems import basis_of, blocks

from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import FoldSums, NormalEquations
from streamkernel.solvers import FoldSystem, standard_error
from streamkernel.solvers.least_squares.validation import search


def fold_sums(
    X: Any, Y: Any, basis: Basis, of: Any, *, weights: Any = None, centre: Any = None, leading: int | None = None
) -> FoldSums:
    """Sums of folds that are given row by row: -1 for rows that are only trained on."""
    work = NormalEquations(basis, np.zeros(Y.shape[1]) if centre is None else centre, leading)

    def sums(rows: Any) -> Any:
        w = None if weights is None else weights[rows]
        return work.finalize(work.map_block(next(blocks(X[rows], Y[rows], [int(rows.sum())], w))))

    counts = [int((of == fold).sum()) for fold in range(of.max() + 1)]
    return FoldSums(sums(of >= -1), tuple(sums(of == fold) for fold in range(len(counts))), np.array(counts, float))


def case(seed: int = 0, m: int = 200, d: int = 2) -> tuple[Any, Any, Basis, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    Y = 5 + np.sin(X @ rng.standard_normal((3, d))) + 0.3 * rng.standard_normal((m, d))
    basis = basis_of(X, rng.choice(m, 16, replace=False), Gaussian(1.5))
    return X, Y, basis, naive.gaussian(X, basis.points, 1.5), np.maximum(rng.integers(-3, 3, m), -1)


@pytest.mark.parametrize("leading", [0, 3, None])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("size", [16, 5])
def test_errors_are_those_of_fits_without_the_fold(
    size: int, intercept: bool, weighted: bool, leading: int | None
) -> None:
    X, Y, basis, K, of = case()
    w = np.random.default_rng(1).uniform(0.2, 3.0, len(X)) if weighted else np.ones(len(X))
    centre, scale = np.array([4.0, -3.0]), np.array([0.5, 2.0])
    sums = fold_sums(X, Y, basis, of, weights=w, centre=centre, leading=leading)
    system = FoldSystem(sums, intercept=intercept, scale=scale)
    found = system.solve(0.3, size)
    assert found is not None
    total = 0.0
    for fold, solution in enumerate(found):
        out, rest = of == fold, of != fold
        W = basis.gram()[:size, :size]
        expected = naive.reduced_ridge(K[rest][:, :size], W, Y[rest], 0.3, intercept=intercept, weights=w[rest])
        residual = Y[out] - K[out][:, :size] @ expected.alpha - expected.intercept
        np.testing.assert_allclose(solution.squares, w[out] @ residual**2, rtol=1e-6)
        np.testing.assert_allclose(solution.intercept, expected.intercept, rtol=1e-6, atol=1e-8)
        part = basis.take(np.arange(size))
        np.testing.assert_allclose(part.coefficients(solution.beta), expected.alpha, rtol=1e-5, atol=1e-6)
        total += float((w[out] @ residual**2 / scale).sum())
    assert system.error(0.3, size) == pytest.approx(total / w[of >= 0].sum(), rel=1e-6)


def test_the_choice_is_the_least_of_a_fine_grid() -> None:
    X, Y, basis, _, of = case(m=600)
    system = FoldSystem(fold_sums(X, Y, basis, of))
    grid = np.geomspace(1e-8, 1e4, 400)
    errors = [system.error(float(alpha)) for alpha in grid]
    for start in (1e-7, grid[int(np.argmin(errors))], 1e3):
        found = system.choose(float(start), 1e-8, 1e4)
        assert found.error <= min(errors) * 1.001
        assert found.error == pytest.approx(system.error(found.alpha), rel=1e-12)
        assert found.error == pytest.approx(found.mse.sum(), rel=1e-12)
        # The curve is that of all functions; the start is a point of it.
        assert start in found.alphas
        assert (np.diff(found.alphas) > 0).all()
        np.testing.assert_allclose(found.errors, [system.error(float(alpha)) for alpha in found.alphas])
        assert found.sizes.tolist() == [2, 4, 8, 16]
        assert found.size_errors[-1] == found.error
        for size, alpha, error in zip(found.sizes, found.size_alphas, found.size_errors, strict=True):
            assert error == pytest.approx(system.error(float(alpha), int(size)))
            assert error <= min(system.error(float(each), int(size)) for each in grid[::20]) * 1.001


@pytest.mark.parametrize("least", [-40.0, -7.3, 0.2, 3.0, 40.0])
@pytest.mark.parametrize("start", [1e-9, 1.0, 1e9])
def test_a_search_finds_the_least_score_or_an_end(start: float, least: float) -> None:
    tried = search(lambda alpha: (math.log10(alpha) - least) ** 2, start, 1e-10, 1e10)
    best = min(tried, key=lambda alpha: tried[alpha])
    assert math.log10(best) == pytest.approx(np.clip(least, -10, 10), abs=1e-6)
    assert start in tried


def test_a_search_leaves_alphas_that_are_lost_and_prefers_the_larger_of_equals() -> None:
    tried = search(lambda alpha: math.inf if alpha < 1e-3 else 1.0 + alpha, 1e-9, 1e-10, 1e3)
    assert 1e-3 <= min(tried, key=lambda alpha: tried[alpha]) < 4e-3
    X, Y, basis, _, of = case()
    flat = FoldSystem(fold_sums(X, np.full_like(Y, 3.0), basis, of))
    assert flat.choose(1e-3, 1e-6, 1e3).error < 1e-11


def test_a_target_without_noise_has_an_error_of_rounding_and_no_less() -> None:
    X, Y, basis, K, of = case()
    Y = 1e3 * K @ np.ones((16, 2))
    found = FoldSystem(fold_sums(X, Y, basis, of), intercept=False).choose(1.0, 1e-12, 1e3)
    assert 0.0 < found.error < 1e-6 * Y.var()


def test_repeated_rows_are_told_from_independent_ones() -> None:
    """Of 400 rows that occur 20 times each GCV sees 8,000, and takes an alpha that fits their noise (ALGORITHMS 20)."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    Y = np.sin(2 * X[:, :1]) + 0.5 * rng.standard_normal((400, 1))
    of, times = rng.integers(0, 8, 400), np.repeat(np.arange(400), 20)
    of[of > 1] = -1
    basis = basis_of(X, range(60), Gaussian(0.5))
    once = FoldSystem(fold_sums(X, Y, basis, of)).choose(1.0, 1e-6, 1e4)
    many = FoldSystem(fold_sums(X[times], Y[times], basis, of[times])).choose(20.0, 2e-5, 2e5)
    assert many.alpha == pytest.approx(20 * once.alpha, rel=0.05)
    assert many.error == pytest.approx(once.error, rel=1e-4)


def test_folds_without_rows_or_with_all_of_them_are_left_out() -> None:
    X, Y, basis, _, _ = case()
    sums = fold_sums(X, Y, basis, np.where(np.arange(200) % 4 == 0, 0, -1))
    empty = replace(sums.folds[0], count=0, weight=0.0)
    both = FoldSystem(replace(sums, folds=(empty, sums.folds[0]), effective=np.array([0.0, 50.0])))
    assert both.lacking == ""
    assert both.choose(1.0, 1e-6, 1e3).folds == (1,)
    everything = FoldSystem(replace(sums, folds=(sums.total, empty), effective=np.array([200.0, 0.0])))
    assert "0 distinct rows" in everything.lacking
    few = FoldSystem(replace(sums, effective=np.array([3.0])))
    assert "3 distinct rows" in few.lacking


def test_of_classes_two_must_be_left_to_train_on() -> None:
    X, _, basis, _, _ = case()
    of = np.where(np.arange(200) < 100, 0, -1)
    one_left = np.eye(2)[of + 1]
    assert FoldSystem(fold_sums(X, one_left, basis, of, centre=np.full(2, 0.5)), classes=True).lacking
    rare = np.eye(3)[np.where(np.arange(200) == 0, 2, np.arange(200) % 2)]
    # A class that only the fold has is an error of any fit to the others, and is counted.
    assert not FoldSystem(fold_sums(X, rare, basis, of), classes=True).lacking


def test_standard_errors_count_copies_once() -> None:
    rng = np.random.default_rng(0)
    values, keys = rng.standard_normal((900, 2)) ** 2, np.arange(900)
    mean, error, effective = standard_error(values, np.ones(900), keys)
    np.testing.assert_allclose(mean, values.mean(axis=0))
    np.testing.assert_allclose(error, values.std(axis=0, ddof=1) / 30.0)
    assert effective == pytest.approx(900)
    times = np.repeat(keys, 7)
    for found in (
        standard_error(values[times], np.ones(6300), times),
        standard_error(values, np.full(900, 7.0), keys),
    ):
        for one, other in zip(found, (mean, error, effective), strict=True):
            np.testing.assert_allclose(one, other)
    assert np.isnan(standard_error(values[:0], np.ones(0), keys[:0])[1]).all()
