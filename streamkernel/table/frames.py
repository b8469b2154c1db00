"""Frames of pandas, polars, pyarrow and Dask, known by their module or by Arrow's interface.

No library of frames is imported before there is one of its frames: importing takes longer than many a fit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from streamkernel.errors import DTypeError, ParameterError
from streamkernel.type_aliases import AnyArray, AnyDType, Unchecked, Untyped


def library(frame: Unchecked) -> str:
    """The name of the library that an object is of."""
    return type(frame).__module__.partition(".")[0]


def is_pandas(frame: Unchecked) -> bool:
    """Whether it is an object of pandas."""
    return library(frame) == "pandas"


def is_dask_frame(frame: Unchecked) -> bool:
    """Whether it is a DataFrame of Dask."""
    return library(frame) in ("dask", "dask_expr") and hasattr(frame, "npartitions") and hasattr(frame, "columns")


def is_arrow_frame(frame: Unchecked) -> bool:
    """Whether it is a frame in memory that is or becomes a table of Arrow, and is not of pandas."""
    # Columns last: a query of polars warns when it is asked for them.
    return (
        getattr(frame, "ndim", 2) == 2
        and (hasattr(frame, "__arrow_c_stream__") or library(frame) == "pyarrow")
        and (hasattr(frame, "columns") or hasattr(frame, "column_names"))
        and not is_pandas(frame)
    )


def is_rows_frame(frame: Unchecked) -> bool:
    """Whether it is a frame in memory of any library."""
    return is_arrow_frame(frame) or (is_pandas(frame) and getattr(frame, "ndim", 1) == 2)


def names_in(frame: Unchecked) -> list[Unchecked]:
    """Names of the columns of a frame in memory, which those of pandas may have as numbers."""
    return list(frame.schema.names if library(frame) == "pyarrow" else frame.columns)


def arrow_table(frame: Unchecked) -> Untyped:
    """A frame as a table of Arrow; nothing is copied that Arrow can share."""
    import pyarrow as pa

    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    return frame if isinstance(frame, pa.Table) else pa.table(known_types(frame))


def known_types(values: Unchecked) -> Unchecked:
    """The same frame or column, with types that NumPy knows where its library has others for the same values.

    ====================================================  ============================================
    type                                                  becomes
    ====================================================  ============================================
    polars: whole numbers of 128 bits; a column of        float64
    decimals, or of truth values with gaps
    Arrow: a column of numbers or truth values            NumPy's, as of `column_numbers`
    pandas: a column in a type of Arrow                   the same; objects, where it is of other values
    pandas: its own types with gaps, where there are      float64 with NaN, of text objects with None
    some
    pandas: sparse columns that leave out NaN             all their values
    ====================================================  ============================================
    """
    if library(values) == "polars":
        return _known_to_polars(values)
    if library(values) == "pyarrow":
        from streamkernel.table._arrow_columns import numbers_if_there_are, without_dictionaries

        if hasattr(values, "null_count"):
            return numbers_if_there_are(values)
        return without_dictionaries(arrow_table(values)) if is_arrow_frame(values) else values
    if not is_pandas(values) or not hasattr(values, "dtypes" if getattr(values, "ndim", 1) == 2 else "dtype"):
        return values
    if values.ndim == 1:
        found = _known_values(values)
        return values if found is None else found
    if _is_sparse_with_gaps(values):
        return values.sparse.to_dense()
    known = {place: _known_values(values.iloc[:, place]) for place, kind in enumerate(values.dtypes) if _is_odd(kind)}
    if any(column is not None for column in known.values()):
        values = values.copy(deep=False)
        for place, column in known.items():
            if column is not None:
                values.isetitem(place, column)
    return values


def _known_to_polars(values: Untyped) -> Untyped:
    pl: Untyped = sys.modules["polars"]
    wide = [getattr(pl, name) for name in ("Int128", "UInt128") if hasattr(pl, name)]  # by the version
    if isinstance(values, pl.DataFrame):
        return values.cast(dict.fromkeys(wide, pl.Float64))  # which shares all other columns
    kind = getattr(values, "dtype", None)
    odd = kind in (*wide, pl.Decimal) or (kind == pl.Boolean and values.null_count())
    return values.cast(pl.Float64) if odd else values


def _is_sparse_with_gaps(frame: Untyped) -> bool:
    """Whether all columns of a frame of pandas are sparse, and what they leave out is not 0 in all of them."""
    fills = [getattr(kind, "fill_value", None) if str(kind).startswith("Sparse[") else None for kind in frame.dtypes]
    return bool(fills) and None not in fills and any(fill != 0 for fill in fills)


def _is_odd(kind: Untyped) -> bool:
    """Whether a column of pandas of this type may have values that NumPy or scikit-learn do not know."""
    if library(kind) != "pandas":
        return False
    return hasattr(kind, "pyarrow_dtype") or getattr(kind, "kind", "O") in "fiub" or kind.type is str


def _known_values(column: Untyped) -> Untyped | None:
    """Values of a column of pandas by the table of `known_types`; None where they are known as they are."""
    kind: Untyped = column.dtype
    values: Untyped = getattr(column, "array", column)
    if not _is_odd(kind):
        return None
    if hasattr(kind, "pyarrow_dtype"):
        from streamkernel.table._arrow_columns import known_values

        return known_values(values.__arrow_array__())
    if not values.isna().any():
        return None
    if kind.type is str:
        return values.to_numpy(dtype=object, na_value=None)
    return values.to_numpy(dtype=np.float64, na_value=np.nan)


def refuse_query(source: Unchecked) -> None:
    """Refuse a query of polars.

    Raises
    ------
    ParameterError
        It is one, which has no rows yet.
    """
    if library(source) == "polars" and hasattr(source, "collect"):
        raise ParameterError(
            "a LazyFrame of polars has no rows yet; give its collect(), or the file that its sink_parquet writes"
        )


def first_time(frame: Unchecked) -> tuple[str, object] | None:
    """Name and a value (None where there is none) of the first column of a frame of dates, times or durations.

    Some libraries make numbers of these beside other numbers, in units that nobody sees.
    """
    if not (hasattr(frame, "columns") or hasattr(frame, "column_names")) or getattr(frame, "ndim", 2) != 2:
        return None
    place = next((place for place, kind in enumerate(_types_in(frame)) if _is_time(kind)), None)
    if place is None:
        return None
    name = names_in(frame)[place]
    if library(frame) == "pyarrow":
        there = frame.column(place).drop_null().to_pylist()
    else:
        there = frame.iloc[:, place].dropna() if is_pandas(frame) else frame[name].drop_nulls()
    return str(name), next(iter(there), None)


def _first_union(values: Unchecked) -> str | None:
    """Name of the first column of a frame that is a union of Arrow, which other libraries cannot read; None for none.

    A column by itself has the name "".
    """
    kinds: Sequence[Untyped]
    names: list[Unchecked]
    if is_rows_frame(values):
        kinds, names = _types_in(values), names_in(values)
    else:
        kinds, names = [getattr(values, "type" if library(values) == "pyarrow" else "dtype", None)], [""]
    # By its text: importing Arrow takes longer than many a fit.
    unions = [str(_of_arrow(kind)).startswith(("sparse_union<", "dense_union<")) for kind in kinds]
    return str(names[unions.index(True)]) if any(unions) else None


def refuse_unions(values: Unchecked, rows: str) -> None:
    """Refuse unions of Arrow, which no other library converts.

    Raises
    ------
    DTypeError
        The frame or column, which `rows` names, is or has one.
    """
    union = _first_union(values)
    if union is not None:
        column = f": column {union!r}" if union else ""
        raise DTypeError(
            f"{rows}{column} holds values of several types, a union of Arrow; give it one type, or leave it out"
        )


def _types_in(frame: Unchecked) -> Sequence[Untyped]:
    return frame.schema.types if library(frame) == "pyarrow" else list(getattr(frame, "dtypes", ()))


def _of_arrow(kind: Untyped) -> Untyped:
    """The type of Arrow of a column of pandas that has one; any other type as it is."""
    return getattr(kind, "pyarrow_dtype", kind)


def _is_time(kind: Untyped) -> bool:
    kind = _of_arrow(kind)
    if library(kind) == "pyarrow":
        from pyarrow.types import is_temporal

        return bool(is_temporal(kind))
    return getattr(kind, "kind", "") in ("m", "M") or (hasattr(kind, "is_temporal") and bool(kind.is_temporal()))


def frame_numbers(frame: Unchecked, columns: Sequence[int], way: str) -> AnyArray:
    """Numbers (m, q) of some columns of a frame in memory, NaN where one is missing.

    Raises
    ------
    DTypeError
        A column holds other values; `way` is the way out.
    """
    if not is_pandas(frame):
        from streamkernel.table._arrow_columns import column_numbers

        table = arrow_table(frame)
        found = [column_numbers(table.column(index), table.column_names[index], way) for index in columns]
        return np.column_stack(found) if found else np.empty((table.num_rows, 0))
    frame = frame.iloc[:, list(columns)]
    values = known_types(frame)
    kind = _number_type(values, way, frame.dtypes)
    # Missing values of nullable columns become NaN, which the finite check then names.
    gaps = {"na_value": np.nan} if _is_nullable(values) else {}
    return np.asarray(values.to_numpy(dtype=kind, **gaps))


def lazy_numbers(frame: Unchecked, columns: Sequence[int], way: str) -> Untyped:
    """The same of a frame of Dask, as an array of Dask: its rows are counted, and computed block by block when read."""
    values = frame.iloc[:, list(columns)]
    return values.astype(_number_type(values, way, values.dtypes)).to_dask_array(lengths=True)


def _number_type(values: Untyped, way: str, given: Untyped) -> AnyDType:
    """The type of the numbers in the columns of a frame of pandas or Dask; `given` are types for a message."""
    for name, kind, shown in zip(values.columns, values.dtypes, given, strict=True):
        if getattr(kind, "kind", "O") not in "fiub":
            raise DTypeError(f"column {str(name)!r} holds {shown}; {way}")
    # By itself pandas makes objects of truth values beside numbers.
    return np.dtype(np.float64) if _is_nullable(values) else np.result_type(np.bool_, *values.dtypes)


def _is_nullable(values: Untyped) -> bool:
    return any(type(kind).__module__.split(".")[0] == "pandas" for kind in values.dtypes)
