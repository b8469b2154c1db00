"""One set of the `compress` benchmark in a process of its own."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _sets import COVTYPE_CLASS, data_sets

from streamkernel import KernelRidge, KernelSVC, compress
from streamkernel.kernels import Gaussian
from streamkernel.solvers import median_lengthscale

SHARE, TEST, FUNCTIONS = 0.02, 8_000, 300
METHODS: dict[str, dict[str, Any]] = {
    "subsample": {"method": "subsample"},
    "precluster": {"method": "precluster"},
    "precluster (x, .3 y)": {"method": "precluster", "target_weight": 0.3},
    "thinning": {"method": "thinning"},
    "squash": {"method": "squash"},
    "squash, kernel profiles": {"method": "squash", "functions": "kernel"},
    "squash, kernel, as published": {
        "method": "squash", "functions": "kernel", "representative": "seed", "sweeps": 0,
    },
    "squash, linear profiles": {"method": "squash", "functions": "linear"},
    "squash, linear, as published": {
        "method": "squash", "functions": "linear", "representative": "seed", "sweeps": 0,
    },
    "squash, linear, hinge": {"method": "squash", "functions": "linear", "loss": "hinge"},
}  # fmt: skip
Fit = Callable[[Any, Any, Any], Any]


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _measured(**arguments)


def _split(name: str, rows: int) -> tuple[Any, Any, Any, Any]:
    """Standardised train and test rows with their targets; of covtype, one class against the others."""
    stored = data_sets.load(name)
    assert stored is not None
    X, y = np.asarray(stored.X, np.float64), np.asarray(stored.y).ravel()
    if name == "covtype-subset":
        y = (y == COVTYPE_CLASS).astype(np.int64)
    order = np.random.default_rng(0).permutation(len(X))
    held_out = min(len(X) // 4, TEST)
    test, train = order[:held_out], order[held_out:][:rows]
    deviation = X[train].std(axis=0)
    Z = (X - X[train].mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    return Z[train], y[train], Z[test], y[test]


def _fits(classes: bool, lengthscale: float) -> dict[str, Fit]:
    """Estimators with fixed parameters; one is ours."""
    from sklearn.kernel_ridge import KernelRidge as DenseRidge
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    gamma = 1.0 / (2.0 * lengthscale**2)
    ours = {"lengthscale": lengthscale, "scale": "none", "kernel": "gaussian", "metric": "none"}

    def n(X: Any) -> int:
        return min(FUNCTIONS, len(X))

    if classes:
        return {
            "KernelSVC": lambda X, y, w: KernelSVC(n(X), C=1.0, **ours).fit(X, y, sample_weight=w),
            "SVC": lambda X, y, w: SVC(C=1.0, gamma=gamma, cache_size=500).fit(X, y, sample_weight=w),
            "LogisticRegression": lambda X, y, w: LogisticRegression(max_iter=300).fit(X, y, sample_weight=w),
        }
    return {
        "KernelRidge": lambda X, y, w: KernelRidge(n(X), alpha=1.0, **ours).fit(X, y, sample_weight=w),
        "sklearn KernelRidge": lambda X, y, w: DenseRidge(alpha=1.0, kernel="rbf", gamma=gamma).fit(
            X, y, sample_weight=w
        ),
    }


def _measured(name: str, rows: int, seeds: int, methods: list[str]) -> dict[str, Any]:
    X, y, Z, t = _split(name, rows)
    classes = y.dtype.kind in "iu"
    fits = _fits(classes, median_lengthscale(X, Gaussian()))

    def errors(A: Any, b: Any, w: Any) -> dict[str, float]:
        found = {}
        for who, fit in fits.items():
            predicted = np.asarray(fit(A, b, w).predict(Z)).ravel()
            error = np.mean(predicted != t) if classes else np.sqrt(np.mean((predicted - t) ** 2)) / t.std()
            found[who] = float(error)
        return found

    result: dict[str, Any] = {"rows": len(X), "all": errors(X, y, np.ones(len(X))), "methods": {}}
    for method in methods:
        began, found, size = time.perf_counter(), [], 0
        for seed in range(seeds):
            small = compress(
                X, y, size=round(SHARE * len(X)), classify=classes, scale="none", random_state=seed, **METHODS[method]
            )
            size = len(small)
            found.append(errors(small.X, small.y, small.weights))
        result["methods"][method] = {
            "errors": {who: float(np.median([each[who] for each in found])) for who in fits},
            "size": size,
            "seconds": round((time.perf_counter() - began) / seeds, 1),
        }
    return result


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
