"""Frames of pandas, polars, pyarrow and Dask, known by their module or by Arrow's interface.

No library of frames is imported before there is one of its frames: importing takes longer than many a fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamkernel.errors import ParameterError
from streamkernel.type_aliases import Unchecked, Untyped


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
    return (
        getattr(frame, "ndim", 2) == 2
        and (hasattr(frame, "columns") or hasattr(frame, "column_names"))
        and (hasattr(frame, "__arrow_c_stream__") or library(frame) == "pyarrow")
        and not is_pandas(frame)
    )


def arrow_table(frame: Unchecked) -> Untyped:
    """A frame as a table of Arrow; nothing is copied that Arrow can share."""
    import pyarrow as pa

    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    return frame if isinstance(frame, pa.Table) else pa.table(frame)


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
    name = (frame.schema.names if arrow else list(frame.columns))[place]
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
