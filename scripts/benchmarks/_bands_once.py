"""One fit of the `bands` benchmark in a process of its own."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from _sets import data_sets
from _tables import peak_bytes

from streamkernel import KernelOneClass, KernelQuantileRegressor, open_table
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.kernels import Gaussian
from streamkernel.solvers import median_lengthscale

LEVELS, TEST = (0.05, 0.5, 0.95), 10_000


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    tasks = {"bands": _bands, "outliers": _outliers, "large bands": _large_bands, "large outliers": _large_outliers}
    what = tasks[arguments.pop("what")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {**what(**arguments), "peak": peak_bytes()}


def _split(name: str, rows: int) -> tuple[Any, Any, Any, Any]:
    """Standardised train and test rows with their targets."""
    stored = data_sets.load(name)
    assert stored is not None
    X, y = np.asarray(stored.X, np.float64), np.asarray(stored.y, np.float64).ravel()
    order = np.random.default_rng(0).permutation(len(X))
    held_out = min(len(X) // 4, TEST)
    test, train = order[:held_out], order[held_out:][:rows]
    deviation = X[train].std(axis=0)
    Z = (X - X[train].mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    return Z[train], y[train], Z[test], y[test]


class _Trees:
    """Gradient boosting, a model for each level."""

    def fit(self, X: Any, y: Any) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor  # the other sides must not pay for it

        given = {"loss": "quantile", "random_state": 0}
        self.models = [HistGradientBoostingRegressor(quantile=level, **given).fit(X, y) for level in LEVELS]
        return self

    def predict(self, X: Any) -> Any:
        return np.sort(np.column_stack([model.predict(X) for model in self.models]), axis=1)


def _bands(name: str, rows: int, n: int, who: str) -> dict[str, Any]:
    X, y, Z, t = _split(name, rows)
    calibration = "none" if who == "ours, no shifts" else None
    ours = KernelQuantileRegressor(n, quantile=LEVELS, calibration=calibration)
    model: Any = _Trees() if who == "boosted trees" else ours
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    fitted, new = model.predict(X), model.predict(Z)
    r, levels = t[:, None] - new, np.array(LEVELS)
    loss = np.maximum(levels * r, (levels - 1.0) * r).mean() / y.std()
    inside = [((low <= targets) & (targets <= high)).mean() for targets, (low, _, high) in ((y, fitted.T), (t, new.T))]
    return {
        "rows": len(X),
        "fitted": round(float(inside[0]), 4),
        "inside": round(float(inside[1]), 4),
        "loss": round(float(loss), 5),
        "seconds": round(seconds, 1),
    }


def _outliers(name: str, rows: int, n: int, nu: float, who: str) -> dict[str, Any]:
    X, _, Z, _ = _split(name, rows)
    lengthscale = median_lengthscale(X, Gaussian())
    if who == "ours":
        model: Any = KernelOneClass(n, nu=nu, lengthscale=lengthscale, scale="none")
    else:
        from sklearn.svm import OneClassSVM  # the other side must not pay for it

        model = OneClassSVM(nu=nu, gamma=1.0 / (2.0 * lengthscale**2), cache_size=2000)
    began = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - began
    shares = [round(float((model.predict(part) < 0).mean()), 4) for part in (X, Z)]
    return {"rows": len(X), "fitted": shares[0], "outside": shares[1], "seconds": round(seconds, 1)}


def _large_bands(store: str, n: int) -> dict[str, Any]:
    began = time.perf_counter()
    model = KernelQuantileRegressor(
        n, quantile=LEVELS, C=10.0, calibration="held-out", kernel="gaussian", metric="none", gap_tol=1e-3
    ).fit(store)
    seconds = time.perf_counter() - began
    table = model.model_.prepare(open_table(store))
    scores = Session(ThreadExecutor(2)).sweep(model.model_.scores(), table, "scores").scalars
    return {
        "asked": 0.9,
        "fitted": round(scores["coverage90"], 4),
        "loss": round(scores["pinball"], 5),
        "gap": model.duality_gap_,
        "seconds": round(seconds, 1),
    }


def _large_outliers(store: str, n: int) -> dict[str, Any]:
    began = time.perf_counter()
    model = KernelOneClass(n, nu=0.05, gap_tol=1e-3).fit(store)
    seconds = time.perf_counter() - began
    return {
        "asked": 0.05,
        "fitted": round(model.outliers_, 4),
        "loss": "",
        "gap": model.duality_gap_,
        "seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
