"""One fit of the `fit` benchmark in a process of its own: seconds, peak memory, error against the noise-free target."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from _tables import peak_bytes
from data_sets import smooth_target_table

P, BLOCK = 20, 65_536
TEST_ROWS = 10_000
ALPHAS = tuple(10.0**power for power in range(-9, 0))  # per row


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    sides = {"streamkernel": _ours, "streamkernel, default": _ours, "scikit-learn": _sklearn}
    return sides[arguments["who"]](**arguments)


def _test_rows(m: int, dtype: str) -> tuple[Any, Any]:
    test = smooth_target_table(TEST_ROWS, P, start=m)
    return test.X.astype(dtype), test.f


def _rmse(predicted: Any, f: Any) -> float:
    return float(np.sqrt(np.mean((np.asarray(predicted) - f) ** 2)))


class _Clock:
    """A progress watcher that notes when each sweep began."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {}

    def begin(self, name: str, rows: int, tasks: int) -> None:
        self.began[name] = time.perf_counter()

    def advance(self, rows: int) -> None:
        pass

    def end(self, seconds: float) -> None:
        pass

    def note(self, text: str) -> None:
        pass


def _ours(who: str, m: int, n: int, dtype: str, store: str, **_: Any) -> dict[str, Any]:
    from streamkernel import KernelRidge  # the other side must not pay for it

    base = peak_bytes()
    clock = _Clock()
    began = time.perf_counter()
    options: dict[str, Any] = {}
    if who == "streamkernel":
        options = {"scale": "none", "lengthscale": float(np.sqrt(P)), "kernel": "gaussian", "alpha": "gcv"}
    model = KernelRidge(n, progress=clock, **options).fit(store)
    seconds = time.perf_counter() - began
    peak = peak_bytes()
    X, f = _test_rows(m, dtype)
    run = model.model_.config["run"]
    sweeps = {record["name"]: record["seconds"] for record in run["sweeps"]}
    return {
        "seconds": seconds,
        "peak": peak,
        "base": base,
        "error": _rmse(model.predict(X), f),
        "alpha": model.alpha_,
        "sweeps": model.n_sweeps_,
        "final": sweeps["final sweep"],
        "before_final": clock.began["final sweep"] - began,
        "planned": run["planned_memory_bytes"],
    }


def _sklearn(m: int, n: int, dtype: str, best: bool = False, **_: Any) -> dict[str, Any]:
    """Nystroem + Ridge at alpha = 1e-6 m; with `best`, the least test error over a grid (not timed)."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    base = peak_bytes()
    # Filled by blocks, so that the peak is the fit's and not the generator's.
    X, y = np.empty((m, P), dtype), np.empty(m, dtype)
    for start in range(0, m, BLOCK):
        part = smooth_target_table(min(BLOCK, m - start), P, start=start)
        X[start : start + len(part.X)], y[start : start + len(part.X)] = part.X, part.y
    nystroem = Nystroem(gamma=1 / (2 * P), n_components=n, random_state=0)
    X_test, f = _test_rows(m, dtype)
    if best:
        G, G_test = nystroem.fit_transform(X), nystroem.transform(X_test)
        errors = {alpha: _rmse(Ridge(alpha * m, solver="cholesky").fit(G, y).predict(G_test), f) for alpha in ALPHAS}
        least = min(errors, key=errors.__getitem__)
        return {"error": errors[least], "alpha": least * m}
    began = time.perf_counter()
    model = make_pipeline(nystroem, Ridge(1e-6 * m, solver="cholesky")).fit(X, y)
    seconds = time.perf_counter() - began
    peak = peak_bytes()
    return {"seconds": seconds, "peak": peak, "base": base, "error": _rmse(model.predict(X_test), f)}


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
