"""The Frobenius error of a low-rank factor from a few columns of its residual.

With R = K - K~ (positive semidefinite), F = |R|_F and a fresh uniform sample of m' columns, without replacement::

    F^2 = sum_i |R_i|^2  ~  F'^2 = (m / m') sum_(i in sample) |R_i|^2,    |F^2 - F'^2| <= m eps, eps = c b of `sampling`
    |R_i|^2 <= R_ii |R|_2,    |R|_2 <= F <= tr R <= tr K <= m k_max,    b = k_max tr R, or with a later one of these
    F^2 - F'^2 <= m c k_max F    =>    F <= ( A + sqrt(A^2 + 4 F'^2) ) / 2,  A = m c k_max;   F >= the same with -A

(Smola & Schoelkopf 2000, section 2.4, with Corollary 3 replaced; ALGORITHMS 1.7). The range b may contain F itself,
as it is a number of the population and not of the sample; the quadratic is then solved for it. The residual trace needs
no estimate, a sweep brings its exact value, and says by itself that (tr R)^2 / m <= F^2 <= (tr R)^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from streamkernel.bounds._checks import checked_path
from streamkernel.bounds.sampling import deviation_radius
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_number, checked_probability

__all__ = ["SampledResidual", "column_range", "sampled_residual"]

# By how much, relatively, a sampled column may exceed the range: rounding of float32 kernel blocks.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class SampledResidual:
    """An estimate of ``|R|_F^2 = sum_i |R_i|^2``.

    Attributes
    ----------
    estimate : rows times the sample's mean.
    radius : m eps for the range `width`: the estimate is off by no more (not too small by more, unless `two_sided`).
    lower, upper : interval for the truth: within the radius, the solved quadratic and what is certain; `lower` is what
        is certain unless `two_sided`.
    width : the range b of one |R_i|^2 that is known without the sample.
    vacuous : the interval's upper end is what is certain without the sample.
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
    """``b = k_max min(tr R, tr K, m k_max)``: no ``|R_i|^2`` is larger.

    Parameters
    ----------
    rows : m.
    largest : k_max = max_i k(x_i, x_i), 1 for a Gaussian; or, where a sweep has brought it, max_i R_ii, which makes b
        smaller by as much.
    trace, residual_trace : tr K and tr R, where they are known.
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

    The sample must be fresh: drawn uniformly without replacement, after the basis was fixed and without regard to it. A
    pool out of which the basis was picked is no such sample. The columns of the basis are 0, so that sampling among
    the other rows alone, with `rows` their number, is as good.

    Parameters
    ----------
    column_squares : (m',) ``|R_i|^2`` of the sampled columns, each over all rows of the table.
    rows : number of rows that the sample was drawn from.
    largest, trace, residual_trace : for the range of one column, see `column_range`; of these rows.
    delta : probability that the interval misses the truth.
    two_sided : False for an upper bound alone, which is then tighter.

    Raises
    ------
    ParameterError
        More columns than rows, or a column beyond the range: then largest or a trace is not what it should be.
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
    # Exact, so that the order of the sample does not matter.
    seen = math.fsum(squares)
    estimate = seen * (rows / sample)
    low, high = _solved(estimate, rows * share * checked_number("largest", largest, zero=True))
    lower, certain = seen, seen + (rows - sample) * width
    if residual_trace is not None:
        lower, certain = max(lower, float(residual_trace) ** 2 / rows), min(certain, float(residual_trace) ** 2)
    # Rounding must not turn what is certain around.
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
    root = slope + math.sqrt(slope**2 + 4.0 * estimate)
    return ((2.0 * estimate / root) ** 2 if root > 0.0 else 0.0), (root / 2.0) ** 2
