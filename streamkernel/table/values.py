"""The accepted number types, their casts, and the one pass that checks for NaN, infinity and overflow.

| given                                   | becomes  |
|-----------------------------------------|----------|
| float32, float64                        | the same |
| float16                                 | float32  |
| bool, every integer, long double        | float64  |
| big-endian                              | native   |
| complex, object, string, date, record   | DTypeError |

Integers beyond 2^53 are rounded to the nearest float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from streamkernel.errors import DTypeError, EmptyDataError, NonFiniteDataError, NumericRangeError, ParameterError
from streamkernel.type_aliases import AnyArray, AnyDType, Float, Unchecked
from streamkernel.wording import option

DTypeName = Literal["keep", "float32", "float64"]

# |x - z|^2 <= 2 |x|^2 + 2 |z|^2: a squared norm below an eighth of the largest float leaves room for every distance.
_HEADROOM = 8.0

_MOST_TARGET = 1e140  # squares of 1e20 rows sum to less than the largest float
# Sums of weighted products of a basis are in float32 in part, which ends near 1e38 and 1e-38.
_MOST_WEIGHT = float(np.float32(1e30))  # which is above 1e30
LEAST_WEIGHT = 1e-30  # that the largest weight must have


def listed(names: Iterable[object], most: int = 5) -> str:
    """Names for a message of one line, the first ones of many."""
    shown = [" ".join(str(name).splitlines()) for name in names]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")


_UNITS = {**dict.fromkeys(("Y", "M", "W", "h", "m"), "s"), **dict.fromkeys(("ps", "fs", "as"), "ns")}  # of Arrow


def native_type(dtype: AnyDType) -> AnyDType:
    """A type that Arrow has, too, for the same values: of this machine's byte order, long double as float64.

    Times and durations have the next finer unit of Arrow, or nanoseconds.
    """
    if dtype.kind in "mM":
        unit, _ = np.datetime_data(dtype)
        whole_days = unit == "D" and dtype.kind == "m"
        return np.dtype(f"{dtype.kind}8[{'s' if whole_days else _UNITS.get(unit, unit)}]")
    return np.dtype(np.float64) if dtype.kind == "f" and dtype.itemsize > 8 else dtype.newbyteorder("=")


def not_finite(number: int) -> str:
    """So many values that are not finite, for a message."""
    return f"{number:,} value{' that is' if number == 1 else 's that are'} NaN or infinity"


def unmasked(values: Unchecked, name: str, where: str = "", start: int = 0) -> Any:
    """The values of a masked array, which must mask none of them; anything else unchanged.

    Parameters
    ----------
    where, start
        For the message: name of the part that holds the first row (default: the array), and that row's number.
    """
    data: Any
    if isinstance(values, (list, tuple)):
        mask, data = np.array([_masks(row) for row in values], dtype=bool), values
    elif isinstance(values, np.ma.MaskedArray):
        mask, data = np.ma.getmaskarray(values), values.data
    else:
        return values
    if not mask.any():
        return data
    first = [int(place) for place in np.argwhere(mask)[0]]
    place = "" if not first else f", first in row {start + first[0]}"
    column = f", column {first[1]}" if len(first) > 1 else ""
    raise NonFiniteDataError(
        f"{name} is masked in {int(mask.sum())} {'rows' if data is values else 'values'}, which are missing{place}"
        f"{column}, in {where or f'the {name} array'}; remove those rows or fill them in"
    )


def _masks(row: Unchecked) -> bool:
    """Whether an item of a list is masked, or holds a masked value."""
    if isinstance(row, (list, tuple)):
        return any(value is np.ma.masked for value in row)
    return isinstance(row, np.ma.MaskedArray) and bool(np.ma.is_masked(row))


def float_dtype(dtype: AnyDType, name: str) -> AnyDType:
    """The native float type that values of `dtype` are cast to, by the table above."""
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    if dtype.kind in "biu":
        return np.dtype(np.float64)
    what = {"c": "complex numbers", "O": "Python objects", "U": "text", "S": "text", "T": "text"}.get(
        dtype.kind, str(dtype)
    )
    raise DTypeError(f"{name} holds {what} (dtype {dtype}); give real numbers (float, integer or bool)")


def table_dtype(dtype: AnyDType, wanted: str, name: str) -> AnyDType:
    """dtype of a table's blocks: `wanted`, or for "keep" the result of `float_dtype`."""
    own = float_dtype(dtype, name)
    if wanted == "keep":
        return own
    if wanted in ("float32", "float64"):
        return np.dtype(wanted)
    raise ParameterError(f"{option('dtype')} must be 'keep', 'float32' or 'float64', not {wanted!r}", value=wanted)


def cast_rows(values: AnyArray, dtype: AnyDType) -> AnyArray:
    """C-contiguous rows of `dtype`, a view where nothing changes; overflow gives infinity, which `check_rows` finds."""
    with np.errstate(over="ignore", invalid="ignore"):
        cast = np.ascontiguousarray(values, dtype=dtype)
    # Compiled kernels are typed for writable arrays; a read-only memory map would not match their signature.
    return cast if cast.flags.writeable else cast.copy()


