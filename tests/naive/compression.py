"""Compressed tables, from their definitions: clusters of each class, likelihood profiles, herding, scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from naive.dense import Array


def class_clusters(U: Array, codes: Array, seeds: Sequence[int], sweeps: int) -> Array:
    """Cluster (m,) of each row after Lloyd's steps from rows `seeds`, whose clusters have rows of their class only."""
    centres = U[list(seeds)].copy()
    for step in range(sweeps + 1):
        found = np.empty(len(U), np.int64)
        for i, u in enumerate(U):
            own = [j for j, seed in enumerate(seeds) if codes[seed] == codes[i]]
            found[i] = min(own, key=lambda j: (round(float(((u - centres[j]) ** 2).sum()), 12), j))
        if step < sweeps:
            for j in range(len(seeds)):
                assert (found == j).any(), "a cluster without rows: choose other seeds"
                centres[j] = U[found == j].mean(axis=0)
    return found


def weighted_means(values: Array, weights: Array, clusters: Array, n: int) -> Array:
    """Mean of the rows of each cluster, by their weights."""
    return np.stack([np.average(values[clusters == j], axis=0, weights=weights[clusters == j]) for j in range(n)])


def likelihood_profiles(f: Array, loss: str, y: Array | None = None) -> Array:
    """Minus the log likelihoods of rows under functions with values f (m, L); numbers have the unit Gaussian's."""
    if loss == "logistic":
        return -np.log(1.0 / (1.0 + np.exp(-f)))
    if loss == "hinge":
        return np.where(f < 1.0, 1.0 - f, 0.0)
    assert y is not None
    return (y[:, None] - f) ** 2 / 2.0


def herding(phi: Array, mu: Array, wanted: int) -> list[int]:
    """Rows, each once, whose mean is brought nearest to mu, one after the other."""
    picks: list[int] = []
    for _ in range(wanted):
        others = [j for j in range(len(phi)) if j not in picks]
        picks.append(min(others, key=lambda j: float(((phi[[*picks, j]].mean(axis=0) - mu) ** 2).sum())))
    return picks


def score_features(G: Array, Z: Array, codes: Array, beta: Array, intercept: Array, radius: float) -> Array:
    """``(.3 psi, 2 (1 - p) psi, sqrt(2) f)`` with ``psi = (g, z / radius, 1)``, row by row."""
    rows = []
    for g, z, code in zip(G, Z, codes, strict=True):
        f = g @ beta + intercept
        p = np.exp(2.0 * f[code]) / np.exp(2.0 * f).sum()
        psi = np.concatenate([g, z / radius, [1.0]])
        rows.append(np.concatenate([0.3 * psi, 2.0 * (1.0 - p) * psi, np.sqrt(2.0) * f]))
    return np.array(rows)
