"""Types of JSON values, and ranges of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

# An object whose fields have a reader of their own: the parameters of a kernel, the options of a rule.
JsonObject: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class AtLeast:
    """A number that is not below `least`."""

    least: float


Count = Annotated[int, AtLeast(0)]
NonNegative = Annotated[float, AtLeast(0.0)]
