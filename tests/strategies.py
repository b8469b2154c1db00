"""Hypothesis strategies: small tables, targets, and ways to cut their rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

__all__ = ["chunkings", "cuts", "dtypes", "few_examples", "numeric_arrays", "rows", "seeds", "tables", "targets"]

dtypes = st.sampled_from([np.dtype(np.float32), np.dtype(np.float64)])
seeds = st.integers(0, 2**32 - 1)


def few_examples(share: float) -> settings:
    """This share of the profile's examples, for slow ones: HYPOTHESIS_PROFILE=thorough still has more of them."""
    return settings(max_examples=max(2, round(share * settings.default.max_examples)))  # type: ignore[union-attr]


@st.composite
def rows(
    draw: st.DrawFn,
    *,
    min_rows: int = 1,
    max_rows: int = 60,
    min_features: int = 1,
    max_features: int = 6,
    dtype: Any = None,
    duplicates: bool = True,
) -> NDArray[Any]:
    """X (m, p), standard normal times a scale, sometimes with duplicate rows and a constant column."""
    m = draw(st.integers(min_rows, max_rows))
    p = draw(st.integers(min_features, max_features))
    scale = draw(st.sampled_from([0.1, 1.0, 10.0]))
    rng = np.random.default_rng(draw(seeds))
    X = scale * rng.standard_normal((m, p))
    if duplicates and m > 1 and draw(st.booleans()):
        X[rng.integers(0, m, size=max(1, m // 4))] = X[0]
    if p > 1 and draw(st.booleans()):
        X[:, -1] = scale
    return X.astype(draw(dtypes) if dtype is None else dtype)


@st.composite
def targets(draw: st.DrawFn, X: NDArray[Any], *, max_targets: int = 3) -> NDArray[np.float64]:
    """Y (m,) or (m, d): a smooth function of X plus noise."""
    d = draw(st.integers(0, max_targets))
    rng = np.random.default_rng(draw(seeds))
    directions = rng.standard_normal((X.shape[1], max(d, 1)))
    Y: NDArray[np.float64] = np.sin(X.astype(np.float64) @ directions)
    Y += 0.1 * rng.standard_normal(Y.shape)
    return Y[:, 0] if d == 0 else Y


@st.composite
def tables(draw: st.DrawFn, **options: Any) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """X and y of the same number of rows; `options` are those of `rows`."""
    X = draw(rows(**options))
    return X, draw(targets(X))


@st.composite
def chunkings(draw: st.DrawFn, n_rows: int, *, max_chunks: int = 8) -> tuple[int, ...]:
    """Positive chunk lengths that sum to `n_rows`: any way to cut the rows."""
    cuts = draw(st.sets(st.integers(1, max(1, n_rows - 1)), max_size=max_chunks - 1)) if n_rows > 1 else set()
    edges = [0, *sorted(cuts), n_rows]
    return tuple(b - a for a, b in pairwise(edges) if b > a)


def cuts(n_rows: int) -> st.SearchStrategy[tuple[int, ...]]:
    """As `chunkings`; among them one row in each, and all in one."""
    return st.one_of(st.just((1,) * n_rows), st.just((n_rows,)), chunkings(n_rows, max_chunks=n_rows))


def numeric_arrays(*, max_dims: int = 3, max_side: int = 5) -> st.SearchStrategy[NDArray[Any]]:
    """Arrays of every numeric or boolean dtype and small shape, 0-d and empty ones too, NaN and infinities included."""
    kinds = st.one_of(
        hnp.boolean_dtypes(),
        hnp.integer_dtypes(endianness="="),
        hnp.unsigned_integer_dtypes(endianness="="),
        hnp.floating_dtypes(endianness="=", sizes=(16, 32, 64)),
    )
    shapes = hnp.array_shapes(min_dims=0, max_dims=max_dims, min_side=0, max_side=max_side)
    return kinds.flatmap(lambda dtype: hnp.arrays(dtype, shapes))
