"""Sparse Gaussian processes from the sums of one sweep: DTC, FITC and PITC (the Bayesian committee machine).

Prior ``f ~ GP(centre, s k)``, noise variance ``noise``, and ``Om``, the model of cov(y | f at the basis). With
``H = G^T Om^-1 G``, ``g = G^T Om^-1 Yc``, ``YY = Yc^T Om^-1 Yc`` and ``H = V diag(h) V^T``, for each target::

    beta         = s (I + s H)^-1 g,      coefficients = L^-T beta,      f(x) = k(x, Z) coefficients + centre
    shares_j     = s h_j / (1 + s h_j),   p_eff = sum_j shares_j
    var f(x)     = s ( k(x, x) - sum_j (V^T z)_j^2 shares_j ),      z = L^-1 k(Z, x)
    log evidence = -1/2 ( m log 2 pi + log det Om + sum_j log(1 + s h_j) + YY - g^T beta )
    bound        = log evidence - s residual_trace / (2 noise)                                       (dtc only)

Tresp 2001, eqs. (8) to (11); ALGORITHMS 6.1, 10.1, 10.2. The bound of Titsias (2009, eq. (9)) is below the exact
evidence, while the evidence of dtc may be far above. A common factor of Om needs no new sweep. For dtc both variances
can therefore be chosen after the sweep, for each target; for fitc and pitc only their common factor, at a given ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.basis import Basis
from streamkernel.errors import NumericalError, ParameterError
from streamkernel.kernels.parameters import checked_number
from streamkernel.linalg import RidgePath, require_finite, single_threaded_blas
from streamkernel.reductions.predictions import GaussianPredictions
from streamkernel.reductions.sums import BlockNoise, DiagonalNoise, GaussianSums, RowNoise
from streamkernel.solvers.gaussian_processes._evidence_curve import EvidenceCurve
from streamkernel.type_aliases import Float
from streamkernel.wording import option

_SAME_RATIO = 1e-9
_LOST = 1e-14  # share of YY that is rounding
_LEAST_NOISE = 16.0 * float(np.finfo(np.float64).eps)  # of the prior variance of a row
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Variances:
    """Signal and noise variance of each target, (d,)."""

    signal: Float
    noise: Float


@dataclass(frozen=True)
class GaussianSolution:
    """A fitted sparse Gaussian process.

    Attributes
    ----------
    signal, noise : (d,) variances s and noise of each target.
    coefficients : (n, d) coefficients of the basis functions; intercept : (d,)
    rotation : (n, n) eigenvectors V of H.
    shares : (n, d) share of the prior variance that the rows explain in each of these directions.
    log_evidence : (d,) log evidence of each target, nats.
    bound : (d,) lower bound of the exact log evidence, for dtc; else None.
    """

    signal: Float
    noise: Float
    coefficients: Float
    intercept: Float
    rotation: Float
    shares: Float
    log_evidence: Float
    bound: Float | None

    @property
    def effective_df(self) -> Float:
        """Effective degrees of freedom p_eff (d,): fewer basis functions than this lose information of the rows."""
        return np.asarray(self.shares.sum(axis=0))

    def predictions(
        self, basis: Basis, *, flat: bool = True, std: bool = False, latent: bool = False
    ) -> GaussianPredictions:
        """The row map of its predictions; the options are those of `GaussianPredictions`."""
        return GaussianPredictions(
            basis,
            self.coefficients,
            self.intercept,
            self.rotation,
            self.shares,
            self.signal,
            self.noise,
            flat=flat,
            std=std,
            latent=latent,
        )


class GaussianSystem:
    """The sums, decomposed once; each pair of variances then costs O(n^2 d).

    Parameters
    ----------
    basis : Basis of n functions.
    sums : GaussianSums of the final sweep.
    row_noise : RowNoise of these sums.
    scale : (d,) standard deviation of each target; shared variances are in units of its square. Ones by default.
    independent : share of the rows whose errors are independent (`Repeats.share`). If every row occurs k times, 1 / k
        gives the process of the distinct rows.
    """

    def __init__(
        self,
        basis: Basis,
        sums: GaussianSums,
        row_noise: RowNoise,
        *,
        scale: Float | None = None,
        independent: float = 1.0,
    ) -> None:
        if independent != 1.0:
            sums = sums.times(independent)
        for name in ("H", "g", "YY"):
            require_finite(getattr(sums, name), f"the sum {name}")
        self._basis = basis
        self._sums = sums
        self._unit = np.ones(len(sums.centre)) if scale is None else np.asarray(scale, np.float64) ** 2
        self._made = row_noise if isinstance(row_noise, (DiagonalNoise, BlockNoise)) else None
        with single_threaded_blas():
            self.path = RidgePath.of(sums.H, sums.g, np.diagonal(sums.YY).copy(), sums.weight)

    @property
    def has_bound(self) -> bool:
        """True if there is a variational bound, which is for dtc only."""
        return self._made is None

    def choose(
        self,
        *,
        signal: float | None = None,
        noise: float | None = None,
        objective: str | None = None,
        shared: bool = False,
    ) -> Variances:
        """The variances that maximise the bound or the evidence, without a sweep.

        Parameters
        ----------
        signal, noise : fixed variances; None for a variance that is chosen.
        objective : "bound" (the default if there is one) or "evidence".
        shared : True for one pair of variances for all targets, which maximises the sum of their objectives; False for
            one pair per target. With True, `signal` and `noise` are in units of ``scale^2``, and each target gets the
            common pair times its ``scale^2``.

        Notes
        -----
        For dtc both variances are chosen. For fitc and pitc the sums fix their ratio, and only the common factor of
        both is chosen.

        Raises
        ------
        ParameterError
            The bound is requested but does not exist; a number is not positive; both variances are given, but not in
            the ratio of the sums.
        """
        if objective not in (None, "bound", "evidence"):
            raise ParameterError(f"objective is {objective!r}; give 'bound' or 'evidence'")
        if objective == "bound" and not self.has_bound:
            raise ParameterError("there is a variational bound for dtc only; give objective = 'evidence'")
        signal = None if signal is None else checked_number("signal", signal)
        noise = None if noise is None else checked_number("noise", noise)
        units = self._unit if shared else np.ones(len(self._sums.centre))
        if signal is not None and noise is not None:
            given = Variances(signal * units, noise * units)
            self._scaled(given)
            return given
        unit = 1.0 if self._made is None else self._made.noise
        penalty = self._sums.residual_trace if self.has_bound and objective != "evidence" else 0.0
        level = None if noise is None else noise / unit
        curves = self._curves(penalty, signal, level, units, shared)
        if self._made is None:
            alpha = np.array([curve.best(self.path.smallest_alpha) for curve in curves])
        else:
            alpha = np.full(len(curves), 1.0 / self._made.signal)
        levels = np.array([curve.noise_at(alpha[t : t + 1])[0] for t, curve in enumerate(curves)])
        return Variances(levels / alpha * units, levels * unit * units)

    def _curves(
        self, penalty: float, signal: float | None, level: float | None, units: Float, shared: bool
    ) -> list[EvidenceCurve]:
        """The evidence of each target, or of the mean over targets, in units of the noise within the sums."""
        path, centre = self.path, self._sums.centre / np.sqrt(units)
        squares, square = path.rotated**2 / units, path.square / units
        # Targets are known to the rounding of their mean: for a constant target the noise would be 0 without a bound.
        least = np.maximum(_LOST * square / path.count, (_EPS * centre) ** 2) + 1e-100
        targets = [np.array([t]) for t in range(len(centre))]
        if shared and len(centre):
            targets = [np.flatnonzero(square > 0.0) if square.any() else np.arange(len(centre))]
        return [
            EvidenceCurve(
                path.values,
                squares[:, some].mean(axis=1),
                float(square[some].mean()),
                self._sums.weight,
                penalty,
                float(least[some].mean()),
                signal,
                level,
            )
            for some in targets
        ]

    def solve(self, signal: ArrayLike, noise: ArrayLike) -> GaussianSolution:
        """Coefficients, variances and evidence.

        Parameters
        ----------
        signal, noise : variances, one for all targets or one per target (d,); for fitc and pitc in the ratio of the
            sums.

        Raises
        ------
        ParameterError
            The variances are not positive, or have another ratio.
        NumericalError
            The noise variance is lost in rounding.
        """
        sums, path = self._sums, self.path
        d = len(sums.centre)
        wanted = Variances(*(np.broadcast_to(np.asarray(v, np.float64), (d,)).copy() for v in (signal, noise)))
        prior, level = self._scaled(wanted)
        self._check_digits(wanted, prior)
        h = path.values[:, None]
        weight = prior / (1.0 + prior * h)
        with single_threaded_blas():
            beta = path.vectors @ (weight * path.rotated)
            coefficients = self._basis.coefficients(beta)
        require_finite(coefficients, f"the solution for signal {wanted.signal} and noise {wanted.noise}")
        left = np.maximum(path.square - (weight * path.rotated**2).sum(axis=0), 0.0)
        spread = sums.weight * np.log(2.0 * np.pi * level) + sums.log_det + np.log1p(prior * h).sum(axis=0)
        log_evidence = -0.5 * (spread + left / level)
        return GaussianSolution(
            signal=wanted.signal,
            noise=wanted.noise,
            coefficients=coefficients,
            intercept=sums.centre.copy(),
            rotation=np.ascontiguousarray(path.vectors),
            shares=weight * h,
            log_evidence=log_evidence,
            bound=log_evidence - 0.5 * prior * sums.residual_trace if self.has_bound else None,
        )

    def _check_digits(self, wanted: Variances, prior: Float) -> None:
        """Refuse a noise variance that is rounding relative to the prior variance of a row or to the sums."""
        count = self._sums.weight or 1.0
        mean = self._sums.trace / count
        # A constant target is only the rounding of its mean, and every noise variance is accepted for it.
        constant = self.path.square / count <= (4.0 * _EPS * self._sums.centre) ** 2
        # Of each target by itself: targets may have different units.
        least = _LEAST_NOISE * wanted.signal * mean
        # With noise that differs from row to row, the rounding of the residuals is the limit.
        lost = [bool(gone) for gone in wanted.noise < least]
        if self._made is None:
            lost = [not self.path.carries(1.0 / share) for share in prior]
            least = np.maximum(least, self.path.least_alpha * wanted.signal)
        lost = [gone and not same for gone, same in zip(lost, constant, strict=True)]
        if any(lost):
            t = lost.index(True)
            raise NumericalError(
                f"a noise variance of {float(wanted.noise[t]):g} is lost in rounding; the least that the digits carry "
                f"is {float(least[t]):.2g} for the signal variance {float(wanted.signal[t]):.6g}: give "
                f"{option('noise_variance')} that or more, or 'evidence'"
            )

    def _scaled(self, variances: Variances) -> tuple[Float, Float]:
        """Prior variance (d,) in units of the noise within the sums, and the factor of that noise (d,)."""
        signal, noise = variances.signal, variances.noise
        for name, values in (("signal", signal), ("noise", noise)):
            if not (np.isfinite(values) & (values > 0.0)).all():
                raise ParameterError(f"{name} = {values} is out of range; give finite numbers > 0")
        if self._made is None:
            return signal / noise, noise
        ratio = self._made.signal / self._made.noise
        if not np.allclose(signal / noise, ratio, rtol=_SAME_RATIO, atol=0.0):
            raise ParameterError(
                f"the sums were made with signal / noise = {ratio:.6g}, not {signal / noise}; sweep again with the "
                "variances wanted"
            )
        return np.full(len(signal), self._made.signal), noise / self._made.noise
