"""Sums of a reduced least squares fit, and its certificate.

With whitened features ``G = k(X, Z) L^-T`` (m, n), targets ``Y`` (m, d), row weights ``w`` (ones unless given) and
``W = diag w``::

    H = G^T W G    g = G^T W Yc    YY = Yc^T W Yc    G1 = G^T w    Y1 = Yc^T w    trace = sum_i w_i k(x_i, x_i)

``Yc = Y - centre``: targets are shifted by a constant near their mean before they are squared, so that a large
offset loses no digits. Y1 gives the exact mean. Smola & Schoelkopf 2000, eq. (7), in whitened coordinates.

There are two ways to these sums. To accumulate ``K^T W K`` and whiten it at the end costs half the operations, but
lifts the rounding of the sum, about ``eps m sqrt(n)``, by `Basis.lift`. To whiten every block first does not
(ALGORITHMS 1.1). And there are ways between: whiten the first t functions of every block, take what they explain out of
the others, and whiten these at the end::

    [G1, R] = [K1 L11^-T, K2 - G1 L21^T]        S = [G1, R]^T W [G1, R]        H = L'^-1 S L'^-T,   L' = diag(I, L22)

All sums are parts of one matrix, the Gram matrix of the columns ``[K, 1, Yc]``. SYRK over n + 1 + d columns takes as
long as over n. A product of their own for the sums with 1 and Yc takes 5 % more time for n = 1,000, 14 % for n = 300.

The values R of a smooth kernel are small, and so is the rounding of their sums: with t = n / 32 the lift is a hundredth
to a thousandth, for 6 % more operations. `NormalEquations.of` takes the least t that the basis allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamkernel.basis import Basis
from streamkernel.linalg import block_array, leading_square, mirror_upper, solve_lower, syrk, whitened
from streamkernel.reductions._mergeable import MergeableSums
from streamkernel.reductions.contract import State, Sums
from streamkernel.table import RowBlock
from streamkernel.type_aliases import AnyArray, Float

# Harmless rounding of the whitened sums, as shares of m (docs/methods.md has what was measured). They are shares,
# because the eigenvalues of H are: rounding moves predictions by as much with many rows as with few.
_ROUNDING = 1e-9  # in what the whitened functions leave of the kernel
_FEW_ROWS = 3000  # fewer count as so many: alphas below 3e-6 are rarely chosen from them
_ROOT_ROUNDING = 1e-7  # in roots of the least pivot: predictions move by rounding over the root of an eigenvalue
_FEATURE_ROUNDING = 1e-3  # in the rounding of the features, eps / root: less of the sums is not noticed beside it
_LINE = 8  # numbers of a cache line
_LEAST_LEADING = 8  # functions that blocks are whitened of, where they are
# Functions to a leading one. Fits to eleven tables, with and without a metric, took 0 to 96 of 300 (median 8), and 0 to
# 384 of 1,000 (36).
_USUAL_SHARE = 32


@dataclass(frozen=True)
class RidgeSums(MergeableSums):
    """Sufficient statistics of a reduced ridge regression, of its alpha path and of its certificate, float64.

    Attributes
    ----------
    H : (n, n), g : (n, d), YY : (d, d), G1 : (n,), Y1 : (d,)
    centre : (d,) constant that was subtracted from the targets
    weight : sum of the row weights
    trace : weighted trace of K
    count : number of rows
    """

    H: Float
    g: Float
    YY: Float
    G1: Float
    Y1: Float
    centre: Float
    weight: float
    trace: float
    count: int

    @property
    def residual_trace(self) -> float:
        """``tr(K - K~)`` of these rows, exact: the certificate."""
        return max(self.trace - float(np.trace(self.H)), 0.0)


class Factors(NamedTuple):
    """Rows as factors of the sums.

    Attributes
    ----------
    columns : (b, n + 1 + d) ``[K, 1, Yc]``: features or kernel values, ones, and targets about the centre
    weights : (b,) row weights, or None where every row counts once.
    diagonal : (b,) ``k(x_i, x_i)``
    """

    columns: Float
    weights: Float | None
    diagonal: Float

    def part(self, start: int, stop: int) -> Factors:
        """Rows [start, stop), as views."""
        rows = slice(start, stop)
        return Factors(self.columns[rows], None if self.weights is None else self.weights[rows], self.diagonal[rows])

    def add_to(self, gram: Float, totals: Float, *, lower: bool = False) -> None:
        """Add to the sums of `NormalEquations.shapes` in place; to the upper triangle of `gram` or to its lower one.

        The columns are overwritten.
        """
        columns, weights, diagonal = self
        if weights is None:
            totals += [len(columns), len(columns), diagonal.sum()]
        else:
            # Roots of the weights on both factors, so that SYRK computes K^T W K.
            columns *= np.sqrt(weights)[:, None]
            totals += [len(columns), weights.sum(), weights @ diagonal]
        syrk(columns, into=gram, lower=lower)


def _leading_counts(n: int) -> list[int]:
    """Numbers of leading functions to try: 0, 8, 12, 16, 24, 32, 48, ..., below n.

    Each function costs 2 n operations a row: 16 of n = 300 a tenth of all sums. Each number that is tried costs some
    passes over the factor, as much as the sums of some hundred rows.
    """
    counts = [0, *(half * _LEAST_LEADING // 2 << octave for octave in range(n.bit_length()) for half in (2, 3))]
    return [count for count in counts if count < n]


def _most_lift(basis: Basis, leading: int, rows: int, alpha: float | None) -> float:
    """Largest lift of sums over so many rows that keep the digits that are needed."""
    eps, root, m = float(np.finfo(np.float64).eps), float(np.sqrt(basis.least_pivot)), max(rows, 1)
    harmless = max(_ROUNDING * basis.unexplained(leading) * max(1.0, _FEW_ROWS / m), _ROOT_ROUNDING * root)
    if alpha is not None:
        harmless = min(harmless, max(alpha / m, _FEATURE_ROUNDING * eps / root))
    return max(harmless / (eps * float(np.sqrt(len(basis)))), 1.0)  # of whitened blocks


@dataclass(frozen=True)
class NormalEquations(Sums[RidgeSums]):
    """Accumulate `RidgeSums` over the rows of a table.

    Parameters
    ----------
    basis : Basis of n functions.
    centre : (d,) constant near the mean of each target; d = 0 without targets.
    leading : number of functions that every block is whitened of before the sum; None for all, 0 to whiten the sums
        only, for half the operations.
    """

    basis: Basis
    centre: Float
    leading: int | None = None

    @classmethod
    def of(cls, basis: Basis, centre: Float, rows: int, alpha: float | None = None) -> NormalEquations:
        """Whiten the sums of a well-conditioned basis, and of others every block of as many functions as it needs.

        The choice depends on the basis, the number of rows and alpha only.

        Parameters
        ----------
        rows : number of rows m of the table.
        alpha : ridge that the user gave, or None if it is chosen from the sums. The rounding error stays below it,
            because a user who gives 1e-9 needs the digits; or below that of the features themselves, which whitened
            blocks have, too.
        """

        def enough(leading: int) -> bool:
            most = _most_lift(basis, leading, rows, alpha)
            return basis.lift(leading, most) <= most

        return cls(basis, centre, next(filter(enough, _leading_counts(len(basis))), None))

    @classmethod
    def usual(cls, basis: Basis, centre: Float) -> NormalEquations:
        """The choice of `of` that most tables have, before the basis is known: for the time of a plan."""
        return cls(basis, centre, len(basis) // _USUAL_SHARE)

    @property
    def width(self) -> int:
        """Number of columns ``[K, 1, Yc]``."""
        return len(self.basis) + 1 + len(self.centre)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"gram": (self.width, self.width), "totals": (3,)}

    @property
    def symmetric(self) -> frozenset[str]:
        return frozenset({"gram"})

    def columns(self, X: AnyArray) -> Float:
        """The columns of rows (b, p), (b, n + 1 + d), with values of the first n alone.

        The values are features, kernel values, or some of each. They are in a `block_array`.
        """
        # Each row begins with a cache line.
        columns = block_array("values", (len(X), -(-self.width // _LINE) * _LINE))[:, : self.width]
        out = columns[:, : len(self.basis)]
        if self.leading == 0:
            self.basis.block(X, out)
        else:
            self.basis.features(X, out, leading=self.leading)
        return columns

    def fold(self, state: State, block: RowBlock) -> State:
        self.factors(self.columns(block.X), block).add_to(state["gram"], state["totals"])
        return state

    def factors(self, columns: Float, block: RowBlock) -> Factors:
        """The factors of the sums over the rows of a block.

        Parameters
        ----------
        columns : `columns` of its rows, whose other values are written.
        """
        n = len(self.basis)
        columns[:, n] = 1.0
        if len(self.centre):
            assert block.Y is not None
            np.subtract(block.Y, self.centre, out=columns[:, n + 1 :])
        return Factors(columns, block.weights, self.basis.kernel.diagonal(block.X))

    def finalize(self, state: State) -> RidgeSums:
        count, weight, trace = (float(value) for value in state["totals"])
        n, gram = len(self.basis), state["gram"]
        G1, g = gram[:n, n].copy(), gram[:n, n + 1 :].copy()
        Y1, YY = gram[n, n + 1 :].copy(), mirror_upper(gram[n + 1 :, n + 1 :].copy())
        H = leading_square(gram, n)
        if self.leading is None:
            H = mirror_upper(H)
        else:
            L = self.basis.L
            if self.leading:
                L = np.eye(len(L))
                L[self.leading :, self.leading :] = self.basis.L[self.leading :, self.leading :]
            H, g, G1 = whitened(H, L), solve_lower(L, g), solve_lower(L, G1)
        return RidgeSums(H, g, YY, G1, Y1, self.centre, weight, trace, int(count))

    def scratch_bytes(self, rows: int) -> int:
        return int(8 * rows * (self.width + _LINE + self.basis.points.shape[1] + 2))

    def flops_per_row(self) -> float:
        n, p = self.basis.points.shape
        t = n if self.leading is None else self.leading
        return float(self.width**2 + t * (2 * n - t) + 2 * n * p)
