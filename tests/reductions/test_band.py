"""The rows nearest to a kink: the nearest ones of every problem, in any chunking, and no row of weight 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import blocks

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
