"""Support vector machines on the full kernel matrix, by sequential minimal optimisation (SMO) in memory.

All losses are sums of kinks (`reductions.margins`). With ``f = K c``, c the sums of the dual variables u of each row::

    primal   1/2 c^T K c + sum_i w_i loss(y_i, f_i + b) + s b
    dual     y^T u - 1/2 c^T K c,      w l <= u <= w h,      sum u = s

s is the loss's `constant_slope`: 1 for one class, 0 for all others. Any u in the boxes with the sum s gives a lower
bound of the primal minimum: the gap of the result is exact, because f is computed anew at the end.

Tresp 2001, eq. (6); Platt 1999; Fan, Chen & Lin 2005; ALGORITHMS 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from streamkernel.errors import NumericRangeError, ParameterError, warn_user
from streamkernel.kernels import Kernel
from streamkernel.kernels.parameters import checked_columns, checked_integer, checked_number, checked_rows
from streamkernel.linalg import single_threaded_blas
from streamkernel.linalg.finite import require_finite
from streamkernel.linalg.pair_steps import COUNTED, NEEDED, loop_of
from streamkernel.reductions.margins import PiecewiseLinear
from streamkernel.solvers.margins._kernel_rows import KernelRows
from streamkernel.type_aliases import Bool, Float, Int

CACHE_BYTES = 200 << 20
# Rows computed at once where one is missing: twice those of a tile of the kernels' loops, which take as long as one.
_BATCH = 12
_LEAST_MOST = 10_000_000  # steps, of libsvm
# Rows of a working set, where not all rows of the kernel matrix fit into memory; and the share of the present violation
# down to which it is solved.
_WORKING_ROWS, _INNER_SHARE = 1024, 0.1
_RENEWALS = 10  # of f, whose rounding the steps add up
_WEIGHT_ROUNDING = 1e-9  # of the sum of the boxes


@dataclass(frozen=True)
class SMOSolution:
    """The solution of one problem.

    Attributes
    ----------
    duals : (kinks, m) dual variables u.
    offset : b, the middle of the values that satisfy all rows best.
    primal, dual : the objectives at u and b.
    violation : the largest ``v_i - v_j`` of a pair that may still be moved; the tolerance or less if converged.
    iterations : number of steps.
    converged : whether no pair violates by more than the tolerance.
    """

    duals: Float
    offset: float
    primal: float
    dual: float
    violation: float
    iterations: int
    converged: bool

    @property
    def coefficients(self) -> Float:
        """(m,) c: the decision function is ``k(x, X) c + b``."""
        return np.asarray(self.duals.sum(axis=0))

    @property
    def vectors(self) -> Int:
        """Positions of the support vectors: rows with a dual variable that is not 0."""
        return np.flatnonzero((self.duals != 0.0).any(axis=0))

    @property
    def gap(self) -> float:
        """``primal - dual``: the objective is at most this far from the minimum."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the primal objective's size."""
        return self.gap / abs(self.primal) if self.primal != 0.0 else 0.0


@dataclass(frozen=True)
class Boxes:
    """Targets and boxes of the dual variables of m rows, (kinks, m) each.

    Attributes
    ----------
    targets : y; low, high : w l and w h.
    total : sum s of the variables; None without a constant b.
    """

    targets: Float
    low: Float
    high: Float
    total: float | None

    @classmethod
    def of(cls, loss: PiecewiseLinear, y: Float, weights: Float, *, intercept: bool = True) -> Boxes:
        kinks = loss.kinks(y)
        low = np.array([kink.low for kink in kinks])
        targets = np.array([kink.targets for kink in kinks])
        return cls(targets, low * weights, (low + loss.C) * weights, loss.constant_slope if intercept else None)

    def start(self, u: Float | None = None) -> Float:
        """Variables in the boxes with the sum `total`, near u, or near 0: the first with room make up what is missing.

        Those inside their boxes come before those at an end, so that rounding makes no support vector.
        """
        u = np.clip(0.0 if u is None else u, self.low, self.high)
        for some in ((u > self.low) & (u < self.high), np.ones(u.shape, dtype=bool)):
            missing = 0.0 if self.total is None else self.total - float(u.sum())
            if missing == 0.0:
                break
            room = np.where(some, self.high - u if missing > 0.0 else u - self.low, 0.0).ravel()
            before = np.cumsum(room) - room
            u += np.sign(missing) * np.clip(abs(missing) - before, 0.0, room).reshape(u.shape)
        return np.clip(u, self.low, self.high)

    def reaches(self) -> bool:
        """Whether any variables in the boxes have the sum `total`."""
        if self.total is None:
            return True
        least, most = float(self.low.sum()), float(self.high.sum())
        slack = _WEIGHT_ROUNDING * (most - least)
        return least - slack <= self.total <= most + slack

    def loss(self, f: Float) -> float:
        """Sum of the losses at values f (m,)."""
        r = self.targets - f
        return float(np.maximum(self.high * r, self.low * r).sum())

    def violations(self, v: Float, u: Float) -> tuple[float, float]:
        """Largest v of a variable that may rise, and least v of one that may fall; without any -inf and inf."""
        top = float(v[u < self.high].max(initial=-np.inf))
        bottom = float(v[u > self.low].min(initial=np.inf))
        return (top, bottom) if self.total is not None else (max(top, 0.0), min(bottom, 0.0))


