"""What a user says of a source: which of its columns are y and weights, and how its text is written."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from streamkernel.errors import ParameterError
from streamkernel.table.ingest._csv_format import CsvFormat
from streamkernel.wording import option


@dataclass(frozen=True)
class SourceOptions:
    """How a source is to be read.

    Attributes
    ----------
    target, weight
        Name or index of the column that is y, and of that of row weights.
    csv
        How CSV is written.

    Raises
    ------
    ParameterError
        A value that means nothing.
    """

    target: str | int | None = None
    weight: str | int | None = None
    csv: CsvFormat = field(default_factory=CsvFormat)

    def __post_init__(self) -> None:
        for name, value in (("target", self.target), ("weight", self.weight)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int))):
                raise ParameterError(f"{option(name)} must be a column's name or index, not {value!r}", value=value)

    def refuse_csv(self, place: str) -> None:
        """Refuse options of CSV for a source that is none.

        Raises
        ------
        ParameterError
            One of them is given.
        """
        for each in fields(CsvFormat):
            if getattr(self.csv, each.name) != each.default:
                raise ParameterError(f"{option(each.name)} is for CSV, and {place} is none; leave it out")
