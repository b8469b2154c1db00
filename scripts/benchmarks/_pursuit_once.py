"""One fit of the `pursuit` benchmark in a process of its own: out of core, or one term at a time on rows in memory."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from _sets import data_sets
from _tables import peak_bytes
from numpy.typing import NDArray

from streamkernel import KernelMatchingPursuit, open_table
from streamkernel.kernels import Gaussian

Float = NDArray[np.float64]

_CUTS = 8  # sizes whose errors are told
_DIGITS = 1e-6  # share of a column's square that a single-precision kernel matrix knows nothing of


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"streamed": _streamed, "in memory": _in_memory}[arguments.pop("what")](**arguments)


def _streamed(store: str, terms: int, lengthscale: float, noise: float, options: dict[str, Any]) -> dict[str, Any]:
    model = KernelMatchingPursuit(terms, lengthscale=lengthscale, scale="none", **options)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(store)
    run = model.model_.config["run"]
    test = _test_rows(noise)
    return {
        "seconds": time.perf_counter() - began,
        "sweeps": model.n_sweeps_,
        "terms": len(model.active_set_),
        "peak": run["peak_memory_bytes"],
        "planned": run["planned_memory_bytes"],
        "rmse": _errors(model.staged_predict(test.X), test.f, terms),
    }


def _in_memory(store: str, terms: int, lengthscale: float, noise: float, rows: int) -> dict[str, Any]:
    """Pre-fitting on the first rows, every one of which is a candidate for every term."""
    table = open_table(store)
    block = table.read(0, rows)
    X, y = np.asarray(block.X, dtype=np.float64) / lengthscale, np.asarray(block.Y, dtype=np.float64)[:, 0]
    began = time.perf_counter()
    picks, factor, sums = _pursue(X, y - y.mean(), terms)
    seconds = time.perf_counter() - began
    test = _test_rows(noise)
    columns = _gaussian(test.X / lengthscale, X[picks])
    columns -= _gaussian(X, X[picks]).mean(axis=0)
    whitened = np.linalg.solve(factor, columns.T).T
    stages = (y.mean() + whitened[:, : n + 1] @ sums[: n + 1] for n in range(len(picks)))
    return {
        "seconds": seconds,
        "sweeps": len(picks),
        "terms": len(picks),
        "peak": peak_bytes(),
        "planned": None,
        "rmse": _errors(stages, test.f, terms),
    }


def _pursue(X: Float, y: Float, terms: int) -> tuple[NDArray[np.int64], Float, Float]:
    """Picks, the lower factor that takes centred columns to orthonormal ones, and the coefficients of these.

    The kernel matrix serves scores alone, in single precision; what is picked is projected in double.
    """
    m = len(X)
    K = np.empty((m, m), dtype=np.float32)
    for start in range(0, m, 1000):
        K[start : start + 1000] = _gaussian(X[start : start + 1000], X)
    ones = np.full(m, m**-0.5)
    squares = np.array([float(row @ row) for row in K]) - (K @ ones.astype(np.float32)).astype(np.float64) ** 2
    left, residual = squares.copy(), y.copy()
    products = (K @ residual.astype(np.float32)).astype(np.float64)
    Q, L, sums = np.zeros((terms, m)), np.zeros((terms, terms)), np.zeros(terms)
    picks: list[int] = []
    for n in range(terms):
        scores = np.where(left > _DIGITS * squares, products**2 / np.maximum(left, 1e-300), -1.0)
        i = int(np.argmax(scores))
        column = _gaussian(X, X[i : i + 1])[:, 0]
        column -= column.mean()
        for _ in range(2):
            along = Q[:n] @ column
            column -= along @ Q[:n]
            L[n, :n] += along
        L[n, n] = np.linalg.norm(column)
        Q[n] = column / L[n, n]
        sums[n] = Q[n] @ residual
        residual -= sums[n] * Q[n]
        across = (K @ Q[n].astype(np.float32)).astype(np.float64)
        left -= across**2
        products -= sums[n] * across
        left[i] = 0.0
        picks.append(i)
    return np.asarray(picks), L, sums


def _gaussian(A: Float, B: Float) -> Float:
    """k(A, B), lengthscale 1."""
    return Gaussian().prepare(B).block(A)


def _test_rows(noise: float) -> Any:
    return data_sets.friedman(20_000, 10, start=20_000_000, noise=noise)


def _errors(stages: Iterable[Float], truth: Float, terms: int) -> dict[int, float]:
    """Root mean squared error to the noiseless function, at some sizes."""
    cuts = {round(terms * (i + 1) / _CUTS) for i in range(_CUTS)}
    return {
        n: float(np.sqrt(np.mean((np.ravel(stage) - truth) ** 2))) for n, stage in enumerate(stages, 1) if n in cuts
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
