"""Row weights that are 0 outside some parts of the rows: a table of these parts, of which nothing is copied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from streamkernel.atomic import text_digest
from streamkernel.table.parts._weighted_values import ROWS, weighted_values
from streamkernel.table.parts.row_parts import RowParts
from streamkernel.table.rows import ColumnRows, NumbersBeside, RowArray, RowReader
from streamkernel.table.table import Table
from streamkernel.table.weight_sums import WeightSums, known_sums
from streamkernel.type_aliases import AnyArray, Int


class PartWeights(NumbersBeside):
    """Row weights ``w_i = v_i`` in the parts that are kept, 0 in all others.

    Parameters
    ----------
    parts : the part of each row.
    kept : numbers of the parts that are kept.
    given : (m,) row weights v; None for ones.
    """

    def __init__(self, parts: RowParts, kept: tuple[int, ...], given: RowArray | None) -> None:
        super().__init__(parts.source, "weights", 1, np.dtype(np.float64))
        self.shape = (parts.source.n_rows,)
        self.parts, self.kept, self.given = parts, kept, given

    @property
    def fingerprint(self) -> str:
        given = None if self.given is None else self.given.fingerprint
        return text_digest(f"{given} in {self.kept} of {self.parts.name} of {self.guide.fingerprint}")

    @property
    def stamp(self) -> str:
        return self.guide.stamp + ("" if self.given is None else self.given.stamp)

    def chunk_span(self, row: int) -> tuple[int, int]:
        """Those of the source; 1,024 rows in memory, so that m weights are never held."""
        return RowArray.chunk_span(self, row) if self.in_memory else super().chunk_span(row)

    def load(self, first: int, last: int) -> AnyArray:
        values = RowReader(self.guide).read(first, last)
        weights = self._kept(lambda rows: self.parts.of(values[rows]), len(values))
        return weights if self.given is None else weights * RowReader(self.given).read(first, last)

    def check_unchanged(self) -> None:
        self.guide.check_unchanged()
        if self.given is not None:
            self.given.check_unchanged()

    def columns_beside(self, features: RowArray) -> list[int] | None:
        own = self.parts.columns_beside(features)
        if own is None or self.given is None:
            return own
        given = self.given.columns_beside(features) if isinstance(self.given, ColumnRows) else None
        return None if given is None else [*own, *given]

    def of_block(self, features: AnyArray, beside: AnyArray, start: int) -> AnyArray:
        weights = self._kept(lambda rows: self.parts.of_block(features[rows], beside[rows]), len(features))
        return weights if self.given is None else weights * beside[:, -1]

    def _kept(self, parts_of: Callable[[slice], Int], count: int) -> AnyArray:
        """1 for rows in parts that are kept, else 0, of the parts that a function gives of some of the rows."""
        keep = np.isin(np.arange(self.parts.count), self.kept).astype(np.float64)
        weights = np.empty(count)
        for first in range(0, count, ROWS):
            rows = slice(first, min(first + ROWS, count))
            weights[rows] = keep[parts_of(rows)]
        return weights


def part_numbers(parts: RowParts, start: int, stop: int) -> Int:
    """Parts (b,) of the rows [start, stop)."""
    return parts.of(RowReader(parts.source).read(start, stop))


class PartSums:
    """The sums of the row weights of a table in each part, by one pass over what decides the parts.

    Parameters
    ----------
    table : rows with the weights that they have in all parts.
    parts : the part of each row.

    Attributes
    ----------
    of_parts : the sums of each part.
    """

    def __init__(self, table: Table, parts: RowParts) -> None:
        self._table, self._parts = table, parts
        # The runs of the weights that `of` makes, for which the sums are wanted.
        cuts = self._weights(()).cuts(table.start, table.stop)
        k = len(cuts) - 1
        sums, largest, least = np.zeros((parts.count, k)), np.zeros((parts.count, k)), np.full((parts.count, k), np.inf)
        counts, first = np.zeros((parts.count, k), np.int64), np.full(parts.count, table.stop)
        for start, values, w in weighted_values(parts.source, table, cuts):
            run, of = int(np.searchsorted(cuts, start, side="right")) - 1, parts.of(values)
            for part in range(parts.count):
                own = np.where(of == part, w, 0.0)
                sums[part, run] += own.sum()
                largest[part, run] = max(largest[part, run], own.max())
                least[part, run] = np.min(own, where=own > 0.0, initial=least[part, run])
                counts[part, run] += np.count_nonzero(own)
                if first[part] == table.stop and own.any():
                    first[part] = start + int(np.argmax(own > 0.0))
        self.of_parts = [
            WeightSums(cuts, *each) for each in zip(sums, largest, least, counts, first.tolist(), strict=True)
        ]

    def _weights(self, kept: tuple[int, ...]) -> PartWeights:
        return PartWeights(self._parts, kept, self._table.weights)

    def table_of(self, *kept: int) -> Table:
        """The rows of some parts: the same table, in which all other rows have weight 0.

        Stored statistics are of all rows, so that it has none.
        """
        weights, own = self._weights(kept), [self.of_parts[part] for part in kept]
        known_sums(weights)[self._table.start, self._table.stop] = WeightSums(
            own[0].cuts,
            np.sum([each.sums for each in own], axis=0),
            np.max([each.largest for each in own], axis=0),
            np.min([each.least for each in own], axis=0),
            np.sum([each.counts for each in own], axis=0),
            min(each.first for each in own),
        )
        return replace(self._table, weights=weights, statistics=None)
