"""Small tables as poor as real ones are, and a model of every kind that is fitted to them, saved and loaded."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray
from rule_table import RULES_OF_ROWS, TABLE, title
from strategies import seeds

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelCCA,
    KernelMatchingPursuit,
    KernelMatchingPursuitClassifier,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    factorize,
)
from streamkernel.errors import NumericalError, StreamKernelWarning
from streamkernel.factors import Factor

__all__ = [
    "FACTOR_RULES",
    "KINDS",
    "Kind",
    "PoorTable",
    "poor_tables",
    "same_after_loading",
    "same_factor_after_loading",
]

Float = NDArray[np.float64]


@dataclass(frozen=True)
class PoorTable:
    """Rows and targets without a tie between them.

    Attributes
    ----------
    X : (m, p) rows that repeat, columns of few values, constant ones, and multiples of each other.
    noise, labels, counts : (m,) targets.
    n : size of the basis that is asked for; often more than there are independent functions.
    lengthscale, seed : of the fit.
    """

    X: Float
    noise: Float
    labels: NDArray[np.int64]
    counts: Float
    n: int
    lengthscale: float
    seed: int

    @property
    def options(self) -> dict[str, Any]:
        return {"lengthscale": self.lengthscale, "random_state": self.seed}

    @property
    def queries(self) -> Float:
        """Rows of the table and others."""
        others = np.random.default_rng(self.seed).standard_normal((20, self.X.shape[1]))
        return np.concatenate([self.X[:30], others])


def _column(kind: str, rng: np.random.Generator, before: list[Float], m: int) -> Float:
    if kind == "collinear" and before:
        return 3.0 * before[-1] - 1.0
    if kind == "few":
        return rng.integers(0, rng.integers(2, 5), m).astype(np.float64)
    if kind == "constant":
        return np.full(m, 7.0)
    if kind == "rounded":
        return np.round(rng.uniform(-0.5, 0.5, m), 1)
    return rng.uniform(-0.5, 0.5, m)


@st.composite
def poor_tables(draw: st.DrawFn, *, max_rows: int = 160) -> PoorTable:
    m = draw(st.integers(12, max_rows))
    kinds = draw(st.lists(st.sampled_from(["few", "constant", "rounded", "collinear"]), max_size=4))
    rng = np.random.default_rng(draw(seeds))
    columns: list[Float] = []
    for kind in ["any", *kinds] if draw(st.booleans()) or not kinds else kinds:
        columns.append(_column(kind, rng, columns, m))
    X = np.column_stack(columns)
    distinct = draw(st.sampled_from([m, m, max(2, m // 4), 5]))
    X = X[rng.integers(0, distinct, m)] if distinct < m else X
    labels = rng.integers(0, draw(st.integers(2, 3)), m)
    labels[:3] = [0, 1, labels.max()]
    return PoorTable(
        X=X,
        noise=rng.uniform(-0.5, 0.5, m),
        labels=labels,
        counts=rng.poisson(2.0, m).astype(np.float64),
        n=draw(st.sampled_from([m, max(1, m // 2), max(1, m // 5)])),
        lengthscale=draw(st.sampled_from([0.01, 0.3, 1.0, 10.0])),
        seed=draw(st.integers(0, 3)),
    )


@dataclass(frozen=True)
class Kind:
    """A kind of fit.

    Attributes
    ----------
    fit : of a table.
    said : what it says of rows; equal to the bit before it is saved and after.
    centred : whether it decomposes centred features, of which rows that are all equal leave nothing.
    """

    fit: Callable[[PoorTable], Any]
    said: Callable[[Any, Float], list[Any]]
    centred: bool = False


def _predicts(model: Any, rows: Float) -> list[Any]:
    return [model.predict(rows)]


def _tells_classes(model: Any, rows: Float) -> list[Any]:
    return [model.predict(rows), model.predict_proba(rows)]


def _with_std(model: Any, rows: Float) -> list[Any]:
    return list(model.predict(rows, return_std=True))


def _transforms(model: Any, rows: Float) -> list[Any]:
    return [model.transform(rows)]


def _variates(model: Any, rows: Float) -> list[Any]:
    return [model.transform(rows)]


def _ridge(name: str, options: dict[str, Any]) -> Kind:
    further = {key: value for key, value in options.items() if key != "objective"}
    objective = options.get("objective", "prediction")

    def fit(table: PoorTable) -> Any:
        model = KernelRidge(table.n, rule=name, objective=objective, rule_options=further, **table.options)
        return model.fit(table.X, table.noise)

    return Kind(fit, _predicts)


def _features(name: str, options: dict[str, Any]) -> Kind:
    further = {key: value for key, value in options.items() if key != "objective"}
    return Kind(
        lambda table: Nystroem(table.n, rule=name, rule_options=further, **table.options).fit(table.X), _transforms
    )


def _gaussian(estimator: Any, **options: Any) -> Callable[[PoorTable], Any]:
    return lambda table: estimator(table.n, signal_variance=1.0, noise_variance=0.1, **options, **table.options).fit(
        table.X, table.noise
    )


def _grown(estimator: Any, **options: Any) -> Callable[[PoorTable], Any]:
    """Of a part of the rows, few of whose values are those of the rest; then of all, with as many functions more."""

    def fit(table: PoorTable) -> Any:
        order, part = np.argsort(table.X[:, 0], kind="stable"), max(2, len(table.X) // 3)
        X, y = table.X[order], table.noise[order]
        model = estimator(min(table.n, part), **options, **table.options).fit(X[:part], y[:part])
        return model.update(X, y, stale=0.0, grow=len(X))

    return fit


def _views(table: PoorTable) -> tuple[Float, Float]:
    return table.X, np.column_stack([table.X[:, 0] + table.noise, table.noise])


KINDS: dict[str, Kind] = {
    **{f"ridge, {title(*row)}": _ridge(*row) for row in TABLE},
    "Nystroem": _features("few-sweep", {}),
    "Nystroem, centres": _features("kmeans", {"nearest": False}),
    "Nystroem, leverage": _features("leverage", {}),
    "ridge, tolerance": Kind(
        lambda t: KernelRidge(t.n, tol=1e-3, objective="trace", **t.options).fit(t.X, t.noise), _predicts
    ),
    "ridge, cg": Kind(lambda t: KernelRidge(t.n, solver="cg", alpha=0.1, **t.options).fit(t.X, t.noise), _predicts),
    "ridge, linear kernel": Kind(
        lambda t: KernelRidge(t.n, kernel="linear", random_state=t.seed).fit(t.X, t.noise), _predicts
    ),
    "ridge, grown": Kind(_grown(KernelRidge), _predicts),
    "fitc, grown": Kind(_grown(GaussianProcessRegressor, signal_variance=1.0, noise_variance=0.1), _with_std),
    "classifier": Kind(lambda t: KernelRidgeClassifier(t.n, **t.options).fit(t.X, t.labels), _predicts),
    "fitc": Kind(_gaussian(GaussianProcessRegressor), _with_std),
    "dtc": Kind(_gaussian(GaussianProcessRegressor, approximation="dtc"), _with_std),
    "pitc": Kind(_gaussian(GaussianProcessRegressor, approximation="pitc", block_size=10), _with_std),
    "committee": Kind(_gaussian(BayesianCommitteeMachine, block_size=20), _with_std),
    "gp classifier": Kind(
        lambda t: GaussianProcessClassifier(t.n, signal_variance=1.0, **t.options).fit(t.X, t.labels), _tells_classes
    ),
    "poisson": Kind(
        lambda t: GaussianProcessPoissonRegressor(t.n, signal_variance=1.0, **t.options).fit(t.X, t.counts), _with_std
    ),
    **{
        f"pursuit, {variant} {pool}": Kind(
            lambda t, variant=variant, pool=pool: KernelMatchingPursuit(
                t.n, variant=variant, pool=pool, **t.options
            ).fit(t.X, t.noise),
            _predicts,
        )
        for variant in ("pre-fitting", "back-fitting", "basic")
        for pool in ("shared", "split", "full")
    },
    "pursuit of classes": Kind(
        lambda t: KernelMatchingPursuitClassifier(t.n, loss="logistic", **t.options).fit(t.X, t.labels), _tells_classes
    ),
    "pca": Kind(lambda t: KernelPCA(basis_size=t.n, **t.options).fit(t.X), _transforms, centred=True),
    "sparse pca": Kind(lambda t: KernelPCA(sparse=t.n, **t.options).fit(t.X), _transforms, centred=True),
    "cca": Kind(lambda t: KernelCCA(2, basis_size=t.n, **t.options).fit(*_views(t)), _variates, centred=True),
    "cca, all": Kind(
        lambda t: KernelCCA(2, basis_size=t.n, pool="all", **t.options).fit(*_views(t)), _variates, centred=True
    ),
}


def same_after_loading(kind: Kind, table: PoorTable, path: Path) -> None:
    """Fit, save, load, predict: to the bit what the model in memory says; or what is documented is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamKernelWarning)
        if kind.centred and bool((np.ptp(table.X, axis=0) == 0.0).all()):
            with pytest.raises(NumericalError, match=r"equal|constant"):
                kind.fit(table)
            return
        model = kind.fit(table)
        model.save(path, overwrite=True)
        again = type(model).load(path)
        for before, after in zip(kind.said(model, table.queries), kind.said(again, table.queries), strict=True):
            np.testing.assert_array_equal(after, before)
            assert np.isfinite(np.asarray(before)).all() or np.asarray(before).dtype.kind != "f"
    assert again.model_.digest == model.model_.digest


FACTOR_RULES = list(RULES_OF_ROWS)


def same_factor_after_loading(table: PoorTable, path: Path, rule: str) -> None:
    """Make, load: the columns on disk and those that are made anew are the same to the bit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamKernelWarning)
        made = factorize(
            table.X, path, n_components=table.n, rule=rule, dtype="float64", overwrite=True, **table.options
        )
        again = Factor.load(path)
        np.testing.assert_array_equal(np.asarray(again.G), np.asarray(made.G))
        np.testing.assert_array_equal(again.basis.features(table.X), made.basis.features(table.X))
    assert again.digest == made.digest
