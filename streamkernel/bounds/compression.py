"""The sample compression bound of a subspace spanned by chosen rows.

The residual of a new row, ``l(x) = k(x, x) - |z(x)|^2`` in [0, R], depends on the set of chosen rows alone. With
probability 1 - delta over m independent rows, simultaneously for all t = 1 .. n of a nested path::

    E l_n <= min_t { tr R_t / (m - t) + R sqrt( (ln C(m, t) + ln(m / delta)) / (2 (m - t)) ) }

(Hussain & Shawe-Taylor, Theorem 2 and Corollary 1; ALGORITHMS 11.1). Proof: one-sided Hoeffding on the m - t rows
outside the set (the residual of a row inside is 0), once for each of C(m, t) sets and once for each of m sizes. The
paper prints R inside the root, but a loss of range R needs R^2; and it prints ln(2m / delta), but one side needs
ln(m / delta) only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.bounds._binomials import log_binomial, relaxed_log_binomial
from streamkernel.bounds._checks import checked_path, checked_sizes
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_number, checked_probability
from streamkernel.type_aliases import Float, Int

# Residual traces are differences of sums: this share of the first trace may be rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class CompressionBound:
    """The compression bound along a path.

    Attributes
    ----------
    sizes : (n,) number of functions t at each entry.
    residual : (n,) ``tr R_t / (m - t)``, the mean over the rows outside the basis; inf at t = m.
    values : (n,) bound on the expected residual of a new row, with exact binomials; inf at t = m, where no row is left.
    relaxed : (n,) the same bound with ``(e m / t)^t`` instead of the binomial.
    running_minimum : (n,) smallest value so far; it holds for the basis of that size, because the path is nested.
    rows, delta, largest : the arguments of `compression_bound`.
    """

    sizes: Int
    residual: Float
    values: Float
    relaxed: Float
    running_minimum: Float
    rows: int
    delta: float
    largest: float

    @property
    def argmin(self) -> int:
        """Index of the smallest value, the first of equal ones."""
        return int(np.argmin(self.values))

    @property
    def minimum(self) -> float:
        """The bound for the whole basis."""
        return float(self.values[self.argmin])

    @property
    def best_size(self) -> int:
        """Number of functions with the smallest bound."""
        return int(self.sizes[self.argmin])

    @property
    def vacuous(self) -> bool:
        """Whether the bound gives no more information than ``l <= R``."""
        return not self.minimum < self.largest


def compression_bound(
    residual_path: ArrayLike, rows: int, delta: float = 0.05, largest: float = 1.0, *, sizes: ArrayLike | None = None
) -> CompressionBound:
    """Bound the expected residual of a new row for every size along a path of residual traces.

    Parameters
    ----------
    residual_path : (n,) ``tr R_t`` over all rows after each pick, non-increasing.
    rows : number m of independent draws from one distribution; the kernel must not be fitted to them.
    delta : probability that the bound fails, in (0, 1).
    largest : R = sup k(x, x) over all possible rows; 1 for a Gaussian.
    sizes : (n,) ascending, t at each entry; 1 .. n by default. A path that starts with tr K has sizes 0 .. n; among the
        m sizes of the union bound, t = 0 then replaces t = m.

    Raises
    ------
    ParameterError
        The path rises, is longer than the rows, or exceeds `largest` times the number of rows outside the basis.
    """
    path = checked_path("residual_path", residual_path)
    rows, delta = checked_integer("rows", rows), checked_probability("delta", delta)
    largest = checked_number("largest", largest)
    t = checked_sizes(sizes, len(path), rows)
    rises = np.flatnonzero(np.diff(path) > _ROUNDING * path[0])
    if len(rises):
        at = rises[0] + 1
        raise ParameterError(
            f"residual_path rises from {path[at - 1]:.6g} to {path[at]:.6g} at entry {at}: these are no residual "
            "traces of a growing basis; give exact ones of one path"
        )
    outside = (rows - t).astype(np.float64)
    excess = np.flatnonzero(path > largest * outside + _ROUNDING * largest * rows)
    if len(excess):
        at = excess[0]
        raise ParameterError(
            f"residual_path[{at}] = {path[at]:.6g} is more than largest = {largest:g} for each of {rows - t[at]} "
            f"rows outside {t[at]} functions; give sup k(x, x) as largest, and sizes if the path starts at tr K"
        )
    some = outside > 0.0
    residual, values, relaxed = (np.full(len(path), np.inf) for _ in range(3))
    residual[some] = path[some] / outside[some]
    surprise = np.log(rows / delta)
    for bound, count in ((values, log_binomial(rows, t)), (relaxed, relaxed_log_binomial(rows, t))):
        bound[some] = residual[some] + largest * np.sqrt((count[some] + surprise) / (2.0 * outside[some]))
    return CompressionBound(
        sizes=t,
        residual=residual,
        values=values,
        relaxed=relaxed,
        running_minimum=np.minimum.accumulate(values),
        rows=rows,
        delta=delta,
        largest=largest,
    )
