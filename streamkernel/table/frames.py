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
    """The same frame or column, with types that NumPy knows where its library has others for numbers.

    These are whole numbers of 128 bits of polars, which become float64, and runs of equal values of Arrow in pandas,
    which become the values.
    """
    if library(values) == "polars":
        pl: Untyped = sys.modules["polars"]
        wide = [getattr(pl, name) for name in ("Int128", "UInt128") if hasattr(pl, name)]  # by the version
        if isinstance(values, pl.DataFrame):
            return values.cast(dict.fromkeys(wide, pl.Float64))
        return values.cast(pl.Float64) if getattr(values, "dtype", None) in wide else values
    if is_pandas(values):
        kinds = list(values.dtypes) if values.ndim == 2 else [values.dtype]
        runs = [place for place, kind in enumerate(kinds) if str(kind).startswith("run_end_encoded<")]
        if runs and values.ndim == 1:
            return _without_runs(values)
        if runs:
            columns = [values.iloc[:, place] for place in range(len(kinds))]
            found = [_without_runs(column) if place in runs else column for place, column in enumerate(columns)]
            import pandas as pd

            return pd.concat(found, axis=1)
    return values


def _without_runs(column: Untyped) -> Untyped:
    import pandas as pd
    from pyarrow.compute import run_end_decode

    values = pd.arrays.ArrowExtensionArray(run_end_decode(column.array.__arrow_array__()))
    return pd.Series(values, index=column.index, name=column.name)


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
    """Name and a value of the first column of a frame whose type is one of dates, times or durations.

    Some libraries make numbers of these beside other numbers, in units that nobody sees.
    """
    if not (hasattr(frame, "columns") or hasattr(frame, "column_names")) or getattr(frame, "ndim", 2) != 2:
        return None
    arrow = library(frame) == "pyarrow"
    kinds: Sequence[Untyped] = frame.schema.types if arrow else list(getattr(frame, "dtypes", ()))
    place = next((place for place, kind in enumerate(kinds) if _is_time(kind)), None)
    if place is None:
        return None
    name = names_in(frame)[place]
    if arrow:
        there = frame.column(place).drop_null().to_pylist()
    else:
        there = frame.iloc[:, place].dropna() if is_pandas(frame) else frame[name].drop_nulls()
    return str(name), next(iter(there), "no value")


def _is_time(kind: Untyped) -> bool:
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
    values = known_types(frame.iloc[:, list(columns)])
    kind = _number_type(values, way)
    # Missing values of nullable columns become NaN, which the finite check then names.
    gaps = {"na_value": np.nan} if _is_nullable(values) else {}
    return np.asarray(values.to_numpy(dtype=kind, **gaps))


def lazy_numbers(frame: Unchecked, columns: Sequence[int], way: str) -> Untyped:
    """The same of a frame of Dask, as an array of Dask: its rows are counted, and computed block by block when read."""
    values = frame.iloc[:, list(columns)]
    return values.astype(_number_type(values, way)).to_dask_array(lengths=True)


def _number_type(values: Untyped, way: str) -> AnyDType:
    """The type of the numbers in the columns of a frame of pandas or Dask."""
    for name, kind in zip(values.columns, values.dtypes, strict=True):
        if getattr(kind, "kind", "O") not in "fiub":
            raise DTypeError(f"column {str(name)!r} holds {kind}; {way}")
    # By itself pandas makes objects of truth values beside numbers.
    return np.dtype(np.float64) if _is_nullable(values) else np.result_type(np.bool_, *values.dtypes)


def _is_nullable(values: Untyped) -> bool:
    return any(type(kind).__module__.split(".")[0] == "pandas" for kind in values.dtypes)
