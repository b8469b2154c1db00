"""What tuning is made of: the search over logarithms, its bounds, and basis points among rows in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import data_sets
import naive
import numpy as np
import pytest

from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.errors import NumericalError
from streamkernel.kernels import Gaussian, Kernel, Linear, Matern, log_lengthscales
from streamkernel.table import open_table
from streamkernel.tuning._bounds import Bounds, spread_lengthscales
from streamkernel.tuning._sample_basis import greedy_points
from streamkernel.tuning._search import maximise
from streamkernel.tuning.gaussian import EvidenceSearch


class Parabola:
    """Evidence ``-100 sum (v - 1)^2`` of 100 rows, of which the digits end where a parameter exceeds `cliff`."""

    def __init__(self, cliff: float = np.inf) -> None:
        self.cliff = cliff
        self.asked = 0

    def at(self, kernel: Kernel, signal: float, noise: float) -> Any:
        self.asked += 1
        v = np.concatenate([log_lengthscales(kernel), np.log([signal, noise])])
        if v.max() > self.cliff:
            raise NumericalError("too far")
        return SimpleNamespace(value=-100.0 * ((v - 1) ** 2).sum(), gradient=-200.0 * (v - 1), count=100, basis=[])


def search_of(low: float = -9.0, high: float = 9.0, fixed: Any = ()) -> EvidenceSearch:
    ends = Bounds(np.full(3, low), np.full(3, high), np.zeros(3), np.ones(3, bool), 0.0)
    return EvidenceSearch(Gaussian(1.0), fixed, ends)


def test_a_search_finds_the_top_and_keeps_to_its_evaluations() -> None:
    objective, search = Parabola(), search_of()
    best, found = search.round(objective, np.array([-3.0, 2.0, 0.5]), 40, "sample", 0)
    assert best == pytest.approx(np.ones(3), abs=1e-2)
    assert found.value == pytest.approx(0.0, abs=1e-2)
    for evaluations in (1, 2, 3):
        objective, search = Parabola(), search_of()
        search.round(objective, np.array([-3.0, 2.0, 0.5]), evaluations, "sample", 0)
        assert objective.asked == len(search.points) == evaluations


def test_a_search_keeps_to_its_bounds_and_to_what_is_fixed() -> None:
    best, _ = search_of(high=0.25, fixed=("signal",)).round(Parabola(), np.array([-3.0, -2.0, 0.5]), 40, "sample", 0)
    assert best == pytest.approx([0.25, -2.0, 0.25])


def test_a_search_turns_back_where_digits_end() -> None:
    objective = Parabola(cliff=1.05)
    best, _ = search_of().round(objective, np.array([-8.0, -8.0, -8.0]), 60, "sample", 0)
    assert best == pytest.approx(np.ones(3), abs=0.1)
    with pytest.raises(NumericalError, match="too far"):
        search_of().round(Parabola(cliff=-1.0), np.zeros(3), 60, "sample", 0)


def test_a_climb_keeps_what_belongs_to_its_best_point() -> None:
    def look(v: np.ndarray) -> tuple[float, np.ndarray, str]:
        return -float(v @ v), -2.0 * v, f"at {v[0]:.3f}"

    free, ends = np.array([True, False]), np.full(2, 5.0)
    best, found = maximise(look, np.array([9.0, 2.0]), free, -ends, ends, 30, 1e-12)
    assert best == pytest.approx([0.0, 2.0], abs=1e-6)
    assert found.removeprefix("at -") in ("0.000", "at 0.000")
    # Of what cannot move there is one look.
    best, found = maximise(look, np.array([9.0, 2.0]), np.zeros(2, bool), -ends, ends, 30, 1e-12)
    assert (best.tolist(), found) == ([9.0, 2.0], "at 9.000")


# -------------------------------------------------------------------------------------------------------------- bounds
def test_bounds_are_relative_to_the_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3)) * [1.0, 10.0, 0.0]
    kernel = Gaussian(1.0) + Matern((1.0, 2.0, 3.0), 1.5)
    bounds = Bounds.of(kernel, X)
    distances = np.exp(bounds.typical[:4])
    spread = X.std(axis=0)
    others = np.sqrt((spread[:2] ** 2).mean())
    assert distances[1:] == pytest.approx(np.sqrt(6) * np.array([*spread[:2], others]))
    assert bounds.unit == pytest.approx(-np.log(2.0))
    assert np.exp(bounds.low[-1]) == pytest.approx(1e-6)
    assert (bounds.low[:4] == bounds.typical[:4] - np.log(100)).all()
    start = bounds.typical + 4.0
    back = bounds.called_back(start, 3.0)
    assert back[[0, 4, 5]].tolist() == start[[0, 4, 5]].tolist()
    assert back[1:4] == pytest.approx(bounds.typical[1:4] + np.log(3.0))


def test_spread_lengthscales() -> None:
    X = np.random.default_rng(0).standard_normal((500, 2)) * [1.0, 8.0]
    spread = X.std(axis=0)
    found = spread_lengthscales(Gaussian(2.0) * Matern((3.0, 4.0), 0.5), X)
    expected = 2.0 * spread / np.sqrt((spread**2).mean())
    assert np.exp(log_lengthscales(found)) == pytest.approx([*expected, 3.0, 4.0])


# --------------------------------------------------------------------------------------------------------------- basis
def test_points_are_better_than_random_ones() -> None:
    X = data_sets.rare_clusters(1500, 4).X
    table, kernel = open_table(X), Gaussian(2.0)
    run = Session(ThreadExecutor(1)).local
    found = greedy_points(run, table, kernel, 60, 0, (1,))
    assert len(found) == len(set(found.rows.tolist())) == 60
    np.testing.assert_array_equal(found.points, X[found.rows])
    random = Basis(kernel, np.ascontiguousarray(X[:60]), np.arange(60))
    assert found.residual(X).sum() < 0.8 * random.residual(X).sum()
    again = greedy_points(run, table, kernel, 60, 0, (1,))
    other = greedy_points(run, table, kernel, 60, 0, (2,))
    assert again.rows.tolist() == found.rows.tolist() != other.rows.tolist()


def test_points_are_nearly_those_of_the_greedy_oracle() -> None:
    X = data_sets.gaussian_mixture(300, 3).X
    greedy, _ = naive.sgma(naive.gaussian(X, X, 2.0), [range(300)] * 24)
    found = greedy_points(Session(ThreadExecutor(1)).local, open_table(X), Gaussian(2.0), 24, 0, ())
    assert greedy.traces[-1] * 0.9 < found.residual(X).sum() < greedy.traces[-1] * 1.15


def test_points_end_with_the_rank() -> None:
    X = np.repeat(np.random.default_rng(0).standard_normal((7, 2)), 5, axis=0)
    run = Session(ThreadExecutor(1)).local
    assert len(greedy_points(run, open_table(X), Gaussian(1.0), 30, 0, ())) == 7
    assert len(greedy_points(run, open_table(np.eye(3)), Linear(), 1, 0, ())) == 1
    assert len(greedy_points(run, open_table(np.zeros((3, 2))), Linear(), 2, 0, ())) == 0


def test_points_are_drawn_by_weight() -> None:
    """Rows of weight 0 are none of them; of few candidates most are of the rows that stand for most."""
    X = np.random.default_rng(0).standard_normal((400, 4))
    w = np.tile([0.0, 1.0, 30.0, 1.0], 100)
    found = greedy_points(Session().local, open_table(X, weights=w), Gaussian(1.0), 12, 0, (1,)).rows
    assert (w[found] > 0.0).all()
    assert np.count_nonzero(w[found] == 30.0) >= 9
