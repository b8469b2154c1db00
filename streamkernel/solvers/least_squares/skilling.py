"""The full system ``(K + rho I) w = y`` by conjugate gradients, with a lower and an upper bound at each iteration.

Each iteration evaluates K (m, m) tile by tile: O(m^2) work, O(m) memory, no basis and no approximation. With
``M = K + rho I``, any w and its residual ``r = y - M w`` (Skilling 1993; Gibbs & MacKay 1997; ALGORITHMS 9.1)::

    lower   2 w^T y - w^T M w  =  w^T (y + r)                           <=  y^T M^-1 y
    upper   (|y - K w|^2 / rho + w^T K w)  =  lower + r^T r / rho       >=  y^T M^-1 y

The exact value is ``lower + r^T M^-1 r``. Therefore every P <= M in place of rho I gives an upper bound. The
preconditioner ``P = K~ + rho I`` is such a P, because K - K~ >= 0, and its term ``r^T P^-1 r`` is already part of the
iteration. A better preconditioner gives a tighter bound. The bounds cost no product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.basis import Basis, unfilled
from streamkernel.engine import Machine, Plan, Session, Step, TableShape, make_plan, step_of
from streamkernel.errors import ParameterError
from streamkernel.kernels import Kernel
from streamkernel.kernels.parameters import checked_columns, checked_integer, checked_number, checked_rows
from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions import Collect
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.sums import (
    CrossProducts,
    FeatureGram,
    Features,
    FeatureTimes,
    FeatureTransposed,
    KernelProducts,
)
from streamkernel.solvers.least_squares._conjugate_gradients import ConjugateGradients, Ended, column_products, iterate
from streamkernel.table import Table
from streamkernel.type_aliases import Float, Unchecked


class InverseBelow(Protocol):
    """``P^-1`` for a ``P = K~ + rho I`` with ``K - K~`` positive semidefinite; `factors.preconditioner` makes one."""

    rho: float

    def __matmul__(self, V: Unchecked) -> Any: ...


@dataclass(frozen=True)
class CGResult:
    """Result of a solve.

    Attributes
    ----------
    weights : (m,) or (m, d), the solution w.
    lower, upper : (iterations + 1, d) best bounds so far on ``y^T (K + rho I)^-1 y`` after each iteration; the last
        ones are those of the true residual, computed by one more sweep.
    iterations : number of iterations, each with one product with K.
    sweeps : number of passes over the table, including those of the preconditioner.
    ended : "tolerance", "iterations", or "rounding" if rounding of the products keeps the gap above the tolerance.
    """

    weights: Float
    lower: Float
    upper: Float
    iterations: int
    sweeps: int
    ended: Ended

    @property
    def converged(self) -> bool:
        """True if the relative gap of every target is within the tolerance."""
        return self.ended == "tolerance"

    @property
    def gap(self) -> Float:
        """(d,) ``(upper - lower) / lower`` at the end; the error of w in the norm of M is at most its square root."""
        return relative_gap(self.lower[-1], self.upper[-1])


def relative_gap(lower: Float, upper: Float) -> Float:
    """``(upper - lower) / lower``; 0 where both are 0."""
    gap = upper - lower
    none = np.where(gap > 0.0, np.inf, 0.0)
    return np.divide(gap, lower, out=none, where=lower > 0.0)


class FullSystem:
    """The matrix ``K + rho I`` over the rows of a table.

    Vectors are float64 arrays in memory: five in addition to the right sides, and one for each task.

    Parameters
    ----------
    table : m rows; targets and weights are not used.
    kernel : Kernel of K.
    rho : ridge > 0 on the diagonal.
    session : Session that runs and counts the sweeps.
    preconditioner : InverseBelow with the same rho; it costs two more sweeps per iteration. None for no preconditioner.

    Raises
    ------
    ParameterError
        rho is not a finite number > 0, or the preconditioner has another rho.
    """

    def __init__(
        self, table: Table, kernel: Kernel, rho: float, session: Session, preconditioner: InverseBelow | None = None
    ) -> None:
        self.table, self.kernel, self.session = table, kernel, session
        self.rho = checked_number("rho", rho)
        kernel.check_features(table.width)
        if preconditioner is not None and preconditioner.rho != self.rho:
            raise ParameterError(
                f"the preconditioner was made for rho = {preconditioner.rho:g}, the system has {self.rho:g}; give "
                "both the same, or the bounds do not hold"
            )
        self._inverse = preconditioner

    def product(self, V: Float, name: str = "K V by tiles") -> Float:
        """``(K + rho I) V`` (m, d): one sweep, m (m + 1) / 2 kernel values."""
        KV = self.session.sweep(KernelProducts(self.kernel, self.table, V), self.table, name)
        KV += self.rho * V
        return KV

    def _precondition(self, R: Float) -> Float:
        return R / self.rho if self._inverse is None else np.asarray(self._inverse @ R, dtype=np.float64)

    def solve(self, y: ArrayLike, *, tol: float = 1e-6, most: int = 500) -> CGResult:
        """Solve for one or several right sides, which share all sweeps.

        Parameters
        ----------
        y : (m,) or (m, d) right sides.
        tol : stop when ``upper - lower <= tol * lower`` for each right side.
        most : largest number of iterations.

        Raises
        ------
        ParameterError, DTypeError, ShapeMismatchError, NonFiniteDataError
        """
        tol, most = checked_number("tol", tol), checked_integer("most", most)
        Y = checked_columns(y, self.table.n_rows, "the right side")
        before = len(self.session.records)
        with single_threaded_blas():
            run = _Run(ConjugateGradients(Y, lambda V, _: self.product(V), self._precondition), Y, self.session)
            iterations, ended = iterate(run.cg, run.note, tol, most)
        lower, upper = np.array(run.lower), np.array(run.upper)
        weights = run.cg.X if np.ndim(y) == 2 else run.cg.X[:, 0]
        sweeps = len(self.session.records) - before
        return CGResult(weights, lower, upper, iterations, sweeps, ended)

    def predict(self, X: ArrayLike, weights: ArrayLike) -> Float:
        """``k(x, X) w``, (q,) or (q, d), for q rows in memory, scaled as those of the table: one sweep over the table.

        Raises
        ------
        ShapeError, DTypeError, ShapeMismatchError, NonFiniteDataError
        """
        Z = checked_rows(X, "X", self.table.width)
        W = checked_columns(weights, self.table.n_rows, "the vector of weights")
        work = CrossProducts(self.kernel, Z, W, self.table.start)
        values = self.session.sweep(work, self.table, "k(x, X) w")
        return values if np.ndim(weights) == 2 else values[:, 0]


class _Run:
    """The iteration, with the bounds after each step."""

    def __init__(self, cg: ConjugateGradients, Y: Float, session: Session) -> None:
        self.cg, self._Y, self._session = cg, Y, session
        self.lower: list[Float] = []
        self.upper: list[Float] = []

    def note(self, again: bool) -> Float:
        """Record the bounds of this state, and return the relative gap.

        If `again`, the bounds of the true residual replace the last ones.
        """
        lower = column_products(self.cg.X, self._Y) + column_products(self.cg.X, self.cg.R)
        upper = lower + np.maximum(self.cg.rz, 0.0)
        gap = relative_gap(lower, upper)
        if again:
            self.lower[-1], self.upper[-1] = lower, upper
            return gap
        if self.lower:
            lower, upper = np.maximum(lower, self.lower[-1]), np.minimum(upper, self.upper[-1])
            self._session.progress.note(f"iteration {len(self.lower)}: relative gap {gap.max():.3g}")
        self.lower.append(lower)
        self.upper.append(upper)
        return gap


_VECTORS = 7  # of m numbers, per target: right side, iterate, residual, direction, its product, and temporaries


def plan_full(
    table: Table, kernel: Kernel, machine: Machine, *, iterations: int = 50, targets: int = 1, rank: int = 0
) -> Plan:
    """Plan of `FullSystem.solve`: sweeps, bytes, operations and memory.

    Parameters
    ----------
    iterations : expected number of iterations; the actual number depends on the bounds.
    targets : number of columns of the right side.
    rank : rank of the preconditioner; 0 for none.
    """
    m, p = table.n_rows, table.width
    held = 8 * m * targets * _VECTORS
    work = KernelProducts(kernel, table, unfilled(m, targets))
    # One more product for the true residual at the end.
    times = iterations + 1
    steps = [step_of("K V by tiles", work, table, kernel_columns=(m + 1) // 2, points=0, times=times, held_bytes=held)]
    b = steps[0].block_rows
    if rank:
        steps += _preconditioner_steps(table, kernel, times + 1, targets, rank, held)
    plan = make_plan(steps, TableShape.of(table), machine, disk_bytes=0)
    # Each block of a product with K reads the rows after it once more.
    again = times * m * max(0, m - b) // (2 * b) * (p * table.dtype.itemsize)
    return replace(plan, bytes_read=plan.bytes_read + again)


def _preconditioner_steps(table: Table, kernel: Kernel, times: int, targets: int, rank: int, held: int) -> list[Step]:
    m, p = table.n_rows, table.width
    features = Features.of_basis(Basis.unfilled(kernel, rank, p, table.dtype))
    values = FeatureTimes(features, unfilled(rank, targets), np.zeros(targets))
    parts: list[tuple[str, AnyReduction, int]] = [
        ("Gram matrix of the factor", FeatureGram(features), 1),
        ("G^T V", FeatureTransposed(features, unfilled(m, targets), table.start), times),
        ("G A", Collect(values, values.name, m), times),
    ]
    held += 24 * rank**2
    return [
        step_of(name, work, table, kernel_columns=rank, times=often, held_bytes=held) for name, work, often in parts
    ]
