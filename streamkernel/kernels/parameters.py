"""Checks of hyper-parameters and rows, before any work."""

from __future__ import annotations

import math
from numbers import Integral, Real

import numpy as np

from streamkernel.errors import DTypeError, NonFiniteDataError, ParameterError, ShapeError, ShapeMismatchError
from streamkernel.type_aliases import AnyArray, Float, Unchecked
from streamkernel.wording import option

Lengthscale = float | tuple[float, ...]
"""One lengthscale for all features, or one per feature."""

# With these limits the inverse squares, and the numbers that the loops derive from them, are normal in float32.
_SHORTEST, _LONGEST = 1e-18, 1e18


def checked_number(name: str, value: object, *, zero: bool = False) -> float:
    """`value` as a finite positive float (with ``zero=True`` also 0); raises ParameterError otherwise."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ParameterError(f"{option(name)} = {value!r} is not a number; give a positive float", value=value)
    number = float(value)
    if not math.isfinite(number) or number < 0.0 or (number == 0.0 and not zero):
        bound = ">= 0" if zero else "> 0"
        raise ParameterError(f"{option(name)} = {value!r} is out of range; give a finite number {bound}", value=value)
    return number


def checked_integer(name: str, value: object, least: int = 1) -> int:
    """`value` as an int of at least `least`; raises ParameterError otherwise."""
    whole = isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer())
    if isinstance(value, (bool, np.bool_)) or not whole:
        raise ParameterError(
            f"{option(name)} = {value!r} is not a whole number; give an integer >= {least}", value=value
        )
    number = int(value)  # type: ignore[call-overload]
    if number < least:
        raise ParameterError(f"{option(name)} = {value!r} is out of range; give an integer >= {least}", value=value)
    return int(number)


def checked_lengthscale(value: object, name: str = "lengthscale") -> Lengthscale:
    """`value` as one positive float, or as a tuple of them, one per feature; raises ParameterError otherwise."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        if not value:
            raise ParameterError(f"{name} is empty; give one number, or one per feature")
        return tuple(_in_range(f"{name}[{j}]", v) for j, v in enumerate(value))
    return _in_range(name, value)


def _in_range(name: str, value: object) -> float:
    """A lengthscale whose square and inverse square are normal numbers; raises ParameterError otherwise."""
    number = checked_number(name, value)
    if not _SHORTEST <= number <= _LONGEST:
        raise ParameterError(
            f"{option(name)} is {number:.6g}; it must lie between {_SHORTEST:g} and {_LONGEST:g}: scale the features"
        )
    return number


def checked_rows(X: Unchecked, name: str = "X", n_features: int | None = None) -> AnyArray:
    """`X` as a C-contiguous (rows, features) array of float32 or float64.

    Integers and bool become float64, float16 becomes float32, and other byte orders become the native one.

    Raises
    ------
    ShapeError, DTypeError, NonFiniteDataError
        X is not a 2-d array with `n_features` columns, is not numeric, or has masked values.
    """
    array = np.asarray(X)
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise NonFiniteDataError(f"{name} is a masked array with masked values; remove those rows or fill them in")
    if array.ndim != 2:
        raise ShapeError(f"{name} has {array.ndim} dimensions; give a table of rows of shape (rows, features)")
    if n_features is not None and array.shape[1] != n_features:
        raise ShapeError(f"{name} has {array.shape[1]} columns, the basis points {n_features}; give the same features")
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"{name} has dtype {array.dtype}; give real numbers")
    small = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return np.require(array, np.float32 if small else np.float64, ["C", "ALIGNED"])


def checked_columns(values: Unchecked, rows: int, name: str, of: str = "the table") -> Float:
    """A vector (rows,), or columns (rows, q), as finite float64 columns (rows, q).

    Parameters
    ----------
    name, of : words for messages: for the values, and for the object that has as many rows.

    Raises
    ------
    DTypeError, ShapeMismatchError, NonFiniteDataError
        They are not numeric, have another shape, or hold NaN or infinity.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"{name} holds {array.dtype}; give real numbers (float, integer or bool)")
    if array.ndim not in (1, 2) or len(array) != rows:
        raise ShapeMismatchError(f"{name} has shape {array.shape}, {of} {rows} rows; give one row for each")
    columns = np.ascontiguousarray(array.reshape(rows, -1), dtype=np.float64)
    if not np.isfinite(columns).all():
        row = int(np.argwhere(~np.isfinite(columns))[0, 0])
        raise NonFiniteDataError(f"{name} holds NaN or infinity, first in row {row}; give finite numbers")
    return columns


def checked_probability(name: str, value: object) -> float:
    """`value` as a float in the open interval (0, 1); raises ParameterError otherwise."""
    number = checked_number(name, value)
    if number >= 1.0:
        raise ParameterError(
            f"{option(name)} = {value!r} is no probability below 1; give a number between 0 and 1", value=value
        )
    return number
