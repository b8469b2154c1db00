"""Checks for NaN and infinity before every factorisation, because LAPACK may return NaN without an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from streamkernel.errors import NumericalError, NumericRangeError
from streamkernel.type_aliases import AnyArray
from streamkernel.wording import option


def require_finite(array: AnyArray, what: str) -> None:
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
    """Context in which an overflow or a division by 0 raises `NumericRangeError` instead of a warning."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            yield
    except FloatingPointError as error:
        raise NumericRangeError(
            f"numbers leave the range of floating point ({error}): features, targets, weights or kernel values are too "
            f"large or too small; scale the columns ({option('scale', 'standard')}) and y, take weights near 1, a "
            "lower degree or another kernel, or float64"
        ) from error
