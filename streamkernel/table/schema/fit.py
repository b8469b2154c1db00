"""The first pass over a source: what a declared schema needs of its rows.

Sums are rounded to 12 digits, so that no cut of the rows into batches shows in a fill or a mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from streamkernel.errors import DataError, EmptyDataError, NumericRangeError
from streamkernel.table.schema._column import DATE_PARTS, MAX_CATEGORIES, Column
from streamkernel.table.schema._target_means import shrunk
from streamkernel.table.schema.encoder import Where, codes_of, days_of, read_categories, read_numbers
from streamkernel.table.schema.schema import Schema
from streamkernel.table.schema.values import canonical
from streamkernel.type_aliases import Float, Int, Untyped
from streamkernel.wording import option

FOLDS = 5
MOST_ONE_HOT = 32
_SAMPLE = 1 << 16
_DIGITS, _BITS = 12, 40  # 2^-40 is 10^-12
MOST_OUTPUTS = 32
_YEAR, _TWO_WEEKS = 365.0, 14.0


@dataclass(frozen=True)
class FittedSchema:
    """A complete schema, and what encodes the rows that it was fitted to.

    Attributes
    ----------
    schema
        Complete.
    of_others
        As of `Encoder`.
    """

    schema: Schema
    of_others: dict[str, Float]


def fold_of(rows: Int) -> Int:
    """Fold (b,) of rows by their numbers: SplitMix64 of the number, modulo the folds (Steele, Lea & Flood 2014)."""
    folds: Int = (_mixed(rows) % np.uint64(FOLDS)).astype(np.int64)
    return folds


def _mixed(rows: Int) -> Untyped:
    z = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class SchemaFit:
    """The first pass; `add` takes the batches in order, `finished` gives the result.

    Parameters
    ----------
    schema
        A declared schema.
    where
        The place of a row, for messages.
    labelled
        Whether the target is a class label.
    """

    def __init__(self, schema: Schema, where: Where, *, labelled: bool) -> None:
        self._schema, self._where = schema, where
        self.columns = [column for column in schema.columns if not column.complete]
        self._found: dict[str, _Numbers | _Categories] = {
            column.name: _Categories(column, labelled=labelled) if column.kind == "category" else _Numbers(column)
            for column in self.columns
        }
        self._rows = 0

    @property
    def needs_targets(self) -> bool:
        """Whether a column becomes target means, or may do so."""
        return any(_may_be_target_mean(column) for column in self.columns)

    def add(self, batch: Untyped, targets: Float | None, outputs: tuple[str, ...], weights: Float | None) -> None:
        """Add a record batch.

        Parameters
        ----------
        targets : targets (b, q); for class labels one-hot, with one more column for each new label.
        outputs : names of the targets, or of the labels in the order of their first row.
        weights : row weights (b,).

        Raises
        ------
        DataError
            As of `read_numbers`, or a column has too many categories.
        """
        start = self._rows
        for column in self.columns:
            values = batch.column(column.name)
            found = self._found[column.name]
            if isinstance(found, _Categories):
                codes, labels = read_categories(column, values, start, self._where)
                found.add(codes, labels, start, targets if _may_be_target_mean(column) else None, weights)
                found.check(self._where, start)
            else:
                found.add(read_numbers(column, values, start, self._where), start, weights)
        self._outputs = outputs
        self._rows += batch.num_rows

    def finished(self) -> FittedSchema:
        """The complete schema.

        Raises
        ------
        EmptyDataError, DataError
            There are no rows, or a column has no value, or target means are asked for and there is no target.
        """
        if not self._rows:
            raise EmptyDataError("the source has no rows; give at least one")
        columns: list[Column] = []
        others: dict[str, Float] = {}
        for column in self.columns:
            found = self._found[column.name]
            if isinstance(found, _Numbers):
                columns.append(found.finished())
                continue
            done, means = found.finished(self._outputs)
            columns.append(done)
            if means is not None:
                others[column.name] = means
        return FittedSchema(self._schema.replaced(columns), others)


def _may_be_target_mean(column: Column) -> bool:
    return column.kind == "category" and column.encoding != "one-hot"


def _rounded(value: float) -> float:
    """A number of a schema, to `_DIGITS` decimal digits: it is written, and short in JSON."""
    return float(f"{value:.{_DIGITS}g}")


def _all_rounded(values: Float) -> Float:
    """Numbers that stay in memory, to as many binary digits as hold `_DIGITS` decimal ones: no text is made of each."""
    mantissas, exponents = np.frexp(values)
    return np.asarray(np.ldexp(np.round(mantissas * 2.0**_BITS), exponents - _BITS))


class _Numbers:
    """What a number, a boolean or a date needs: gaps, mean or median, first and last date."""

    def __init__(self, column: Column) -> None:
        self._column = column
        self._gaps = self._seen = 0
        self._weight = self._sum = 0.0
        self._sample = (np.empty(0, np.uint64), np.empty(0), np.empty(0))  # keys, values, weights
        self._first, self._last, self._times = np.inf, -np.inf, False

    def add(self, values: Float, start: int, weights: Float | None) -> None:
        there = ~np.isnan(values)
        self._gaps += int(values.size - there.sum())
        values = values[there]
        self._seen += values.size
        if not values.size:
            return
        w = np.ones(values.size) if weights is None else weights[there]
        if self._column.kind == "date":
            self._first, self._last = min(self._first, values.min()), max(self._last, values.max())
            self._times = self._times or bool((values != np.floor(values)).any())
        if self._column.missing == "median":
            keys = _mixed(np.flatnonzero(there) + start)
            self._sample = _smallest(*(np.append(a, b) for a, b in zip(self._sample, (keys, values, w), strict=True)))
        elif self._column.missing != "refuse":
            self._weight += float(w.sum())
            with np.errstate(over="ignore"):  # said at the end
                self._sum += float(w @ values)

    def finished(self) -> Column:
        column = self._column
        if column.kind == "date":
            if not np.isfinite(self._first) and column.origin is None:
                raise DataError(f"{column} has no date in any row; leave it out by {option('drop')}")
            origin = column.origin or _iso(np.floor(self._first))
            parts = column.parts or self._parts()
            column = replace(column, origin=origin, parts=parts)
        if column.missing == "refuse":
            return column
        fill = column.fill
        if fill is None:
            fill = _rounded(self._centre())
            if column.kind == "date":
                fill = _rounded(fill - days_of(column.origin))
        return replace(column, gaps=self._gaps > 0 if column.gaps is None else column.gaps, fill=fill)

    def _parts(self) -> tuple[str, ...]:
        """The parts that the dates cover: a year of dates shows seasons, two weeks show weekdays."""
        span = self._last - self._first
        there = {"elapsed": True, "year": span >= _YEAR, "week": span >= _TWO_WEEKS, "day": self._times}
        return tuple(part for part in DATE_PARTS if there[part])

    def _centre(self) -> float:
        column = self._column
        if column.missing != "median":
            if self._weight > 0.0:
                if not np.isfinite(self._sum):
                    raise NumericRangeError(
                        f"the sum of {column} overflows, so that it has no mean; give {option('missing', 'median')}, "
                        "its fill in the schema, or smaller numbers"
                    )
                return self._sum / self._weight
        else:
            _, values, weights = self._sample
            if weights.sum() > 0.0:
                return _weighted_median(values, weights)
        if self._seen:
            raise EmptyDataError(f"all rows with a value of {column} have weight zero; give some a weight > 0")
        raise DataError(f"{column} has no value in any row; leave it out by {option('drop')}, or give its fill")


def _smallest(keys: Untyped, values: Float, weights: Float) -> tuple[Untyped, Float, Float]:
    """The values of the smallest keys: a uniform sample that no cut into batches changes."""
    if keys.size <= _SAMPLE:
        return keys, values, weights
    taken = np.argpartition(keys, _SAMPLE)[:_SAMPLE]
    return keys[taken], values[taken], weights[taken]


def _weighted_median(values: Float, weights: Float) -> float:
    """The middle of repeated values: half of the weight lies on each side."""
    order = np.argsort(values, kind="stable")
    values, total = values[order], np.cumsum(weights[order])
    half = 0.5 * total[-1]
    low = int(np.searchsorted(total, half))
    high = int(np.searchsorted(total, half, side="right"))
    return 0.5 * float(values[low]) + 0.5 * float(values[min(high, values.size - 1)])


def _iso(days: float) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=days)
    return moment.date().isoformat()


class _Categories:
    """What a category needs: its texts, and for target means sums of each text in each fold.

    Targets count from about the first one: sums of squares of far numbers, such as seconds since 1970, have no digits
    left for the variances.
    """

    def __init__(self, column: Column, *, labelled: bool) -> None:
        self._column, self._labelled = column, labelled
        self._labels = canonical(pa.array(column.categories or (), pa.string()))
        self._gaps = 0
        self._from: Float | None = None
        # Sums (folds, categories + 2, 1 + 2 outputs) of weights, targets and their squares; the first two are the rows
        # of no known category, and of none.
        self._sums: Float = np.zeros((FOLDS, 2 + len(self._labels), 1))

    def add(self, codes: Int, labels: Untyped, start: int, targets: Float | None, weights: Float | None) -> None:
        missing = codes < 0
        self._gaps += int(missing.sum())
        codes = np.where(missing, -1, np.append(self._places(labels), -2)[codes])
        if targets is None or targets.shape[1] > MOST_OUTPUTS:
            return
        outputs = targets.shape[1]
        if self._from is None:
            self._from = np.zeros(1) if self._labelled else np.round(targets[0])
        targets = targets - self._from
        self._grow(outputs)
        w = np.ones(codes.size) if weights is None else weights
        cells = fold_of(np.arange(start, start + codes.size)) * self._sums.shape[1] + codes + 2
        size = FOLDS * self._sums.shape[1]
        columns = [w, *(w * targets[:, j] for j in range(outputs)), *(w * targets[:, j] ** 2 for j in range(outputs))]
        added = np.stack([np.bincount(cells, column, size) for column in columns], axis=-1)
        self._sums += added.reshape(self._sums.shape)

    def _places(self, labels: Untyped) -> Int:
        """Positions of texts among the categories so far; -2 for those that a given list has not."""
        places = codes_of(labels, self._labels)
        new = places < 0
        if self._column.categories is not None:
            return np.where(new, -2, places)
        if new.any():
            places[new] = np.arange(len(self._labels), len(self._labels) + int(new.sum()))
            self._labels = pa.concat_arrays([self._labels, labels.filter(pa.array(new))])
        return places

    def _grow(self, outputs: int) -> None:
        """Make room for new categories and new outputs."""
        folds, rows, width = self._sums.shape
        before = (width - 1) // 2
        wanted = (folds, max(rows, 2 + len(self._labels)), 1 + 2 * outputs)
        if wanted == self._sums.shape:
            return
        grown = np.zeros(wanted)
        grown[:, :rows, : 1 + before] = self._sums[:, :, : 1 + before]
        grown[:, :rows, 1 + outputs : 1 + outputs + before] = self._sums[:, :, 1 + before :]
        self._sums = grown

    def check(self, where: Where, row: int) -> None:
        if len(self._labels) > MAX_CATEGORIES:
            raise DataError(
                f"{where(row)}: {self._column} has more than {MAX_CATEGORIES} categories; leave it out by "
                f"{option('drop')}, or name it by {option('id')} if it tells which row it is"
            )

    def finished(self, outputs: tuple[str, ...]) -> tuple[Column, Float | None]:
        column = self._column
        known = self._labels.to_pylist()
        labels = sorted(known)
        if not labels:
            raise DataError(f"{column} has no value in any row; leave it out by {option('drop')}")
        encoding = column.encoding
        if encoding is None:
            many = len(labels) > MOST_ONE_HOT and 0 < len(outputs) <= MOST_OUTPUTS
            encoding = "target-mean" if many else "one-hot"
        gaps = column.gaps
        if column.missing != "refuse" and gaps is None:
            gaps = self._gaps > 0
        column = replace(column, categories=tuple(labels), encoding=encoding, gaps=gaps)
        if encoding == "one-hot":
            return column, None
        if not outputs:
            raise DataError(f"{column} is to become target means, and no column is the {option('target')}; name one")
        if len(outputs) > MOST_OUTPUTS:
            raise DataError(
                f"{column} is to become means of {len(outputs)} targets, and {MOST_OUTPUTS} are the most; "
                f"leave it out by {option('drop')}, or give it one-hot encoding in the schema"
            )
        used = sorted(range(len(outputs)), key=lambda j: outputs[j]) if self._labelled else list(range(len(outputs)))
        # Of two classes, the share of one tells that of the other.
        return self._target_means(column, labels, outputs, used[1:] if self._labelled and len(used) == 2 else used)

    def _target_means(
        self, column: Column, labels: list[str], outputs: tuple[str, ...], used: list[int]
    ) -> tuple[Column, Float]:
        # The categories as they are sorted, then the missing one, then the rows of others.
        order = np.append(2 + codes_of(pa.array(labels), self._labels), [1, 0])
        self._grow(len(outputs))
        sums = self._sums[:, order]
        width = len(outputs)
        picked = [0, *(1 + j for j in used), *(1 + width + j for j in used)]
        sums = sums[:, :, picked]
        whole = sums.sum(axis=0)
        centre = np.zeros(len(used)) if self._labelled or self._from is None else self._from
        means = shrunk(whole, centre)
        others = np.stack([shrunk(whole - part, centre) for part in sums])
        gap = whole[-2, 0] > 0.0
        column = replace(
            column,
            outputs=tuple(outputs[j] for j in used),
            means=tuple(tuple(map(_rounded, row)) for row in means[:-2].tolist()),
            mean_of_gaps=tuple(map(_rounded, means[-2].tolist())) if gap and column.missing != "refuse" else None,
            overall=tuple(map(_rounded, means[-1].tolist())),
        )
        return column, _all_rounded(others)


def slices(batch: Untyped, rows: int) -> Iterator[Untyped]:
    """A record batch in parts of at most so many rows."""
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)
