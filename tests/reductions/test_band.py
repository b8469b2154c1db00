"""The rows nearest to a kink: the nearest ones of every problem, in any chunking, and no row of weight 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import basis_of, blocks

from streamkernel.kernels import Gaussian, Polynomial
from streamkernel.reductions.margins import (
    Huber,
    Line,
    Logistic,
    SmoothStep,
    SquaredHinge,
    Target,
    largest_band,
)
from streamkernel.reductions.sums import Features

RNG = np.random.default_rng(4)
G = RNG.standard_normal((300, 5))
Y = np.column_stack([(G[:, 0] > 0) * 1.0, G[:, 1] + 0.3 * RNG.standard_normal(300)])
W = RNG.integers(0, 3, 300).astype(float)
LOSSES = (SquaredHinge(1.0), Huber(2.0, 0.3), Logistic(1.0))
TARGETS = (Target(0), Target(1, 0.1, 2.0), Target(0))
LINES = tuple(Line(np.zeros(6), 0.4 * RNG.standard_normal(6)) for _ in LOSSES)


def bands(cuts: Any, rows: int, weights: Any = W, data: Any = G) -> Any:
    step = SmoothStep(Features(None, 5), LOSSES, TARGETS, LINES, band_rows=rows)
    state = None
    for block in blocks(data, Y, cuts, weights):
        mapped = step.map_block(block)
        state = mapped if state is None else step.combine(state, mapped)
    assert state is not None
    assert sum(each.nbytes for each in state.values()) <= step.state_bytes()
    return [sums.band for sums in step.finalize(state).problems]


@pytest.mark.parametrize("cuts", [[300], [100, 1, 199], [10] * 30])
@pytest.mark.parametrize("rows", [1, 20, 150, 1000])
def test_the_nearest_rows(cuts: Any, rows: int) -> None:
    found = bands(cuts, rows)
    counted = np.flatnonzero(W)
    assert found[2] is None
    for band, loss, target, line in zip(found[:2], LOSSES, TARGETS, LINES, strict=False):
        y = target.of(Y)
        distance = loss.kink_distance(y, G @ line.end[:-1] + line.end[-1])
        nearest = counted[np.argsort(distance[counted])][:rows]
        np.testing.assert_array_equal(band.X, G[nearest])
        np.testing.assert_array_equal(band.targets, y[nearest])
        np.testing.assert_array_equal(band.weights, W[nearest])


def test_of_equal_rows_the_first() -> None:
    """Where all values are 0 all rows are at the same distance."""
    step = SmoothStep(Features(None, 5), LOSSES[:1], TARGETS[:1], (Line(np.zeros(6), np.zeros(6)),), band_rows=7)
    states = [step.map_block(block) for block in blocks(G, Y, [3, 100, 197], None)]
    for left, right in ((0, 2), (0, 1)):
        band = step.finalize(step.combine(states[left], states[right])).problems[0].band
        assert band is not None
        first = [0, 1, 2, *(np.arange(4) + (103 if right == 2 else 3))]
        np.testing.assert_array_equal(band.X, G[first])


def test_no_band() -> None:
    assert bands([100, 200], 0) == [None, None, None]
    assert bands([300], 5, np.zeros(300)) == [None, None, None]


def test_the_size_is_bounded() -> None:
    """By rows, by the functions, by bytes of wide rows, and by all problems together."""
    assert largest_band(Features(None, 10), 1) == 200
    assert largest_band(Features(None, 500), 1) == (4 << 20) // (40 + 8 * 500)
    assert largest_band(Features(None, 500), 100) == 160
    assert largest_band(Features(None, 3), 10**6) == 1


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Polynomial(degree=2)])
@pytest.mark.parametrize("weighted", [True, False])
def test_only_rows_with_a_loss_are_whitened(kernel: Any, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums and the band are those of all rows."""
    basis = basis_of(G, range(20), kernel)
    features = Features.of_basis(basis)
    values = features.of(G)
    good = np.linalg.lstsq(np.column_stack([values, np.ones(300)]), 6.0 * Y[:, 0] - 3.0, rcond=None)[0]
    lines = (Line(0.9 * good, good), Line(good, good))
    losses = (SquaredHinge(1.0), SquaredHinge(3.0))
    w = W if weighted else np.ones(300)
    counted = np.flatnonzero(w)
    t, one = 2.0 * Y[counted, 0] - 1.0, np.column_stack([values, np.ones(300)])[counted]
    inside = ((t[:, None] * (one @ np.column_stack([0.9 * good, good]))) < 1.0).any(axis=1).sum()
    assert 0 < inside < 0.6 * len(counted)
    whitened = []
    whiten = Features.whiten
    monkeypatch.setattr(Features, "whiten", lambda self, F: (whitened.append(len(F)), whiten(self, F))[1])
    found = []
    for certificate in (True, False):
        step = SmoothStep(features, losses, (Target(0), Target(0)), lines, (1.0, 0.5), 30, certificate)
        [block] = blocks(G, Y, [300], w)
        found.append(step.finalize(step.map_block(block)))
    assert whitened == [inside]
    assert found[0].trace is not None
    assert found[1].trace is None
    for all_rows, few in zip(found[0].problems, found[1].problems, strict=True):
        np.testing.assert_allclose(few.losses, all_rows.losses, rtol=1e-9)
        np.testing.assert_allclose(few.gradient, all_rows.gradient, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(few.curvature, all_rows.curvature, rtol=1e-9, atol=1e-9)
        assert few.band is not None
        assert all_rows.band is not None
        np.testing.assert_array_equal(few.band.X, all_rows.band.X)
        np.testing.assert_array_equal(few.band.targets, all_rows.band.targets)


def test_rounding_of_the_values_keeps_rows_near_the_margin() -> None:
    """Near points: the coefficients of kernel values are large and of both signs, those of features are not."""
    X = np.concatenate([G[:40], G[:40] + 1e-6])
    features = Features.of_basis(basis_of(X, range(80), Gaussian(2.0)))
    values = features.of(X)
    y = Y[:40, :1].repeat(2, axis=1).T.reshape(-1, 1)[:80]
    b = np.append(np.linalg.lstsq(values, 2.0 * y[:, 0] - 1.0, rcond=None)[0], 0.0)
    line = Line(b, b)
    found = []
    for certificate in (True, False):
        step = SmoothStep(features, (SquaredHinge(1.0),), (Target(0),), (line,), (1.0,), 0, certificate)
        [block] = blocks(X, y, [80], None)
        found.append(step.finalize(step.map_block(block)).problems[0])
    np.testing.assert_allclose(found[1].losses, found[0].losses, rtol=1e-9, atol=1e-25)
    np.testing.assert_allclose(found[1].gradient, found[0].gradient, rtol=1e-9, atol=1e-14)
