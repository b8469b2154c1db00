"""Types of JSON values, and ranges of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

__all__ = ["AtLeast", "Count", "Json", "JsonObject", "NonNegative", "Position"]

# Any JSON value. A reader of one must look at its type first, which a recursive type would not make shorter.
Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class AtLeast:
    """A number that is not below `least`."""

    least: float


Count = Annotated[int, AtLeast(0)]
Position = Annotated[int, AtLeast(0)]
NonNegative = Annotated[float, AtLeast(0.0)]
