"""Curves of `bounds`: residuals and their bounds along sparse kernel PCA, wrong rows and their bound along KMP."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel import KernelPCA
from streamkernel.bounds import MatchingPursuitBound, compression_bound, matching_pursuit_bound, pca_bound
from streamkernel.pursuit import Stages, pursue

__all__ = [
    "DELTA",
    "PursuitCurves",
    "Residuals",
    "matching_pursuit",
    "pursuit_curves",
    "residual_curves",
    "toy",
    "write_pursuit",
    "write_residuals",
]

Float = NDArray[np.float64]

DELTA = 0.05


@dataclass(frozen=True)
class Residuals:
    """Along 1 .. n basis functions: residual of held-out rows, and what bounds it.

    Attributes
    ----------
    test : of the subspace of the chosen rows; what Theorem 2 bounds.
    test_pca : of as many eigenvectors of the kernel matrix; what the bound of kernel PCA is about.
    sparse, printed : Theorem 2 with exact binomials, and with ``(em/t)^t`` and ln(2m / delta) as the paper prints it.
    pca : the bound of kernel PCA.
    """

    test: Float
    test_pca: Float
    sparse: Float
    printed: Float
    pca: Float


def toy(seed: int, spectrum: Float, rows: int = 1000, features: int = 450) -> Float:
    """Gaussian rows of unit variance, the first columns times `spectrum`; each row to length 1, so that k(x, x) = 1."""
    X = np.random.default_rng(seed).standard_normal((rows, features))
    X[:, : len(spectrum)] *= spectrum
    unit: Float = X / np.linalg.norm(X, axis=1, keepdims=True)
    return unit


def residual_curves(train: Float, test: Float, n: int, kernel: dict[str, Any]) -> Residuals:
    """Sparse kernel PCA by the paper's Algorithm 1 (all rows as candidates) on rows whose k(x, x) is 1."""
    with warnings.catch_warnings():
        # The rank may be exhausted before n.
        warnings.simplefilter("ignore")
        model = KernelPCA(1, sparse=n, rule="matching-pursuit-kpca", scale="none", **kernel).fit(train)
    basis, left = model.basis_, model.model_.residual_path[1:]
    G = basis.features(test)
    prepared = model.kernel_.prepare(train)
    K, K_test = prepared.block(train), prepared.block(test)
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    values, vectors = np.maximum(values[::-1], 0.0)[: len(left)], vectors[:, ::-1][:, : len(left)]
    along = K_test @ vectors / np.sqrt(np.maximum(values, 1e-12))
    m, t = len(train), np.arange(1, len(left) + 1)
    found = compression_bound(left, m, DELTA)
    radius = np.sqrt((t * np.log(np.e * m / t) + np.log(2 * m / DELTA)) / (2 * (m - t)))
    return Residuals(
        test=1.0 - np.cumsum(G**2, axis=1).mean(axis=0),
        test_pca=1.0 - np.cumsum(along**2, axis=1).mean(axis=0),
        sparse=found.values,
        printed=left / (m - t) + radius,
        pca=pca_bound(values, np.diagonal(K), DELTA),
    )


def matching_pursuit(K: Float, y: Float, n: int) -> tuple[list[int], list[Float]]:
    """Pre-fitting, with all columns of K as candidates and no constant.

    Returns
    -------
    Rows in the order of picking, and for each size the coefficients of their functions.
    """
    chosen = pursue(K, y[:, None], n).order
    stages = Stages.least_squares(K[:, chosen], y[:, None], constant=False)
    each = (stages.directions[:t, :t] @ stages.amounts[:t, 0] for t in range(1, len(chosen) + 1))
    return chosen.tolist(), list(each)


@dataclass(frozen=True)
class PursuitCurves:
    """Along 1 .. n functions.

    Attributes
    ----------
    loss : share of held-out rows that are more than gamma off.
    rmse : of them.
    bound : Theorem 3, from the wrong rows outside the basis.
    """

    loss: Float
    rmse: Float
    bound: MatchingPursuitBound


def pursuit_curves(
    K: Float, y: Float, K_test: Float, y_test: Float, path: tuple[list[int], list[Float]], gamma: float
) -> PursuitCurves:
    """Bound and loss of a path for one gamma."""
    chosen, coefficients = path
    errors, loss, rmse = [], [], []
    for t, a in enumerate(coefficients, start=1):
        wrong = np.abs(K[:, chosen[:t]] @ a - y) > gamma
        errors.append(int(wrong.sum() - wrong[chosen[:t]].sum()))
        off = K_test[:, chosen[:t]] @ a - y_test
        loss.append(float(np.mean(np.abs(off) > gamma)))
        rmse.append(float(np.sqrt(np.mean(off**2))))
    bound = matching_pursuit_bound(len(y), np.arange(1, len(errors) + 1), errors, DELTA)
    return PursuitCurves(np.asarray(loss), np.asarray(rmse), bound)


def write_residuals(path: Path, curves: Residuals) -> None:
    """As columns of a CSV file."""
    names = ("test", "test_pca", "sparse", "printed", "pca")
    _write(path, names, [getattr(curves, name) for name in names])


def write_pursuit(path: Path, curves: PursuitCurves) -> None:
    """As columns of a CSV file."""
    bound = curves.bound
    names = ("test_loss", "test_rmse", "train_loss_outside", "bound", "bound_relaxed")
    _write(path, names, [curves.loss, curves.rmse, bound.observed, bound.values, bound.relaxed])


def _write(path: Path, names: Sequence[str], columns: Sequence[Float]) -> None:
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["size", *names])
        for t, values in enumerate(zip(*columns, strict=True), start=1):
            writer.writerow([t, *(f"{value:.6g}" for value in values)])
