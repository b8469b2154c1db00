"""A compressed table: few rows with weights, that stand for many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.pairs import as_csr
from streamkernel.records import Run
from streamkernel.table import Table, open_table
from streamkernel.table.columns import NO_WEIGHTS
from streamkernel.table.rows import NumpyRows
from streamkernel.table.targets import Targets
from streamkernel.type_aliases import AnyArray, Float, Int, Untyped


@dataclass(frozen=True)
class Rows:
    """The rows that a method makes of a table.

    Attributes
    ----------
    X : (s, p) as stored; sparse rows in pairs (`streamkernel.pairs`).
    Y : (s, d) targets; for classes one-hot, (s, C).
    weights : (s,) > 0.
    rows : (s,) int64 numbers of the rows that they are; -1 for means of rows.
    """

    X: AnyArray
    Y: Float
    weights: Float
    rows: Int


@dataclass(frozen=True)
class CompressedTable:
    """Few weighted rows that stand for the rows of a table.

    Attributes
    ----------
    method : "subsample", "precluster", "squash" or "thinning".
    table : the rows as a table, which estimators take as they take any other; with the columns, targets and classes of
        the table that was compressed.
    X : (s, p), in the dtype of that table; of sparse rows a CSR array of SciPy.
    y : (s,) or (s, d) targets, labels of classes decoded; None without targets.
    weights : (s,) > 0, in sum that of the rows: ``sample_weight`` of scikit-learn and xgboost.
    weight_column : name that the weights have where the table is written.
    rows : (s,) int64 numbers of the rows that they are; -1 for means of rows.
    lengthscale : lengthscale of the kernel whose functions were used; None where none was.
    run : sweeps, seconds and memory.
    """

    method: str
    table: Table
    X: Untyped
    y: AnyArray | None
    weights: Float
    weight_column: str
    rows: Int
    lengthscale: float | tuple[float, ...] | None
    run: Run

    @classmethod
    def of(
        cls,
        rows: Rows,
        of: Table,
        weight_column: str,
        *,
        method: str,
        lengthscale: float | tuple[float, ...] | None,
        run: Run,
    ) -> CompressedTable:
        """The rows as a table like the one that they were made of."""
        X = as_csr(rows.X, of.n_features) if of.sparse else np.ascontiguousarray(rows.X, dtype=of.dtype)
        y, targets = None, None
        if of.targets is not None:
            stored, classes, coded = rows.Y, of.classes, False
            if classes is not None:
                codes = rows.Y.argmax(axis=1).astype(np.int64)
                y = classes[codes]
                # Labels that are numbers are stored as numbers, as they were: only text is coded.
                coded = classes.dtype.kind in "UTO" or of.targets.coded
                stored = codes if coded else y
            else:
                y = stored = rows.Y[:, 0] if of.n_targets == 1 else rows.Y
            targets = Targets(NumpyRows(stored, "y"), of.target_names, classes, coded)
        table = open_table(X, weights=rows.weights, sparse=of.sparse)
        # Where the weights were those of a column, new rows of a model have it, too; other new rows have no weights.
        column = None if of.weights is None or of.weight_column == NO_WEIGHTS else of.weight_column
        named = Table(
            features=table.features,
            dtype=table.dtype,
            columns=of.columns,
            start=0,
            stop=len(rows.rows),
            targets=targets,
            weights=NumpyRows(rows.weights, "weights"),
            named=of.named,
            weight_column=column,
        )
        return cls(method, named, X, y, rows.weights, weight_column, rows.rows, lengthscale, run)

    def __len__(self) -> int:
        return len(self.rows)
