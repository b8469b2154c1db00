"""NaN and infinity are looked for before every factorisation: LAPACK returns NaN without a word."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import NumericalError, NumericRangeError

__all__ = ["require_finite", "within_range"]


def require_finite(array: NDArray[Any], what: str) -> None:
    """Raise `NumericalError`, naming `what`, if the array holds NaN or infinity."""
    finite = np.isfinite(array)
    if not finite.all():
        bad = int(array.size - np.count_nonzero(finite))
        raise NumericalError(
            f"{what} has {bad} values that are NaN or infinite out of {array.size}; "
            "look at the scale of features and targets, the lengthscale and alpha"
        )


@contextmanager
def within_range() -> Iterator[None]:
    """Numbers that overflow, or divide by what has vanished, end in `NumericRangeError`, not in a warning."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            yield
    except FloatingPointError as error:
        raise NumericRangeError(
            f"numbers leave the range of floating point ({error}): features, targets, weights or kernel values are too "
            "large or too small; scale the columns (--scale standard) and y, take weights near 1, a lower degree or "
            "another kernel, or float64"
        ) from error
