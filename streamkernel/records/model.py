"""The fields of every model, of those of targets, and of those that can be updated."""

from __future__ import annotations

from streamkernel.records.basis import BasisRecord
from streamkernel.records.json_types import Count, JsonObject
from streamkernel.records.record import Record


class FittedRecord(BasisRecord):
    """The fields of every model."""

    estimator: str
    columns: tuple[str, ...]
    sweep_count: Count
    named_columns: bool | None = None
    weight_column: str | None = None
    table_schema: JsonObject | None = None


class CheckedRows(Record):
    """The rows of `check_true` and `check_predicted`: "held-out" or "training", and their number."""

    kind: str
    rows: Count


class Validation(Record):
    """Errors on folds that were held out, in the order of their choice of alpha.

    `error` and all other errors along alpha and along the basis are mean squared errors, summed over targets in the
    units of the GCV score; `rmse` is that of each target in its own units. `distinct` is the number of independent
    rows, `wrong` the share of wrong classes among `checked_rows`. Conjugate gradients know no `gcv_alpha`.
    """

    folds: Count
    parts: Count
    rows: Count
    distinct: float
    error: float
    error_se: float
    rmse: tuple[float, ...]
    rmse_se: tuple[float, ...]
    checked_rows: Count
    alphas: tuple[float, ...]
    errors: tuple[float, ...]
    sizes: tuple[Count, ...]
    size_alphas: tuple[float, ...]
    size_errors: tuple[float, ...]
    gcv_alpha: float | None
    gcv_error: float | None
    differs: bool
    wrong: float | None = None
    wrong_se: float | None = None


class Totals(Record):
    """Sums over the rows of the fit; `rows` may be a sum of weights."""

    rows: float
    trace: float


class ModelRecord(FittedRecord):
    """The fields of every model of targets."""

    target_names: tuple[str, ...]
    classes: tuple[bool | int | float | str, ...] | None
    targets_are_2d: bool
    target_scale: tuple[float, ...]
    dtype: str
    totals: Totals
    independent: float = 1.0
    class_weights: tuple[float, ...] | None = None
    check: CheckedRows | None = None

    @property
    def row_count(self) -> int:
        """Number of rows of the fit and of updates, each counted once."""
        return round(self.totals.rows)


class SeenRows(Record):
    """The rows of one input that a model has seen: runs [first, last), and marks [first, count, digest]."""

    rows: tuple[tuple[int, int], ...]
    marks: tuple[tuple[int, int, str], ...]


class Updates(Record):
    """The result of all updates of a model."""

    times: Count
    rows: Count
    grown: Count
    residual_of_fit: float
    residual_of_new: float | None
    stale: bool


class CountedTotals(Totals):
    """Sums over the rows of the fit, each counted once."""

    rows: Count


class UpdatableRecord(ModelRecord):
    """The fields of models that can be updated."""

    totals: CountedTotals
    seen: tuple[SeenRows, ...] | None = None
    updates: Updates | None = None
