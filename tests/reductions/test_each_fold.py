"""Any sums by fold: those of the rows of each fold, and of the rows in none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import basis_of, blocks

from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import EachFold, FoldParts, NormalProduct, NormalTargets
from streamkernel.table import Folds, RowBlock
from streamkernel.table.row_keys import row_keys


def swept(work: Any, X: Any, Y: Any, weights: Any = None, chunk: int = 50) -> Any:
    state = work.empty()
    lengths = [min(chunk, len(X) - start) for start in range(0, len(X), chunk)]
    for block in blocks(X, Y, lengths, weights):
        state = work.fold(state, block)
    return work.finalize(state)


def case(m: int = 240) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((m, 3)), 5 + rng.standard_normal((m, 2))
    return X, Y, basis_of(X, range(0, m, 12), Gaussian(1.5))


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_part_is_the_sum_of_its_rows(count: int, weighted: bool) -> None:
    X, Y, basis = case()
    w = np.random.default_rng(1).uniform(0.1, 3.0, len(X)) if weighted else None
    product, targets = NormalProduct(basis, Y[: len(basis)]), NormalTargets(basis, np.full(2, 4.0))
    folds = Folds(count)
    of = folds.of(row_keys(X))
    products: FoldParts[Any] = swept(EachFold(product, folds), X, Y, w)
    sums: FoldParts[Any] = swept(EachFold(targets, folds), X, Y, w)
    assert len(products.held) == len(sums.held) == count
    for fold, (found, own) in enumerate(
        zip((*products.held, products.trained), (*sums.held, sums.trained), strict=True)
    ):
        rows = of == fold
        weights = None if w is None else w[rows]
        np.testing.assert_allclose(found, swept(product, X[rows], Y[rows], weights), rtol=1e-9, atol=1e-9)
        expected = swept(targets, X[rows], Y[rows], weights)
        for name in ("g", "square", "G1", "Y1", "weight", "trace", "column_squares"):
            np.testing.assert_allclose(getattr(own, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
        assert own.count == expected.count == rows.sum()


def test_a_block_without_rows_of_a_fold_and_one_without_keys() -> None:
    X, Y, basis = case()
    work: EachFold[Any] = EachFold(NormalProduct(basis, Y[: len(basis)]), Folds(2))
    keys = row_keys(X)
    kept = ~work.folds.held_out(keys)
    found = work.finalize(work.map_block(RowBlock(0, X[kept], Y[kept], None, keys[kept])))
    assert not found.held[0].any()
    assert (found.effective == 0.0).all()
    with pytest.raises(ValueError, match="keys"):
        work.map_block(RowBlock(0, X, Y))


def test_its_effective_rows_are_distinct_ones() -> None:
    X, Y, basis = case(120)
    times = np.repeat(np.arange(120), 7)
    work: EachFold[Any] = EachFold(NormalTargets(basis, np.zeros(2), whiten=False), Folds(4))
    once, copies = swept(work, X, Y).effective, swept(work, X[times], Y[times]).effective
    np.testing.assert_allclose(copies, once, rtol=1e-12)
    np.testing.assert_allclose(once.sum(), 60, rtol=0.3)
