"""One fit of the `svm` benchmark in a process of its own."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from _sets import COVTYPE_CLASS, data_sets
from _tables import peak_bytes

from streamkernel import KernelSVC
from streamkernel.kernels import Gaussian
from streamkernel.solvers import median_lengthscale

TEST = 10_000


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    what = {"sweeps": _sweeps, "accuracy": _accuracy, "large": _large}[arguments.pop("what")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {**what(**arguments), "peak": peak_bytes()}


def split(name: str, rows: int, *, two: bool) -> tuple[Any, Any, Any, Any, float]:
    """Standardised train and test rows with their labels, and the median distance of train rows."""
    stored = data_sets.load(name)
    assert stored is not None
    X, y = np.asarray(stored.X, np.float64), np.asarray(stored.y)
    if name == "covtype-subset":
        y = (y == COVTYPE_CLASS).astype(int)
    elif two:
        y = (y == y.max()).astype(int)
    order = np.random.default_rng(0).permutation(len(X))
    held_out = min(len(X) // 4, TEST)
    test, train = order[:held_out], order[held_out:][:rows]
    deviation = X[train].std(axis=0)
    Z = (X - X[train].mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    return Z[train], y[train], Z[test], y[test], median_lengthscale(Z[train], Gaussian())


def _plain(n: int | None, lengthscale: float, **options: Any) -> KernelSVC:
    """A machine with a kernel that is given."""
    given = {"kernel": "gaussian", "metric": "none", "scale": "none", "calibration": "none"}
    return KernelSVC(n, lengthscale=lengthscale, **given, **options)


def _sweeps(name: str, rows: int, n: int, loss: str, C: float) -> dict[str, Any]:
    X, y, _, _, lengthscale = split(name, rows, two=True)
    model = _plain(n, lengthscale, C=C, loss=loss, gap_tol=1e-6)
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    gaps = np.array(model.model_.record.solution.problems[0].gaps)
    reached = [int(np.argmax(gaps <= gap)) + 1 if (gaps <= gap).any() else None for gap in (1e-3, 1e-6)]
    return {"rows": len(X), "sweeps": reached, "seconds": round(seconds, 1)}


def _accuracy(name: str, rows: int, n: int, C: float, who: str) -> dict[str, Any]:
    X, y, Z, t, lengthscale = split(name, rows, two=False)
    if who == "SVC":
        from sklearn.svm import SVC  # the other sides must not pay for it

        model: Any = SVC(C=C, gamma=1.0 / (2.0 * lengthscale**2), cache_size=2000)
    elif who == "full":
        model = _plain(None, lengthscale, C=C, loss="hinge", machine="full", gap_tol=1e-3)
    elif who == "one-vs-one":
        model = _plain(n, lengthscale, C=C, multi_class=who)
    else:
        model = KernelSVC(n) if who == "searched" else _plain(n, lengthscale, C=C, loss=who)
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    accuracy = float((model.predict(Z) == t).mean())
    cost = round(float(getattr(model, "C_", C)), 3)
    return {"rows": len(X), "accuracy": round(accuracy, 4), "seconds": round(seconds, 1), "C": cost}


def _large(store: str, n: int, loss: str) -> dict[str, Any]:
    began = time.perf_counter()
    model = KernelSVC(n, loss=loss, C=3.0, kernel="gaussian", metric="none", gap_tol=1e-3).fit(store)
    seconds = time.perf_counter() - began
    return {
        "seconds": round(seconds, 1),
        "gap": model.duality_gap_,
        "sweeps": model.n_sweeps_,
        "C": model.C_,
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
