"""Checks of single values of settings, each with an error that names the parameter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamkernel.errors import ParameterError

__all__ = ["checked_choice", "checked_number", "checked_seed"]


def checked_seed(value: Any) -> int:
    """A seed as an integer: an integer itself, one drawn from a `RandomState`, or 0 for None."""
    if value is None:
        return 0
    if isinstance(value, np.random.RandomState):
        return int(value.randint(2**31 - 1))
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ParameterError(f"random_state must be an integer >= 0, not {value!r}")
    return int(value)


def checked_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise `ParameterError` for a value that is not one of the choices."""
    if value not in choices:
        raise ParameterError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def checked_number(name: str, value: Any, *, least: float, exclusive: bool = False, most: float = math.inf) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ParameterError(f"{name} must be a number, not {value!r}")
    number = float(value)
    if not math.isfinite(number) or number < least or (exclusive and number == least) or number > most:
        bounds = f"{'>' if exclusive else '>='} {least:g}" + ("" if most == math.inf else f" and <= {most:g}")
        raise ParameterError(f"{name} must be finite and {bounds}, not {value!r}")
    return number
