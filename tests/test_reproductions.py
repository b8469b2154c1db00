"""The pure parts of `scripts/reproductions`: fits by folds, fits along a path, ranks read off a curve."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

Float = NDArray[np.float64]


def private(name: str) -> ModuleType:
    path = Path(__file__).resolve().parents[1] / "scripts" / "reproductions" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


least_squares = private("_least_squares")


def rows(m: int, d: int) -> tuple[Float, Float]:
    generator = np.random.default_rng(3)
    X = generator.standard_normal((m, 3))
    return X, 5.0 + np.sin(X[:, :1] + np.arange(d)) + 0.1 * generator.standard_normal((m, d))


def gaussian(X: Float, Z: Float) -> Float:
    return np.asarray(np.exp(-0.5 * ((X[:, None] - Z[None]) ** 2).sum(axis=2)))


def fitted(features: Float, penalty: Float, Y: Float) -> tuple[Float, Float]:
    """Coefficients and intercept of ``|Y - F a - 1 b'|^2 + tr(a' P a)`` by its normal equations."""
    F = np.column_stack([features, np.ones(len(features))])
    P = np.zeros((F.shape[1], F.shape[1]))
    P[:-1, :-1] = penalty
    solution = np.linalg.solve(F.T @ F + P, F.T @ Y)
    return solution[:-1], solution[-1]


@pytest.mark.parametrize("d", [1, 3])
def test_held_out_residuals_are_those_of_fits_without_the_fold(d: int) -> None:
    X, Y = rows(61, d)
    K, rho = gaussian(X, X), 0.2
    folds = least_squares.folds_of(61, 4)
    found = least_squares.held_out_residuals(K, Y, rho, folds)
    for fold, residual in zip(folds, found, strict=True):
        fit = np.setdiff1d(np.arange(61), np.arange(61)[fold])
        inner = K[np.ix_(fit, fit)]
        a, b = fitted(inner, rho * inner, Y[fit])
        np.testing.assert_allclose(residual, Y[fold] - K[fold][:, fit] @ a - b, rtol=0, atol=1e-9)


def test_folds_are_every_row_once() -> None:
    folds = least_squares.folds_of(23, 5)
    np.testing.assert_array_equal(np.concatenate([np.arange(23)[fold] for fold in folds]), np.arange(23))
    assert {fold.stop - fold.start for fold in folds} == {4, 5}


def test_singular_matrix_has_no_residuals() -> None:
    K = np.ones((6, 6))
    assert least_squares.held_out_residuals(K, np.ones((6, 1)), 0.0, least_squares.folds_of(6, 2)) is None


@pytest.mark.parametrize("d", [1, 3])
def test_leading_scores_are_those_of_separate_fits(d: int) -> None:
    Y = rows(80, d)[1]
    G, rho = np.random.default_rng(0).standard_normal((80, 9)) + 1.0, 0.7
    seen: list[Float] = []

    def score(predicted: Float, truth: Float) -> float:
        seen.append(predicted.copy())
        return float(least_squares.squared(predicted, truth))

    scores = least_squares.leading_scores(G[:60], Y[:60], G[60:], Y[60:], rho, score)
    for t in range(1, 10):
        a, b = fitted(G[:60, :t], rho * np.eye(t), Y[:60])
        np.testing.assert_allclose(seen[t - 1], G[60:, :t] @ a + b, rtol=0, atol=1e-9)
        assert scores[t - 1] == pytest.approx(np.mean((seen[t - 1] - Y[60:]) ** 2), rel=1e-12)


def test_share_of_wrong_classes() -> None:
    signs = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    assert least_squares.misclassified(np.array([[0.1], [-3.0], [-0.1], [0.2]]), signs) == 0.5
    indicators = np.eye(3)
    assert least_squares.misclassified(np.array([[0.9, 0.8, 0.0], [0.5, 0.1, 0.2], [0, 0, 1]]), indicators) == 1 / 3


@pytest.mark.parametrize(
    ("means", "limit", "rank"),
    [
        ([0.9, 0.5, 0.3, 0.2], 0.3, 3),
        ([0.9, 0.25, 0.6, 0.2], 0.3, 2),
        ([0.2], 0.3, 1),
        ([0.9, 0.5], 0.3, None),
        ([], 0.3, None),
    ],
)
def test_minimal_rank_is_the_first_within_the_limit(means: list[float], limit: float, rank: int | None) -> None:
    assert least_squares.minimal_rank(np.asarray(means), limit) == rank
