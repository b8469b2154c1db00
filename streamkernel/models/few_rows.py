"""Predictions of rows in memory without tables and sweeps: for the service, which often predicts few rows.

The bits are those of `predict`. The result of BLAS for a row depends on the block that contains it. Rows that belong
together are therefore cut into the blocks of a sweep over them (`blocks`, `of_block`). Rows that merely arrived
together are predicted as if each had come alone (`each_alone`). So a prediction never depends on other requests.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import scipy  # its parts are loaded when they are used

from streamkernel.engine import layout_of
from streamkernel.engine.layout import aligned_blocks
from streamkernel.errors import ParameterError, ShapeError
from streamkernel.linalg import PANEL_ROWS, single_threaded_blas
from streamkernel.models.predicting import PredictingModel
from streamkernel.pairs import pairs_of
from streamkernel.reductions import Collect, Predictions, RowMap
from streamkernel.reductions.predictions import GaussianPredictions
from streamkernel.table import RowBlock, Table, check_pairs, open_table
from streamkernel.table.rows import NumpyRows
from streamkernel.table.values import cast_rows, check_rows, float_dtype
from streamkernel.type_aliases import AnyArray, AnyDType, Float, Untyped
from streamkernel.wording import call

Values = dict[str, AnyArray]


class DirectPredictions:
    """The outputs of a model's row map for rows in memory.

    Parameters
    ----------
    model : model whose scaler and columns prepare the rows.
    work : one of its row maps; `model.outputs()` by default. Threads may share one.

    Raises
    ------
    ParameterError
        The model is of a kernel matrix.
    """

    def __init__(self, model: PredictingModel, work: RowMap | None = None) -> None:
        if model.of_matrix:
            raise ParameterError(
                f"the {model.record.estimator} model has a precomputed kernel, and its rows are those of a kernel "
                f"matrix, which are predicted as a table only; give {call('predict')} a store with them"
            )
        self._model = model
        self.work = model.outputs() if work is None else work
        self.columns = tuple(model.column_names)
        self.scaler = model.scaler
        self._held = threading.local()

    def prepared(self, X: AnyArray, start: int = 0, where: str = "the request") -> AnyArray:
        """Rows X (b, p), checked, cast and scaled as by `predict`; `start` is the number of the first row, for
        messages. For a model of sparse rows they become such.

        Raises
        ------
        ShapeError, DTypeError, NonFiniteDataError, NumericRangeError
        """
        dtype = float_dtype(X.dtype, "X")
        if X.ndim != 2 or X.shape[1] != len(self.columns):
            raise ShapeError(f"the rows have shape {X.shape}; the model takes {len(self.columns)} columns")
        if self._model.sparse:
            return self._pairs(scipy.sparse.csr_array(cast_rows(X, np.dtype(np.float64))), start, where)
        rows = cast_rows(X, dtype) if self.scaler is None else self.scaler.apply(X, dtype)
        check_rows(X, rows, start, self.columns, lambda row: where)
        return rows

    def blocks(self, m: int, dtype: AnyDType) -> list[tuple[int, int]]:
        """The blocks into which `predict` cuts m rows in memory: half-open ranges, in order."""
        if m == 1:
            return [(0, 1)]  # the most usual request needs no table and no layout
        if self._in_panels:
            panels = -(-m // PANEL_ROWS)
            return [(m * i // panels, m * (i + 1) // panels) for i in range(panels)]
        rows = NumpyRows(np.broadcast_to(np.zeros(1, dtype), (m, len(self.columns))), "X")
        return self._cut(Table(rows, np.dtype(dtype), self.columns, 0, m).as_sparse(self._model.sparse))

    def _cut(self, table: Table) -> list[tuple[int, int]]:
        """The blocks of a sweep over a table."""
        layout = layout_of(Collect(self.work, next(iter(self.work.columns)), table.n_rows), table)
        return [block for span in layout.spans for block in aligned_blocks(*span, layout.block_rows, 1)]

    def sparse_blocks(self, X: Untyped) -> Iterator[AnyArray]:
        """The blocks into which `predict` cuts sparse rows, a canonical CSR array (m, p), each prepared.

        Raises
        ------
        NumericRangeError
        """
        m = X.shape[0]
        known = m == 1 or self._in_panels
        cuts = self.blocks(m, np.dtype(np.float64)) if known else self._cut(open_table(X, sparse=True))
        for first, last in cuts:
            yield self._pairs(X[first:last], first)

    def _pairs(self, X: Untyped, start: int, where: str = "the request") -> AnyArray:
        """Sparse rows, a CSR array (b, p), in pairs with room for the fullest of them alone, checked and scaled."""
        raw = pairs_of(X.indptr, X.indices, X.data, max(1, int(np.diff(X.indptr).max())))
        rows = raw if self.scaler is None else self.scaler.apply(raw, raw.dtype)
        check_pairs(raw, rows, start, self.columns, lambda row: where)
        return rows

    @property
    def _in_panels(self) -> bool:
        """Whether means and deviations come from one computation on all rows, by panels
        (`GaussianProcessRegressor.predict`)."""
        return isinstance(self.work, GaussianPredictions) and self.work.std

    def of_block(self, rows: AnyArray) -> Values:
        """The outputs of one block of prepared rows, (b,) or (b, d) each."""
        with single_threaded_blas():
            if not isinstance(self.work, Predictions):
                return self.work.map_block(RowBlock(0, rows, None))
            values = self._kernel_values(rows) @ self._coefficients + self.work.intercept
            return self._named(values)

    def each_alone(self, rows: AnyArray) -> Values:
        """The outputs of prepared rows, each with the bits that it has as the only row of a call."""
        work = self.work
        with single_threaded_blas():
            if isinstance(work, Predictions) or (isinstance(work, GaussianPredictions) and not work.std):
                # A stack of (1, n) x (n, d) products keeps the rows apart; kernel values of a row do not depend on
                # other rows.
                values = np.matmul(self._kernel_values(rows)[:, None, :], self._coefficients)[:, 0, :]
                return self._named(values + work.intercept)
            found = [work.map_block(RowBlock(0, rows[i : i + 1], None)) for i in range(len(rows))]
            return {name: np.concatenate([values[name] for values in found]) for name in found[0]}

    @cached_property
    def _coefficients(self) -> Float:
        assert isinstance(self.work, (Predictions, GaussianPredictions))
        return np.ascontiguousarray(self.work.coefficients)

    def _kernel_values(self, rows: AnyArray) -> Float:
        """k(rows, Z) (b, n), in a buffer of this thread: new memory pages cost more than the values."""
        assert isinstance(self.work, (Predictions, GaussianPredictions))
        shape = (len(rows), len(self.work.basis))
        held = getattr(self._held, "values", None)
        if held is None or held.size < shape[0] * shape[1]:
            held = self._held.values = np.empty(shape[0] * shape[1])
        out = held[: shape[0] * shape[1]].reshape(shape)
        return self.work.basis.prepared.block(np.ascontiguousarray(rows, dtype=np.float64), out=out)

    def _named(self, values: Float) -> Values:
        if getattr(self.work, "argmax", False):
            return {"prediction": values.argmax(axis=1)}
        return {"prediction": values[:, 0] if self.work.columns["prediction"][0] is None else values}
