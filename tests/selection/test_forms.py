"""The sums by which a rule scores its candidates: their cut follows the work of the fit alone."""

from __future__ import annotations

import numpy as np
import pytest

from streamkernel.basis import Basis
from streamkernel.kernels import Gaussian
from streamkernel.reductions.pools import PoolBlocks, PoolColumns, PoolGram
from streamkernel.selection.greedy import GramForm

SINGLE = np.dtype(np.float32)


@pytest.mark.parametrize(
    ("sampled", "flops", "wanted"),
    [
        (16_384, 200_000 * 1000.0**2, PoolGram),  # few workers: one product of all columns
        (16_384, 1e9 * 1000.0**2, PoolBlocks),
        (16, 1e9 * 1000.0**2, PoolGram),  # little to score
        (None, 1e9 * 1000.0**2, PoolGram),  # scored by a sweep over all rows
    ],
)
def test_sums_are_divisible_where_many_workers_are_at_work(sampled: int | None, flops: float, wanted: type) -> None:
    X = np.random.default_rng(0).standard_normal((2500, 20)).astype(SINGLE)
    basis, pool = (Basis(Gaussian(1.0), X[rows], np.arange(2500)[rows]) for rows in (slice(500), slice(500, None)))
    assert type(GramForm().reduction(PoolColumns(basis, pool, np.zeros(1), SINGLE), sampled, flops)) is wanted
