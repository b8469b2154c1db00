"""Sparse rows for tests: random ones, with what is awkward in them, beside their dense copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from streamkernel.pairs import pairs_of

__all__ = ["in_pairs", "sparse_problem", "sparse_rows"]


def sparse_rows(m: int, d: int, entries: float, seed: int = 0) -> Any:
    """CSR (m, d) of about so many entries a row: with empty rows, repeated rows, a full row and a full column."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((m, d)) < entries / d, np.round(rng.standard_normal((m, d)), 2), 0.0)
    X[:: max(2, m // 3)] = 0.0
    X[m // 2] = X[m // 2 - 1]
    X[-1] = rng.standard_normal(d)
    X[:, d // 2] = 1.0 + rng.random(m)
    return scipy.sparse.csr_array(X)


def sparse_problem(m: int, d: int, entries: float, seed: int = 0) -> tuple[Any, NDArray[np.float64]]:
    """Sparse rows, and targets that depend on some of their columns."""
    X = sparse_rows(m, d, entries, seed)
    rng = np.random.default_rng(seed + 1)
    y: NDArray[np.float64] = np.sin(X @ rng.standard_normal(d)) + 0.1 * rng.standard_normal(m)
    return X, y


def in_pairs(X: Any, more: int = 0) -> NDArray[np.float64]:
    """Rows in pairs, with room for `more` entries than the fullest row has."""
    most = max(1, int(np.diff(X.indptr).max())) + more
    return pairs_of(X.indptr, X.indices, X.data, most)
