"""What is known of columns need not be summed again: the same sums, whichever way they come."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian
from streamkernel.reductions.pools import DictionarySums, HeldOut, PoolColumns, ResidualColumns, Roots
from streamkernel.table import RowBlock
from streamkernel.table.row_keys import row_keys

Float = NDArray[np.float64]

RNG = np.random.default_rng(8)
X = RNG.standard_normal((300, 3))
Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1) + 3.0
WEIGHTS = RNG.uniform(0.5, 2.0, len(X))
KERNEL = Gaussian(1.5)
FIRST, PICKS, SECOND = np.array([4, 90, 17, 200]), np.array([7, 2, 11]), np.arange(210, 224)
POOL = np.arange(20, 36)


def unwhitened(rows: NDArray[np.int64]) -> Basis:
    return Basis(KERNEL, X[rows], rows)


def sums_of(reduction: DictionarySums, cuts: tuple[int, ...], weights: Float | None) -> Roots:
    edges = [0, *cuts, len(X)]
    states = [
        reduction.map_block(RowBlock(a, X[a:b], Y[a:b], None if weights is None else weights[a:b], row_keys(X[a:b])))
        for a, b in itertools.pairwise(edges)
    ]
    whole = states[0]
    for state in states[1:]:
        whole = reduction.combine(whole, state)
    return reduction.finalize(whole)


@pytest.mark.parametrize("held_out", [None, HeldOut(3, (4,), 0.3)])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("cuts", [(), (120,), (1, 64, 250)])
def test_known_sums_and_those_beyond_are_the_whole(
    held_out: HeldOut | None, constant: bool, weights: Float | None, cuts: tuple[int, ...]
) -> None:
    basis, _ = Basis.empty(KERNEL, X.shape[1], X.dtype).append(X[FIRST], FIRST)
    made = PoolColumns(basis, unwhitened(POOL), Y.mean(axis=0), np.dtype(np.float64), constant)
    before = sums_of(DictionarySums(made, held_out=held_out), cuts, weights)
    grown, _ = basis.append(X[POOL[PICKS]], POOL[PICKS])
    n, k = len(basis), len(POOL)
    assert before.gram is not None
    known = before.gram.grown(n, n + int(constant), k, PICKS, grown.L[n:, n:])

    whole = replace(made, basis=grown, pool=unwhitened(SECOND))
    beyond = ResidualColumns(grown, whole.pool, whole.centre, whole.precision, constant)
    expected = sums_of(DictionarySums(whole, held_out=held_out), cuts, weights)
    found = sums_of(DictionarySums(beyond, held_out=held_out, known=known), cuts, weights)
    assert found.gram is not None
    assert expected.gram is not None
    for ours, theirs in ((found.gram.fit, expected.gram.fit), (found.gram.check, expected.gram.check)):
        if theirs is None:
            assert ours is None
        else:
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * np.abs(theirs).max())
    raw = expected.U.T @ expected.U
    np.testing.assert_allclose(found.U.T @ found.U, raw, rtol=0, atol=1e-11 * np.abs(raw).max())
    assert (found.below, found.rows, found.check_rows) == (expected.below, expected.rows, expected.check_rows)


def test_nothing_picked_nothing_changes() -> None:
    basis, _ = Basis.empty(KERNEL, X.shape[1], X.dtype).append(X[FIRST], FIRST)
    columns = PoolColumns(basis, unwhitened(POOL), np.zeros(2), np.dtype(np.float64), True)
    gram = sums_of(DictionarySums(columns), (), None).gram
    assert gram is not None
    same = gram.grown(4, 5, len(POOL), np.zeros(0, np.int64), np.zeros((0, 0)))
    kept = np.r_[0:5, 5 + len(POOL) : columns.width]
    np.testing.assert_array_equal(same.fit, gram.fit[np.ix_(kept, kept)])
