"""One small fit over more than twenty chunks, for the tests of equal bits; also run as a program that is killed.

python fitting.py STORE RUN [SWEEP [ROWS]]    kill -9 itself after sweep SWEEP, or ROWS rows later
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import data_sets
import numpy as np
from problems import zarr_of_chunks

from streamkernel.engine import Session, Silent, ThreadExecutor
from streamkernel.fits import fit_ridge
from streamkernel.kinds import PREDICTORS
from streamkernel.models import RidgeModel
from streamkernel.settings import RidgeSettings
from streamkernel.store import Checkpoints
from streamkernel.table import open_table

ROWS, CHUNK = 50_000, 2_000
PLAIN = {"kernel": "gaussian", "metric": "none", "alpha": "gcv"}
SETTINGS: dict[str, dict[str, Any]] = {
    "trace": {"objective": "trace"},
    "prediction": {"objective": "prediction"},
    "mixture, tolerance": {"objective": 0.5, "tol": 0.05},
    "sgma shared": {"rule": "sgma", "rule_options": {"pool": "shared", "picks": 8, "candidates": 5}},
    "gp-posterior": {"rule": "gp-posterior", "rule_options": {"picks": 8, "candidates": 5, "dual_rows": 50}},
    "given metric": {"metric": [[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.5, 1.0], [0.1, 0.0, 2.0], [0.0, 0.3, 0.0]]},
    "rpcholesky": {"rule": "rpcholesky", "rule_options": {"block": 20}},
    "held-out folds": {"alpha": "cv"},
    "default": {"kernel": None, "metric": None, "alpha": None},
}

# Of the other estimators, whose name may be followed by what is special; those with blocks have enough query points for
# the lengthscale.
_LONG: dict[str, Any] = {"lengthscale": 4.0, "signal_variance": 20.0}
_GIVEN: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "lengthscale": 2.0}
RECIPE_SETTINGS: dict[str, dict[str, Any]] = {
    "kmp": {"draw": "residual", "validation": 0.2, "picks": 6},
    "kmp-classifier": {"loss": "logistic", "validation": 0.2, "pool": "split", "candidates": 10, "picks": 8},
    "gp": {"noise_variance": 1.0, "tune": "none", **_LONG},
    "gp-classifier": _LONG,
    "poisson": _LONG,
    "svc": {"C": (1.0, 10.0), **_GIVEN},
    "svc, hinge": {"C": 3.0, "loss": "hinge", "calibration": "none", **_GIVEN},
    "svc, full": {"C": 3.0, "loss": "hinge", "machine": "full", "n_components": 5_000, **_GIVEN},
    "svr": {"C": (10.0, 100.0), **_GIVEN},
    "quantile": {"C": (3.0, 30.0), "quantile": (0.1, 0.5, 0.9), **_GIVEN},
    "boosting": {"learner": "kmp", "members": 4, "member_rows": 300, "calibration": "platt", **_GIVEN},
    "lp": {"C": 0.03, "n_components": 200, "gap_tol": 0.3, **_GIVEN},
    "one-class": {"nu": 0.05, "lengthscale": 2.0},
    "committee": {"noise_variance": 10.0, "block_size": 100, "partition": "cells", **_LONG, "lengthscale": 8.0},
}


def settings_of(name: str, n: int = 32) -> RidgeSettings:
    return RidgeSettings(n_components=n, seed=3, **{**PLAIN, **SETTINGS[name]})


def make_store(path: Any) -> str:
    data = data_sets.friedman(ROWS, 5, seed=1)
    return zarr_of_chunks(path, data.X.astype(np.float32), data.y, CHUNK)


def fit(store: str, name: str = "trace", executor: Any = None, **session: Any) -> RidgeModel:
    return fit_ridge(open_table(store), settings_of(name), Session(executor or ThreadExecutor(1), **session))


def fit_recipe(store: str, name: str, executor: Any = None, **session: Any) -> Any:
    """One of the other estimators, on a part of the rows that cuts chunks and blocks."""
    kind = PREDICTORS[name.partition(",")[0]]
    table = open_table(store, classify=kind.classify).slice(1_000, 15_500)
    settings = kind.settings(**{"n_components": 32, "seed": 3, **RECIPE_SETTINGS[name]})
    return kind.fit(table, settings, Session(executor or ThreadExecutor(1), **session), estimator=kind.name)


def fit_in_memory() -> RidgeModel:
    """Large enough for OpenBLAS to take a second thread where it may."""
    data = data_sets.friedman(12_000, 5, seed=1)
    settings = RidgeSettings(n_components=320, seed=3, **PLAIN)
    return fit_ridge(open_table(data.X, data.y), settings, Session(ThreadExecutor(2)))


class Killer(Silent):
    """kill -9 at a given point of the run."""

    def __init__(self, sweep: int, rows: int | None) -> None:
        self.left, self.rows, self.seen = sweep, rows, 0

    def advance(self, rows: int) -> None:
        self.seen += rows
        if self.left == 0 and self.rows is not None and self.seen >= self.rows:
            os.kill(os.getpid(), signal.SIGKILL)

    def end(self, seconds: float) -> None:
        self.left, self.seen = self.left - 1, 0
        if self.left == 0 and self.rows is None:
            os.kill(os.getpid(), signal.SIGKILL)


def run_of(store: str, folder: Any) -> Checkpoints:
    config = {"table": open_table(store).fingerprint, "settings": settings_of("trace").to_config()}
    return Checkpoints(folder, config)


if __name__ == "__main__":
    store, folder, sweep, *rows = sys.argv[1:]
    with run_of(store, folder) as checkpoints:
        fit(store, progress=Killer(int(sweep), int(rows[0]) if rows else None), checkpoints=checkpoints)
