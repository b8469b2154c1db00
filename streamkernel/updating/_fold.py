"""The steps of an update after the new rows are known: their sums, a larger basis if needed, the solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streamkernel.engine import (
    Plan,
    Session,
    Step,
    TableShape,
    driver_step,
    eigen_flops,
    machine_of,
    make_plan,
    memory_limits,
    step_of,
)
from streamkernel.errors import ResourceLimitError
from streamkernel.models.row_runs import Runs, count
from streamkernel.models.seen_rows import Recognised
from streamkernel.models.updatable import Sums, UpdatableModel
from streamkernel.table import Table
from streamkernel.type_aliases import FieldsView
from streamkernel.updating._grow import Growth, growth_steps
from streamkernel.updating.staleness import Staleness
from streamkernel.wording import option

M = TypeVar("M", bound=UpdatableModel)


@dataclass(frozen=True)
class Folding(Generic[M]):
    """The steps of an update after the new rows are known.

    Parameters
    ----------
    table : rows, scaled for the model.
    room : whole input, and the runs of its rows that the new model counts, if the basis may grow.
    """

    model: M
    table: Table
    found: Recognised
    session: Session
    choices: FieldsView
    factor: float
    grow: int
    room: tuple[Table, Runs] | None

    def run(self, known: Staleness) -> tuple[M, Staleness, int]:
        """Return the model of all rows, the staleness of its basis before growth, and the number of functions added."""
        model, sums = self.model, self.model.sums
        fresh = self._sums(model, self.table, self.found.unseen, sums.count + count(self.found.unseen))
        staleness = known.with_rows(fresh, self.factor)
        if fresh is not None:
            sums = sums.merge(fresh)
        grown = 0
        if self.room and staleness.stale:
            whole, runs = self.room
            growth = Growth.of(model, self._new_rows(), self.grow, self.session)
            grown = growth.count
            if grown:
                model = growth.applied(model, whole, runs)
                sums = self._sums(model, whole, runs, count(runs))
        return model.with_sums(sums, self.choices), staleness, grown

    def rows_to_show(self) -> Table:
        """The longest run of new rows, for the report's picture."""
        runs = self.found.unseen
        if not runs:
            return self.table
        return self.table.slice(*max(runs, key=lambda run: run[1] - run[0]))

    def _new_rows(self) -> Table:
        """Rows to choose new functions from: the range of the new rows, or all rows if there are no new ones."""
        runs = self.found.unseen
        if runs:
            return self.table.slice(runs[0][0], runs[-1][1])
        assert self.room is not None
        return self.room[0].slice(self.room[1][0][0], self.room[1][-1][1])

    def _sums(self, model: UpdatableModel, table: Table, runs: Runs, rows: int) -> Any:
        """The sums of these rows of a table; None where there are none."""
        work = model.reduction_of_rows(rows)
        total: Sums | None = None
        for first, last in runs:
            part = self.session.sweep(work, table.slice(first, last), f"sums of rows {first} to {last}")
            total = part if total is None else total.merge(part)
        return total

    def _steps(self) -> list[Step]:
        n, d = len(self.model.basis), self.table.n_targets
        m = count(self.found.unseen)
        steps = []
        if m:
            work = self.model.reduction_of_rows(m)
            # The old sums, the new sums, their total, and the system to solve.
            steps.append(step_of("sums of new rows", work, m, kernel_columns=n, held_bytes=40 * n * n))
        if self.room:
            steps += growth_steps(self.model, self._new_rows(), count(self.room[1]), self.grow)
            n += self.grow
        return [*steps, driver_step("solve", 8 * n * (10 * n + 4 * d), algebra=2 * eigen_flops(n))]

    def checked_plan(self, memory_limit: int | None, driver_bytes: int | None) -> Plan:
        """Return the plan, after a check that it stays within the limits.

        Raises
        ------
        ResourceLimitError
            The plan exceeds a limit.
        """
        executor = self.session.executor
        disk = 3 * sum(array.nbytes for array in self.model.arrays.values())
        kernel = self.model.basis.kernel
        plan = make_plan(
            self._steps(), TableShape.of(self.table), machine_of(executor, driver_bytes), disk_bytes=disk, kernel=kernel
        )
        exceeded = memory_limits(executor, memory_limit).exceeded(plan)
        if exceeded:
            raise ResourceLimitError(
                f"{exceeded}; use fewer workers or only threads, or allow more by {option('memory_limit')}"
            )
        return plan