def solve_smo(
    kernel: Kernel,
    X: ArrayLike,
    y: ArrayLike,
    loss: PiecewiseLinear,
    *,
    weights: ArrayLike | None = None,
    intercept: bool = True,
    start: Float | None = None,
    tolerance: float = 1e-3,
    cache_bytes: int = CACHE_BYTES,
    most_steps: int | None = None,
) -> SMOSolution:
    """Solve one problem on rows in memory.

    Parameters
    ----------
    kernel : positive semi-definite Kernel.
    X : (m, p) rows, used in float64.
    y : (m,) targets; indicators 0 and 1 for `Hinge`.
    loss : piecewise linear loss.
    weights : (m,) row weights, at least 0; a class weight is a factor of them.
    intercept : False for b = 0 and no condition on the sum.
    start : (kinks, m) dual variables to start from, such as those of another C or of some of the rows; they are cut at
        the boxes, and changed where their sum is not s then.
    tolerance : largest violation of a pair; libsvm's default.
    cache_bytes : memory for rows of the kernel matrix; beside it there are about 60 bytes for each row, and three
        copies of X.
    most_steps : largest number of steps; without convergence a warning is issued. Default: that of libsvm.

    Raises
    ------
    ParameterError, DataError
        Numbers are out of range, shapes disagree, the kernel is not positive semi-definite, or no variables have the
        sum s.
    """
    tolerance = checked_number("tolerance", tolerance)
    rows = np.ascontiguousarray(checked_rows(X), dtype=np.float64)
    require_finite(rows, "X")
    targets = checked_columns(y, len(rows), "y", "X")[:, 0]
    w = np.ones(len(rows)) if weights is None else checked_columns(weights, len(rows), "weights", "X")[:, 0]
    if (w < 0.0).any():
        raise ParameterError(f"weights has a number below 0, first in row {int(np.argmax(w < 0.0))}; give weights >= 0")
    boxes = Boxes.of(loss, targets, w, intercept=intercept)
    check_problem(kernel, boxes)
    most = max(_LEAST_MOST, 100 * boxes.low.size) if most_steps is None else checked_integer("most_steps", most_steps)
    solution = solve_boxes(kernel, rows, boxes, start, tolerance, cache_bytes, most)
    if not solution.converged:
        warn_user(
            f"{solution.iterations} steps ended at a violation of {solution.violation:.3g}, above the tolerance of "
            f"{tolerance:g} (relative duality gap {solution.relative_gap:.3g}); scale the columns, take a smaller C or "
            "allow more steps"
        )
    return solution


def check_problem(kernel: Kernel, boxes: Boxes) -> None:
    """Check that the problem has a dual, and a feasible point.

    Raises
    ------
    ParameterError
        It has not.
    """
    if not kernel.positive_definite:
        raise ParameterError(
            f"the {kernel.name} kernel is not positive semi-definite with these parameters, so that the problem has no "
            "unique minimum and no bound; choose another kernel"
        )
    if not boxes.reaches():
        raise ParameterError(
            f"no dual variables have the sum {boxes.total:g}: their boxes add up to [{boxes.low.sum():g}, "
            f"{boxes.high.sum():g}]; the C of one class is 1 / (nu sum w) with 0 < nu <= 1"
        )


def solve_boxes(
    kernel: Kernel, X: Float, boxes: Boxes, start: Float | None, tolerance: float, cache_bytes: int, most: int
) -> SMOSolution:
    """`solve_smo` without checks and without a warning."""
    with single_threaded_blas():
        run = _Run(KernelRows(kernel, X, cache_bytes), boxes, np.ascontiguousarray(boxes.start(start)))
        converged = run.to(tolerance, most)
        return run.solution(converged)


