"""One fit of the `large_basis` benchmark in a process of its own: errors, seconds, memory."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from streamkernel import KernelRidge, KernelRidgeClassifier

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import data_sets

MOST_TEST = 10_000


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    stored = data_sets.load(arguments["name"])
    if stored is None:
        return {}
    classes, X, y = arguments["classes"], np.asarray(stored.X, np.float64), np.asarray(stored.y)
    order = np.random.default_rng(0).permutation(len(X))
    test = min(MOST_TEST, len(X) // 5)
    held_out, chosen = order[:test], order[test : test + arguments["rows"]]
    estimator = (KernelRidgeClassifier if classes else KernelRidge)(random_state=0, **arguments["options"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X[chosen], y[chosen])
    predicted, record = estimator.predict(X[held_out]), estimator.model_.record
    if classes:
        error, known = float((predicted != y[held_out]).mean()), record.validation.wrong
    else:
        deviation = y[held_out].std()
        error = float(np.sqrt(np.mean((predicted - y[held_out]) ** 2)) / deviation)
        known = record.validation.rmse[0] / deviation
    run = estimator.model_.config["run"]
    return {
        "error": round(error, 4),
        "held_out": round(float(known), 4),
        "alpha": float(f"{record.alpha:.2g}"),
        "iterations": record.solution.iterations,
        "seconds": round(run["seconds"], 1),
        "peak": run["peak_memory_bytes"],
        "planned": run["planned_memory_bytes"],
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
