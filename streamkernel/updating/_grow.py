"""More functions for the basis of a fitted model, for new rows that the basis explains badly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session, Step, step_of
from streamkernel.errors import ParameterError
from streamkernel.models.ridge import RidgeRecord
from streamkernel.models.row_runs import Runs, count, joined
from streamkernel.models.seen_rows import Recognised, Seen
from streamkernel.models.updatable import UpdatableModel
from streamkernel.pairs import widened
from streamkernel.records import RoundRecord, Rows
from streamkernel.reductions.pools import ResidualSample
from streamkernel.selection import Greedy, Problem, RowCache, as_rule
from streamkernel.selection.problem import gather_step, in_double, unfilled_basis
from streamkernel.table import Table
from streamkernel.table.class_weights import without_class_weights
from streamkernel.type_aliases import AnyArray
from streamkernel.wording import call, option

M = TypeVar("M", bound=UpdatableModel)

# Candidates and scoring rows of one sweep, per pick and per function, at most; see `selection.draws.ResidualDraw`.
_PER_PICK, _EXTRA, _SCORING = 8, 10, 2000


def rows_to_grow_on(table: Table, seen: Seen, found: Recognised) -> tuple[Table, Runs]:
    """Return the whole input, and the runs of all its rows that the model has seen or will see.

    Raises
    ------
    ParameterError
        The input does not hold all rows that the model has seen, but the sums of new functions need all of them.
    """
    if len(found.inputs) < len(seen.inputs):
        raise ParameterError(
            f"the basis cannot grow: {option('grow')} needs the sums of new functions over all rows, and the table "
            f"holds those of {len(found.inputs)} of the {len(seen.inputs)} inputs that the model has seen; update "
            f"without growth, or fit again on a table with all rows ({call('append_rows')} makes one)"
        )
    rows = joined([run for entry in seen.inputs for run in entry.rows] + list(found.unseen))
    m = table.features.n_rows
    if rows[-1][1] > m:
        raise ParameterError(
            f"the basis cannot grow: {option('grow')} needs all rows, but the model has seen rows up to {rows[-1][1]} "
            f"and the table ends at {m}; give the table with all of them"
        )
    return replace(table, start=0, stop=m), rows


@dataclass(frozen=True)
class Growth:
    """A basis with more functions, and the round that found them.

    Attributes
    ----------
    points : the added points in the units of the columns, where a metric maps them; else None.
    """

    basis: Basis
    round: RoundRecord
    points: AnyArray | None = None

    @classmethod
    def of(cls, model: UpdatableModel, rows: Table, picks: int, session: Session) -> Growth:
        """Choose at most `picks` more functions from these scaled rows, by their residuals; one sweep."""
        basis, table = _of_one_width(model, rows.without_targets())
        rule = as_rule("few-sweep", objective="trace", has_targets=False)
        assert isinstance(rule, Greedy)
        problem = Problem(table, basis.kernel, len(basis) + picks, seed=model.record.settings.seed)
        cache = RowCache.of(table, session)
        grown, record = rule.extend(problem, session, cache, basis, picks)
        added = grown.take(np.arange(len(basis), len(grown)))
        # The sample did not read all rows, so its residual trace is not the model's.
        return cls(grown, record.changed(residual_trace=None), cache.points(added))

    @property
    def count(self) -> int:
        """Number of functions added."""
        return self.round.stop - self.round.start

    def applied(self, model: M, whole: Table, runs: Runs) -> M:
        """The model with this basis; the caller must still replace the sums, and what follows from them.

        Parameters
        ----------
        whole : input that holds all rows.
        runs : the rows that the model has seen or will see.
        """
        span = replace(whole, start=runs[0][0], stop=runs[-1][1])
        record = model.record.changed(
            basis_size=len(self.basis),
            ended="size",
            rows=Rows(start=span.start, stop=span.stop, count=count(runs)),
            table_fingerprint=without_class_weights(span).fingerprint,
            rounds=(*model.record.rounds, self.round),
        )
        if isinstance(record, RidgeRecord):
            record = record.changed(validation=None)  # the held-out error was that of the smaller basis
        # The rule's record of its own picks has no values for the added ones.
        path_of_rule = ("gain_parts", "predicted_gains", "selection_traces")
        arrays = {name: values for name, values in model.arrays.items() if name not in path_of_rule}
        arrays |= {"components": self.basis.points, "component_indices": self.basis.rows, "gains": np.zeros(0)}
        if self.points is not None:
            arrays["points"] = np.concatenate([model.points, self.points])
        return model.with_parts(record, arrays).with_basis(self.basis)


def _of_one_width(model: UpdatableModel, table: Table) -> tuple[Basis, Table]:
    """The basis and the rows that it grows on; points of a sparse basis have the room for entries that rows have."""
    basis = model.basis
    if not model.sparse:
        return basis, table
    table = table.with_room(basis.points.shape[1])
    return Basis(basis.kernel, widened(basis.points, table.width), basis.rows), table


def growth_steps(model: UpdatableModel, source: Table, rows: int, picks: int) -> list[Step]:
    """The steps of a growth: a sample of the residuals, the points where their scaler has no inverse, and all sums.

    Parameters
    ----------
    source : rows that new functions are chosen from.
    rows : number of all rows.
    """
    basis, source = _of_one_width(model, source)
    n, p = basis.points.shape
    problem = Problem(source.without_targets(), basis.kernel, n + picks)
    pool = _PER_PICK * picks + _EXTRA
    sample = ResidualSample(unfilled_basis(problem, n), pool, _PER_PICK * (n + picks) + _SCORING, problem.seed, (0,))
    held = 3 * sample.state_bytes() + 24 * (n + picks) ** 2 + 8 * pool * (2 * pool + 4 * picks + p)
    sums = step_of("sums of all rows", model.reduction_of_rows(rows), rows, kernel_columns=n + picks)
    more = (n + picks) / max(n, 1)
    fetched = []
    if source.scaler is not None and not source.scaler.invertible:
        fetched.append(in_double(replace(gather_step(problem, picks), name="rows of the basis"), problem.table))
    return [
        step_of(f"look at the residual of {n} functions", sample, source.n_rows, kernel_columns=n, held_bytes=held),
        *fetched,
        replace(
            sums,
            flops_per_row=sums.flops_per_row * more**2,
            scratch_bytes=int(sums.scratch_bytes * more),
            state_bytes=int(sums.state_bytes * more**2),
            lower_bytes=int(sums.lower_bytes * more**2),
            held_bytes=40 * (n + picks) ** 2,
            packings=2,  # the packed points of the grown basis, and of the old one
        ),
    ]
