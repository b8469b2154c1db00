"""Parts of the rows, for cross-validation: by content, by group or by time. No order of rows and no chunk changes them.

======== ================================================================================== =======================
by       the part of a row                                                                  never separated
======== ================================================================================== =======================
content  ``floor(K h(x))``, h a keyed hash of its features as stored, or rounded              rows of equal features
group    the K parts are filled with whole groups, the heaviest first, each into the          rows of one group
         lightest part; of many groups each goes where the hash of its name says
time     the number of thresholds ``t_1 <= ... <= t_K`` that lie before its time: K + 1       rows of one time
         parts of about the same weight, in the order of time
======== ================================================================================== =======================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from streamkernel.atomic import text_digest
from streamkernel.table.parts.folds import Folds
from streamkernel.table.row_keys import NO_ROUNDING, Keys, RowRounding, row_keys
from streamkernel.table.rows import ColumnRows, NumbersBeside, RowArray, RowReader
from streamkernel.table.values import check_finite
from streamkernel.type_aliases import AnyArray, Float, Int

# Key of the hash. Another one than that of the folds that a fit makes of its own rows: with the same key their first
# fold would be the part that is left out.
_SEED = 0x5EED_0F_9A275


@dataclass(frozen=True, eq=False)
class RowParts(ABC):
    """A number 0 .. count - 1 for each row, which follows from some values of the row alone.

    Attributes
    ----------
    source : the rows (m, p), or the column (m,), whose values decide.
    count : number of parts.
    """

    source: RowArray
    count: int

    @abstractmethod
    def of(self, values: AnyArray) -> Int:
        """Parts (b,) of rows with these values of the source."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Text that differs for other parts of the same source."""

    def columns_beside(self, features: RowArray) -> list[int] | None:
        """Columns of the chunks of these features that decide the parts; None where they are not in these chunks."""
        return self.source.columns_beside(features) if isinstance(self.source, ColumnRows) else None

    def of_block(self, features: AnyArray, beside: AnyArray) -> Int:
        """Parts (b,) of rows with these features (b, p) and columns (b, k) beside them, of which the first decides."""
        return self.of(beside[:, 0])


@dataclass(frozen=True, eq=False)
class ContentParts(RowParts):
    """Parts by a hash of all features: about equal in the number of distinct rows.

    Attributes
    ----------
    rounding : how features are rounded first, so that copies that differ in their last digits are in one part.
    """

    rounding: RowRounding = NO_ROUNDING

    def of(self, values: AnyArray) -> Int:
        return _by_hash(self.source.keys(values, self.rounding), self.count)

    def columns_beside(self, features: RowArray) -> list[int] | None:
        return [] if self.source is features else None

    def of_block(self, features: AnyArray, beside: AnyArray) -> Int:
        return self.of(features)

    @property
    def name(self) -> str:
        rounded = "" if self.rounding is NO_ROUNDING else f", rounded {self.rounding.digest}"
        return f"content of {self.count}{rounded}"


@dataclass(frozen=True, eq=False)
class GroupParts(RowParts):
    """Parts by the values of a column.

    Attributes
    ----------
    keys : (g,) ascending `row_keys` of the groups; None where these are too many to be known.
    parts : (g,) their parts.
    """

    keys: Keys | None
    parts: Int | None

    def of(self, values: AnyArray) -> Int:
        keys = row_keys(values.reshape(-1, 1))
        if self.keys is None or self.parts is None:
            return _by_hash(keys, self.count)
        # A group that is not known has no row of weight > 0.
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.parts[place], 0)

    @property
    def name(self) -> str:
        known = [] if self.keys is None or self.parts is None else [self.keys.tolist(), self.parts.tolist()]
        return f"groups of {self.count} {known}"


@dataclass(frozen=True, eq=False)
class TimeParts(RowParts):
    """Parts by the values of a column in their order.

    Attributes
    ----------
    thresholds : (count - 1,) ascending; a row at a threshold is before it.
    """

    thresholds: Float

    def of(self, values: AnyArray) -> Int:
        return np.searchsorted(self.thresholds, values.astype(np.float64), side="left").astype(np.int64)

    @property
    def name(self) -> str:
        return f"times {self.thresholds.tolist()}"


class PartNumbers(NumbersBeside):
    """The part (m,) of each row, as numbers beside its features; nothing is held."""

    def __init__(self, parts: RowParts) -> None:
        super().__init__(parts.source, "parts", 1, np.dtype(np.int64))
        self.shape, self.parts = (parts.source.n_rows,), parts

    @property
    def fingerprint(self) -> str:
        return text_digest(f"{self.parts.name} of {self.guide.fingerprint}")

    def load(self, first: int, last: int) -> AnyArray:
        return self.parts.of(RowReader(self.guide).read(first, last))

    def columns_beside(self, features: RowArray) -> list[int] | None:
        return self.parts.columns_beside(features)

    def of_block(self, features: AnyArray, beside: AnyArray, start: int) -> AnyArray:
        return self.parts.of_block(features, beside)


def checked_column(values: AnyArray, start: int, source: RowArray) -> Float:
    """Values (b,) of a column of groups or times, of which `start` is the first row, in float64.

    Raises
    ------
    NonFiniteDataError
        A value is NaN or infinite.
    """
    check_finite(values, start, (source.name,), source.where, "the column of the split")
    return values.astype(np.float64)


def content_folds(count: int) -> Folds:
    """Folds whose validation folds are the first parts by content; of `count` parts the last is only trained on."""
    return Folds(count - 1, count, _SEED)


def _by_hash(keys: Keys, count: int) -> Int:
    return content_folds(count).of(keys)
