"""Greedy picks within a pool, from its sums alone (ALGORITHMS 1.3, 1.8, 1.9).

The score of candidate i is a function of S_ii, ``C_ii = |R_i|^2`` and, with all previous picks projected out by a ridge
rho, of::

    A = H + rho I,    B = C - E^T A^-1 E,    D = F - E^T A^-1 g

The matrices are deflated lazily: a pick reads a row of each and the vectors of the picks of its block, and no row of
the data. A block of picks is subtracted from the matrices at once, by GEMM. Without blocks a pick reads the vectors of
all earlier ones: 3 GB for 500 picks of 2,000 candidates, 190 GB for 2,000 of 8,000.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from streamkernel.linalg import RidgePath, add_product, add_to_diagonal, factor_lower, solve_lower, subtract_few
from streamkernel.reductions.pools import PoolSums
from streamkernel.selection.scores import Candidates, Score
from streamkernel.type_aliases import AnyArray, AnyDType, Bool, Float, Int

BLOCK = 128  # picks: with k = 2,000 their vectors stay in the caches, and their product takes longer than reading M
_COLUMNS = 1024  # columns that are projected at once
_PANEL = 256  # rows of a product at once: the part below the diagonal that comes with them is small

FIRST_RHO = 0.3  # ridge of the projection while there is no basis to choose it, in units of the mean of k(x, x)


@dataclass(frozen=True)
class Picks:
    """Picks in order.

    Attributes
    ----------
    order : (t,) positions in the pool.
    gains : (t,) scores at the time of picking.
    trace_gains : (t,) decrease of the residual trace by each pick (NaN if it was not computed).
    ended : "count", "digits" (the sums must be computed again), "rank" (no independent candidate is left) or
        "tolerance".
    parts : (t, w) terms of each gain; w = 0 for scores without parts.
    """

    order: Int
    gains: Float
    trace_gains: Float
    ended: str
    parts: Float

    def take(self, positions: Int) -> Picks:
        """The picks at these positions."""
        return Picks(
            self.order[positions], self.gains[positions], self.trace_gains[positions], self.ended, self.parts[positions]
        )


class Coefficients:
    """T (k, n + t): coefficients of the kernel function of each candidate in the basis and the t picks so far."""

    def __init__(self, start: Float, count: int) -> None:
        self._T = np.concatenate([start, np.zeros((len(start), count))], axis=1)
        self._n = start.shape[1]

    @property
    def norms(self) -> Float:
        """Norms ``|T_i|_1``, (k,)."""
        return np.asarray(np.abs(self._T).sum(axis=1))

    def deflate(self, t: int, j: int, v: Float) -> None:
        """Update T by pick t, candidate j; v = S[:, j] / S_jj."""
        self._T -= np.outer(v, self._T[j])
        self._T[:, self._n + t] = v


class PickList:
    """The picks of a loop so far, and the candidates that may still be picked.

    Parameters
    ----------
    size : number of candidates k.
    groups : (k,) restricts each pick to the next group that has a live candidate (split pools); None for no groups.
    """

    def __init__(self, size: int, groups: Int | None) -> None:
        self._free = np.ones(size, dtype=bool)
        self._groups, self._spent = groups, -1
        self._order: list[int] = []
        self._gains: list[float] = []
        self._parts: list[Float] = []
        self.trace_gains: list[float] = []

    def alive(self, independent: Bool) -> Bool:
        """Those of the independent candidates that may be picked; a group without live candidates gives no pick."""
        alive = self._free & independent
        if self._groups is None:
            return alive
        alive &= self._groups > self._spent
        return alive & (self._groups == self._groups[alive].min()) if alive.any() else alive

    def add(self, i: int, gain: float, trace_gain: float = np.nan, parts: Float | None = None) -> None:
        """Record the pick of candidate i."""
        self._free[i] = False
        self._spent = -1 if self._groups is None else int(self._groups[i])
        self._order.append(i)
        self._gains.append(float(gain))
        self.trace_gains.append(trace_gain)
        self._parts.append(np.zeros(0) if parts is None else parts)

    def ended(self, why: str) -> Picks:
        """The picks, at the end of the loop."""
        parts = np.stack(self._parts) if self._parts else np.zeros((0, 0))
        return Picks(
            np.asarray(self._order, np.int64), np.asarray(self._gains), np.asarray(self.trace_gains), why, parts
        )


def square_of(YY: Float, scale: Float) -> float:
    """``|Y|^2`` of the scaled targets; 1 without targets, or if they are constant."""
    return float((np.diagonal(YY) / scale**2).sum()) or 1.0


Run = Callable[[Sequence[Callable[[], None]]], object]  # runs tasks that do not depend on each other


def one_by_one(tasks: Sequence[Callable[[], None]]) -> None:
    """Run tasks in this thread."""
    for task in tasks:
        task()


class _Upper:
    """Symmetric matrix of which the upper triangle is used.

    Parameters
    ----------
    matrix : (k, k), each row contiguous.
    overwrite : whether the matrix itself may be changed, where it can be written; a copy is made when it is needed.
    """

    def __init__(self, matrix: AnyArray, overwrite: bool) -> None:
        self._matrix, self._own = matrix, overwrite and matrix.flags.writeable and matrix.flags.aligned

    @property
    def dtype(self) -> AnyDType:
        return self._matrix.dtype

    def diagonal(self) -> Float:
        """A copy, in float64."""
        return np.diagonal(self._matrix).astype(np.float64)

    def column(self, j: int) -> AnyArray:
        return np.concatenate([self._matrix[:j, j], self._matrix[j, j:]])

    def subtraction(self, left: AnyArray, right: AnyArray) -> list[Callable[[], None]]:
        """Tasks for ``M <- M - left^T right``, a symmetric product of (r, k) factors: one a panel of rows."""
        if not self._own:
            self._matrix, self._own = np.array(self._matrix, order="C"), True
        left, right = left.astype(self.dtype, copy=False), np.negative(right, dtype=self.dtype)
        panels = (slice(first, first + _PANEL) for first in range(0, len(self._matrix), _PANEL))
        return [
            partial(add_product, left[:, rows], right[:, rows.start :], self._matrix[rows, rows.start :])
            for rows in panels
        ]


class _Deflated:
    """Lazily deflated symmetric matrix M, which each pick deflates by f on both sides.

    ``M <- M - f v^T - v f^T + c f f^T`` with ``v = M[:, j] / s`` and ``c = v_j / s``. C is such a matrix, and so is B
    before its projection. A column is computed from M0, the matrix before a block of picks, and the f and v of these
    picks::

        M[:, j] = M0[:, j] - sum_t f_tj v_t - sum_t h_tj f_t,    h_t = v_t - c_t f_t
    """

    def __init__(self, start: _Upper) -> None:
        self.start = start
        self.diagonal = start.diagonal()
        # In the dtype of the sums: those of float32 columns have no digits beyond it, and a pick reads all of them.
        self.stored = np.empty((BLOCK, len(self.diagonal)), start.dtype)
        self.corner = np.empty(BLOCK)

    def weights(self, t: int, j: int | slice, F: Float) -> tuple[Float, Float]:
        """Coefficients of column j: of the stored v, and of the f of the t picks of the block."""
        f, corner = F[:t, j], self._corner(t, j)
        return f, self.stored[:t, j] - corner * f

    def deflate(self, t: int, v: Float, j: int, s: float, f: Float) -> None:
        self.stored[t] = v
        self.corner[t] = v[j] / s
        self.diagonal -= f * (2.0 * v - self.corner[t] * f)

    def subtraction(self, F: Float) -> list[Callable[[], None]]:
        """Tasks that subtract a whole block of picks from the matrix, by the formula of a column for all of them."""
        of_all = self.weights(BLOCK, slice(None), F)
        return self.start.subtraction(np.concatenate([self.stored, F]), np.concatenate(of_all))

    def _corner(self, t: int, j: int | slice) -> Float:
        """c of the t picks; as a column for the coefficients of many candidates."""
        return self.corner[:t, None] if isinstance(j, slice) else self.corner[:t]


class _Projected(_Deflated):
    """`_Deflated`, with each new feature projected out by the ridge: ``B <- B - h h^T / a``, ``a = rho + c``."""

    def __init__(self, start: _Upper, rho: float) -> None:
        super().__init__(start)
        self.rho = rho

    def weights(self, t: int, j: int | slice, F: Float) -> tuple[Float, Float]:
        of_v, h = super().weights(t, j, F)
        corner = self._corner(t, j)
        along = h / (self.rho + corner)
        return of_v + along, h - along * corner

    def deflate(self, t: int, v: Float, j: int, s: float, f: Float) -> None:
        super().deflate(t, v, j, s, f)
        self.diagonal -= self.feature(t, f) ** 2 / (self.rho + self.corner[t])

    def feature(self, t: int, f: Float) -> Float:
        """h of pick t: inner products of the candidates with the new feature, after the deflation by f."""
        return np.asarray(self.stored[t] - self.corner[t] * f)


def _columns(S: _Upper, deflated: Sequence[_Deflated], t: int, j: int, F: Float) -> Float:
    """Current columns j of S and of the deflated matrices after t picks of the block, (1 + matrices, k)."""
    columns = np.stack([S.column(j), *(matrix.start.column(j) for matrix in deflated)])
    weights = [matrix.weights(t, j, F) for matrix in deflated]
    # F, of some MB, is read once for all of them.
    subtract_few(np.stack([F[:t, j], *(of_f for _, of_f in weights)]), F[:t], columns)
    for i, (matrix, (of_v, _)) in enumerate(zip(deflated, weights, strict=True), start=1):
        subtract_few(np.ascontiguousarray(of_v)[None], matrix.stored[:t], columns[i : i + 1])
    return columns


def projection_ridge(sums: PoolSums, score: Score, scale: Float) -> float:
    """Ridge of the projection of the basis out of the columns of the candidates."""
    if score.rho is not None or len(sums.H) == 0:
        return (FIRST_RHO if score.rho is None else score.rho) * sums.trace / sums.weight
    return RidgePath.of(sums.H, sums.g, np.diagonal(sums.YY), sums.weight).choose(scale**2)


def _without_basis(sums: PoolSums, score: Score, scale: Float, C: _Upper, run: Run) -> tuple[Float, float]:
    """Project the basis out of C, which becomes B, by a ridge. Returns D and this ridge."""
    unit = sums.trace / sums.weight
    first = FIRST_RHO * unit if score.rho is None else score.rho * unit
    if len(sums.H) == 0:
        return sums.F / scale, first
    path = RidgePath.of(sums.H, sums.g, np.diagonal(sums.YY), sums.weight)
    rho = path.choose(scale**2) if score.rho is None else first
    # The root of the projector is on both sides: what is subtracted from C then is a product of a matrix with its own
    # transpose, at half the cost.
    over_root = _over_root(sums.H, path, rho)
    known, half, D = over_root(sums.g), np.empty(sums.E.shape, C.dtype), np.empty(sums.F.shape)

    def project(columns: slice) -> None:
        projected = over_root(sums.E[:, columns])
        D[columns] = (sums.F[columns] - projected.T @ known) / scale
        half[:, columns] = projected

    run([partial(project, slice(first, first + _COLUMNS)) for first in range(0, len(D), _COLUMNS)])
    run(C.subtraction(half, half))
    return D, rho


def _over_root(H: Float, path: RidgePath, rho: float) -> Callable[[Float], Float]:
    """``B -> R^-T B`` with ``R^T R = H + rho I``, for the path of H."""
    if rho >= path.smallest_alpha:
        factor = H.copy()
        add_to_diagonal(factor, rho)
        if factor_lower(factor) is None:
            return partial(solve_lower, factor)
    # Eigenvalues are clipped at 0: in sums of float32 products the smallest ones are rounding. One that is 0 without a
    # ridge has no part in the projection.
    V, root = path.vectors, np.sqrt(path.values + rho)[:, None]

    def by_eigenvectors(B: Float) -> Float:
        rotated = V.T @ B
        return np.divide(rotated, root, out=np.zeros_like(rotated), where=root > 0.0)

    return by_eigenvectors


def lazy_picks(
    sums: PoolSums,
    score: Score,
    count: int,
    *,
    scale: Float,
    diagonal: Float,
    pivot_tolerance: float,
    digits: float,
    groups: Int | None = None,
    stop_after: float = np.inf,
    coefficients: Float | None = None,
    overwrite: bool = False,
    run: Run = one_by_one,
) -> Picks:
    """Up to `count` greedy picks.

    Parameters
    ----------
    sums : sums of `PoolGram`.
    score : Score that each pick maximises.
    count : largest number of picks.
    scale : (d,) standard deviation of each target; the targets are divided by it.
    diagonal : (k,) ``k(x_i, x_i)`` of the candidates.
    pivot_tolerance : candidates with ``S_ii <= pivot_tolerance * k_ii`` depend on the basis and are masked.
    digits : stop when the sums of the best candidate have fallen to this share of their first values: the rest is
        rounding, and the sums must be computed again. Such a candidate must not be masked, because it is independent.
    groups : (k,) restricts each pick to the next group that has a live candidate (split pools).
    stop_after : stop when the sum of the trace gains reaches this.
    coefficients : (k, n) coefficients of the candidates in the basis, for scores that need them.
    overwrite : whether S and C of the sums may be overwritten; else they are copied.
    run : runs the products of blocks of picks, such as on several threads; the bits do not depend on it.
    """
    if score.needs_cross:
        raise ValueError(f"{type(score).__name__} needs the square-root form")
    k = len(sums.S)
    count = min(count, k)
    S = _Upper(sums.S, overwrite)
    sd, sd_start = S.diagonal(), S.diagonal()
    F = np.empty((BLOCK, k))
    C = _Deflated(_Upper(sums.C, overwrite)) if score.needs_squares or np.isfinite(stop_after) else None
    c_start = np.diagonal(sums.C).astype(np.float64)
    B: _Projected | None = None
    D, rho = np.zeros((k, 0)), 0.0
    if score.needs_projection:
        start = _Upper(sums.C, overwrite and C is None)
        D, rho = _without_basis(sums, score, scale, start, run)
        B = _Projected(start, rho)
    # The sums that a score is computed from or divides by; with a ridge, no score divides by B alone.
    watched = [(C, c_start)] if C is not None and score.needs_squares else []
    if B is not None and rho == 0.0:
        watched.append((B, B.diagonal.copy()))
    deflated = [matrix for matrix in (B, C) if matrix is not None]
    T = Coefficients(coefficients, count) if score.needs_coefficients and coefficients is not None else None
    none, square = np.zeros(0), square_of(sums.YY, scale)
    picked = PickList(k, groups)
    for number in range(count):
        t = number % BLOCK
        if number and not t:
            products = [S.subtraction(F, F), *(matrix.subtraction(F) for matrix in deflated)]
            run([panel for product in products for panel in product])
        alive = picked.alive(sd > pivot_tolerance * diagonal)
        if not alive.any():
            return picked.ended("rank")
        candidates = Candidates(
            pivots=np.where(alive, sd, 1.0),
            trace=sums.trace,
            square=square,
            rho=rho,
            squares=none if C is None else C.diagonal,
            first_squares=c_start,
            left=none if B is None else B.diagonal,
            explained=np.einsum("ij,ij->i", D, D),
            coefficients=none if T is None else T.norms,
        )
        # Masked candidates have the pivot 1, so that no score divides by 0; the argmax below leaves them out.
        worth = score.values(candidates)
        j = int(np.argmax(np.where(alive, worth, -1.0)))
        worn = sd[j] < digits * sd_start[j] or any(part.diagonal[j] < digits * start[j] for part, start in watched)
        # The first pick of fresh sums is always taken, so that each computation of the sums gains a function.
        if worn and number > 0:
            return picked.ended("digits")
        parts = score.parts(candidates)[:, j]
        s = float(np.sqrt(sd[j]))
        f, *columns = _columns(S, deflated, t, j, F) / s
        taken = float(C.diagonal[j] / sd[j]) if C is not None else np.nan
        for matrix, column in zip(deflated, columns, strict=True):
            matrix.deflate(t, column, j, s, f)
        if B is not None:
            D = D - np.outer(f + B.feature(t, f) / (B.rho + B.corner[t]), D[j] / s)
        if T is not None:
            T.deflate(number, j, f / s)
        sd -= f**2
        F[t] = f
        picked.add(j, worth[j], taken, parts)
        if np.isfinite(stop_after) and np.nansum(picked.trace_gains) >= stop_after:
            return picked.ended("tolerance")
    return picked.ended("count")
