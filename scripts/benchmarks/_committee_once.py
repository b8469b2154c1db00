"""One fit of the `committee` benchmark in a process of its own: seconds of its sweep, peak memory, prediction times."""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from _sets import data_sets

from streamkernel import BayesianCommitteeMachine, GaussianProcessRegressor

P = 10


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"committee": _committee, "tune": _tune}[arguments.pop("what")](**arguments)


def _committee(store: str, n: int, block_size: int) -> dict[str, Any]:
    options = {"tune": "none", "signal_variance": 20.0, "noise_variance": 1.0, "lengthscale": 2.0}
    model = BayesianCommitteeMachine(n, block_size=block_size, rule="uniform", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(store)
    run = model.model_.config["run"]
    test = data_sets.friedman(20_000, P, start=2_000_000)
    X = test.X.astype(np.float32)
    model.predict(X[:2000], return_std=True)
    began = time.perf_counter()
    mean, _ = model.predict(X, return_std=True)
    return {
        "sweep": run["sweeps"][-1]["seconds"],
        "peak": run["peak_memory_bytes"],
        "planned": run["planned_memory_bytes"],
        "predict": time.perf_counter() - began,
        "rmse": float(np.sqrt(np.mean((mean - test.f) ** 2))),
    }


def _tune(store: str, n: int) -> dict[str, Any]:
    began = time.perf_counter()
    model = GaussianProcessRegressor(n, ard=True).fit(store)
    seconds = time.perf_counter() - began
    test = data_sets.friedman(20_000, P, start=2_000_000)
    mean, std = model.predict(test.X.astype(np.float32), return_std=True)
    run, tuning = model.model_.config["run"], model.model_.config["tuning"]
    return {
        "seconds": seconds,
        "looks": len(model.model_.arrays["tuning_values"]),
        "sample": tuning["sample_rows"],
        "peak": run["peak_memory_bytes"],
        "planned": run["planned_memory_bytes"],
        "rmse": float(np.sqrt(np.mean((mean - test.f) ** 2))),
        "coverage": float((np.abs(mean - test.y) <= 1.959964 * std).mean()),
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
