"""TableEncoder: columns of any kind as numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from streamkernel.errors import DataError, DTypeError, ParameterError, ShapeError, ShapeMismatchError
from streamkernel.estimators._apart import apart
from streamkernel.table.columns import default_names, frame_names
from streamkernel.table.frames import known_types, refuse_unions
from streamkernel.table.schema import Schema
from streamkernel.table.schema.schema import as_schema
from streamkernel.table.targets import plain_labels
from streamkernel.table.values import check_weights, native_type, unmasked
from streamkernel.type_aliases import AnyArray, Float, Unchecked, Untyped

# Names of columns that stand beside the features for the fit.
_TARGET, _WEIGHT = "\ue010target", "\ue010weight"


class TableEncoder(TransformerMixin, BaseEstimator):
    """Columns of any kind (numbers, truth values, categories, dates, with gaps) as numbers.

    Each column becomes features by its kind, which a schema says: `streamkernel.table.schema.Column` has the table of
    kinds and features. The same schemas are those of `ingest`, of the command line, and of models fitted to files:
    ``ingest(files, store, schema=encoder.schema)`` stores what the encoder would give, out of core, and
    ``TableEncoder.of(model)`` is the encoder of a model.

    **Target means** (Micci-Barreca 2001): a column of more than 32 categories becomes, for each target, the mean of the
    target in its category, drawn to the mean of all rows by the ratio of the variances within and between categories.
    `fit_transform` gives each row of the fit the means of the other four fifths of the rows, so that no row's own
    target is in its features; `transform` gives the means of all rows. The means of class labels are the shares of
    the classes. With more than 32 classes there is a share for each of the 31 with most rows, and one for all others
    together.

    Parameters
    ----------
    schema : "auto" (what a look at the rows suggests), a `Schema`, its plain JSON, or the path of a JSON or TOML file.
    categories, dates : names of columns that are categories, or dates.
    missing : what becomes of missing values: "refuse", "mean", "median", or "indicator" (the mean, and a feature that
        tells). By default as the schema says; "auto" says "indicator".
    unknown : what becomes of categories that the fit has not seen: "refuse", or "ignore" (zeros, or the mean of all
        targets). By default as the schema says; "auto" says "ignore".
    drop, keep : names of columns that are left out, or of the only ones that are used.

    Attributes
    ----------
    schema_ : complete `Schema`.
    n_features_in_, feature_names_in_ : number and names of the columns of the fit; names only where the rows have some.
    """

    schema_: Schema
    n_features_in_: int
    feature_names_in_: AnyArray

    def __init__(
        self,
        schema: Unchecked = "auto",
        *,
        categories: Sequence[str] = (),
        dates: Sequence[str] = (),
        missing: str | None = None,
        unknown: str | None = None,
        drop: Sequence[str] = (),
        keep: Sequence[str] | None = None,
    ) -> None:
        self.schema = schema
        self.categories = categories
        self.dates = dates
        self.missing = missing
        self.unknown = unknown
        self.drop = drop
        self.keep = keep

    @classmethod
    def of(cls, model: Unchecked) -> Self:
        """The encoder of the rows that a model, or a fitted estimator, was fitted to.

        Raises
        ------
        ParameterError
            It was fitted to numbers.
        """
        record = getattr(getattr(model, "model_", model), "record", None)
        config = getattr(record, "table_schema", None)
        if config is None:
            raise ParameterError("the model was fitted to rows of numbers, without a schema; give it such rows")
        encoder = cls(Schema.from_config(config).of_features())
        encoder.schema_ = as_schema(encoder.schema)
        encoder.feature_names_in_ = np.array(encoder.schema_.names, dtype=object)
        encoder.n_features_in_ = len(encoder.schema_.names)
        return encoder

    def fit(self, X: Unchecked, y: Unchecked = None, sample_weight: Unchecked = None) -> Self:
        """Learn categories, fills, origins and target means.

        Parameters
        ----------
        X : rows (m, p): a frame of pandas, polars or pyarrow, or of Dask (which is computed); an array, of which masked
            values are missing; or paths of CSV, Parquet or Arrow files.
        y : targets (m,) or (m, d): numbers, or labels of text, of truth values or of two numbers. Of files, the name of
            the column, or of several.
        sample_weight : row weights (m,). Of files, the name of the column.

        Raises
        ------
        DataError, ParameterError
            As of `ingest`.
        """
        with apart(self) as new:
            new._encoded(X, y, sample_weight)
        return self

    def fit_transform(self, X: Unchecked, y: Unchecked = None, sample_weight: Unchecked = None) -> Float:
        """`fit`, and the features (m, q) of the same rows; target means are of the other rows alone."""
        with apart(self) as new:
            return np.concatenate(list(new._encoded(X, y, sample_weight).batches()))

    def transform(self, X: Unchecked) -> Float:
        """Features (m, q) float64 of rows; columns go by name, where the rows have names.

        Raises
        ------
        DataError, ParameterError
            A column is missing, or a value is none of its column's kind.
        """
        return np.concatenate(list(self.transform_batches(X)))

    def transform_batches(self, X: Unchecked) -> Iterator[Float]:
        """Features (b, q) batch by batch, for rows that do not fit in memory."""
        from streamkernel.table.ingest.encoding import EncodedRows

        check_is_fitted(self)
        source, names = _source(X)
        if names is None and not _are_paths(X) and source.num_columns != self.n_features_in_:
            raise ShapeMismatchError(
                f"X has {source.num_columns} features, but TableEncoder is expecting {self.n_features_in_} features as "
                "input; give rows of the columns of the fit"
            )
        return EncodedRows(source, self.schema_).batches()

    def get_feature_names_out(self, input_features: Unchecked = None) -> AnyArray:
        """Names (q,) of the features."""
        check_is_fitted(self)
        return np.array(self.schema_.features, dtype=object)

    def _encoded(self, X: Unchecked, y: Unchecked, sample_weight: Unchecked) -> Any:
        from streamkernel.table.ingest.encoding import EncodedRows

        source, names = _source(X)
        if _are_paths(X):
            targets = [] if y is None else [y] if isinstance(y, str) else list(y)
            weight = sample_weight
        else:
            source, targets, weight = _beside(source, y, sample_weight)
        options = {"categories": self.categories, "dates": self.dates, "missing": self.missing}
        options |= {"unknown": self.unknown, "drop": self.drop, "keep": self.keep}
        schema = self.schema if isinstance(self.schema, str) and self.schema == "auto" else as_schema(self.schema)
        rows = EncodedRows(source, schema, targets, weight, **options)
        self.schema_ = rows.schema.of_features()
        if not _are_paths(X):
            self.schema_ = _with_outputs(self.schema_, dict(zip(targets, _names_of(y, len(targets)), strict=True)))
        self.n_features_in_ = len(rows.names)
        if names is None and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if names is not None:
            self.feature_names_in_ = np.array(rows.names, dtype=object)
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _are_paths(X: Unchecked) -> bool:
    several = isinstance(X, (list, tuple)) and bool(X) and all(isinstance(one, (str, os.PathLike)) for one in X)
    return several or isinstance(X, (str, os.PathLike))


def _source(X: Unchecked) -> tuple[Any, list[str] | None]:
    """Rows as files or as a table of Arrow, and their names; None where they have none."""
    if _are_paths(X):
        return X, []
    from streamkernel.table.ingest.encoding import as_arrow, is_frame

    if is_frame(X):
        return as_arrow(X), frame_names(X)
    import pyarrow as pa

    dtype = getattr(X, "dtype", None)
    # Before `check_array`, whose errors hold the array.
    if isinstance(dtype, np.dtype) and dtype.kind == "c":
        raise DTypeError("Complex data not supported: X holds complex numbers; give real ones")
    if isinstance(dtype, np.dtype) and dtype.names is not None:
        raise DTypeError(f"X holds structured values ({', '.join(dtype.names)}); give a frame, pandas.DataFrame(X)")
    values = check_array(X, dtype=None, ensure_all_finite=False, input_name="X", estimator="TableEncoder")
    mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None  # check_array drops it
    columns = (_arrow_column(values[:, j], None if mask is None else mask[:, j]) for j in range(values.shape[1]))
    try:
        return pa.table(dict(zip(default_names(values.shape[1]), columns, strict=True))), None
    except (pa.ArrowNotImplementedError, TypeError) as error:  # Arrow has no type for those of the array
        raise DTypeError(f"X holds values of the dtype {values.dtype}; give numbers, text or dates") from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(f"X has a column of values of several types ({error}); give each column one type") from error


def _arrow_column(values: AnyArray, mask: AnyArray | None = None) -> Untyped:
    import pyarrow as pa

    if values.dtype.kind in "OUT":
        shown = values.astype(object)
        if mask is not None:
            shown[mask] = None
        return pa.array(shown.tolist(), from_pandas=True)
    return pa.array(np.ascontiguousarray(values, native_type(values.dtype)), mask=mask, from_pandas=True)


def _beside(table: Untyped, y: Unchecked, sample_weight: Unchecked) -> tuple[Untyped, list[str], str | None]:
    """The columns with targets and weights as further ones, and the names of these."""
    targets: list[str] = []
    if y is not None:
        values = np.asarray(unmasked(plain_labels(_known(y, "y")), "y"))
        if values.dtype.kind not in "biufUTO":
            raise DTypeError(f"y holds {values.dtype}; give numbers, or class labels of text or whole numbers")
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim not in (1, 2):
            raise ShapeError(f"y has {values.ndim} dimensions; give (m,) or (m, d)")
        labelled = values.ndim == 1 and (values.dtype.kind not in "iuf" or len(np.unique(values)) == 2)
        columns = [values.astype(str)] if labelled else list(values.reshape(len(values), -1).T.astype(np.float64))
        for position, column in enumerate(columns):
            targets.append(f"{_TARGET}{position or ''}")
            table = _extended(table, targets[-1], column, "y")
    weight = None
    if sample_weight is not None:
        weight = _WEIGHT
        weights = _weights(sample_weight)
        table = _extended(table, weight, weights, "sample_weight")
    return table, targets, weight


def _weights(sample_weight: Unchecked) -> Float:
    """Checked row weights (m,)."""
    given = np.asarray(unmasked(_known(sample_weight, "sample_weight"), "sample_weight"))
    if given.ndim != 1:
        raise ShapeError(f"sample_weight has shape {given.shape}; give one weight per row, (m,)")
    try:
        if given.dtype.kind not in "biufO":
            raise TypeError
        weights: Float = given.astype(np.float64)
    except (TypeError, ValueError):
        raise DTypeError(f"sample_weight holds {given.dtype}; give real numbers (float, integer or bool)") from None
    check_weights(weights, 0, lambda row: "the sample_weight array")
    return weights


def _known(values: Unchecked, name: str) -> Unchecked:
    """Targets or weights with types that NumPy knows."""
    refuse_unions(values, name)
    return known_types(values)


def _extended(table: Untyped, name: str, values: AnyArray, what: str) -> Untyped:
    if len(values) != table.num_rows:
        raise ShapeMismatchError(f"X has {table.num_rows} rows, {what} {len(values)}; give as many")
    return table.append_column(name, _arrow_column(values))


def _names_of(y: Unchecked, count: int) -> list[str]:
    """Names of targets: those of a series or frame of pandas; y, or y0, y1, ... where there are none."""
    names = getattr(y, "columns", [getattr(y, "name", None)])
    found = [name for name in names if isinstance(name, str)]
    if len({*found}) == count:
        return found
    return ["y"] if count == 1 else [f"y{position}" for position in range(count)]


def _with_outputs(schema: Schema, names: dict[str, str]) -> Schema:
    """The schema with these names in place of those that targets had beside the features; labels stay."""
    return schema.replaced(
        replace(column, outputs=tuple(names.get(output, output) for output in column.outputs))
        for column in schema.columns
        if column.outputs is not None
    )
