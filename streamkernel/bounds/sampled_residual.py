"""The Frobenius error of a low-rank factor from a few columns of its residual.

With R = K - K~ (positive semidefinite), F = |R|_F and a fresh uniform sample of m' columns, without replacement::

    F^2 = sum_i |R_i|^2  ~  F'^2 = (m / m') sum_(i in sample) |R_i|^2,    |F^2 - F'^2| <= m eps, eps = c b of `sampling`
    |R_i|^2 <= R_ii |R|_2,    |R|_2 <= F <= tr R <= tr K <= m k_max,    b = k_max tr R, or with a later one of these
    F^2 - F'^2 <= m c k_max F    =>    F <= ( A + sqrt(A^2 + 4 F'^2) ) / 2,  A = m c k_max;   F >= the same with -A

(Smola & Schoelkopf 2000, section 2.4, with Corollary 3 replaced; ALGORITHMS 1.7). The range b may contain F itself,
because F is a number of the population and not of the sample; the quadratic inequality is then solved for F. The
residual trace needs no estimate: a sweep gives its exact value, and it implies (tr R)^2 / m <= F^2 <= (tr R)^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from streamkernel.bounds._checks import checked_path
from streamkernel.bounds.sampling import deviation_radius
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_number, checked_probability

# Relative excess over the range that a sampled column may have: rounding of float32 kernel blocks.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class SampledResidual:
    """An estimate of ``|R|_F^2 = sum_i |R_i|^2``.

    Attributes
    ----------
    estimate : number of rows times the sample's mean.
    radius : m eps for the range `width`: bound on the error of the estimate (on its shortfall, unless `two_sided`).
    lower, upper : interval for the true value, from the radius, the solved quadratic and the certain limits; unless
        `two_sided`, `lower` is the certain limit alone.
    width : range b of one |R_i|^2, known without the sample.
    vacuous : whether `upper` is the limit that is certain without the sample.
    """

    estimate: float
    radius: float
    lower: float
    upper: float
    width: float
    rows: int
    sample: int
    delta: float
    two_sided: bool
    vacuous: bool


def column_range(
    rows: int, largest: float = 1.0, *, trace: float | None = None, residual_trace: float | None = None
) -> float:
    """``b = k_max min(tr R, tr K, m k_max)``, an upper bound of every ``|R_i|^2``.

    Parameters
    ----------
    rows : number m of rows.
    largest : k_max = max_i k(x_i, x_i), 1 for a Gaussian; or max_i R_ii, if a sweep has returned it, which makes b
        smaller in proportion.
    trace, residual_trace : tr K and tr R, if they are known.
    """
    largest = checked_number("largest", largest, zero=True)
    total = checked_integer("rows", rows) * largest
    for name, known in (("trace", trace), ("residual_trace", residual_trace)):
        if known is not None:
            total = min(total, checked_number(name, known, zero=True))
    return largest * total


def sampled_residual(
    column_squares: ArrayLike,
    rows: int,
    *,
    largest: float = 1.0,
    trace: float | None = None,
    residual_trace: float | None = None,
    delta: float = 0.05,
    two_sided: bool = True,
) -> SampledResidual:
    """Estimate ``|R|_F^2`` from the squared norms of sampled residual columns.

    The sample must be fresh: drawn uniformly without replacement, after the basis was fixed and independent of it. The
    pool from which the basis was picked is no such sample. The residual columns of the basis are 0, so sampling among
    the other rows alone, with `rows` their number, is as good.

    Parameters
    ----------
    column_squares : (m',) ``|R_i|^2`` of the sampled columns, each over all rows of the table.
    rows : number of rows from which the sample was drawn.
    largest, trace, residual_trace : arguments of `column_range`, for these rows.
    delta : probability that the interval misses the truth.
    two_sided : False for an upper bound alone, which is then tighter.

    Raises
    ------
    ParameterError
        There are more columns than rows, or a column exceeds the range: then `largest` or a trace is wrong.
    """
    squares = checked_path("column_squares", column_squares)
    rows, delta = checked_integer("rows", rows), checked_probability("delta", delta)
    width = column_range(rows, largest, trace=trace, residual_trace=residual_trace)
    top = float(squares.max())
    if top > width * (1.0 + _ROUNDING):
        raise ParameterError(
            f"column_squares[{int(squares.argmax())}] = {top:.6g} exceeds the range {width:.6g} that largest, trace "
            "and residual_trace allow for; give the sums of the same rows and kernel"
        )
    sample = len(squares)
    share = deviation_radius(delta, rows, sample, 1.0, two_sided=two_sided)
    radius = rows * share * width
    # An exact sum, so that the order of the sample does not matter.
    seen = math.fsum(squares)
    estimate = seen * (rows / sample)
    low, high = _solved(estimate, rows * share * checked_number("largest", largest, zero=True))
    lower, certain = seen, seen + (rows - sample) * width
    if residual_trace is not None:
        lower, certain = max(lower, float(residual_trace) ** 2 / rows), min(certain, float(residual_trace) ** 2)
    # Rounding must not swap the certain limits.
    certain = max(lower, certain)
    upper = min(certain, estimate + radius, high)
    if two_sided:
        lower = min(certain, max(lower, estimate - radius, low))
    return SampledResidual(
        estimate=estimate,
        radius=radius,
        lower=lower,
        upper=max(lower, upper),
        width=width,
        rows=rows,
        sample=sample,
        delta=delta,
        two_sided=two_sided,
        vacuous=sample < rows and upper >= certain,
    )


def _solved(estimate: float, slope: float) -> tuple[float, float]:
    """The least and the largest F^2 with ``|F^2 - estimate| <= slope F``."""
    # The lesser root as 2 estimate / root: the difference sqrt(...) - slope would cancel.
    root = slope + math.sqrt(slope**2 + 4.0 * estimate)
    return ((2.0 * estimate / root) ** 2 if root > 0.0 else 0.0), (root / 2.0) ** 2
