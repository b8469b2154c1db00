"""One fit of the `lp` benchmark in a process of its own."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

from _svm_once import split
from _tables import peak_bytes

from streamkernel import KernelLPClassifier, KernelSVC, open_table

FUNCTIONS = 500


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    what = {"accuracy": _accuracy, "large": _large}[arguments.pop("what")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {**what(**arguments), "peak": peak_bytes()}


def _machine(who: str, C: float, **given: Any) -> Any:
    plain = {"kernel": "gaussian", "metric": "none", "calibration": "none", **given}
    if who == "lp":
        return KernelLPClassifier(C=C, gap_tol=1e-3, working_rows=100_000, **plain)
    return KernelSVC(FUNCTIONS, C=3.0, gap_tol=1e-3, **plain)


def _told(model: Any, rows: int, seconds: float, accuracy: float) -> dict[str, Any]:
    return {
        "rows": rows,
        "C": model.C_,
        "functions": len(model.components_),
        "sweeps": model.n_sweeps_,
        "gap": float(f"{model.duality_gap_:.2g}"),
        "accuracy": round(accuracy, 4),
        "seconds": round(seconds, 1),
    }


def _accuracy(name: str, rows: int, C: float, who: str) -> dict[str, Any]:
    X, y, Z, t, lengthscale = split(name, rows, two=True)
    model = _machine(who, C, lengthscale=lengthscale, scale="none")
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    return _told(model, len(X), seconds, float((model.predict(Z) == t).mean()))


def _large(store: str, rows: int, C: float, who: str) -> dict[str, Any]:
    table = open_table(store, classify=True)
    model = _machine(who, C)
    began = time.perf_counter()
    model.fit(table.slice(0, rows))
    seconds = time.perf_counter() - began
    return _told(model, rows, seconds, model.score(table.slice(rows, table.n_rows)))


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
