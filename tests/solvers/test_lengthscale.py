"""The lengthscale: the median distance of a sample, or the best of a grid around it."""

from __future__ import annotations

from typing import Any

import data_sets
import numpy as np
import pytest
from scipy.spatial.distance import pdist

from streamkernel.errors import DegenerateBandwidthError
from streamkernel.kernels import Gaussian, Laplacian, Matern
from streamkernel.reductions import Sample
from streamkernel.solvers import choose_lengthscale, median_lengthscale


def sample_of(X: Any, Y: Any) -> Sample:
    return Sample(np.arange(len(X)), X, Y, np.ones(len(X)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_median_distance_in_the_kernels_metric(dtype: Any) -> None:
    X = np.random.default_rng(0).standard_normal((300, 4)).astype(dtype)
    exact = X.astype(np.float64)
    assert median_lengthscale(X, Gaussian(1.0)) == pytest.approx(np.median(pdist(exact)))
    assert median_lengthscale(X, Matern(2.5)) == pytest.approx(np.median(pdist(exact)))
    assert median_lengthscale(X, Laplacian(1.0)) == pytest.approx(np.median(pdist(exact, "cityblock")))


def test_a_thousand_rows_are_enough() -> None:
    X = np.random.default_rng(0).standard_normal((3000, 2))
    assert median_lengthscale(X, Gaussian(1.0)) == median_lengthscale(X[:1000], Gaussian(1.0))


@pytest.mark.parametrize(("rows", "words"), [(1, "1 sampled row has no"), (50, "all 50 sampled rows are equal")])
def test_equal_rows_have_no_median_distance(rows: int, words: str) -> None:
    with pytest.raises(DegenerateBandwidthError, match=f"{words}.*give a lengthscale"):
        median_lengthscale(np.ones((rows, 3)), Gaussian(1.0))


@pytest.mark.parametrize("off", [0.0, 1e-9])
def test_rows_that_repeat_are_one(off: float) -> None:
    """However often a row stands, and though its copies differ in the last digits."""
    X = np.ones((40, 2))
    X[:4] = [[4.0, 5.0]]
    X *= 1.0 + off * np.random.default_rng(0).standard_normal(X.shape)
    assert median_lengthscale(X, Gaussian(1.0)) == pytest.approx(5.0)


def test_without_a_search_the_median_is_taken() -> None:
    X = np.random.default_rng(0).standard_normal((100, 2))
    found = choose_lengthscale(sample_of(X, X[:, :1]), Gaussian(1.0), search=False, intercept=True, scale=np.ones(1))
    assert found.value == found.median == median_lengthscale(X, Gaussian(1.0))
    assert found.grid == found.scores == ()
    assert found.to_config()["sample_rows"] == 100


@pytest.mark.parametrize(("frequency", "longer"), [(0.15, True), (6.0, False)])
def test_the_search_follows_the_targets(frequency: float, longer: bool) -> None:
    """A slow target wants a long lengthscale, a fast one a short one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (1500, 2))
    Y = np.sin(frequency * X[:, :1] * 2) + 1e-4 * rng.standard_normal((1500, 1))
    found = choose_lengthscale(sample_of(X, Y), Gaussian(1.0), search=True, intercept=True, scale=Y.std(axis=0))
    assert (found.value > found.median) == longer
    assert len(found.grid) == len(found.scores) >= 9
    away = {value: abs(np.log(value / found.median)) for value in found.grid}
    equal = [v for v, score in zip(found.grid, found.scores, strict=True) if score <= 1.01 * min(found.scores)]
    assert found.value == min(equal, key=away.__getitem__)
    assert found.grid[0] == pytest.approx(found.median / 8)
    assert found.grid[-1] == pytest.approx(16 * found.median)
    assert found.sample_rows == 1500


def test_the_search_improves_on_the_median() -> None:
    data = data_sets.friedman(3000, 5)
    found = choose_lengthscale(
        sample_of(data.X, data.y[:, None]), Gaussian(1.0), search=True, intercept=True, scale=np.array([data.y.std()])
    )
    at_median = found.scores[int(np.argmin(abs(np.array(found.grid) - found.median)))]
    assert min(found.scores) <= at_median


# A slope of the scores for each noise and number of features, and a kernel of each smoothness.
@pytest.mark.parametrize(
    ("features", "noise", "kernel"),
    [
        (5, 1.0, Gaussian(1.0)),
        pytest.param(10, 1.0, Gaussian(1.0), marks=pytest.mark.slow),
        (10, 0.1, Gaussian(1.0)),
        pytest.param(10, 0.1, Matern(1.5), marks=pytest.mark.slow),
        (10, 0.1, Laplacian(1.0)),
    ],
)
def test_smooth_targets_do_not_end_at_the_end_of_the_grid(features: int, noise: float, kernel: Any) -> None:
    """Friedman's scores are flat, or fall for ever, towards long lengthscales: the flat's near end is taken."""
    data = data_sets.friedman(2000, features, noise)
    found = choose_lengthscale(
        sample_of(data.X, data.y[:, None]), kernel, search=True, intercept=True, scale=np.array([data.y.std()])
    )
    assert found.grid[0] < found.value < found.grid[-1]
    assert found.scores[found.grid.index(found.value)] <= 1.01 * min(found.scores)


def test_where_nothing_speaks_against_it_the_median_is_taken() -> None:
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((1000, 3)), rng.standard_normal((1000, 1))
    found = choose_lengthscale(sample_of(X, noise), Gaussian(1.0), search=True, intercept=True, scale=np.ones(1))
    assert found.value == found.median


def test_equal_samples_equal_choices() -> None:
    data = data_sets.friedman(600, 5)
    choices = [
        choose_lengthscale(
            sample_of(data.X, data.y[:, None]), Gaussian(1.0), search=True, intercept=False, scale=np.ones(1)
        )
        for _ in range(2)
    ]
    assert choices[0] == choices[1]
