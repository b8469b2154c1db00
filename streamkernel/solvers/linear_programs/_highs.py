"""A linear program with a box for each variable and a few conditions, which HiGHS solves again from its last basis.

With variables u, targets y, boxes [l, h], and for each column j a condition::

    max  y^T u   with   l <= u <= h,   sum u = -s,   |g_j + sum_i u_i K_ij| <= 1

The multipliers are a function: of column j its coefficient a_j, of the sum the constant b. New columns are conditions
that the dual simplex method repairs, and new variables begin at an end of their box: there is always a start. With g
and s of other variables, which stay as they are, no u may fulfil the conditions. Slacks, whose cost is the end of a
region, keep a and b in it instead.

The serial simplex method and a fixed seed: equal programs give equal bits. Where several solutions are optimal, the one
is taken whose basis the method ends with, which follows from the rows, the columns and their order. The number of
threads is left to HiGHS: these are of the process, and a program that asks for another number than one before it is
refused.

HiGHS is an extra. Only documented parts of it are used.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from streamkernel.errors import DependencyError, NumericalError
from streamkernel.type_aliases import Float, Int
from streamkernel.wording import option

_TOLERANCE = 1e-9  # of a feasible variable and of a feasible condition
# Bytes of an entry of the matrix: by columns, by rows, the copy that the simplex method scales, and while it grows.
ENTRY_BYTES = 60
_NOTHING = 1e-13  # of the largest coefficient, below which one is rounding


def require_highs() -> None:
    """Check that HiGHS is installed.

    Raises
    ------
    DependencyError
        It is not.
    """
    if importlib.util.find_spec("highspy") is None:
        raise DependencyError(
            "machines of this kind are linear programs, which highspy solves, and it is not installed; pip install "
            "streamkernel[lp]"
        )


def _silent_highs() -> tuple[Any, Any]:
    """A solver that prints nothing, and the module."""
    import highspy

    class Silent(highspy.Highs):
        """The constructor enables callbacks, which would print the name of HiGHS before it could be silenced."""

        def enableCallbacks(self) -> None:
            self.silent()

    solver: Any = Silent()  # type: ignore[no-untyped-call]  # it has types in part only
    solver.silent()
    return solver, highspy


class BoxProgram:
    """The program of a growing number of variables and columns.

    Parameters
    ----------
    unit : unit of the variables, their widest box but at most 1. HiGHS compares numbers with an absolute tolerance.
    intercept : False for b = 0, without a condition on the sum.
    """

    def __init__(self, unit: float, *, intercept: bool) -> None:
        self._highs, self._module = _silent_highs()
        self._unit, self._first = unit, int(intercept)
        for name, value in {
            "parallel": "off",
            "random_seed": 0,
            "solver": "simplex",
            "simplex_strategy": 1,
            "presolve": "off",
            "primal_feasibility_tolerance": _TOLERANCE,
            "dual_feasibility_tolerance": _TOLERANCE,
        }.items():
            self._highs.setOptionValue(name, value)
        self.columns = 0
        self._is_slack = np.zeros(0, dtype=bool)  # of each variable of HiGHS, in its order
        if intercept:
            self._check(self._highs.addRow(0.0, 0.0, 0, np.zeros(0, np.int32), np.zeros(0)))
            self._add_slacks(0, 1)

    @property
    def variables(self) -> int:
        """Number of variables u."""
        return int((~self._is_slack).sum())

    def _add_slacks(self, first: int, conditions: int) -> None:
        """Two variables for each of some conditions, from `first` on, that are added to it and taken from it."""
        count = 2 * conditions
        signs, at = np.tile([1.0, -1.0], conditions), np.repeat(first + np.arange(conditions, dtype=np.int32), 2)
        nothing, starts = np.zeros(count), np.arange(count, dtype=np.int32)
        self._check(self._highs.addCols(count, nothing, nothing, nothing, count, starts, at, signs))
        self._is_slack = np.concatenate([self._is_slack, np.ones(count, dtype=bool)])

    def add_variables(self, targets: Float, low: Float, high: Float, K: Float) -> None:
        """Add variables (r,) with the values K (r, c) in the conditions of the columns that there are."""
        r, c = K.shape
        entries, width = np.ones((r, self._first + c)), self._first + c
        entries[:, self._first :] = K
        starts, indices = (width * np.arange(r)).astype(np.int32), np.tile(np.arange(width, dtype=np.int32), r)
        ends = low / self._unit, high / self._unit
        self._check(self._highs.addCols(r, -targets, *ends, r * width, starts, indices, entries.ravel()))
        self._is_slack = np.concatenate([self._is_slack, np.zeros(r, dtype=bool)])

    def add_columns(self, K: Float) -> None:
        """Add columns with the values K (r, c) of all variables."""
        r, c = K.shape
        starts, indices = (r * np.arange(c)).astype(np.int32), np.tile(self._at(slack=False), c)
        ends = np.full(c, 1.0 / self._unit)
        self._check(self._highs.addRows(c, -ends, ends, r * c, starts, indices, np.ascontiguousarray(K.T).ravel()))
        self._add_slacks(self._first + self.columns, c)
        self.columns += c

    def _at(self, *, slack: bool) -> Int:
        """Positions in HiGHS of the variables u, or of the slacks."""
        return np.flatnonzero(self._is_slack == slack).astype(np.int32)

    def set_boxes(self, low: Float, high: Float) -> None:
        """Change the boxes (r,)."""
        at = self._at(slack=False)
        self._check(self._highs.changeColsBounds(len(at), at, low / self._unit, high / self._unit))

    def set_conditions(self, total: float, g: Float) -> None:
        """Change s and g (c,)."""
        low, high = (
            np.concatenate([[-total] * self._first, -1.0 - g]),
            np.concatenate([[-total] * self._first, 1.0 - g]),
        )
        every = np.arange(len(low), dtype=np.int32)
        self._check(self._highs.changeRowsBounds(len(low), every, low / self._unit, high / self._unit))

    def set_region(self, centre: Float, radius: float | None) -> None:
        """Keep b and a, (1 + c,) or (c,) without a constant, within a radius of a centre; None for no region.

        The conditions may then be violated, at a cost: there always is a solution.
        """
        at = self._at(slack=True)
        free = np.full(len(at), 0.0 if radius is None else np.inf)
        self._check(self._highs.changeColsBounds(len(at), at, np.zeros(len(at)), free))
        if radius is not None:
            # The multiplier of a condition is minus the coefficient.
            cost = np.stack([radius - centre, radius + centre], axis=1).ravel()
            self._check(self._highs.changeColsCost(len(at), at, cost))

    def drop_variables(self, at: Int) -> None:
        """Remove the variables at these positions among the u."""
        self._delete(self._at(slack=False)[at])

    def drop_columns(self, at: Int) -> None:
        """Remove the columns at these positions."""
        self._highs.deleteRows(len(at), (at + self._first).astype(np.int32))
        slacks = self._at(slack=True).reshape(-1, 2)
        self._delete(np.sort(slacks[at + self._first].ravel()))
        self.columns -= len(at)

    def _delete(self, at: Int) -> None:
        self._highs.deleteCols(len(at), at.astype(np.int32))
        self._is_slack = np.delete(self._is_slack, at)

    def solve(self) -> tuple[Float, Float, float, bool]:
        """u (r,), a (c,), b, and whether they are at the edge of the region.

        Raises
        ------
        NumericalError
            HiGHS does not find the optimum.
        """
        statuses = self._module.HighsModelStatus
        for _ in range(2):
            self._highs.run()
            status = self._highs.getModelStatus()
            if status == statuses.kOptimal:
                solution = self._highs.getSolution()
                multipliers = -np.array(solution.row_dual)
                a, b = multipliers[self._first :], float(multipliers[0]) if self._first else 0.0
                a = np.where(np.abs(a) > _NOTHING * np.abs(a).max(initial=0.0), a, 0.0)
                values = np.array(solution.col_value) * self._unit
                edge = bool((values[self._is_slack] > _TOLERANCE * self._unit).any())
                return values[~self._is_slack], a, b, edge
            # From a poor basis rounding may win: once more, from none.
            self._highs.clearSolver()
        raise self._failed(f"ends it with {self._highs.modelStatusToString(status)!r}")

    def _failed(self, how: str) -> NumericalError:
        return NumericalError(
            f"HiGHS has a linear program of {self.variables} rows and {self.columns} functions, and {how}; scale the "
            f"columns, or change {option('C')}, the row weights or the kernel so that their numbers are closer to 1"
        )

    def _check(self, status: Any) -> None:
        """Raise `NumericalError` where HiGHS has not done a change, such as of numbers that it takes for infinite.

        That it drops numbers near 0 is only a warning of it.
        """
        if status == self._module.HighsStatus.kError:
            raise self._failed("refuses its numbers as too large")

    def tight(self) -> tuple[Int, Int]:
        """Positions of the variables u that are inside their boxes, and of the conditions that are at their ends.

        There are as many of both, but at the edge of a region; the first condition is that of the sum. Variables at an
        end may be among them.
        """
        of_variables, _, of_conditions = self.basis
        basic = int(self._module.HighsBasisStatus.kBasic)
        return np.flatnonzero(of_variables == basic), np.flatnonzero(of_conditions != basic)

    @property
    def basis(self) -> tuple[Int, Int, Int]:
        """The state of each variable u, of each slack and of each condition, as numbers, for `start_from`."""
        basis = self._highs.getBasis()
        of_all, of_conditions = (
            np.array([int(each) for each in some], np.int64) for some in (basis.col_status, basis.row_status)
        )
        return of_all[~self._is_slack], of_all[self._is_slack], of_conditions

    def start_from(self, basis: tuple[Int, Int, Int]) -> None:
        """Start the next solution from a basis of a program of as many variables and columns."""
        given, status = self._module.HighsBasis(), self._module.HighsBasisStatus
        # Its variables and slacks may have been added in another order.
        of_all = np.zeros(len(self._is_slack), np.int64)
        of_all[~self._is_slack], of_all[self._is_slack] = basis[0], basis[1]
        given.col_status, given.row_status = ([status(each) for each in some.tolist()] for some in (of_all, basis[2]))
        given.valid = True
        self._highs.setBasis(given)
