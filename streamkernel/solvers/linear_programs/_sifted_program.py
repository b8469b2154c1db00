"""The linear program of many rows in memory, of which only those near their kink are variables of HiGHS (sifting).

At the optimum the dual variable of a row is at an end of its box, but for as many rows as there are functions: at the
upper end where the residual ``y - f`` is above 0, at the lower one where it is below. So rows far from their kink are
held there, HiGHS solves for the others, and rows whose residual has changed sign join these, until none has. HiGHS then
has a few rows for each function, however many there are.

The more a and b change, the more rows change sign: so they stay in a region around the last ones (the boxstep method,
Marsten, Hogan & Blankenship 1975). Its optimum is exact, and the centre of the next one, until it is inside: the
objective falls in every step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.solvers.linear_programs._highs import BoxProgram
from streamkernel.type_aliases import Bool, Float, Int

_FREE_ROWS, _FREE_PER_COLUMN = 1000, 3  # variables of HiGHS: so many, or so many for each column
_RESIDUAL = 1e-9  # residual that has no sign
_REACH = 16.0  # first size of a region
_LEAST_RADIUS = 1e-4  # of a region, as a share of the largest coefficient
_POLISHED = 1e-6  # change of a coefficient that is due to the tolerance of HiGHS


def free_rows(columns: int) -> int:
    """Number of variables of HiGHS for so many columns."""
    return max(_FREE_ROWS, _FREE_PER_COLUMN * columns)


@dataclass(frozen=True)
class SiftedState:
    """Where a program starts: variables, those of HiGHS and their basis, and the function."""

    duals: Float
    free: Int
    basis: tuple[Int, Int, Int]
    coefficients: Float
    offset: float


class SiftedProgram:
    """``max y^T u`` with u in its boxes, ``sum u = 0`` and ``|K^T u| <= 1``, for a growing number of rows and columns.

    Parameters
    ----------
    unit, intercept : as in `BoxProgram`.

    Attributes
    ----------
    targets, low, high : (r,) y and the boxes.
    duals : (r,) u of the last solution.
    coefficients, offset : a (c,) and b of the last solution.
    """

    def __init__(self, unit: float, *, intercept: bool) -> None:
        self._program, self._intercept = BoxProgram(unit, intercept=intercept), intercept
        self.targets, self.low, self.high, self.duals = (np.zeros(0) for _ in range(4))
        self.coefficients, self.offset = np.zeros(0), 0.0
        self._free = np.zeros(0, np.intp)  # positions of the variables of HiGHS, in its order
        self._room = np.zeros((0, 0))  # K is its upper left part
        self._radius = 0.0  # of the region; none was needed yet

    @property
    def rows(self) -> int:
        return len(self.targets)

    @property
    def columns(self) -> int:
        return len(self.coefficients)

    @property
    def K(self) -> Float:
        """(r, c) kernel values."""
        return self._room[: self.rows, : self.columns]

    def _reserve(self, rows: int, columns: int) -> None:
        have = self._room.shape
        if rows <= have[0] and columns <= have[1]:
            return
        grown = np.zeros((max(rows, have[0]), max(columns, have[1] + have[1] // 4)))
        grown[: self.rows, : self.columns] = self.K
        self._room = grown

    def add_rows(self, targets: Float, low: Float, high: Float, K: Float) -> None:
        """Add rows (r,) with the kernel values K (r, c)."""
        first = self.rows
        self._reserve(first + len(targets), self.columns)
        self.targets, self.low, self.high, self.duals = (
            np.concatenate(pair)
            for pair in (
                (self.targets, targets),
                (self.low, low),
                (self.high, high),
                (self.duals, np.zeros(len(targets))),
            )
        )
        self.K[first:] = K

    def add_columns(self, K: Float) -> None:
        """Add columns with the kernel values K (r, c)."""
        first = self.columns
        self._reserve(self.rows, first + K.shape[1])
        self.coefficients = np.concatenate([self.coefficients, np.zeros(K.shape[1])])
        self.K[:, first:] = K
        self._program.add_columns(K[self._free])

    def set_boxes(self, low: Float, high: Float) -> None:
        """Change the boxes (r,)."""
        self.low, self.high = low, high
        self._program.set_boxes(low[self._free], high[self._free])

    def drop_rows(self, dropped: Bool) -> None:
        """Remove the rows of a mask (r,)."""
        self._program.drop_variables(np.flatnonzero(dropped[self._free]))
        self._free = self._free[~dropped[self._free]]
        self._free = (np.cumsum(~dropped) - 1)[self._free]
        kept = self.K[~dropped].copy()
        self.targets, self.low, self.high, self.duals = (
            each[~dropped] for each in (self.targets, self.low, self.high, self.duals)
        )
        self.K[:] = kept

    def drop_columns(self, dropped: Bool) -> None:
        """Remove the columns of a mask (c,), whose coefficients are 0."""
        self._program.drop_columns(np.flatnonzero(dropped))
        kept = self.K[:, ~dropped].copy()
        self.coefficients = self.coefficients[~dropped]
        self.K[:] = kept

    def solve(self) -> None:
        """Solve the program of all rows; its solution is in `duals`, `coefficients` and `offset`.

        Raises
        ------
        NumericalError
            HiGHS does not find the optimum.
        """
        whole = self.rows <= 2 * free_rows(self.columns)
        residuals, edge = self._residuals(), True
        while edge:
            # One step: the optimum within a region around the present function.
            self._release(residuals, whole=whole)
            held = np.ones(self.rows, dtype=bool)
            held[self._free] = False
            radius = None if whole else self._radius_for(residuals, held)
            self._program.set_region(self._centre, radius)
            u, joined = np.where(residuals > 0.0, self.high, self.low), 0
            while True:
                fixed = np.where(held, u, 0.0)
                self._program.set_conditions(float(fixed.sum()), fixed @ self.K)
                u[self._free], self.coefficients, self.offset, edge = self._program.solve()
                residuals = self._residuals()
                wrong = held & (self.low < self.high)
                wrong &= np.where(u < self.high, residuals > _RESIDUAL, residuals < -_RESIDUAL)
                joining = np.flatnonzero(wrong)
                if not len(joining):
                    break
                joined += len(joining)
                self._free_rows(joining)
                held[joining] = False
            # As large a region as few rows change sign in.
            self._radius *= 0.5 if joined > free_rows(self.columns) else 4.0 if edge else 1.0
        self.duals = self._feasible(u)

    @property
    def _centre(self) -> Float:
        """b and a, (1 + c,), or a without a constant."""
        return np.concatenate([[self.offset] * self._intercept, self.coefficients])

    def _radius_for(self, residuals: Float, held: Bool) -> float:
        """Radius of the region: the last one; at first a few times that in which no held row can change its sign."""
        if self._radius == 0.0:
            nearest = float(np.abs(residuals[held]).min(initial=np.inf))
            most = float(np.abs(self.K).sum(axis=1).max(initial=0.0)) + self._intercept
            self._radius = _REACH * nearest / (most or 1.0)
        self._radius = max(self._radius, _LEAST_RADIUS * (1.0 + float(np.abs(self._centre).max(initial=0.0))))
        return self._radius

    def polish(self) -> None:
        """Solve once more for the function whose residuals are 0 where the last basis says so, to rounding.

        HiGHS ends with residuals of its tolerance, which a large C multiplies.
        """
        inside, tight = self._program.tight()
        if len(inside) != len(tight) or not len(tight):
            return
        rows, first = self._free[inside], int(self._intercept)
        conditions = np.concatenate([np.ones((len(rows), first)), self.K[rows]], axis=1)[:, tight]
        before = np.concatenate([[self.offset] * first, self.coefficients])
        try:
            step = np.linalg.solve(conditions, self.targets[rows] - conditions @ before[tight])
        except np.linalg.LinAlgError:
            return
        # A larger step is that of a basis which rounding has made singular.
        if not np.abs(step).max() <= _POLISHED * (1.0 + np.abs(before).max()):
            return
        before[tight] += step
        self.coefficients = before[first:]
        if first:
            self.offset = float(before[0])

    def _residuals(self) -> Float:
        """``y - f`` (r,)."""
        return np.asarray(self.targets - self.K @ self.coefficients - self.offset)

    def _nearest(self, residuals: Float, some: Bool, count: int) -> Int:
        """Positions of the rows of a mask that are nearest to their kink, ascending."""
        at = np.flatnonzero(some)
        order = np.argsort(np.abs(residuals[at]), kind="stable")[:count]
        return np.sort(at[order])

    def _release(self, residuals: Float, *, whole: bool) -> None:
        """Choose the rows that HiGHS solves for: those nearest to their kink; more than twice as many leave again."""
        wanted = self.rows if whole else free_rows(self.columns)
        if len(self._free) > 2 * wanted:
            u = self.duals[self._free]
            ends = (u == self.low[self._free]) | (u == self.high[self._free])
            far = np.argsort(np.where(ends, -np.abs(residuals[self._free]), 0.0), kind="stable")
            leaving = np.sort(far[: min(len(self._free) - wanted, int(ends.sum()))])
            self._program.drop_variables(leaving)
            self._free = np.delete(self._free, leaving)
        if len(self._free) < wanted:
            held = np.ones(self.rows, dtype=bool)
            held[self._free] = False
            self._free_rows(self._nearest(residuals, held, wanted - len(self._free)))

    def _free_rows(self, at: Int) -> None:
        self._program.add_variables(self.targets[at], self.low[at], self.high[at], self.K[at])
        self._free = np.concatenate([self._free, at])

    def _feasible(self, u: Float) -> Float:
        """The variables cut at their boxes, with the sum 0: those with most room make up what rounding left."""
        u = np.clip(u, self.low, self.high)
        for _ in range(3 * self._intercept):
            missing = -float(u.sum())
            if missing == 0.0:
                break
            room = np.minimum(self.high - u, u - self.low)
            if not room.any():
                room = self.high - u if missing > 0.0 else u - self.low
            order = np.argsort(-room, kind="stable")[:64]
            before = np.cumsum(room[order]) - room[order]
            u[order] += np.sign(missing) * np.clip(abs(missing) - before, 0.0, room[order])
        return np.clip(u, self.low, self.high)

    @property
    def state(self) -> SiftedState:
        """Where another program of the same rows and columns may start."""
        return SiftedState(self.duals, self._free, self._program.basis, self.coefficients, self.offset)

    def start_from(self, state: SiftedState) -> None:
        """Start from a program of the same rows and columns, such as that of another C."""
        self.duals, self.coefficients, self.offset = state.duals, state.coefficients, state.offset
        self._free_rows(state.free)
        self._program.start_from(state.basis)
