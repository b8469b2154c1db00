"""NaN and infinity are looked for before every factorisation: LAPACK returns NaN without a word."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.errors import NumericalError

__all__ = ["require_finite"]


def require_finite(array: NDArray[Any], what: str) -> None:
    """Raise `NumericalError`, naming `what`, if the array holds NaN or infinity."""
    finite = np.isfinite(array)
    if not finite.all():
        bad = int(array.size - np.count_nonzero(finite))
        raise NumericalError(
            f"{what} has {bad} values that are NaN or infinite out of {array.size}; "
            "look at the scale of features and targets, the lengthscale and alpha"
        )
