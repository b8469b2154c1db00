"""The evidence of a sparse Gaussian process, and its gradient by the logarithms of all hyper-parameters.

Prior ``f ~ GP(0, s k)``, ``Y = f + N(0, noise)``, n basis points, G their whitened features of the unit kernel, ``r_i =
k_ii - |G_i|^2``. For each of the d targets, with ``Om = noise I`` (vfe) or ``noise I + s diag r`` (fitc)::

    F = -1/2 [ m log 2 pi + log det Om + log det B + y^T Om^-1 y - s |L_B^-1 G^T Om^-1 y|^2 + c ]
    B = I + s G^T Om^-1 G = L_B L_B^T,    c = s sum_i r_i / noise  (vfe),  0  (fitc)

vfe is a lower bound of the exact evidence (Titsias 2009, eq. (9)). fitc is the evidence of another model, which may
exceed it (Snelson & Ghahramani 2006). ALGORITHMS 10.1, 10.2. One evaluation takes two passes over the rows: one for the
sums, one for the slopes. A callable runs the passes, over a sample in memory or over a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamkernel.basis import Basis
from streamkernel.errors import NumericalError, ParameterError
from streamkernel.kernels import Kernel, LengthscaleGradient
from streamkernel.kernels.parameters import checked_number, checked_rows
from streamkernel.linalg import cholesky, require_finite, single_threaded_blas, solve_lower, solve_lower_t
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.sums import (
    ConstantNoise,
    DiagonalNoise,
    EvidenceGradient,
    EvidenceSlopes,
    GaussianEquations,
    GaussianSums,
)
from streamkernel.table import RowBlock, Table
from streamkernel.type_aliases import AnyArray, Float, Int

Sweep = Callable[[AnyReduction], Any]
"""Function that runs a reduction over the rows and returns its result."""

FORMS = ("vfe", "fitc")

_BLOCK_ROWS = 2048


@dataclass(frozen=True)
class Evidence:
    """The evidence at one choice of hyper-parameters.

    Attributes
    ----------
    value : log evidence, nats, summed over targets.
    gradient : (t + 2,) gradient by the log lengthscales (`kernels.log_lengthscales`), log signal and log noise
        variance.
    count : sum of the row weights times number of targets.
    basis : the points without those that depend on earlier points.
    sums : sums of the first pass; for fitc with the noise in them.
    """

    value: float
    gradient: Float
    count: float
    basis: Basis
    sums: GaussianSums


class SparseEvidence:
    """The evidence of fixed rows and basis points, as a function of the hyper-parameters.

    Parameters
    ----------
    sweep : Sweep over the rows.
    points : (n, p) basis points; rows : (n,) int64 their row numbers.
    centre, scale : (d,) the targets of the process are ``(Y - centre) / scale``; a target with an infinite scale is
        left out.
    form : "vfe" or "fitc".
    """

    def __init__(
        self,
        sweep: Sweep,
        points: AnyArray,
        rows: Int,
        *,
        centre: Float,
        scale: Float,
        form: str = "vfe",
    ) -> None:
        if form not in FORMS:
            raise ParameterError(f"the evidence {form!r} is not known; give one of {', '.join(FORMS)}")
        self._sweep = sweep
        self._points, self._rows = points, rows
        self._centre, self._scale = centre, scale
        self.form = form

    def at(self, kernel: Kernel, signal: float, noise: float) -> Evidence:
        """Value and gradient, in two passes over the rows.

        Raises
        ------
        NumericalError
            The sums or the evidence are not finite.
        """
        fitc = self.form == "fitc"
        empty = Basis.empty(kernel, self._points.shape[1], self._points.dtype)
        basis, _ = empty.append(self._points, self._rows)
        # Blocks are whitened before the sum: otherwise rounding / pivot would be multiplied by signal / noise here.
        row_noise = DiagonalNoise(signal, noise) if fitc else ConstantNoise()
        sums: GaussianSums = self._sweep(GaussianEquations(basis, self._centre, row_noise))
        with single_threaded_blas():
            algebra = _Algebra(sums, self._scale, signal, noise, fitc)
        gradient_of_rows = EvidenceGradient(
            basis, self._centre, self._scale, signal, noise, algebra.inverse, algebra.u, fitc
        )
        slopes: EvidenceSlopes = self._sweep(gradient_of_rows)
        with single_threaded_blas():
            gradient = algebra.gradient(basis, slopes, gradient_of_rows.slopes)
        if not math.isfinite(algebra.value) or not np.isfinite(gradient).all():
            raise NumericalError(
                f"the evidence is not finite at signal variance {signal:g} and noise variance {noise:g}; "
                "check the scale of the features"
            )
        # The search stores one result of many: its points only, without their packed copy.
        return Evidence(algebra.value, gradient, sums.weight * algebra.d, basis.unpacked(), sums)


_REMEDY = (
    "give lengthscales, signal and noise variance to start from, of which noise / signal is larger, or tune='none'"
)


class _Algebra:
    """Algebra on the sums: B, u, the value, and with the slopes the gradient."""

    def __init__(self, sums: GaussianSums, scale: Float, signal: float, noise: float, fitc: bool) -> None:
        for name in ("H", "g", "YY"):
            require_finite(getattr(sums, name), f"the sum {name} of the evidence")
        self.signal, self.noise, self.fitc = signal, noise, fitc
        self.count, self.d, n = sums.weight, int(np.isfinite(scale).sum()), len(sums.H)
        # The sums of vfe do not have the noise in them.
        within = 1.0 if fitc else noise
        self.g = sums.g / scale / within
        self.square = float((np.diagonal(sums.YY) / scale**2).sum()) / within
        self.left = 0.0 if fitc else sums.residual_trace / noise
        log_det = sums.log_det + (0.0 if fitc else sums.weight * math.log(noise))
        self.SH = (signal / within) * sums.H
        factor = cholesky(np.eye(n) + self.SH, "the precision of the evidence", _REMEDY)
        half = solve_lower(factor, self.g)
        self.u = np.ascontiguousarray(solve_lower_t(factor, half))
        root = solve_lower(factor, np.eye(n))
        self.inverse: Float = root.T @ root
        complexity = log_det + 2.0 * float(np.log(np.diagonal(factor)).sum()) + signal * self.left
        fit = self.square - signal * float((half**2).sum())
        self.value = -0.5 * (self.d * (self.count * math.log(2.0 * math.pi) + complexity) + fit)

    def gradient(self, basis: Basis, slopes: EvidenceSlopes, of_points: LengthscaleGradient) -> Float:
        """Gradient of the evidence, (t + 2,), given the slopes."""
        signal, noise, d, u = self.signal, self.noise, self.d, self.u
        identity = np.eye(len(u))
        used = len(u) - float(np.trace(self.inverse))
        S = signal * (u @ u.T) - d * (identity - self.inverse)  # G^T dF / dG
        by_signal = 0.5 * (signal * float((u**2).sum()) - d * used)
        if self.fitc:
            S += signal * slopes.E
            by_signal += signal * slopes.residual
            by_noise = noise * slopes.noise
        else:
            S += d * self.SH
            by_signal -= 0.5 * d * signal * self.left
            residual = self.square - signal * float((u * (2.0 * self.g - self.SH @ u)).sum())
            by_noise = 0.5 * (residual - d * (self.count - used) + d * signal * self.left)
        V = -0.5 * solve_lower_t(basis.L, solve_lower_t(basis.L, S).T)
        lengthscales = slopes.lengthscales + of_points(of_points.points, 0.5 * (V + V.T))
        return np.concatenate([lengthscales, [by_signal, by_noise]])


def sweep_rows(X: AnyArray, Y: Float, weights: Float | None = None) -> Sweep:
    """A `Sweep` over rows in memory, block by block, in the calling thread."""

    def sweep(reduction: AnyReduction) -> Any:
        state = None
        with single_threaded_blas():
            for start in range(0, len(X), _BLOCK_ROWS):
                rows = slice(start, start + _BLOCK_ROWS)
                block = RowBlock(start, X[rows], Y[rows], None if weights is None else weights[rows])
                state = reduction.map_block(block) if state is None else reduction.fold(state, block)
        assert state is not None
        return reduction.finalize(state)

    return sweep


def in_this_thread(reduction: AnyReduction, table: Table) -> Any:
    """Run a reduction over a table in memory, in the calling thread."""
    block = table.read(table.start, table.stop)
    Y = np.zeros((len(block), 0)) if block.Y is None else block.Y
    return sweep_rows(block.X, Y, block.weights)(reduction)


def sparse_evidence(
    X: AnyArray,
    Y: AnyArray,
    kernel: Kernel,
    points: AnyArray,
    signal: float = 1.0,
    noise: float = 1.0,
    *,
    form: str = "vfe",
) -> Evidence:
    """The evidence of targets Y (m,) or (m, d), unscaled, at rows X (m, p) in memory, given basis points (n, p).

    Raises
    ------
    ParameterError, ShapeError
        A variance is not positive, the form is not known, or rows and points have different widths.
    NumericalError
        The sums or the evidence are not finite.
    """
    rows, Z = checked_rows(X), checked_rows(points, "points", np.shape(X)[1])
    targets = np.asarray(Y, np.float64).reshape(len(rows), -1)
    d = targets.shape[1]
    objective = SparseEvidence(
        sweep_rows(rows, targets), Z, np.arange(len(Z), dtype=np.int64), centre=np.zeros(d), scale=np.ones(d), form=form
    )
    return objective.at(kernel, checked_number("signal", signal), checked_number("noise", noise))
