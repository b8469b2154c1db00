"""Checks of single values of settings, each with an error that names the parameter."""

from __future__ import annotations

import math

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option


def checked_seed(value: Unchecked) -> int:
    """A seed as an integer: an integer itself, one drawn from a `RandomState`, or 0 for None."""
    if value is None:
        return 0
    if isinstance(value, np.random.RandomState):
        return int(value.randint(2**31 - 1))
    if not is_whole(value, 0):
        raise ParameterError(f"{option('random_state')} must be an integer >= 0, not {value!r}", value=value)
    return int(value)


def checked_choice(name: str, value: Unchecked, choices: tuple[str, ...]) -> None:
    """Raise `ParameterError` for a value that is not one of the choices."""
    if value not in choices:
        raise ParameterError(f"{option(name)} must be one of {', '.join(choices)}, not {value!r}", value=value)


def checked_truth(name: str, value: Unchecked) -> None:
    """Raise `ParameterError` for a value that is not true or false."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{option(name)} must be true or false, not {value!r}", value=value)


def is_whole(value: Unchecked, least: int) -> bool:
    """Whether a value is a whole number of at least `least`; a truth value is none."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    return whole and bool(value >= least)


def checked_whole(name: str, value: Unchecked, least: int) -> None:
    """Raise `ParameterError` for a value that is not a whole number of at least `least`."""
    if not is_whole(value, least):
        bound = f"> {least - 1}" if least == 1 else f">= {least}"
        raise ParameterError(f"{option(name)} must be a whole number {bound}, not {value!r}", value=value)


def checked_number(
    name: str, value: Unchecked, *, least: float, exclusive: bool = False, most: float = math.inf
) -> float:
    """The value as a float; raises `ParameterError` for one that is no finite number in the range."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ParameterError(f"{option(name)} must be a number, not {value!r}", value=value)
    number = float(value)
    if not math.isfinite(number) or number < least or (exclusive and number == least) or number > most:
        bounds = f"{'>' if exclusive else '>='} {least:g}" + ("" if most == math.inf else f" and <= {most:g}")
        raise ParameterError(f"{option(name)} must be finite and {bounds}, not {value!r}", value=value)
    return number
