"""The work of a job that is to be submitted: checked before anything is recorded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from streamkernel.byte_counts import parse_bytes
from streamkernel.errors import ParameterError
from streamkernel.fits.steps.run import size_of_fit
from streamkernel.jobs.requests import RequestedFit, requested, rows_location
from streamkernel.jobs.specification import JobSpecification, location_of
from streamkernel.kernels.parameters import checked_integer
from streamkernel.store import check_target
from streamkernel.type_aliases import FieldsView
from streamkernel.wording import option

if TYPE_CHECKING:
    from streamkernel.estimators.base import SavedEstimator


def checked_work(
    estimator: SavedEstimator | str | RequestedFit,
    table: str | os.PathLike[str],
    model: str | os.PathLike[str],
    *,
    settings: FieldsView | None,
    rows: tuple[int | None, int | None] | None,
    queries: str | os.PathLike[str] | None,
    overwrite: bool,
    memory_limit: int | str | None,
    lease_seconds: float,
    check: bool,
    weight: str | None,
) -> JobSpecification:
    """The work; parameters and errors are those of `JobsSession.submit`."""
    fit = estimator if isinstance(estimator, RequestedFit) else requested(estimator, settings)
    work = JobSpecification(
        estimator=fit.estimator,
        settings=fit.plain,
        table=rows_location("table", table),
        model=location_of("model", model),
        rows=None if rows is None else (_row_number(rows[0]), _row_number(rows[1])),
        queries=None if queries is None else rows_location("queries", queries),
        overwrite=bool(overwrite),
        memory_limit=parse_bytes(memory_limit) or fit.memory_limit,
        lease_seconds=_checked_seconds(lease_seconds),
        **({} if weight is None else {"weight": weight}),
    )
    if check:
        check_target(work.model, overwrite=overwrite)
        table_of_fit = work.tables()[1]
        size_of_fit(work.with_stores(fit.settings).for_table(table_of_fit), table_of_fit)
        work.kind.check(table_of_fit, fit.estimator)
    return work


def _row_number(value: int | None) -> int | None:
    return None if value is None else checked_integer("rows", value, 0)


def _checked_seconds(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1.0 <= value <= 3600.0:
        raise ParameterError(f"{option('lease_seconds')} must be a number from 1 to 3600, not {value!r}", value=value)
    return float(value)
