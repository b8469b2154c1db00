"""Small factors for the tests: a basis over rows in memory or in Zarr, and the same features stored."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
from hypothesis import strategies as st
from problems import Float, basis_of
from strategies import rows

from streamkernel.engine import Session, ThreadExecutor
from streamkernel.factors import FeatureRows
from streamkernel.kernels import Gaussian, Kernel
from streamkernel.table import open_table


def session() -> Session:
    return Session(ThreadExecutor(1))


def rows_of(X: Any, chosen: Any, kernel: Kernel | None = None) -> FeatureRows:
    return FeatureRows(open_table(X), basis_of(X, chosen, kernel))


def stored(rows: FeatureRows, dtype: Any = np.float64) -> FeatureRows:
    """The same factor, its features written out."""
    table = rows.table
    G = rows.features.of(table.read(table.start, table.stop).X)
    return FeatureRows(open_table(np.ascontiguousarray(G, dtype=dtype)))


@st.composite
def factors(draw: st.DrawFn, *, max_rows: int = 40) -> tuple[FeatureRows, Float, list[int]]:
    """Rows with a basis, their dense kernel matrix, and the rows of the basis.

    Pivots are at least 1e-4, so that the oracles' pseudo-inverses keep twelve digits.
    """
    X = draw(rows(min_rows=3, max_rows=max_rows, dtype=np.float64))
    kernel = Gaussian(0.5 * float(np.abs(X).max()) or 1.0)
    K, chosen = kernel(X), list[int]()
    for i in range(0, len(X), draw(st.integers(1, 3))):
        if len(chosen) < 8 and naive.residual(K, chosen)[i, i] > 1e-4:
            chosen.append(i)
    return rows_of(X, chosen, kernel), K, chosen
