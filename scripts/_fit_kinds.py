"""Fit every kind once and print a JSON line for each: its digest and seconds. Run by `scripts/compare`.

By public names only, which the packages of both commits have.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import streamkernel as sk

M, P, N = 20_000, 8, 150
_RNG = np.random.default_rng(0)
X = _RNG.standard_normal((M, P))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], X[:, 3] ** 2]) + 0.1 * _RNG.standard_normal((M, 2))
LABELS = np.digitize(Y[:, 0], [-0.5, 0.5])
COUNTS = _RNG.poisson(np.exp(Y[:, 0] / 2))
GIVEN: dict[str, Any] = {"lengthscale": 3.0, "random_state": 0}
VARIANCES: dict[str, Any] = {"signal_variance": 1.0, "noise_variance": 0.1, **GIVEN}


def _predict(model: Any) -> Any:
    return model.predict(X)


def _transform(model: Any) -> Any:
    return model.transform(X)


Fit = tuple[Callable[[], Any], Callable[[Any], Any]]

KINDS: dict[str, Fit] = {
    "ridge": (lambda: sk.KernelRidge(N, **GIVEN).fit(X, Y), _predict),
    "ridge, found lengthscale": (
        lambda: sk.KernelRidge(N, lengthscale="auto", random_state=0).fit(X, Y[:, 0]),
        _predict,
    ),
    "ridge, float32": (lambda: sk.KernelRidge(N, **GIVEN).fit(X.astype(np.float32), Y), _predict),
    "ridge, cg": (lambda: sk.KernelRidge(N, solver="cg", alpha=0.1, **GIVEN).fit(X, Y), _predict),
    "ridge, trace": (lambda: sk.KernelRidge(N, objective="trace", **GIVEN).fit(X, Y), _predict),
    "ridge, rpcholesky": (lambda: sk.KernelRidge(N, rule="rpcholesky", **GIVEN).fit(X, Y), _predict),
    "ridge, uniform": (lambda: sk.KernelRidge(N, rule="uniform", **GIVEN).fit(X, Y), _predict),
    "ridge, look-ahead": (lambda: sk.KernelRidge(N, rule="csi-lookahead", **GIVEN).fit(X, Y[:, 0]), _predict),
    "ridge, laplacian": (lambda: sk.KernelRidge(N, kernel="laplacian", **GIVEN).fit(X, Y), _predict),
    "ridge, updated": (
        lambda: sk.KernelRidge(N, **GIVEN).fit(X[: M // 2], Y[: M // 2]).update(X[M // 2 :], Y[M // 2 :]),
        _predict,
    ),
    "ridge classifier": (lambda: sk.KernelRidgeClassifier(N, **GIVEN).fit(X, LABELS), _predict),
    "gp, fitc": (lambda: sk.GaussianProcessRegressor(N, **VARIANCES).fit(X, Y), _predict),
    "gp, dtc": (lambda: sk.GaussianProcessRegressor(N, approximation="dtc", **VARIANCES).fit(X, Y), _predict),
    "gp, pitc": (lambda: sk.GaussianProcessRegressor(N, approximation="pitc", **VARIANCES).fit(X, Y), _predict),
    "gp, found": (lambda: sk.GaussianProcessRegressor(N, random_state=0).fit(X, Y[:, 0]), _predict),
    "committee": (lambda: sk.BayesianCommitteeMachine(200, block_size=1000, **VARIANCES).fit(X, Y[:, 0]), _predict),
    "gp classifier": (lambda: sk.GaussianProcessClassifier(50, **GIVEN).fit(X, LABELS), _predict),
    "poisson": (lambda: sk.GaussianProcessPoissonRegressor(50, **GIVEN).fit(X, COUNTS), _predict),
    "kmp": (lambda: sk.KernelMatchingPursuit(60, **GIVEN).fit(X, Y[:, 0]), _predict),
    "kmp classifier": (lambda: sk.KernelMatchingPursuitClassifier(40, **GIVEN).fit(X, LABELS), _predict),
    "nystroem": (lambda: sk.Nystroem(N, **GIVEN).fit(X), _transform),
    "kernel pca": (lambda: sk.KernelPCA(10, basis_size=N, **GIVEN).fit(X), _transform),
    "kernel pca, sparse": (lambda: sk.KernelPCA(10, sparse=N, **GIVEN).fit(X), _transform),
    "kernel cca": (
        lambda: sk.KernelCCA(2, basis_size=60, **GIVEN).fit(X[:, :4], Y),
        lambda model: model.transform(X[:, :4]),
    ),
    "factor": (
        lambda: sk.factorize(X, Path(tempfile.mkdtemp(dir=_PLACE), "factor"), n_components=N, **GIVEN),
        lambda factor: factor.basis.features(X),
    ),
}
_PLACE = ""


def _line(kind: str) -> dict[str, Any]:
    fit, values = KINDS[kind]
    began = time.perf_counter()
    model = fit()
    fitted = time.perf_counter()
    found = np.ascontiguousarray(values(model))
    ended = time.perf_counter()
    return {
        "kind": kind,
        "package": str(Path(sk.__file__).parent),
        "digest": getattr(model, "model_", model).digest,
        "values": hashlib.sha256(found.tobytes()).hexdigest(),
        "fit": fitted - began,
        "predict": ended - fitted,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sk.Nystroem(5).fit(X[:100]).transform(X[:100])  # loads libraries and compiled loops, which are no kind's time
    with tempfile.TemporaryDirectory() as _PLACE:
        for each in sys.argv[1:] or KINDS:
            print(json.dumps(_line(each)), flush=True)
