"""docs/reliability.md says what is so: modules that it names, every error, and messages as the code raises them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    errors,
    ingest,
    open_table,
)
from streamkernel.kernels import Gaussian, Precomputed
from streamkernel.kinds import PREDICTORS, settings_of
from streamkernel.models import RidgeModel
from streamkernel.store import write_bundle

PLAIN = {"kernel": "gaussian", "metric": "none", "alpha": "gcv"}

ROOT = Path(__file__).resolve().parents[1]
RELIABILITY = ROOT / "docs" / "reliability.md"


def test_modules_that_reliability_names_exist() -> None:
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", RELIABILITY.read_text(encoding="utf-8")))
    assert len(named) > 20
    for name in named:
        assert (ROOT / "streamkernel" / name).is_file(), name


def test_every_error_has_its_place_in_reliability() -> None:
    text = RELIABILITY.read_text(encoding="utf-8")
    own = [found for found in vars(errors).values() if getattr(found, "__module__", "") == errors.__name__]
    classes = {found.__name__ for found in own if isinstance(found, type) and not found.__name__.startswith("_")}
    assert "ParameterError" in classes
    for name in classes - {"StoreError", "StreamKernelError"}:
        assert f"`{name}`" in text, name


RNG = np.random.default_rng(0)
X = RNG.standard_normal((6000, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
LABELS = np.where(Y > 0, "yes", "no")
GIVEN_VARIANCES: dict[str, Any] = {"signal_variance": 1.0, "noise_variance": 0.1}
GIVEN: dict[str, Any] = {"lengthscale": 1.0, **GIVEN_VARIANCES}
NUMBER_Y = {
    "ragged.csv": "a,b,y\n1,2,3\n4,5\n",
    "text.csv": "a,b,y\n1,2,3\n4,five,6\n",
    "empty.csv": "",
    "header.csv": "a,b,y\n",
    "twice.csv": "a,a,y\n1,2,3\n",
    "target.csv": "a,b\n1,2\n",
    "nan.csv": "a,b,y\n1,2,3\n4,,6\n",
}
SEVERAL_FILES = {
    "a.csv": "a,y\n1,2\n",
    "b.csv": "a,u\n1,2\n",
    "n.csv": "1,2\n",
    "b.parquet": "x",
    "y=1/c.csv": "a,y\n1,2\n",
}
SEVERAL: dict[str, Any] = {
    "other columns": ["a.csv", "b.csv"],
    "without the header": ["a.csv", "n.csv"],
    "several kinds": ["a.csv", "b.parquet"],
    "twice": ["a.csv", "a.csv"],
    "no match": "*.tsv",
    "folder": "y=*/c.csv",
}


def fitted(names: str = "", **options: Any) -> KernelRidge:
    """A model without the search of the defaults: no message of a fitted model is about them."""
    rows = pd.DataFrame(X, columns=list(names)) if names else X
    return KernelRidge(10, **{**PLAIN, **options}).fit(open_table(rows, Y))


def damaged() -> object:
    model = fitted().model_
    write_bundle("model.zarr", replace(model.bundle(), config={**model.config, "seen": [{"rows": []}]}))
    return RidgeModel.load("model.zarr")


def committee(n: int = 10, X: Any = X, y: Any = Y, weights: Any = None, **options: Any) -> object:
    table = open_table(X, y, weights=weights, classify=y.dtype.kind == "U")
    return BayesianCommitteeMachine(n, **{**GIVEN, **options}).fit(table)


MATRIX = np.eye(40) + 1.0


def of_matrix(K: Any = MATRIX, estimator: Any = KernelRidge, n: int = 5, **options: Any) -> Any:
    return estimator(n, kernel="precomputed", **options).fit(K, Y[: len(K)])


def in_pairs(m: int, first: int, last: int) -> Any:
    """I, in which neighbours in the middle have a kernel value of 2: the eigenvalues there are 3 and -1."""
    K = np.eye(m)
    K[first:last, first:last] += np.kron(np.eye((last - first) // 2), [[0.0, 2.0], [2.0, 0.0]])
    return K


FAILING: dict[str, Callable[[], object]] = {
    "complex": lambda: open_table(X + 1j),
    "text": lambda: open_table(pd.DataFrame({"a": [1, 2], "town": ["x", "y"]})),
    "no rows": lambda: open_table(np.zeros((0, 3))),
    "three axes": lambda: open_table(np.zeros((4, 3, 2))),
    "two lengths": lambda: open_table(X, Y[:5999]),
    "overflow": lambda: open_table((X * 1e25).astype(np.float32)).read(0, 6000),
    "all equal": lambda: KernelRidge(5, scale="none").fit(np.ones((50, 3)), Y[:50]),
    "singular": lambda: KernelRidge(60, alpha=0.0).fit(np.repeat(X[:20], 5, axis=0), np.repeat(Y[:20], 5)),
    "one class": lambda: KernelRidgeClassifier(10).fit(X, np.full(6000, "yes")),
    "no functions": lambda: KernelRidge(0).fit(X, Y),
    "lengthscale": lambda: KernelRidge(10, lengthscale=float("nan")).fit(X, Y),
    "alpha": lambda: KernelRidge(10, alpha=-1).fit(X, Y),
    "a bool": lambda: KernelRidge(10, alpha=True).fit(X, Y),
    "rows": lambda: open_table(X).slice(0, 9000),
    "no targets": lambda: KernelRidge(10).fit(open_table(X)),
    "no store": lambda: open_table("nowhere.zarr"),
    "labels for a committee": lambda: committee(y=LABELS),
    "numbers for text": lambda: KernelRidgeClassifier(10).fit(X, LABELS).update(open_table(X + 1, Y)),
    "counts": lambda: GaussianProcessPoissonRegressor(10, tune="none").fit(X, np.round(Y)),
    "two of counts": lambda: GaussianProcessPoissonRegressor(10).fit(open_table(X, np.ones((6000, 2)))),
    "constant": lambda: GaussianProcessRegressor(10).fit(X, np.ones(6000)),
    "queries": lambda: committee(queries=np.ones((5, 4))),
    "large weights": lambda: KernelRidge(10).fit(X, Y, sample_weight=np.full(6000, 1e300)),
    "of ridge": lambda: settings_of(PREDICTORS["gp"], {"alpha": 1.0}),
    "of pitc": lambda: settings_of(PREDICTORS["gp"], {"block_size": 10}),
    "variance": lambda: GaussianProcessRegressor(10, noise_variance=0.0).fit(X, Y),
    "tune": lambda: GaussianProcessClassifier(10, tune="full").fit(X, LABELS),
    "ard": lambda: GaussianProcessRegressor(10, ard=True, lengthscale=1.0).fit(X, Y),
    "std": lambda: fitted().model_.outputs(std=True),
    "no sums": lambda: fitted(alpha=1.0, solver="cg").update(X, Y),
    "choice": lambda: fitted().update(X + 1, Y, variances="keep"),
    "changed rows": lambda: fitted().update(X, np.where(np.arange(6000) == 0, 0.0, Y)),
    "a part": lambda: fitted().update(X[:1500], Y[:1500]),
    "names": lambda: fitted("abc").update(open_table(pd.DataFrame(X, columns=list("Abc")), Y)),
    "labels for a regression": lambda: fitted().update(open_table(X + 1, LABELS, classify=True)),
    "growth": lambda: fitted().update(X[3000:], Y[3000:], grow=5),
    "stale": lambda: fitted().update(X, Y, stale=float("nan")),
    "damaged": damaged,
    "no square": lambda: of_matrix(MATRIX[:, :30]),
    "not symmetric": lambda: of_matrix(MATRIX + np.triu(np.ones((40, 40)), 39)),
    "indefinite": lambda: of_matrix(in_pairs(40, 0, 40)),
    "below 0": lambda: of_matrix(MATRIX - 3.0 * np.diag(np.arange(40) == 7)),
    "a matrix and a lengthscale": lambda: of_matrix(lengthscale=2.0),
    "a matrix and cells": lambda: of_matrix(
        estimator=GaussianProcessRegressor, approximation="pitc", partition="cells"
    ),
    "a matrix in a sum": lambda: KernelRidge(5, kernel=Precomputed() + Gaussian()).fit(MATRIX, Y[:40]),
    "a matrix for a committee": lambda: of_matrix(estimator=BayesianCommitteeMachine),
    "no diagonal": lambda: of_matrix(estimator=GaussianProcessRegressor, **GIVEN_VARIANCES).predict(
        MATRIX[:3], return_std=True
    ),
    "further rows of a matrix": lambda: of_matrix().update(MATRIX, Y[:40]),
    "no source": lambda: ingest("nowhere.csv", "t.zarr"),
    **{name: lambda name=name: ingest(name, "t.zarr", target="y") for name in NUMBER_Y},  # type: ignore[misc]
    **{name: lambda name=name: ingest(SEVERAL[name], "t.zarr") for name in SEVERAL},  # type: ignore[misc]
}


@pytest.mark.parametrize("case", FAILING)
def test_messages_in_reliability_are_real(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {**NUMBER_Y, **SEVERAL_FILES}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(errors.StreamKernelError) as caught:
        FAILING[case]()
    row = f"| `{type(caught.value).__name__}` | `{caught.value}` |"
    assert row in RELIABILITY.read_text(encoding="utf-8"), row


WARNED: dict[str, Callable[[], object]] = {
    "labels": lambda: open_table(X, np.where(Y > 0, "yes", "Yes"), classify=True),
    "more functions than rows": lambda: KernelRidge(700, **PLAIN).fit(X[:600], Y[:600]),
    "few query points": lambda: committee(block_size=100),
    "indefinite in the middle": lambda: of_matrix(in_pairs(2400, 1024, 1376), alpha=1.0, rule="uniform", n=600),
    "stale": lambda: KernelRidge(20, **PLAIN).fit(X[:3000], Y[:3000]).update(X[3000:] + 2, Y[3000:]),
    "seconds since 1970": lambda: ingest(pd.DataFrame({"time": 1.7e9 + np.arange(3600.0)}), "t.zarr"),
}


@pytest.mark.parametrize("case", WARNED)
def test_warnings_in_reliability_are_real(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.warns(errors.StreamKernelWarning) as caught:
        WARNED[case]()
    row = f"| `StreamKernelWarning`, works | `{caught[0].message}` |"
    assert row in RELIABILITY.read_text(encoding="utf-8"), row
