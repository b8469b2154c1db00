"""The bound for kernel matching pursuit, whose coefficients are fitted to all rows.

A row is wrong if ``|f(x) - y| > gamma``, with gamma fixed beforehand. For k basis functions, q wrong rows among the
m - k others, and N = m - k - q, with probability 1 - delta over m independent rows::

    Pr{wrong} <= (2 / N) ( (k + 1) log2(4 e N / (k + 1)) + log2 C(m, k) + log2 C(m - k, q) + log2(2 m^2 / delta) )

(Hussain & Shawe-Taylor, Theorem 3; Theorem 4 for canonical correlations; ALGORITHMS 11.2). Proof: the consistent-case
bound of Vapnik & Chervonenkis on the N right rows, for two parallel hyperplanes in k dimensions, once for each choice
of functions, of wrong rows, and of (k, q). Logarithms are to base 2, because the bound has 2^(-N eps / 2).

In Theorem 4 a pair of views is wrong if ``|f_x(x) - f_y(y)| > gamma``; the paper prints the same formula. But the
difference is linear in the k features of both views, so its hyperplanes lie in D = 2k dimensions. Here D + 1 replaces
k + 1 in the first term; k stays in the others, because both views use the same chosen rows (``views=2``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.bounds._binomials import log_binomial, relaxed_log_binomial
from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_probability
from streamkernel.type_aliases import Bool, Float, Int


@dataclass(frozen=True)
class MatchingPursuitBound:
    """The bound for each (k, q); all arrays have the broadcast shape of `functions` and `errors`.

    Attributes
    ----------
    values : bound on the probability of a wrong prediction, with exact binomials; inf if fewer than D + 1 rows are
        right. Values above 1 still serve to compare sizes of a basis.
    relaxed : the same bound with ``C(m, k) <= (e m / k)^k``, as the paper prints it.
    reported : the values, at most 1.
    vacuous : whether a value is 1 or more, and so gives no information on the loss itself.
    functions, errors : k and q, from the arguments.
    rows, delta : from the arguments; all gammas share delta.
    """

    values: Float
    relaxed: Float
    reported: Float
    vacuous: Bool
    functions: Int
    errors: Int
    rows: int
    delta: float

    @property
    def observed(self) -> Float:
        """``q / (m - k)``, the share of wrong rows outside the basis; 0 if no row is outside."""
        outside = self.rows - self.functions
        return np.divide(self.errors, outside, out=np.zeros(np.shape(self.values)), where=outside > 0)

    @property
    def argmin(self) -> int:
        """Index of the smallest value of a path, the first of equal ones."""
        return int(np.argmin(self.values))

    @property
    def best_size(self) -> int:
        """Number of functions with the smallest bound; it serves to compare sizes even if the bound is vacuous."""
        return int(self.functions.flat[self.argmin])

    @property
    def minimum(self) -> float:
        """The smallest value."""
        return float(self.values.flat[self.argmin])

    @property
    def says_nothing(self) -> bool:
        """Whether the bound is vacuous at every size."""
        return bool(np.all(self.vacuous))


def matching_pursuit_bound(
    rows: int, functions: ArrayLike, errors: ArrayLike, delta: float = 0.05, *, gammas: int = 1, views: int = 1
) -> MatchingPursuitBound:
    """Bound the probability that the prediction of a new row is off by more than gamma.

    Parameters
    ----------
    rows : number m of rows.
    functions : k, a number or a path of numbers, 1 <= k <= m.
    errors : q, for each k the number of rows outside the basis that are off by more than gamma, 0 <= q <= m - k.
    delta : probability that the bound fails, in (0, 1).
    gammas : number of values of gamma for which the bound holds at once; all must be fixed before the data are seen.
    views : 1 or more; the hyperplanes lie in D = views k dimensions. Both theorems print 1; the variates of Theorem 4
        need 2.

    Raises
    ------
    ParameterError
        k or q is out of range, or delta is not a probability.
    """
    rows, gammas = checked_integer("rows", rows), checked_integer("gammas", gammas)
    views, whole = checked_integer("views", views), checked_probability("delta", delta)
    k, q = np.broadcast_arrays(_whole("functions", functions), _whole("errors", errors))
    if np.any(wrong := (k < 1) | (k > rows)):
        raise ParameterError(f"functions: {k[wrong][0]} is not from 1 to {rows} rows; give the sizes of a basis")
    if np.any(wrong := (q < 0) | (q > rows - k)):
        raise ParameterError(f"errors: {q[wrong][0]} is not from 0 to the rows outside the basis; count those alone")
    right, exponent = (rows - k - q).astype(np.float64), views * k + 1
    valid = right >= exponent
    N = np.where(valid, right, 1.0)
    hyperplanes = exponent * np.log2(4.0 * math.e * N / exponent)
    certainty = math.log2(2.0 * gammas / whole) + 2.0 * math.log2(rows)
    values, relaxed = (
        np.where(valid, 2.0 / N * (hyperplanes + (log(rows, k) + log(rows - k, q)) / math.log(2.0) + certainty), np.inf)
        for log in (log_binomial, relaxed_log_binomial)
    )
    return MatchingPursuitBound(
        values=values,
        relaxed=relaxed,
        reported=np.minimum(values, 1.0),
        vacuous=values >= 1.0,
        functions=np.array(k),
        errors=np.array(q),
        rows=rows,
        delta=whole,
    )


def _whole(name: str, values: ArrayLike) -> Int:
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iu":
        raise ParameterError(f"{name} are of {numbers.dtype}, not whole numbers; give integers")
    return numbers.astype(np.int64)