class _Run:
    """The variables, and the steps so far."""

    def __init__(self, rows: KernelRows, boxes: Boxes, u: Float) -> None:
        self.rows, self.boxes, self.u = rows, boxes, u
        self._counted: Int = np.zeros(1, dtype=np.int64)
        self._renew()

    def _renew(self) -> None:
        """Compute f and v anew."""
        self.f = self.rows.products(self.u.sum(axis=0))
        if not np.isfinite(self.f).all():
            raise NumericRangeError(
                "values of the machine are not finite: features, C or weights are too large; scale the columns, or "
                "take a smaller C"
            )
        self.v: Float = np.ascontiguousarray(self.boxes.targets - self.f)

    def to(self, tolerance: float, most: int) -> bool:
        """Step until no pair violates by more than the tolerance; False if it is not reached."""
        steps = self._all_steps if self.rows.holds_all else self._working_set_steps
        for _ in range(_RENEWALS):
            counted = steps(tolerance, most)
            self._renew()
            if not self.violation() > tolerance:
                return True
            if counted:
                return False
        return False

    def violation(self) -> float:
        """Largest ``v_i - v_j``; without a constant twice the largest violation."""
        top, bottom = self.boxes.violations(self.v, self.u)
        return max(top - bottom, 0.0) if self.boxes.total is not None else 2.0 * max(top, -bottom)

    def _all_steps(self, tolerance: float, most: int) -> bool:
        """Steps of any pair, with kernel rows as they are needed; whether it ended at the largest number of steps."""
        rows, boxes = self.rows, self.boxes
        loop = loop_of(boxes.total is not None)
        while True:
            ended, row = loop(
                self.v, boxes.low, boxes.high, self.u, rows.diagonal, rows.values, rows.slots, self._counted,
                tolerance, most,
            )  # fmt: skip
            if ended != NEEDED:
                return bool(ended == COUNTED)
            missing = rows.slots < 0
            missing[row] = False
            rows.fetch(np.concatenate([[row], self._most_violating(missing, _BATCH - 1)]))

    def _most_violating(self, among: Bool, count: int) -> Int:
        """Up to `count` of these rows: half of them with the largest v that may rise, half with the least."""
        sides = (
            np.where(self.u < self.boxes.high, self.v, -np.inf),
            np.where(self.u > self.boxes.low, -self.v, -np.inf),
        )
        taken = np.zeros(0, dtype=np.int64)
        for values, wanted in zip(sides, (count - count // 2, count // 2), strict=True):
            side = np.where(among, values.max(axis=0), -np.inf)
            side[taken] = -np.inf
            order = np.argsort(-side, kind="stable")[:wanted]
            taken = np.concatenate([taken, order[side[order] > -np.inf]])
        return taken

    def _working_set_steps(self, tolerance: float, most: int) -> bool:
        """Solve for some rows, the others being fixed, again and again; whether it ended at the number of steps.

        The rows are those that violate most, and the later half of the rows before. The pair that violates most is
        among them, so that each turn lowers the objective (Lin 2001).
        """
        rows, size = self.rows, min(_WORKING_ROWS, len(self.rows.X))
        before = np.zeros(0, dtype=np.int64)
        while (violation := self.violation()) > tolerance:
            if self._counted[0] >= most:
                return True
            kept = before[len(before) // 2 :]
            others = np.ones(len(rows.X), dtype=bool)
            others[kept] = False
            before = np.concatenate([kept, self._most_violating(others, size - len(kept))])
            self._solve_for(before, max(0.5 * tolerance, _INNER_SHARE * violation), most)
        return False

    def _solve_for(self, some: Int, tolerance: float, most: int) -> None:
        """Step with the variables of some rows, and bring v of all rows up to date."""
        rows, boxes = self.rows, self.boxes
        points, count = rows.X[some], len(some)
        values = rows.prepared.kernel.prepare(points).block(points)
        v, low, high, u = (np.ascontiguousarray(part[:, some]) for part in (self.v, boxes.low, boxes.high, self.u))
        former = u.copy()
        loop_of(boxes.total is not None)(
            v, low, high, u, rows.diagonal[some], values, np.arange(count), self._counted,
            tolerance, most,
        )  # fmt: skip
        self.u[:, some] = u
        change = (u - former).sum(axis=0)
        moved = np.flatnonzero(change)
        # Rows in memory first: those that are not may take their places.
        for part in (moved[rows.slots[some[moved]] >= 0], moved[rows.slots[some[moved]] < 0]):
            for start in range(0, len(part), rows.most_at_once):
                few = part[start : start + rows.most_at_once]
                self.v -= change[few] @ rows.get(some[few])

    def solution(self, converged: bool) -> SMOSolution:
        top, bottom = self.boxes.violations(self.v, self.u)
        b = _middle(top, bottom) if self.boxes.total is not None else 0.0
        norm = 0.5 * float(self.u.sum(axis=0) @ self.f)
        primal = norm + self.boxes.loss(self.f + b) + (self.boxes.total or 0.0) * b
        dual = float((self.boxes.targets * self.u).sum()) - norm
        steps = int(self._counted[0])
        return SMOSolution(self.u, b, primal, dual, self.violation(), steps, converged)


def _middle(top: float, bottom: float) -> float:
    """A constant between the two; the finite one where all variables are at one end of their boxes; 0 without any."""
    if np.isfinite(top) and np.isfinite(bottom):
        return 0.5 * (top + bottom)
    return top if np.isfinite(top) else bottom if np.isfinite(bottom) else 0.0
