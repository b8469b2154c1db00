"""Rows of largest residual: none that is chosen already, and none of which nothing but rounding is left."""

from __future__ import annotations

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.kernels import Gaussian
from streamkernel.reductions.pools.largest_residuals import LargestResiduals, ResidualRows
from streamkernel.table import open_table

X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(80, 2))


def brought(X: np.ndarray, points: np.ndarray, rows: np.ndarray) -> ResidualRows:
    basis, kept = Basis.empty(Gaussian(0.7), X.shape[1], X.dtype).append(points, rows)
    assert len(kept) == len(points)
    return Session(ThreadExecutor(1)).sweep(LargestResiduals(basis, len(X)), open_table(X), "residuals")


def test_copies_of_points_of_the_basis_are_not_brought() -> None:
    """Their residuals are of the size of rounding, of either sign."""
    found = brought(np.concatenate([X[:30], X]), X[:30], np.arange(30))
    assert found.rows.min() >= 60
    assert (found.residuals > 1e-12).all()


def test_rounding_is_no_negative_trace() -> None:
    found = brought(np.repeat(X[:30], 3, axis=0), X[:30], np.arange(0, 90, 3))
    assert len(found) == 0
    assert found.residual_trace >= 0.0


def test_rows_of_the_basis_are_not_brought_whatever_is_left_of_them() -> None:
    """That of a chosen row is rounding, and may be above any bound of it where there are many functions."""
    found = brought(X, X[:3], np.array([10, 11, 12]))
    assert len(found) == 80 - 6
    assert not np.isin([10, 11, 12], found.rows).any()
