"""New rows folded into a fitted model: sums are added, and the result is the fit of its basis to all rows.

Exactly once: rows that the model has seen, recognised by content (`seen`), are left out. Exact: up to rounding, the
sums equal those of one sweep over all rows, and so do coefficients, alpha and certificate.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from streamkernel.engine import Session, tell_plan
from streamkernel.errors import DTypeError, ParameterError
from streamkernel.fits.steps.check_rows import check_rows
from streamkernel.fits.steps.run import measured
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.row_runs import count
from streamkernel.models.seen_rows import Comparison, Mark, Seen, SeenInput, every_row, spread
from streamkernel.models.updatable import UpdatableModel
from streamkernel.pairs import plain_entries
from streamkernel.records import Updates
from streamkernel.table import Table, open_table, with_weights_of
from streamkernel.table.columns import NO_WEIGHTS
from streamkernel.table.table import OF_ENTRIES
from streamkernel.type_aliases import FieldsView, Unchecked
from streamkernel.updating._fold import Folding
from streamkernel.updating._grow import rows_to_grow_on
from streamkernel.updating.staleness import STALE, Staleness
from streamkernel.wording import option

M = TypeVar("M", bound=UpdatableModel)


@dataclass(frozen=True)
class Update(Generic[M]):
    """The result of an update.

    Attributes
    ----------
    model : the new model, or the old one where there was nothing to do.
    changed : whether it is the new one.
    rows_folded, rows_seen_before : numbers of new and of known rows among those given.
    staleness : staleness of the basis for the new rows; of the old basis, if it has grown.
    grown : number of functions added to the basis.
    sweeps, resumed_sweeps : passes over rows, and the number of them taken from a checkpoint.
    """

    model: M
    changed: bool
    rows_folded: int
    rows_seen_before: int
    staleness: Staleness
    grown: int = 0
    sweeps: int = 0
    resumed_sweeps: int = 0

    @property
    def rows(self) -> int:
        """All rows that the model has seen."""
        return self.model.record.totals.rows

    @property
    def stale(self) -> bool:
        """Whether the basis is stale after the update."""
        return self.staleness.stale and not self.grown


def new_rows(model: PredictingModel, X: Unchecked, y: Unchecked = None, weights: Unchecked = None) -> Table:
    """Open the rows of an update: a column that was the row weights of the fit is theirs, too.

    Where the fit was to leave out the weights of its table ("none"), those of the new rows are left out.

    Raises
    ------
    ParameterError
        The fit took its row weights from a column, and the new rows have neither weights nor this column.
    """
    table, column = known_rows(model, X, y, weights), model.record.weight_column
    if column == NO_WEIGHTS and weights is None:
        return with_weights_of(table, column)
    if column in (None, NO_WEIGHTS) or table.weights is not None:
        return table
    if column not in table.columns:
        raise ParameterError(
            f"the rows of the fit had the weights of column {column!r}, and the new rows have no such column; give "
            "rows with it"
        )
    return table.weighted_by(column)


def known_rows(model: PredictingModel, X: Unchecked, y: Unchecked = None, weights: Unchecked = None) -> Table:
    """Open the rows of a score; the model knows the labels, so that no scan for them is needed."""
    try:
        return open_table(X, y, weights=weights, sparse=True)
    except DTypeError:
        # Text labels raise DTypeError; a classifier opens them as classes.
        if model.record.classes is None:
            raise
        return open_table(X, y, classify=True, weights=weights, sparse=True)


def update_model(
    model: M,
    table: Table,
    session: Session | Callable[[], Session],
    *,
    choices: FieldsView | None = None,
    stale: float = STALE,
    grow: int = 0,
    as_new: bool = False,
    again: bool = False,
    grown_only: bool = False,
    memory_limit: int | None = None,
    driver_bytes: int | None = None,
) -> Update[M]:
    """Fold the rows of a table that a model has not seen into it.

    Parameters
    ----------
    model : fitted model; it is not changed.
    table : rows as they are stored, with targets.
    session : session with its checkpoints, or a function that returns one, called only if there is work. An update
        costs one sweep for each run of unseen rows, and two more if the basis grows; three with a metric or
        bounded columns, whose points are read as they are stored.
    choices : see `UpdatableModel.with_sums`; ``{"alpha": "keep"}``, ``{"variances": "keep"}``.
    stale : warn where the relative residual trace of the new rows is more than this times that of the rows of the fit.
    grow : if the basis is stale, add at most this many functions chosen from the new rows. A new sweep then sums all
        rows, so that the table must hold all of them.
    as_new : treat a table whose rows have changed since they were seen as another one.
    again : fold in all rows of the table, also those that the model has seen: these count once more.
    grown_only : raise `InputChangedError` for a table with no rows that the model has seen, or with fewer rows than
        then.
    memory_limit : bytes of all processes together; None for what the machines have.
    driver_bytes : bytes resident in the driver before the update.

    Raises
    ------
    ParameterError
        The table has no targets, its seen rows cannot be recognised, or an option is wrong; or growth is requested and
        the table does not hold all rows.
    InputChangedError
        Some rows that were seen have changed.
    ShapeError, ShapeMismatchError, DataError, StoreError, ResourceLimitError, NumericalError
        See `streamkernel.errors`.
    """
    check_options(stale, grow)
    chosen = {name: value for name, value in (choices or {}).items() if value is not None}
    model.check_choices(chosen)
    if model.of_matrix:
        raise ParameterError(
            "the kernel is precomputed, and further rows would be further columns of its matrix; fit the model again "
            "to the matrix of all rows"
        )
    if table.n_targets == 0:
        raise ParameterError(f"the table has no targets; ingest it with {option('target')}, or give y")
    # Rows are compared with those seen in the order of the model's columns.
    table = model.prepare(model.prepare_targets(table))
    seen = _seen_by(model)
    found = (
        every_row(table)
        if again
        else seen.recognise(table, lambda: _rows_of_basis(model, table, as_new=as_new), as_new=as_new)
    )
    if grown_only:
        seen.check_grown(table, found)
    known = Staleness.known(model.record)
    counted = model.weighted(table)
    room = rows_to_grow_on(counted, seen, found) if grow else None
    if room:
        # No more functions than rows can be added; without the limit the plan would count them.
        grow = min(grow, room[0].n_rows)
    if not found.unseen and not (room and known.before):
        return Update(model, False, 0, count(found.seen), known)
    session = session if isinstance(session, Session) else session()
    folding = Folding(model, counted, found, session, chosen, stale, grow, room)
    plan = folding.checked_plan(memory_limit, driver_bytes)
    tell_plan(session.progress, plan)
    with measured(session, plan) as run:
        new, staleness, grown = folding.run(known)
        if note := model.note_of_update(chosen, new):
            session.progress.note(note)
        check = check_rows(folding.rows_to_show(), None, model.scaler, new.checking())
    done = Update(
        model=new,
        changed=True,
        rows_folded=count(found.unseen),
        rows_seen_before=count(found.seen),
        staleness=staleness,
        grown=grown,
        sweeps=len(session.records),
        resumed_sweeps=sum(record.resumed for record in session.records),
    )
    record = new.record.changed(
        seen=(seen.with_rows(table, found) if found.unseen else seen).records,
        updates=_updates(model.record.updates, done),
        check=check.record,
        run=run(),
    )
    # The rows of the check, and those by which the model knows what it has seen, were read after the last sweep.
    table.check_read()
    staleness.warn(stale, grown, record.certificate.relative_residual_trace)
    # Those of the check before may have weights, and these none.
    others = {name: values for name, values in new.arrays.items() if not name.startswith("check_")}
    updated = new.with_parts(record, {**others, **check.arrays()}).with_basis(new.basis)
    return replace(done, model=updated)


def _updates(before: Updates | None, done: Update[Any]) -> Updates:
    """The model's record of its updates.

    Parameters
    ----------
    before : the record before this update.
    """
    of_fit = done.staleness.of_fit
    if done.grown:
        # From now on the staleness of new rows is relative to the grown basis.
        of_fit = done.model.record.certificate.relative_residual_trace
    return Updates(
        times=1 + (0 if before is None else before.times),
        rows=done.rows_folded + (0 if before is None else before.rows),
        grown=done.grown + (0 if before is None else before.grown),
        residual_of_fit=of_fit,
        residual_of_new=done.staleness.of_new,
        stale=done.stale,
    )


def check_options(stale: float, grow: int) -> None:
    """Raise `ParameterError` for options that are wrong for any model and any rows."""
    if isinstance(stale, bool) or not isinstance(stale, (int, float)) or not math.isfinite(stale) or stale < 0:
        raise ParameterError(f"{option('stale')} must be a finite number >= 0, not {stale!r}", value=stale)
    if isinstance(grow, bool) or not isinstance(grow, int) or grow < 0:
        raise ParameterError(f"{option('grow')} must be a whole number >= 0, not {grow!r}", value=grow)


def _seen_by(model: UpdatableModel) -> Seen:
    """The record of a model; for a model without one, the rows of its fit, without marks.

    Marks of sparse rows that an earlier version wrote are left out: they depend on the fullest row of the table.
    """
    record = model.record
    if record.seen is not None:
        seen = Seen.of(record.seen)
        return seen.with_marks(lambda mark: mark.digest.startswith(OF_ENTRIES)) if model.sparse else seen
    return Seen((SeenInput(((record.rows.start, record.rows.stop),), ()),))


def _rows_of_basis(model: UpdatableModel, table: Table, *, as_new: bool) -> Comparison:
    """Compare the rows of the basis with the rows of the same numbers in a table.

    For a model that is older than the record of seen rows: it has the range of rows that it was fitted to, and n of
    them as its basis. A table that has some of these at the same row numbers is that table. Targets cannot be compared.

    Parameters
    ----------
    table : rows, scaled as the basis.
    as_new : whether a table that cannot be compared counts as another one.

    Raises
    ------
    ParameterError
        The table cannot be compared: the basis points are not rows, or the table ends before them.
    """
    rows = model.record.rows
    m = table.features.n_rows
    if rows.stop <= m:
        then = replace(table, start=rows.start, stop=rows.stop)
        if then.fingerprint == model.record.table_fingerprint:
            return Comparison(1, None, m)
    by_chunk: dict[int, list[tuple[int, int]]] = defaultdict(list)
    cuts = table.features.cuts(0, m)
    for position, row in enumerate(model.arrays["component_indices"].tolist()):
        if 0 <= row < m:
            by_chunk[int(np.searchsorted(cuts, row, side="right"))].append((row, position))
    if not by_chunk:
        if as_new:
            return Comparison(0, None, m)
        raise ParameterError(
            "the model was written by an earlier release and cannot tell whether it has seen rows of this table; if it "
            f"has not, say so by {option('as_new', True)}, else fit again"
        )
    chosen = sorted(pair for chunk in spread(sorted(by_chunk)) for pair in by_chunk[chunk])
    whole = replace(table, start=0, stop=m, targets=None)
    holding, broken = 0, None
    Z = model.arrays["components"]
    for (row, position), block in zip(
        chosen, whole.blocks_between([(row, row + 1) for row, _ in chosen], 1), strict=True
    ):
        row, point = block.X.astype(Z.dtype), Z[position : position + 1]
        if model.sparse:  # rows of another table may have room for more entries
            row, point = plain_entries(row), plain_entries(point)
        if np.array_equal(row, point):
            holding += 1
        else:
            broken = broken or Mark(row, 1, "")
    return Comparison(holding, broken, m)
