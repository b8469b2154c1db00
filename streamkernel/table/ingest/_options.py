"""What a user says of a source: which of its columns are y and weights."""

from __future__ import annotations

from dataclasses import dataclass

from streamkernel.errors import ParameterError
from streamkernel.wording import option


@dataclass(frozen=True)
class SourceOptions:
    """How a source is to be read.

    Attributes
    ----------
    target, weight
        Name or index of the column that is y, and of that of row weights.

    Raises
    ------
    ParameterError
        A value that means nothing.
    """

    target: str | int | None = None
    weight: str | int | None = None

    def __post_init__(self) -> None:
        for name, value in (("target", self.target), ("weight", self.weight)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int))):
                raise ParameterError(f"{option(name)} must be a column's name or index, not {value!r}", value=value)
