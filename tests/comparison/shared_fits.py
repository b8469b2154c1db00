"""Fits of the sums of one sweep, and what plain NumPy makes of their bases."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamkernel import open_table
from streamkernel.comparison.candidates import candidates_of
from streamkernel.comparison.cross_validation import CrossValidation, cross_validation
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.fits.steps.fold_rows import FoldRows

PLAIN = {"lengthscale": 1.0, "metric": "none"}
GIVEN = {"lengthscale": 1.0, "signal_variance": 1.0, "noise_variance": 0.1}


def request_of(estimator: Any, y: Any, *, rows: Any, folds: int, **options: Any) -> CrossValidation:
    """A comparison of one estimator, which is to share sums where it can."""
    chosen = candidates_of(estimator)
    table = open_table(rows, y, classify=chosen[0].kind.classify, weights=options.pop("weights", None))
    return cross_validation(table, chosen, folds=folds, **{"share": True, **options})


def models_of(request: CrossValidation) -> tuple[FoldRows, Any]:
    """The rows of the fits that share sums, and their models."""
    [each], rows = request.candidates, request.splits.fold_rows
    assert rows is not None
    assert each.kind.folds is not None
    session = Session(ThreadExecutor())
    return rows, each.kind.folds.fit(rows, each.settings, session, estimator=each.kind.name)


def features_of(model: Any, X: Any) -> Any:
    """Whitened features (m, n) of rows, in plain NumPy."""
    scaler, Z = model.record.scaler, model.arrays["components"]
    rows = (X - np.array(scaler.mean)) / np.array(scaler.scale)
    kernel = [np.exp(-0.5 * ((A[:, None] - Z) ** 2).sum(axis=2)) for A in (rows, Z)]
    return np.linalg.solve(np.linalg.cholesky(kernel[1]), kernel[0].T).T


def ridge_errors(G: Any, y: Any, trained: Any, held: Any, alpha: float) -> tuple[float, float]:
    """Sum of squared errors of a ridge with an intercept on some rows, and their number."""
    mean, centre = G[trained].mean(axis=0), y[trained].mean()
    A = G[trained] - mean
    beta = np.linalg.solve(A.T @ A + alpha * np.eye(A.shape[1]), A.T @ (y[trained] - centre))
    return float(((y[held] - centre - (G[held] - mean) @ beta) ** 2).sum()), float(held.sum())
