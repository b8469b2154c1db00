"""Rows with integer weights, and the same rows repeated: what every method must not tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelCCA,
    KernelLPClassifier,
    KernelLPRegressor,
    KernelMatchingPursuit,
    KernelMatchingPursuitClassifier,
    KernelOneClass,
    KernelPCA,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    KernelSVC,
    KernelSVR,
    Nystroem,
)
from streamkernel.engine import Session, Step
from streamkernel.reductions.scores.standard_errors import without_errors
from streamkernel.selection.problem import Problem, Rule, Selection, gather_step
from streamkernel.selection.row_cache import RowCache
from streamkernel.table import Table, open_table

__all__ = [
    "CASES",
    "TRANSFORMS",
    "Case",
    "FixedRows",
    "WeightedRows",
    "assert_same",
    "marked",
    "scores_of",
    "weighted_rows",
]

Float = NDArray[np.float64]


@dataclass(frozen=True)
class FixedRows(Rule):
    """The rule that takes the rows with given numbers."""

    rows: tuple[int, ...]
    name = "fixed"

    @property
    def fetches_picks(self) -> bool:
        return True

    def prefetch(self, problem: Problem) -> NDArray[np.int64]:
        return np.array(self.rows, dtype=np.int64)

    def steps(self, problem: Problem) -> list[Step]:
        return [gather_step(problem, len(self.rows))]

    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        sample = cache.get(self.prefetch(problem))
        basis, _ = problem.empty_basis().append(sample.X, sample.rows)
        return Selection(basis, np.zeros(0), (), "size")


@dataclass(frozen=True)
class WeightedRows:
    """Rows X (m, p), targets and whole weights w (m,), some of them 0.

    `numbers` are the rows of weight > 0, `places` the first copy of each among the repeated rows.
    """

    X: Float
    y: NDArray[Any]
    w: NDArray[np.int64]
    classify: bool = False

    @property
    def weighted(self) -> Table:
        """A table with the weights."""
        return open_table(self.X, self.y, classify=self.classify, weights=self.w.astype(float))

    @property
    def repeated(self) -> Table:
        """The table in which row i stands w_i times."""
        rows = np.repeat(np.arange(len(self.w)), self.w)
        return open_table(self.X[rows], self.y[rows], classify=self.classify)

    @property
    def both(self) -> tuple[Table, Table]:
        return self.weighted, self.repeated

    @property
    def numbers(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.w).astype(np.int64)

    @property
    def places(self) -> NDArray[np.int64]:
        return (np.cumsum(self.w) - self.w)[self.numbers].astype(np.int64)

    def fixed(self, count: int, *, repeated: bool) -> FixedRows:
        """The rule that takes `count` of these rows, the same ones from either table."""
        every = (self.places if repeated else self.numbers)[:: max(1, len(self.numbers) // count)]
        return FixedRows(tuple(every[:count].tolist()))


def weighted_rows(kind: str = "numbers", m: int = 72, p: int = 3, seed: int = 0, most: int = 4) -> WeightedRows:
    """Rows whose weights are 0 to `most`; rows of weight 0 lie far from all others, in X and in y.

    Parameters
    ----------
    kind : targets: "numbers", "two" (columns), "classes" (two), "labels" (three), "counts".
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, p))
    f = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]
    w = rng.integers(0, most + 1, m)
    w[:4] = 1, 2, 0, most
    y: NDArray[Any] = f + 0.2 * rng.standard_normal(m)
    if kind == "two":
        y = np.column_stack([y, 3.0 * X[:, 2] + rng.standard_normal(m)])
    elif kind == "classes":
        y = (y > 0.0).astype(np.int64)
    elif kind == "labels":
        y = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
    elif kind == "counts":
        y = rng.poisson(np.exp(f)).astype(float)
    X[w == 0] += 7.0
    if kind in ("numbers", "two"):
        y[w == 0] -= 50.0
    elif kind == "counts":
        y[w == 0] += 40.0
    return WeightedRows(X, y, w, kind in ("classes", "labels"))


def scores_of(model: Any, table: Table) -> dict[str, float]:
    """What `streamkernel evaluate` prints, without the number of rows, and without what depends on that number."""
    result = Session().sweep(model.scores(), model.prepare(model.prepare_targets(table)), "evaluate")
    scores: Mapping[str, float] = result if isinstance(result, dict) else result.scalars
    return {
        name: value
        for name, value in without_errors(scores).items()
        if name not in ("rows", "weight", "effective_rows")
    }


