"""One fit of the `time_to_error` benchmark in a process of its own: seconds, peak memory, error on the test rows."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from _tables import peak_bytes

ALPHAS = tuple(10.0**power for power in range(-9, 0))  # per row


def measure(who: str, rows: str, n: int, lengthscale: float) -> dict[str, Any]:
    """`who` is "default", "plain" (no search for kernel, metric and lengthscale) or "scikit-learn"."""
    with np.load(rows) as stored:
        X, y, Z, f = (np.asarray(stored[name], np.float32) for name in ("X", "y", "Z", "f"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = (
            _sklearn(X, y, Z, f, n, lengthscale) if who == "scikit-learn" else _ours(who, X, y, Z, f, n, lengthscale)
        )
    return {**found, "peak": peak_bytes()}


def _error(predicted: Any, f: Any) -> float:
    return float(np.sqrt(np.mean((np.asarray(predicted, np.float64) - f) ** 2)))


def _ours(who: str, X: Any, y: Any, Z: Any, f: Any, n: int, lengthscale: float) -> dict[str, Any]:
    from streamkernel import KernelRidge  # the other side must not pay for it

    plain = {"kernel": "gaussian", "metric": "none", "lengthscale": lengthscale, "scale": "none", "alpha": "gcv"}
    began = time.perf_counter()
    model = KernelRidge(n, random_state=0, **(plain if who == "plain" else {})).fit(X, y)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "error": _error(model.predict(Z), f)}


def _sklearn(X: Any, y: Any, Z: Any, f: Any, n: int, lengthscale: float) -> dict[str, Any]:
    """Nystroem + Ridge; alpha is the best of a grid on the test rows, whose search takes no time here."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge

    began = time.perf_counter()
    nystroem = Nystroem(gamma=0.5 / lengthscale**2, n_components=n, random_state=0)
    G = nystroem.fit_transform(X)
    Ridge(1e-6 * len(X), solver="cholesky").fit(G, y)
    seconds = time.perf_counter() - began
    G_test = nystroem.transform(Z)
    errors = [_error(Ridge(alpha * len(X), solver="cholesky").fit(G, y).predict(G_test), f) for alpha in ALPHAS]
    return {"seconds": seconds, "error": min(errors)}


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
