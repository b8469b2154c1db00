"""Sparse Gaussian processes as Gaussian processes with another covariance, over dense m x m matrices (card 6, 10).

Prior ``f ~ GP(0, s k)``, basis points Z: ``Q(A, B) = s k(A, Z) k(Z, Z)^-1 k(Z, B)``. Given f at Z, y has covariance Om,
which is all that tells the methods apart; without f at Z it has ``Q + Om``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from naive.dense import Array, Rows, columns_of

_LOG_2_PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class SparseProcess:
    """Posterior at query points, for each column of Y: mean (q, d), covariance of f (q, q), log evidence (d,), and
    log evidence - tr(Om^-1 s R) / 2 (d,), which is below the exact evidence where Om is the noise alone."""

    mean: Array
    covariance: Array
    log_evidence: Array
    bound: Array

    @property
    def variance(self) -> Array:
        return np.diag(self.covariance)


def conditional_covariance(
    R: Array, noise: float, signal: float = 1.0, members: Iterable[Rows] | None = None, weights: ArrayLike | None = None
) -> Array:
    """Om: noise / w on the diagonal, and of s R what lies within members (card 10.3).

    No members (None): dtc; members of one row: fitc; some members: pitc = BCM; all rows in one: the exact process.
    """
    m = len(R)
    kept = np.zeros((m, m), bool)
    for rows in members or ():
        kept[np.ix_(list(rows), list(rows))] = True
    return np.diag(noise / np.asarray(np.ones(m) if weights is None else weights)) + signal * np.where(kept, R, 0.0)


def sparse_process(
    K_mI: Array, K_II: Array, k_mm: Array, Y: ArrayLike, Om: Array, K_qI: Array, K_qq: Array, signal: float = 1.0
) -> SparseProcess:
    """Condition the joint Gaussian of y and f at the query points, of which only Q links the two (Tresp, app. (11))."""
    Y, m = columns_of(Y), len(K_mI)
    J = np.linalg.lstsq(K_II, np.hstack([K_mI.T, K_qI.T]), rcond=1e-15)[0]
    Q_mm, Q_qm = signal * K_mI @ J[:, :m], signal * K_qI @ J[:, :m]
    A = Q_mm + Om
    w = np.linalg.solve(A, Y)
    log_evidence = -0.5 * (m * _LOG_2_PI + np.linalg.slogdet(A)[1] + (Y * w).sum(axis=0))
    bound = log_evidence - 0.5 * np.trace(np.linalg.solve(Om, signal * k_mm - Q_mm))
    covariance = signal * K_qq - Q_qm @ np.linalg.solve(A, Q_qm.T)
    return SparseProcess(Q_qm @ w, covariance, log_evidence, bound)


def cell_members(distances: Array, block_size: int, super_block: int) -> list[list[int]]:
    """Rows of each member: among `super_block` successive rows those of one nearest cell, in their order, by pieces.

    distances (m, c): of each row to each centre; ties go to the first centre.
    """
    found = []
    for first in range(0, len(distances), super_block):
        rows = range(first, min(first + super_block, len(distances)))
        for cell in range(distances.shape[1]):
            own = [i for i in rows if int(np.argmin(distances[i])) == cell]
            found += [own[at : at + block_size] for at in range(0, len(own), block_size)]
    return found