def check_rows(
    raw: AnyArray,
    rows: AnyArray,
    start: int,
    columns: Sequence[str],
    where: Callable[[int], str],
    name: str = "X",
) -> None:
    """Refuse NaN, infinity, and rows whose squared norm overflows, in one pass over `rows` (b, p).

    A finite ``sum of squares`` proves that every value is finite and every squared norm in range. Only otherwise does a
    second pass find the error and its place.

    Parameters
    ----------
    raw, rows
        The stored values, and the same rows cast and scaled for the kernel.
    start
        Row number of the first one.
    columns, where, name
        For the message: column names, a function that names the place of a row (a chunk's key), the array's name.
    """
    flat = rows.reshape(-1)
    with np.errstate(all="ignore"):
        if np.isfinite(np.dot(flat, flat) * _HEADROOM):
            return
        check_finite(raw, start, columns, where, name)
        squares = np.einsum("ij,ij->i", rows, rows) * rows.dtype.type(_HEADROOM)
    bad = np.flatnonzero(~np.isfinite(squares))
    if bad.size:
        row = start + int(bad[0])
        sizes = np.abs(raw[bad[0]].astype(np.float64))
        place = int(sizes.argmax())
        label = columns[place] if place < len(columns) else str(place)
        wider = "use float64, or " if rows.dtype == np.float32 else ""
        raise NumericRangeError(
            f"{name} has {bad.size} rows whose squared norm overflows {rows.dtype}, first row {row} "
            f"(largest value {sizes[place]:.3g}, in column {label!r}) in {where(row)}; {wider}divide such columns by a "
            "number that is as large"
        )


def check_targets(Y: Float, start: int, names: Sequence[str], where: Callable[[int], str]) -> None:
    """Refuse NaN, infinity, and targets so large that their sum of squares over all rows could overflow."""
    flat = Y.reshape(-1)
    if not flat.size or max(-float(flat.min()), float(flat.max())) <= _MOST_TARGET:
        return
    check_finite(Y, start, names, where, "y")
    row, column = (int(place) for place in np.argwhere(np.abs(Y) > _MOST_TARGET)[0])
    label = names[column] if column < len(names) else str(column)
    raise NumericRangeError(
        f"y holds {Y[row, column]:.3g} in row {start + row}, column {label!r}, in {where(start + row)}: squares of "
        f"such targets overflow; scale y, to values below {_MOST_TARGET:.0e}"
    )


def check_finite(
    values: AnyArray,
    start: int,
    columns: Sequence[str],
    where: Callable[[int], str],
    name: str,
    remedy: str = "remove those rows or fill them in",
) -> None:
    """Refuse NaN and infinity in rows (b, p); the error names array, chunk, first row and column, and the count."""
    if values.dtype.kind != "f":
        return
    finite = np.isfinite(values)
    if finite.all():
        return
    finite = finite.reshape(values.shape[0], -1)
    row_in_block, column = np.argwhere(~finite)[0]
    row = start + int(row_in_block)
    value = values.reshape(values.shape[0], -1)[row_in_block, column]
    kind = "NaN" if np.isnan(value) else "infinity"
    if not np.isnan(values).any():  # which nothing fills
        remedy = "correct such values, or remove those rows"
    label = columns[column] if column < len(columns) else str(column)
    raise NonFiniteDataError(
        f"{name} contains {kind}: {not_finite(int((~finite).sum()))}, first in row {row}, "
        f"column {label!r}, in {where(row)}; {remedy}"
    )


def check_largest_weight(largest: float, n_rows: int) -> None:
    """Refuse the weights of rows whose largest is 0, or so small that products of weights could underflow."""
    if largest >= LEAST_WEIGHT:
        return
    if not largest > 0.0:
        raise EmptyDataError(f"all {n_rows} weights are zero, so no row counts; give some rows a weight > 0")
    raise NumericRangeError(
        f"weights: the largest of {n_rows} rows is {largest:.3g}: products of such weights underflow; divide the "
        "weights by their largest"
    )


def check_weights(weights: Float, start: int, where: Callable[[int], str], column: str | None = None) -> None:
    """Refuse row weights (b,) that are NaN, infinite, negative or so large that sums of them could overflow.

    The error names first row, column and place.
    """
    # One pass where all is well; NaN fails the comparison too.
    if ((weights >= 0.0) & (weights <= _MOST_WEIGHT)).all():
        return
    bad, of = np.flatnonzero(~np.isfinite(weights)), "" if column is None else f", column {column!r},"
    if bad.size:
        raise NonFiniteDataError(
            f"weights contain NaN or infinity, first in row {start + int(bad[0])}{of} in "
            f"{where(start + int(bad[0]))}; give finite weights"
        )
    row = int(np.argmax((weights < 0.0) | (weights > _MOST_WEIGHT)))
    if weights[row] > 0.0:
        raise NumericRangeError(
            f"weights: row {start + row}{of} has {weights[row]:.3g} in {where(start + row)}: sums of such weights "
            "overflow; divide the weights by their largest"
        )
    raise ParameterError(
        f"weights must not be negative, row {start + row}{of} has {weights[row]:.3g} in {where(start + row)}; give "
        "weights of at least 0"
    )
