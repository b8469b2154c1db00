"""Looks at hyper-parameters and rows before any work is done."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import DTypeError, NonFiniteDataError, ParameterError, ShapeError

__all__ = [
    "Lengthscale",
    "checked_integer",
    "checked_lengthscale",
    "checked_number",
    "checked_probability",
    "checked_rows",
]

Lengthscale = float | tuple[float, ...]
"""One length for all features, or one per feature."""

# Inverse squares of these, and what the loops make of them, are ordinary numbers in float32.
_SHORTEST, _LONGEST = 1e-18, 1e18


def checked_number(name: str, value: object, *, zero: bool = False) -> float:
    """`value` as a finite positive float (with ``zero=True`` also 0), or ParameterError."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ParameterError(f"{name} = {value!r} is not a number; give a positive float")
    number = float(value)
    if not math.isfinite(number) or number < 0.0 or (number == 0.0 and not zero):
        bound = ">= 0" if zero else "> 0"
        raise ParameterError(f"{name} = {value!r} is out of range; give a finite number {bound}")
    return number


def checked_integer(name: str, value: object, least: int = 1) -> int:
    """`value` as an int of at least `least`, or ParameterError."""
    whole = isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer())
    if isinstance(value, (bool, np.bool_)) or not whole:
        raise ParameterError(f"{name} = {value!r} is not a whole number; give an integer >= {least}")
    number = int(value)  # type: ignore[call-overload]
    if number < least:
        raise ParameterError(f"{name} = {value!r} is out of range; give an integer >= {least}")
    return int(number)


def checked_lengthscale(value: object, name: str = "lengthscale") -> Lengthscale:
    """One positive float, or a tuple of them, one per feature; else ParameterError."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        if not value:
            raise ParameterError(f"{name} is empty; give one number, or one per feature")
        return tuple(_in_range(f"{name}[{j}]", v) for j, v in enumerate(value))
    return _in_range(name, value)


def _in_range(name: str, value: object) -> float:
    """A lengthscale whose square, and that of its inverse, is an ordinary number."""
    number = checked_number(name, value)
    if not _SHORTEST <= number <= _LONGEST:
        raise ParameterError(
            f"{name} is {number:.6g}; it must lie between {_SHORTEST:g} and {_LONGEST:g}: scale the features"
        )
    return number


def checked_rows(X: Any, name: str = "X", n_features: int | None = None) -> NDArray[Any]:
    """`X` as a C-contiguous (rows, features) array of float32 or float64.

    Integers and bool become float64, float16 becomes float32, other byte orders the native one.
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


def checked_probability(name: str, value: object) -> float:
    """`value` as a float in the open interval (0, 1), or ParameterError."""
    number = checked_number(name, value)
    if number >= 1.0:
        raise ParameterError(f"{name} = {value!r} is no probability below 1; give a number between 0 and 1")
    return number
