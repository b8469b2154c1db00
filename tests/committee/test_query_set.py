"""Query points and how many there must be; cells of members."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from committees import CARD, basis_at, printed
from problems import basis_of

from streamkernel.committee import (
    QuerySetRule,
    cell_centres,
    cells_of,
    degrees_of_features,
    degrees_of_sample,
    query_set,
)
from streamkernel.engine import Session
from streamkernel.errors import ParameterError
from streamkernel.kernels import Gaussian, Linear
from streamkernel.reductions.sums import BlockNoise
from streamkernel.table import open_table

SGMA = [17, 4, 27, 33, 29, 20]


def test_printed_degrees_of_freedom() -> None:
    printed(naive.effective_degrees(CARD.K, 0.1), 14.8225)
    printed(degrees_of_sample(CARD.X, 40, Gaussian(1.0), 1.0, 0.1), 14.8225)
    G = basis_of(CARD.X, SGMA).features(CARD.X)
    printed(degrees_of_features(G.T @ G, 1.0, 0.1), 5.84496)


def test_degrees_with_a_signal_variance() -> None:
    expected = naive.effective_degrees(2.5 * CARD.K, 0.3)
    assert degrees_of_sample(CARD.X, 40, Gaussian(1.0), 2.5, 0.3) == pytest.approx(expected)
    G = basis_of(CARD.X, range(12)).features(CARD.X)
    projected = naive.effective_degrees(2.5 * G @ G.T, 0.3)
    assert degrees_of_features(G.T @ G, 2.5, 0.3) == pytest.approx(projected)
    assert degrees_of_features(G.T @ G / 0.3, 2.5) == pytest.approx(projected)
    assert degrees_of_features(np.zeros((0, 0)), 1.0) == 0.0


@pytest.mark.parametrize("sample", [5, 15, 30])
def test_samples_tell_less_than_all_rows_on_average(sample: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    exact = naive.effective_degrees(naive.gaussian(X, X, 0.7), 0.05)
    found = [
        degrees_of_sample(X[rng.choice(60, sample, replace=False)], 60, Gaussian(0.7), 1.0, 0.05) for _ in range(60)
    ]
    assert np.mean(found) < exact
    assert np.mean(found) > 0.5 * min(exact, sample)
    assert max(found) <= sample


def test_copies_of_all_rows_are_a_sample_that_tells_all() -> None:
    X = np.random.default_rng(0).standard_normal((30, 2))
    exact = naive.effective_degrees(naive.gaussian(*[np.tile(X, (5, 1))] * 2, 0.7), 0.05)
    assert degrees_of_sample(X, 150, Gaussian(0.7), 1.0, 0.05) == pytest.approx(exact)


def test_a_sample_is_no_larger_than_its_table() -> None:
    with pytest.raises(ParameterError, match="duplicates"):
        degrees_of_sample(CARD.X, 39, Gaussian(1.0), 1.0, 0.1)


def test_the_rule() -> None:
    assert not QuerySetRule(15, from_sample=14.8, sample=40).broken
    assert QuerySetRule(15, from_sample=14.8, sample=40).warning is None
    broken = QuerySetRule(12, from_features=11.5, from_sample=14.8225, sample=40)
    assert broken.broken
    assert broken.degrees == 14.8225
    assert broken.warning is not None
    assert "12 query points for 14.82 effective degrees of freedom or more" in broken.warning
    assert "give 15 basis functions" in broken.warning
    assert not QuerySetRule(6).broken


def test_landmarks_and_the_points_asked_for() -> None:
    landmarks = basis_of(CARD.X, SGMA)
    asked = np.concatenate([CARD.Xq, CARD.X[[4]], CARD.Xq[[2]]])
    basis, kept = query_set(landmarks, asked)
    assert kept.tolist() == [0, 1, 2, 3, 4, 5]  # a landmark and a point asked for twice are there already
    assert basis.rows.tolist() == [*SGMA, *[-1] * 6]
    np.testing.assert_array_equal(basis.points[:6], landmarks.points)
    np.testing.assert_allclose(basis.residual(asked), 0.0, atol=1e-12)
    # Points that are no table's rows may begin a query set, too.
    alone, _ = query_set(basis_at(np.zeros((0, 2))), CARD.Xq)
    assert len(alone) == 6


def test_cell_centres() -> None:
    rng = np.random.default_rng(0)
    corners = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
    X = corners[rng.integers(0, 4, 500)] + 0.1 * rng.standard_normal((500, 2))
    table = open_table(X)
    for kernel in (Gaussian(200.0), Gaussian((1.0, 3.0)), Linear()):
        for sweeps in (0, 2):
            session = Session()
            centres = cell_centres(table, kernel, 4, session=session, seed=1, sweeps=sweeps)
            np.testing.assert_allclose(centres[np.lexsort(centres.T)], corners, atol=0.1)
            assert 1 + min(sweeps, 1) <= len(session.records) <= 1 + sweeps
    again = cell_centres(table, Linear(), 4, session=Session(), seed=1, sweeps=2)
    np.testing.assert_array_equal(again, centres)


def test_fewer_cells_where_rows_are_equal() -> None:
    X = np.repeat(np.arange(3.0)[:, None], 10, axis=0).astype(np.float32)
    centres = cell_centres(open_table(X), Gaussian(1.0), 8, session=Session())
    assert sorted(centres[:, 0].tolist()) == [0.0, 1.0, 2.0]
    assert BlockNoise(1.0, 0.1, 4, centres).cells is not None


def test_partitions() -> None:
    table, session = open_table(CARD.X), Session()
    assert cells_of("rows", table, Gaussian(1.0), session=session) is None
    assert not session.records
    found = cells_of("cells", table, Gaussian(1.0), session=session, seed=3)
    assert found is not None
    np.testing.assert_array_equal(found, cell_centres(table, Gaussian(1.0), session=session, seed=3))
    np.testing.assert_array_equal(cells_of(CARD.Xq, table, Gaussian(1.0), session=session), CARD.Xq)
    with pytest.raises(ParameterError, match="partition = 'row'"):
        cells_of("row", table, Gaussian(1.0), session=session)
