"""Models that are updated, and what an update must come to: the fit of the basis to all rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import pytest

from streamkernel import ingest, open_table
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.fits import fit_ridge
from streamkernel.models import RidgeModel
from streamkernel.settings import RidgeSettings
from streamkernel.solvers import RidgeSystem
from streamkernel.updating.update import Update, update_model

M, FITTED, N = 3000, 1500, 24
ROWS = data_sets.friedman(M, 5, seed=1)
X, Y = ROWS.X, ROWS.y
# Of a lengthscale that makes the functions as good as independent: what is compared is not the rounding of pivots.
OPTIONS: dict[str, Any] = {"n_components": N, "lengthscale": 1.0, "seed": 3}


def store_of_fitted_rows(path: Path) -> Path:
    """Half of the rows, in float64, the last chunk not full."""
    ingest(open_table(X[:FITTED], Y[:FITTED]), path, dtype="float64", chunk_rows=200)
    return path


def fit(table: Any, **options: Any) -> RidgeModel:
    return fit_ridge(table, RidgeSettings(**{**OPTIONS, **options}), Session(ThreadExecutor(1)))


def update(model: RidgeModel, table: Any, session: Session | None = None, **options: Any) -> Update[RidgeModel]:
    return update_model(model, table, session or Session(ThreadExecutor(1)), **options)


def plain_sums(model: RidgeModel, rows: Any, targets: Any, weights: Any = None) -> dict[str, Any]:
    """The sums over these rows, as their definitions say."""
    scaler = model.scaler
    scaled = rows.astype(np.float64)
    if scaler is not None:
        scaled = ((scaled - scaler.mean) / scaler.scale).astype(rows.dtype).astype(np.float64)
    G = model.basis.features(scaled)
    Yc = targets.reshape(len(rows), -1) - model.arrays["centre"]
    w = np.ones(len(rows)) if weights is None else weights
    return {"H": (G.T * w) @ G, "g": (G.T * w) @ Yc, "YY": (Yc.T * w) @ Yc, "G1": w @ G, "Y1": w @ Yc}


def check_is_refit(
    model: RidgeModel,
    rows: Any,
    targets: Any,
    weights: Any = None,
    *,
    rtol: float = 1e-12,
    alpha: float | None = None,
) -> None:
    """A model has the sums, coefficients and certificate of a fit of its basis to exactly these rows, alpha by GCV."""
    expected = plain_sums(model, rows, targets, weights)
    for name, values in expected.items():
        found = model.arrays[f"sum_{name}"]
        assert np.abs(found - values).max() <= rtol * max(np.abs(values).max(), np.sqrt(len(rows))), name
    assert model.config["totals"]["rows"] == len(rows)
    sums = replace(model.sums, **expected)
    classes = model.classes is not None
    scale = None if classes else np.asarray(model.config["target_scale"]) ** 2
    system = RidgeSystem(model.basis, sums, intercept=model.config["settings"]["fit_intercept"], scale=scale)
    assert model.config["alpha"] == pytest.approx(system.choose_alpha() if alpha is None else alpha, rel=1e-6)
    solution = system.solve(model.config["alpha"])
    largest = np.abs(solution.coefficients).max()
    np.testing.assert_allclose(model.arrays["dual_coef"], solution.coefficients, rtol=0, atol=1e4 * rtol * largest)
    np.testing.assert_allclose(model.arrays["intercept"], solution.intercept, rtol=1e-9, atol=1e-11)
    left = sums.trace - np.trace(expected["H"])
    assert model.config["certificate"]["residual_trace"] == pytest.approx(left, rel=1e-9)
    assert len(model.arrays["residual_path"]) == len(model.basis) + 1
    assert model.arrays["check_predicted"].shape == model.arrays["check_true"].shape
