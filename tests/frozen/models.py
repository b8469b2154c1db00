"""Models and factors as they are saved: how each is made, and what it says then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from frozen.rows import COUNTS, GRAM, LABELS, NEW, OLD, QUERIES, SPARSE, Arrays, Frozen, X, Y
from numpy.typing import NDArray

from streamkernel import (
    BayesianCommitteeMachine,
    Factor,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelBoostingClassifier,
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
    factorize,
)
from streamkernel.kernels import (
    Gaussian,
    Hamming,
    Laplacian,
    Linear,
    Matern,
    OfColumns,
    Periodic,
    Polynomial,
    RationalQuadratic,
)


def _saved(fit: Callable[[], Any], kind: Any, *methods: str, update: NDArray[Any] | None = None) -> Frozen:
    """An estimator: what its methods say of the queries and, with targets to update it with, what they say then."""

    def values(model: Any, prefix: str = "") -> Arrays:
        return {f"{prefix}{name}": np.asarray(_said(model, name)) for name in methods}

    def read(folder: Path) -> Arrays:
        found = values(kind.load(folder / "model"))
        if update is not None:
            found |= values(kind.load(folder / "model").update(X[NEW], update[NEW]), "updated ")
        return found

    return Frozen(lambda folder: fit().save(folder / "model"), read)


def _said(model: Any, name: str) -> Any:
    if name == "predict with std":
        return np.stack(model.predict(QUERIES, return_std=True))
    if name == "transform second":
        # The views of `_cca`.
        return np.concatenate(model.transform(QUERIES, np.column_stack([QUERIES[:, 0], QUERIES[:, 2]])))
    return getattr(model, name)(QUERIES)


def _factor(**options: Any) -> Frozen:
    def read(folder: Path) -> Arrays:
        factor = Factor.load(folder / "factor")
        rows = {} if options.get("columns") == "none" else {"G": np.asarray(factor.G)}
        return {**rows, "features": factor.basis.features(QUERIES)}

    return Frozen(lambda folder: factorize(X, folder / "factor", Y[:, 0], **options), read)


def _make_sparse_model(folder: Path) -> None:
    KernelRidge(8, alpha=0.1, lengthscale=1.5, random_state=0).fit(SPARSE[OLD], Y[OLD]).save(folder / "model")


def _read_sparse_model(folder: Path) -> Arrays:
    model = KernelRidge.load(folder / "model")
    return {"predict": np.asarray(model.predict(SPARSE[NEW])), "components": model.components_.toarray()}


def _make_sparse_views(folder: Path) -> None:
    settings = {"basis_size": 8, "lengthscale": 1.5, "random_state": 0}
    KernelCCA(2, **settings).fit(SPARSE[OLD], Y[OLD]).save(folder / "model")
    groups = ((0, 2), (1,))
    KernelCCA(1, view_columns=groups, **settings).fit(SPARSE[OLD]).save(folder / "columns")


def _read_sparse_views(folder: Path) -> Arrays:
    first, second = KernelCCA.load(folder / "model").transform(SPARSE[NEW], Y[NEW])
    both = KernelCCA.load(folder / "columns").transform(SPARSE[NEW])
    return {"first": first, "second": second, "columns": np.stack(both)}


def _make_matrix_model(folder: Path) -> None:
    KernelRidge(8, kernel="precomputed", alpha=0.1, random_state=0).fit(GRAM, Y[OLD]).save(folder / "model")


def _read_matrix_model(folder: Path) -> Arrays:
    model = KernelRidge.load(folder / "model")
    return {"predict": np.asarray(model.predict((QUERIES @ X[OLD].T + 1.0) ** 2)), "components": model.components_}


def ridge_settings(**options: Any) -> KernelRidge:
    return KernelRidge(8, **{"lengthscale": 1.5, "random_state": 0, **options})


def ridge(targets: NDArray[Any] = Y, **options: Any) -> KernelRidge:
    return ridge_settings(**options).fit(X[OLD], targets[OLD])


def _gp(**options: Any) -> GaussianProcessRegressor:
    given = {"lengthscale": 1.5, "signal_variance": 2.0, "noise_variance": 0.1, "random_state": 0}
    return GaussianProcessRegressor(8, **{**given, **options}).fit(X[OLD], Y[OLD, 0])


def _committee(**options: Any) -> BayesianCommitteeMachine:
    given = {"lengthscale": 1.5, "signal_variance": 2.0, "noise_variance": 0.1, "random_state": 0}
    return BayesianCommitteeMachine(8, block_size=40, **{**given, **options}).fit(X[OLD], Y[OLD, 0])


def _generalised(kind: Any, targets: NDArray[Any]) -> Any:
    return kind(8, lengthscale=1.5, signal_variance=2.0, random_state=0).fit(X[OLD], targets[OLD])


def _cca() -> KernelCCA:
    return KernelCCA(2, basis_size=8, lengthscale=1.5, random_state=0).fit(
        X[OLD], np.column_stack([X[OLD, 0], Y[OLD, 1]])
    )


_SUM = (
    Gaussian((1.5, 1.0, 2.0)) + Matern(2.0, nu=2.5) * Linear() + Laplacian(3.0) + RationalQuadratic(2.0) + Polynomial(2)
)

_OF_COLUMNS = OfColumns(Gaussian(1.5), (0, 1)) + 0.5 * OfColumns(Periodic(1.0, 3.0), (2,)) * Hamming(2.0)

_EXPRESSION = "2*gaussian + matern52(lengthscale=2) + linear"

_GP = ("predict with std",)

MODELS: dict[str, Frozen] = {
    "ridge": _saved(ridge, KernelRidge, "predict", update=Y),
    "ridge-one-target": _saved(lambda: ridge(Y[:, 0]), KernelRidge, "predict", update=Y[:, 0]),
    "ridge-float32-mixture": _saved(lambda: ridge(Y.astype(np.float32), objective=0.5), KernelRidge, "predict"),
    "ridge-look-ahead": _saved(lambda: ridge(Y[:, 0], rule="csi-lookahead"), KernelRidge, "predict"),
    "ridge-cg": _saved(lambda: ridge(solver="cg", alpha=0.1), KernelRidge, "predict"),
    "ridge-kernels": _saved(lambda: ridge(kernel=_SUM, lengthscale=None), KernelRidge, "predict"),
    "ridge-columns": _saved(lambda: ridge(kernel=_OF_COLUMNS, lengthscale=None, scale="none"), KernelRidge, "predict"),
    "ridge-expression": _saved(lambda: ridge(kernel=_EXPRESSION, lengthscale="median"), KernelRidge, "predict"),
    "ridge-updated": _saved(lambda: ridge().update(X[NEW], Y[NEW]), KernelRidge, "predict"),
    "ridge-classifier": _saved(
        lambda: KernelRidgeClassifier(8, lengthscale=1.5, random_state=0).fit(X[OLD], LABELS[OLD]),
        KernelRidgeClassifier,
        "predict",
        "decision_function",
        update=LABELS,
    ),
    "svc": _saved(
        lambda: KernelSVC(8, lengthscale=1.5, kernel="gaussian", C=[0.5, 5.0], random_state=0).fit(X, LABELS),
        KernelSVC,
        "decision_function",
        "predict_proba",
    ),
    "svc-hinge": _saved(
        lambda: KernelSVC(
            8, lengthscale=1.5, kernel="gaussian", C=2.0, loss="hinge", calibration="isotonic", random_state=0
        ).fit(X, LABELS == "low"),
        KernelSVC,
        "decision_function",
        "predict_proba",
    ),
    "svr": _saved(
        lambda: KernelSVR(8, lengthscale=1.5, kernel="gaussian", C=[1.0, 10.0], random_state=0).fit(X, Y),
        KernelSVR,
        "predict",
    ),
    "lp": _saved(
        lambda: KernelLPClassifier(lengthscale=1.5, kernel="gaussian", C=[0.5, 5.0], random_state=0).fit(X, LABELS),
        KernelLPClassifier,
        "decision_function",
        "predict_proba",
    ),
    "lp-regressor": _saved(
        lambda: KernelLPRegressor(lengthscale=1.5, kernel="gaussian", C=5.0, random_state=0).fit(X, Y),
        KernelLPRegressor,
        "predict",
    ),
    "one-class": _saved(
        lambda: KernelOneClass(8, lengthscale=1.5, nu=0.2, random_state=0).fit(X, sample_weight=1.0 + COUNTS % 3),
        KernelOneClass,
        "decision_function",
        "predict",
    ),
    "boosting": _saved(
        lambda: KernelBoostingClassifier(
            lengthscale=1.5, kernel="gaussian", members=3, member_rows=20, calibration="platt", random_state=0
        ).fit(X, LABELS),
        KernelBoostingClassifier,
        "decision_function",
        "predict_proba",
    ),
    "boosting-filtering": _saved(
        lambda: KernelBoostingClassifier(
            5, lengthscale=1.5, kernel="gaussian", method="filtering", learner="kmp", member_rows=20, random_state=0
        ).fit(X, LABELS == "low"),
        KernelBoostingClassifier,
        "decision_function",
        "predict",
    ),
    "quantile": _saved(
        lambda: KernelQuantileRegressor(
            8, lengthscale=1.5, kernel="gaussian", quantile=[0.1, 0.5, 0.9], C=[1.0, 10.0], random_state=0
        ).fit(X, Y[:, 0]),
        KernelQuantileRegressor,
        "predict",
    ),
    "gp-fitc": _saved(_gp, GaussianProcessRegressor, *_GP, update=Y[:, 0]),
    "gp-dtc": _saved(lambda: _gp(approximation="dtc"), GaussianProcessRegressor, *_GP, update=Y[:, 0]),
    "gp-pitc": _saved(lambda: _gp(approximation="pitc", block_size=40), GaussianProcessRegressor, *_GP),
    "gp-tuned": _saved(
        lambda: GaussianProcessRegressor(8, tune="full", ard=True, random_state=0).fit(X[OLD], Y[OLD, 0]),
        GaussianProcessRegressor,
        *_GP,
    ),
    "committee": _saved(_committee, BayesianCommitteeMachine, *_GP),
    "committee-cells": _saved(
        lambda: _committee(partition="cells", queries=X[:3] + 0.5), BayesianCommitteeMachine, *_GP
    ),
    "gp-classifier": _saved(
        lambda: _generalised(GaussianProcessClassifier, LABELS), GaussianProcessClassifier, "predict", "predict_proba"
    ),
    "gp-classifier-two": _saved(
        lambda: _generalised(GaussianProcessClassifier, LABELS == "low"), GaussianProcessClassifier, "predict_proba"
    ),
    "poisson": _saved(
        lambda: _generalised(GaussianProcessPoissonRegressor, COUNTS), GaussianProcessPoissonRegressor, *_GP
    ),
    "kmp": _saved(
        lambda: KernelMatchingPursuit(8, lengthscale=1.5, random_state=0).fit(X[OLD], Y[OLD, 0]),
        KernelMatchingPursuit,
        "predict",
    ),
    "kmp-classifier": _saved(
        lambda: KernelMatchingPursuitClassifier(8, loss="logistic", lengthscale=1.5, random_state=0).fit(
            X[OLD], LABELS[OLD]
        ),
        KernelMatchingPursuitClassifier,
        "predict",
        "predict_proba",
    ),
    "nystroem": _saved(lambda: Nystroem(8, lengthscale=1.5, random_state=0).fit(X), Nystroem, "transform"),
    "kernel-pca": _saved(
        lambda: KernelPCA(4, basis_size=8, lengthscale=1.5, random_state=0).fit(X), KernelPCA, "transform"
    ),
    "kernel-pca-sparse": _saved(
        lambda: KernelPCA(2, sparse="bound", basis_size=12, lengthscale=1.5, random_state=0).fit(X),
        KernelPCA,
        "transform",
    ),
    "kernel-cca": _saved(_cca, KernelCCA, "transform", "transform second"),
    "factor": _factor(n_components=8, lengthscale=1.5, random_state=0),
    "factor-look-ahead": _factor(n_components=8, lengthscale=1.5, random_state=0, rule="csi-lookahead"),
    "factor-bound": _factor(n_components=20, lengthscale=1.5, random_state=0, stop="bound", dtype="float64"),
    "factor-no-columns": _factor(n_components=8, lengthscale=1.5, random_state=0, columns="none"),
    "kernel-cca-sparse": Frozen(_make_sparse_views, _read_sparse_views),
    "ridge-sparse": Frozen(_make_sparse_model, _read_sparse_model),
    "ridge-precomputed": Frozen(_make_matrix_model, _read_matrix_model),
}
