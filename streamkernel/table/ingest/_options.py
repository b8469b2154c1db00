"""What a user says of a source: which of its columns or arrays are X, y and weights, how text is written."""

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
    X, y
        Names of the arrays that are X and y, of a source with several.

    Raises
    ------
    ParameterError
        A value that means nothing.
    """

    target: str | int | None = None
    weight: str | int | None = None
    csv: CsvFormat = field(default_factory=CsvFormat)
    X: str | None = None
    y: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("target", self.target), ("weight", self.weight)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int))):
                raise ParameterError(f"{option(name)} must be a column's name or index, not {value!r}", value=value)

        for name, value in (("X", self.X), ("y", self.y)):
            # An array is a path below the group.
            if value is not None and (not isinstance(value, str) or not value or {"", ".", ".."} & {*value.split("/")}):
                raise ParameterError(f"{option(name)} must be the name of an array, not {value!r}", value=value)
        if self.y is not None and self.target is not None:
            raise ParameterError(
                f"y is given twice: {option('y')} names an array, and {option('target')} a column of X; leave one out"
            )
        if self.y is not None and self.y == (self.X or "X"):
            raise ParameterError(
                f"X and y are the same array, {self.y!r}; choose two by {option('X')} and {option('y')}"
            )

    def refuse_names(self, place: str, why: str) -> None:
        """Refuse names of arrays for a source that has none to choose from.

        Raises
        ------
        ParameterError
            One of them is given.
        """
        for name, value in (("X", self.X), ("y", self.y)):
            if value is not None:
                raise ParameterError(
                    f"{option(name)} names an array of an NPZ file, a Zarr group or a Dataset, and {place} {why}; "
                    "leave it out"
                )

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