def assert_same(found: ArrayLike, wanted: ArrayLike, what: str, tolerance: float = 1e-10) -> None:
    """Equal to a relative 1e-10 of the largest value."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0))
    assert found.shape == wanted.shape, f"{what}: {found.shape} and {wanted.shape}"
    if not np.allclose(found, wanted, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
        raise AssertionError(f"{what}: {found.ravel()[:4]} and {wanted.ravel()[:4]}, off by {_off(found, wanted):.2g}")


def _off(found: Float, wanted: Float) -> float:
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-300))


N = 14
VARIANCES = {"lengthscale": 1.5, "signal_variance": 2.0, "noise_variance": 0.1}


@dataclass(frozen=True)
class Case:
    """A fit of a kind.

    Attributes
    ----------
    estimator : its class; `options` are parameters.
    targets : kind of targets, see `weighted_rows`.
    ruled : whether the basis is given by a rule of the test; if not, the fit's own choice does not depend on chance.
    tolerance : relative difference that is allowed.
    m : number of stored rows.
    """

    title: str
    estimator: type[Any]
    options: dict[str, Any] = field(default_factory=dict)
    targets: str = "numbers"
    ruled: bool = True
    tolerance: float = 1e-10
    m: int = 72

    def rows(self) -> WeightedRows:
        """The rows of the fit."""
        return weighted_rows(self.targets, self.m)

    def fitted(self, rows: WeightedRows) -> tuple[Any, Any]:
        """The estimators of the weighted and of the repeated rows."""
        found = []
        for table, repeated in ((rows.weighted, False), (rows.repeated, True)):
            rule = {"rule": rows.fixed(N, repeated=repeated)} if self.ruled else {}
            found.append(self.estimator(**{"n_components": N, **rule, **self.options}).fit(table))
        return found[0], found[1]


RIDGE = {"lengthscale": 1.5, "kernel": "gaussian", "metric": "none"}
PURSUIT = {"lengthscale": 1.5, "pool": "full", "validation": None}
LINEAR = {**RIDGE, "n_components": 60, "gap_tol": 1e-10}
DICTIONARY = {"pool": "full", "validation": None, "scale": "none"}
CASES = [
    Case("ridge", KernelRidge, {**RIDGE, "alpha": 0.1}),
    Case("ridge, gcv", KernelRidge, {**RIDGE, "alpha": "gcv"}),
    Case("ridge, two targets, gcv", KernelRidge, {**RIDGE, "alpha": "gcv"}, "two"),
    Case("ridge, cv", KernelRidge, {**RIDGE, "alpha": "cv"}, m=240),
    Case("ridge, cg", KernelRidge, {**RIDGE, "alpha": 0.1, "solver": "cg"}, tolerance=1e-6),
    Case("ridge, cg, cv", KernelRidge, {**RIDGE, "alpha": "cv", "solver": "cg"}, tolerance=1e-3, m=300),
    Case("ridge, no intercept", KernelRidge, {**RIDGE, "alpha": 0.1, "fit_intercept": False}),
    Case("ridge, robust", KernelRidge, {**RIDGE, "alpha": 0.1, "scale": "robust"}),
    Case("ridge, rank", KernelRidge, {**RIDGE, "alpha": 0.1, "scale": "rank"}),
    Case("ridge, no scale", KernelRidge, {**RIDGE, "alpha": 0.1, "scale": "none"}),
    Case("ridge, median", KernelRidge, {**RIDGE, "lengthscale": "median", "alpha": 0.1}),
    Case("ridge, polynomial", KernelRidge, {"kernel": "polynomial", "alpha": 0.1}),
    Case("ridge-classifier", KernelRidgeClassifier, {**RIDGE, "alpha": 0.1}, "classes"),
    Case("ridge-classifier, labels, gcv", KernelRidgeClassifier, {**RIDGE, "alpha": "gcv"}, "labels"),
    Case("ridge-classifier, cv", KernelRidgeClassifier, {**RIDGE, "alpha": "cv"}, "classes", m=240),
    Case("svc", KernelSVC, {**RIDGE, "C": 2.0}, "classes"),
    Case("svc, hinge", KernelSVC, {**RIDGE, "C": 2.0, "loss": "hinge"}, "labels"),
    Case("svc, path", KernelSVC, {**RIDGE, "C": [0.5, 5.0]}, "classes", tolerance=1e-3, m=240),
    Case("svr", KernelSVR, {**RIDGE, "C": 2.0}),
    Case("svr, epsilon", KernelSVR, {**RIDGE, "C": 2.0, "loss": "epsilon_insensitive"}, "two"),
    Case("svr, huber", KernelSVR, {**RIDGE, "C": 2.0, "loss": "huber"}),
    Case("quantile", KernelQuantileRegressor, {**RIDGE, "C": 2.0, "quantile": (0.2, 0.8)}),
    Case("lp", KernelLPClassifier, {**LINEAR, "C": 2.0}, "classes", ruled=False),
    Case("lp, three classes", KernelLPClassifier, {**LINEAR, "C": 2.0}, "labels", ruled=False),
    Case("lp-regressor", KernelLPRegressor, {**LINEAR, "C": 2.0}, "two", ruled=False),
    Case("one-class", KernelOneClass, {"lengthscale": 1.5, "nu": 0.2}),
    Case("kmp", KernelMatchingPursuit, PURSUIT, ruled=False),
    Case("kmp, basic", KernelMatchingPursuit, {**PURSUIT, "variant": "basic"}, ruled=False),
    Case("kmp, back-fitting", KernelMatchingPursuit, {**PURSUIT, "variant": "back-fitting"}, ruled=False),
    Case("kmp, held out", KernelMatchingPursuit, {**PURSUIT, "validation": 0.3}, ruled=False),
    Case("kmp, not definite", KernelMatchingPursuit, {"kernel": "sigmoid", **DICTIONARY}, ruled=False),
    Case("kmp-classifier", KernelMatchingPursuitClassifier, PURSUIT, "classes", ruled=False),
    Case("kmp-classifier, held out", KernelMatchingPursuitClassifier, {**PURSUIT, "validation": 0.3}, "classes", False),
    Case("kmp-classifier, labels", KernelMatchingPursuitClassifier, PURSUIT, "labels", ruled=False),
    Case(
        "kmp-classifier, logistic", KernelMatchingPursuitClassifier, {**PURSUIT, "loss": "logistic"}, "classes", False
    ),
    *(
        Case(f"gp, {name}", GaussianProcessRegressor, {**VARIANCES, "approximation": name})
        for name in ("dtc", "fitc", "pitc")
    ),
    Case("gp, fitc, noise by evidence", GaussianProcessRegressor, {**VARIANCES, "noise_variance": "evidence"}),
    Case(
        "gp, dtc, by evidence",
        GaussianProcessRegressor,
        {"lengthscale": 1.5, "approximation": "dtc", "tune": "none"},
        tolerance=1e-6,
    ),
    Case("gp, two targets", GaussianProcessRegressor, VARIANCES, "two"),
    Case("gp, cells", GaussianProcessRegressor, {**VARIANCES, "approximation": "pitc", "partition": "cells"}),
    Case("committee", BayesianCommitteeMachine, VARIANCES),
    Case("gp-classifier", GaussianProcessClassifier, {"lengthscale": 1.5, "signal_variance": 2.0}, "classes"),
    Case("gp-classifier, labels", GaussianProcessClassifier, {"lengthscale": 1.5, "signal_variance": 2.0}, "labels"),
    Case("poisson", GaussianProcessPoissonRegressor, {"lengthscale": 1.5, "signal_variance": 1.0}, "counts"),
    Case("gp-classifier, evidence", GaussianProcessClassifier, {}, "classes", tolerance=1e-3),
    Case("gp, evidence", GaussianProcessRegressor, {}, tolerance=1e-3),
    Case("gp, full", GaussianProcessRegressor, {"tune": "full"}, tolerance=1e-3),
    Case("poisson, evidence", GaussianProcessPoissonRegressor, {}, "counts", tolerance=1e-3),
]
TRANSFORMS = [
    Case("nystroem", Nystroem, {"lengthscale": 1.5}),
    Case("kernel-pca", KernelPCA, {"lengthscale": 1.5, "n_components": 4, "basis_size": N}),
    Case("kernel-pca, robust", KernelPCA, {"lengthscale": 1.5, "n_components": 4, "basis_size": N, "scale": "robust"}),
    Case("kernel-pca, rank", KernelPCA, {"lengthscale": 1.5, "n_components": 4, "basis_size": N, "scale": "rank"}),
    Case("kernel-pca, median", KernelPCA, {"n_components": 4, "basis_size": N}),
    Case(
        "kernel-cca", KernelCCA, {"lengthscale": 1.5, "basis_size": 5, "n_components": 1, "pool": "all"}, "two", False
    ),
]


# Sums, loss or search of each is that of another case.
_REPEATING = {
    "ridge, two targets, gcv", "ridge, cg, cv", "ridge, robust", "ridge-classifier, labels, gcv",
    "ridge-classifier, cv", "lp, three classes", "kmp, basic", "kmp-classifier, held out", "kmp-classifier, labels",
    "gp, two targets", "gp-classifier, labels", "gp, evidence", "poisson, evidence",
}  # fmt: skip


def marked(cases: Iterable[Case]) -> list[Any]:
    """These as parameters of a test, with their titles; what only repeats another case is slow."""
    return [pytest.param(each, id=each.title, marks=[pytest.mark.slow] * (each.title in _REPEATING)) for each in cases]
