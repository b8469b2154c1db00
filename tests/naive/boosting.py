"""Boosting in plain NumPy: all rows and their masses in memory, ridge members, draws by the keys of the rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from streamkernel.reductions.row_random import row_uniforms

Float = NDArray[np.float64]
STREAM = 31


@dataclass
class Boosted:
    """Errors, factors and mass changes of the members, their values at all rows, and the rows of their samples."""

    errors: list[float] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    codes: list[Any] = field(default_factory=list)
    samples: list[tuple[Any, Float]] = field(default_factory=list)
    masses: list[Float] = field(default_factory=list)


def gaussian(X: Float, Z: Float, lengthscale: float) -> Float:
    return np.exp(-((X[:, None] - Z) ** 2).sum(-1) / (2.0 * lengthscale**2))


def reservoir(mass: Float, among: Any, size: int, number: int, seed: int) -> tuple[Any, Float]:
    """The `size` rows with the smallest keys E / D, and D over their probabilities, in sum 1."""
    u = row_uniforms(seed, (STREAM, number), 0, len(mass))[:, 0]
    keys = np.where(among & (mass > 0.0), -np.log(u) / np.where(mass > 0.0, mass, 1.0), np.inf)
    order = np.argsort(keys, kind="stable")[: (np.isfinite(keys)).sum()]
    rows, following = np.sort(order[:size]), keys[order[size]] if len(order) > size else np.inf
    importance = mass[rows] / -np.expm1(-mass[rows] * following)
    return rows, importance / importance.sum()


def ridge_codes(X: Float, y: Any, rows: Any, w: Float, classes: int, lengthscale: float, alpha: float) -> Any:
    """Classes of all rows by ridge members of one class against the rest; of two classes by one function."""
    columns = [1] if classes == 2 else range(classes)
    f = np.empty((len(X), len(columns)))
    K = gaussian(X[rows], X[rows], lengthscale) + alpha * np.diag(1.0 / w)
    for k, column in enumerate(columns):
        t = np.where(y[rows] == column, 1.0, -1.0)
        b = w @ t / w.sum()
        f[:, k] = gaussian(X, X[rows], lengthscale) @ np.linalg.solve(K, t - b) + b
    return (f[:, 0] > 0.0).astype(int) if classes == 2 else f.argmax(axis=1)


def adaboost(
    X: Float, y: Any, w: Float, members: int, size: int, lengthscale: float, alpha: float, seed: int
) -> Boosted:
    """AdaBoost, of more than two classes SAMME, whose samples are drawn after the masses have changed."""
    C = int(y.max()) + 1
    mass, found = w / w.sum(), Boosted()
    parts = [(np.ones(len(y), dtype=bool), size)]
    for t in range(members):
        drawn = [(*reservoir(mass, among, part, t, seed), part) for among, part in parts]
        rows = np.concatenate([each for each, _, _ in drawn])
        share = min(size, w.sum()) / size
        weights = np.concatenate([each * part * share for _, each, part in drawn])
        order = np.argsort(rows)
        codes = ridge_codes(X, y, rows[order], weights[order], C, lengthscale, alpha)
        wrong = codes != y
        e = float(mass[wrong].sum() / mass.sum())
        a = 0.5 * (np.log((1.0 - e) / e) + np.log(C - 1.0))
        changed = mass * np.exp(np.where(wrong, a, -a))
        found.samples.append((rows[order], weights[order]))
        found.errors.append(e)
        found.factors.append(float(a))
        found.changes.append(float(changed.sum() / mass.sum()))
        found.codes.append(codes)
        mass = changed / changed.sum()
        found.masses.append(mass)
        part = round(size * (1.0 - 1.0 / C))
        parts = [(wrong, part), (~wrong, size - part)]
    return found


def margins(V: Float, y: Any) -> Float:
    """How far the vote of the own class is above the largest of the others."""
    own = V[np.arange(len(y)), y]
    return own - np.where(np.arange(V.shape[1]) == y[:, None], -np.inf, V).max(axis=1)


def madaboost(
    X: Float, y: Any, w: Float, members: int, size: int, lengthscale: float, alpha: float, seed: int
) -> Boosted:
    """MadaBoost with hard votes: masses of at most w, and factors with the least loss over all rows."""
    C = int(y.max()) + 1
    mass, V, found = w / w.sum(), np.zeros((len(y), C)), Boosted()
    for t in range(members):
        rows, shares = reservoir(mass, np.ones(len(y), dtype=bool), size, t, seed)
        weights = shares * min(size, w.sum())
        codes = ridge_codes(X, y, rows, weights, C, lengthscale, alpha)

        def loss(a: float, codes: Any = codes, V: Float = V) -> float:
            u = margins(V + a * (np.arange(C) == codes[:, None]), y)
            return float(w @ np.where(u > 0.0, np.exp(-np.abs(u)), 1.0 - u))

        e = float(mass[codes != y].sum() / mass.sum())
        most = np.log((1.0 - e) / e) + np.log(C - 1.0)
        a = float(minimize_scalar(loss, bounds=(0.0, most), method="bounded", options={"xatol": 1e-12}).x)
        found.samples.append((rows, weights))
        found.errors.append(e)
        found.factors.append(a)
        found.codes.append(codes)
        V = V + a * (np.arange(C) == codes[:, None])
        mass = w / w.sum() * np.minimum(1.0, np.exp(-margins(V, y)))
        found.masses.append(mass)
    return found


def votes(found: Boosted, count: int, classes: int) -> Any:
    """Classes of all rows by the vote of the first members."""
    V = sum(
        a * (np.arange(classes) == codes[:, None]) for a, codes in zip(found.factors[:count], found.codes, strict=False)
    )
    return np.argmax(V, axis=1)
