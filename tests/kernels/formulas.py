"""The kernels as plain formulas in float64, one row pair at a time where that is clearer: the oracles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.kernels import (
    ArcCosine,
    Cosine,
    Fixed,
    Gaussian,
    Hamming,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    OfColumns,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Sigmoid,
    StationaryKernel,
    Sum,
)

Matrix = NDArray[np.float64]


def squared_distances(X: Matrix, Z: Matrix, lengthscale: Any) -> Matrix:
    D = np.zeros((len(X), len(Z)))
    lengths = np.broadcast_to(np.asarray(lengthscale, dtype=np.float64), X.shape[1:])
    for j, length in enumerate(lengths):
        D += ((X[:, j, None] - Z[None, :, j]) / length) ** 2
    return D


def gaussian(k: Gaussian, X: Matrix, Z: Matrix) -> Matrix:
    return np.exp(-0.5 * squared_distances(X, Z, k.lengthscale))


def laplacian(k: Laplacian, X: Matrix, Z: Matrix) -> Matrix:
    lengths = np.broadcast_to(np.asarray(k.lengthscale), X.shape[1:])
    return np.exp(-sum(np.abs(X[:, j, None] - Z[None, :, j]) / lengths[j] for j in range(X.shape[1])))


def matern(k: Matern, X: Matrix, Z: Matrix) -> Matrix:
    r = np.sqrt(2 * k.nu * squared_distances(X, Z, k.lengthscale))
    factor = {0.5: np.ones_like(r), 1.5: 1 + r, 2.5: 1 + r + r**2 / 3}[k.nu]
    return factor * np.exp(-r)


def rational_quadratic(k: RationalQuadratic, X: Matrix, Z: Matrix) -> Matrix:
    return np.exp(-k.shape * np.log1p(squared_distances(X, Z, k.lengthscale) / (2 * k.shape)))


def periodic(k: Periodic, X: Matrix, Z: Matrix) -> Matrix:
    lengths, periods = (np.broadcast_to(np.asarray(each), X.shape[1:]) for each in (k.lengthscale, k.period))
    D = np.zeros((len(X), len(Z)))
    for j in range(X.shape[1]):
        # The remainder of a difference is exact, and pi times many periods is not.
        D += (np.sin(np.pi * np.fmod(X[:, j, None] - Z[None, :, j], periods[j]) / periods[j]) / lengths[j]) ** 2
    return np.exp(-2 * D)


def hamming(k: Hamming, X: Matrix, Z: Matrix) -> Matrix:
    lengths = np.broadcast_to(np.asarray(k.lengthscale), X.shape[1:])
    return np.exp(-np.sum((X[:, None, :] != Z[None, :, :]) / lengths, axis=2))


def polynomial(k: Polynomial, X: Matrix, Z: Matrix) -> Matrix:
    gamma = 1 / X.shape[1] if k.gamma is None else k.gamma
    return (gamma * (X @ Z.T) + k.coef0) ** k.degree


def sigmoid(k: Sigmoid, X: Matrix, Z: Matrix) -> Matrix:
    gamma = 1 / X.shape[1] if k.gamma is None else k.gamma
    return np.tanh(gamma * (X @ Z.T) + k.coef0)


def linear(k: Linear, X: Matrix, Z: Matrix) -> Matrix:
    return X @ Z.T


def directions(X: Matrix) -> Matrix:
    """Rows of norm 1; a row of zeros stays."""
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return np.divide(X, norms, out=np.zeros_like(X), where=norms > 0)


def angles(X: Matrix, Z: Matrix) -> Matrix:
    """Angles between rows, with the digits that arccos loses near 0 and pi; pi / 2 for a row of zeros."""
    U, V = directions(X)[:, None, :], directions(Z)[None, :, :]
    theta = 2 * np.arctan2(np.linalg.norm(U - V, axis=2), np.linalg.norm(U + V, axis=2))
    return np.where(np.any(X, axis=1)[:, None] & np.any(Z, axis=1), theta, np.pi / 2)


def cosine(k: Cosine, X: Matrix, Z: Matrix) -> Matrix:
    return directions(X) @ directions(Z).T


def arc_cosine(k: ArcCosine, X: Matrix, Z: Matrix) -> Matrix:
    theta = angles(X, Z)
    norms = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(Z, axis=1)
    c, rest = np.cos(theta), np.pi - theta
    J = [rest, np.sin(theta) + rest * c, 3 * np.sin(theta) * c + rest * (1 + 2 * c**2)][k.order]
    return norms**k.order * J / np.pi


FORMULAS: dict[type, Callable[..., Matrix]] = {
    Gaussian: gaussian,
    Laplacian: laplacian,
    Matern: matern,
    RationalQuadratic: rational_quadratic,
    Periodic: periodic,
    Hamming: hamming,
    OfColumns: lambda k, X, Z: plain(k.part, X[:, k.columns], Z[:, k.columns]),
    Polynomial: polynomial,
    Linear: linear,
    Cosine: cosine,
    ArcCosine: arc_cosine,
    Sigmoid: sigmoid,
    Sum: lambda k, X, Z: plain(k.left, X, Z) + plain(k.right, X, Z),
    Product: lambda k, X, Z: plain(k.left, X, Z) * plain(k.right, X, Z),
    Scaled: lambda k, X, Z: k.factor * plain(k.part, X, Z),
    Fixed: lambda k, X, Z: plain(k.part, X, Z),
}


def plain(kernel: Kernel, X: NDArray[Any], Z: NDArray[Any]) -> Matrix:
    """``k(X, Z)`` by its formula, in float64."""
    return FORMULAS[type(kernel)](kernel, X.astype(np.float64), Z.astype(np.float64))


def examples(p: int) -> list[Kernel]:
    """Some of every kind of kernel for p features; tests select by what a kernel is, not by its place here."""
    length = float(np.sqrt(p))
    lengths = tuple(length * (0.7 + 0.6 * ((7 * j) % 5) / 4) for j in range(p))
    return [
        Gaussian(length),
        Gaussian(length / 2),
        Gaussian(lengths),
        Matern(length, 0.5),
        Matern(lengths, 0.5),
        Matern(length, 1.5),
        Matern(length, 2.5),
        Matern(lengths, 2.5),
        RationalQuadratic(length, 0.7),
        RationalQuadratic(length, 40.0),
        RationalQuadratic(lengths, 2.0),
        Laplacian(float(p)),
        Laplacian(tuple(length * v for v in lengths)),
        Periodic(length, 3.0),
        Periodic(lengths, tuple(1.0 + 4.0 * v / length for v in lengths)),
        Hamming(length),
        Hamming(lengths),
        OfColumns(Matern(2.0, 2.5), range(0, p, 2)) + OfColumns(Periodic(2.0, 2.5) * Linear(), (p - 1,)),
        Gaussian(length) * OfColumns(Hamming(1.5), (0,)),
        Gaussian(length) * Matern(length, 1.5),
        Gaussian(length) + Laplacian(float(p)),
        Polynomial(),
        Polynomial(degree=6, gamma=0.1 / p, coef0=0.5),
        Linear(),
        Cosine(),
        *(ArcCosine(order) for order in (0, 1, 2)),
        ArcCosine() * Gaussian(length) + Cosine(),
        0.3 * Gaussian(length) * Fixed(Matern(length, 1.5)) + 2.0 * Linear(),
        Sigmoid(),
        Sigmoid(gamma=0.3 / p, coef0=-0.7),
    ]


def of_distances(p: int) -> list[StationaryKernel]:
    """Those of one scaled distance: with a lengthscale, and values in [0, 1]."""
    return [kernel for kernel in examples(p) if isinstance(kernel, StationaryKernel)]


def stationary(p: int) -> list[Kernel]:
    """Those with ``k(x, x) = 1`` for every row."""
    return [kernel for kernel in examples(p) if kernel.stationary]
