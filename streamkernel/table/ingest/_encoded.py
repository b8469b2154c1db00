"""Rows of a source by a schema: numbers, categories, dates and gaps become features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamkernel.errors import EmptyDataError, NonFiniteDataError, ParameterError, warn_user
from streamkernel.table.ingest._declared import declared_schema
from streamkernel.table.ingest.progress import Progress
from streamkernel.table.ingest.readers.arrow_values import id_rows
from streamkernel.table.ingest.readers.options import SourceOptions
from streamkernel.table.ingest.readers.reader import BATCH_BYTES, Batch, Reader
from streamkernel.table.ingest.readers.streams import ColumnStream
from streamkernel.table.schema.encoder import Encoder, read_categories, read_numbers
from streamkernel.table.schema.fit import MOST_OUTPUTS, SchemaFit, fold_of, slices
from streamkernel.table.schema.schema import Schema
from streamkernel.table.schema.values import is_number
from streamkernel.table.values import check_weights, listed
from streamkernel.type_aliases import AnyArray, Float, Int, Untyped
from streamkernel.wording import option

# What target means of the rarer ones of many classes are of.
_OTHERS = "all other labels"


class EncodedReader(Reader):
    """Rows of columns of any kind.

    A schema that is not complete takes a first pass over the rows (`prepare`).

    Attributes
    ----------
    schema
        Complete after `prepare`.
    """

    def __init__(self, stream: ColumnStream, place: str, options: SourceOptions) -> None:
        self._place, self._stream, self._options = place, stream, options
        self.total, self.unit = stream.total, stream.unit
        self.n_rows, self.estimated_rows = stream.n_rows, stream.estimated_rows
        self.schema: Schema = declared_schema(stream, place, options)
        names = {*stream.names}
        self._targets = [self.schema[name] for name in self.schema.targets if name in names]
        if any(column.kind == "category" for column in self._targets):
            if len(self._targets) > 1:
                raise ParameterError(
                    f"{place}: several targets are numbers, and {listed(self.schema.targets)} has labels among them; "
                    "choose one"
                )
            self.labelled = True
        self.target_names = tuple(column.name for column in self._targets)
        self.weight = self.schema.weight if self.schema.weight in names else None
        self.id = self.schema.id if self.schema.id in names else None
        self._read = [column.name for column in self.schema.columns if column.is_read and column.name in names]
        self._of_others: dict[str, Float] | None = None
        self.columns = ()
        self.left_out = (*stream.unnamed, *self._left_out())

    def prepare(self, watcher: Progress) -> None:
        """Complete the schema by a pass over the rows, where that is necessary."""
        if not self.schema.complete:
            self._fit(watcher)
        self.columns = self.schema.features
        self._check_features()
        if not self.columns:
            left = f" ({listed(self.left_out, 10)})" if self.left_out else ""
            raise EmptyDataError(f"{self._place}: no column becomes a feature{left}; give at least one")

    def _check_features(self) -> None:
        """Refuse two features of one name, such as category b of column a, and a column a=b."""
        owners: dict[str, str] = {}
        for column in self.schema.columns:
            for feature in column.features:
                if feature in owners:
                    raise ParameterError(
                        f"{self._place}: columns {owners[feature]!r} and {column.name!r} both make a feature "
                        f"{feature!r}; rename one of them, or leave one out by {option('drop')}"
                    )
                owners[feature] = column.name

    def _fit(self, watcher: Progress) -> None:
        labels = _FoundLabels()
        fit = self._passed(watcher, labels)
        if fit.needs_targets and len(labels.places) > MOST_OUTPUTS:
            # A mean for each of so many classes is too much: the frequent ones have their own, the others one together.
            fit = self._passed(watcher, labels.frequent())
        done_fit = fit.finished()
        self.schema, self._of_others = done_fit.schema, done_fit.of_others

    def _passed(self, watcher: Progress, labels: _FoundLabels) -> SchemaFit:
        """What a pass over the rows finds."""
        fit = SchemaFit(self.schema, self.where, labelled=self.labelled)
        wanted = {column.name for column in fit.columns} | ({self.weight} - {None})
        if fit.needs_targets:
            wanted |= {*self.target_names}
        row = 0
        watcher.start(self.total, self.unit)
        try:
            for batch, done in self._batches([name for name in self._read if name in wanted]):
                weights = self._weights(batch, row)
                targets, outputs = None, self.target_names
                if fit.needs_targets and self._targets:
                    targets, outputs = self._fit_targets(batch, row, labels, weights)
                fit.add(batch, targets, outputs, weights)
                row += batch.num_rows
                watcher.advance(done)
        finally:
            watcher.finish()
        return fit

    def _fit_targets(
        self, batch: Untyped, row: int, labels: _FoundLabels, weights: Float | None
    ) -> tuple[Float | None, tuple[str, ...]]:
        """Targets (b, q) of a batch, one-hot for labels (None: these are too many), and the names of their columns."""
        if not self.labelled:
            y = self._numbers(batch, row)
            bad = np.flatnonzero(np.isnan(y).any(axis=1))
            if bad.size:
                raise self._no_target(row + int(bad[0]))
            return y, self.target_names
        codes, names = self._labels(batch, row)
        if (codes < 0).any():
            raise self._no_target(row + int(np.argmax(codes < 0)))
        return labels.one_hot(codes, names, weights), labels.names

    def _no_target(self, row: int) -> NonFiniteDataError:
        return NonFiniteDataError(
            f"{self.where(row)}: {listed(self.target_names)} has no value in row {row}; leave rows without a target out"
        )

    def batches(self) -> Iterator[Batch]:
        encoder = Encoder(self.schema, self.where, self._of_others, fold_of)
        most = max(1, BATCH_BYTES // (8 * max(len(self.columns), 1)))
        row = 0
        for whole, done in self._batches(self._read):
            for batch in slices(whole, most):
                yield self._batch(encoder, batch, row, done)
                done, row = 0, row + batch.num_rows
        for name, note in encoder.unknown.items():
            warn_user(
                f"{note.place}: {note.first!r} of column {name!r} is none of its categories; "
                f"{'1 row with such a value counts' if note.rows == 1 else f'{note.rows} rows with such values count'} "
                "as none of them"
            )

    def _batch(self, encoder: Encoder, batch: Untyped, row: int, done: int) -> Batch:
        X = encoder.rows(batch, row)
        y: AnyArray | None = None
        labels: list[str] | None = None
        if self.labelled:
            y, labels = self._labels(batch, row)
        elif self._targets:
            y = self._numbers(batch, row)
        ids = None if self.id is None else id_rows(batch.column(self.id), row, self.where, self.id)
        return Batch(X, y, labels, done, self._weights(batch, row), ids)

    def _labels(self, batch: Untyped, row: int) -> tuple[Int, list[str]]:
        """Codes (b,) of the labels of a batch (-1: none), and the labels."""
        target = self._targets[0]
        codes, labels = read_categories(target, batch.column(target.name), row, self.where)
        return codes, labels.to_pylist()

    def _numbers(self, batch: Untyped, row: int) -> Float:
        columns = [read_numbers(each, batch.column(each.name), row, self.where) for each in self._targets]
        return np.stack(columns, axis=1)

    def _weights(self, batch: Untyped, row: int) -> Float | None:
        if self.weight is None:
            return None
        weights = read_numbers(self.schema[self.weight], batch.column(self.weight), row, self.where)
        check_weights(weights, row, self.where, self.weight)
        return weights

    def _batches(self, names: Sequence[str]) -> Iterator[tuple[Untyped, int]]:
        chosen = [self.schema[name] for name in names]
        # An id stays as it is written: 007 is no number.
        text = [column.name for column in chosen if column.kind != "number" or column.role == "id"]
        # Marks that are numbers are looked for when the column is read.
        missing = {
            column.name: marks
            for column in chosen
            if column.name not in text and (marks := [each for each in column.missing_values if not is_number(each)])
        }
        return self._stream.batches(names, text, missing)

    def _left_out(self) -> Iterator[str]:
        for name in self._stream.names:
            try:
                column = self.schema[name]
            except KeyError:
                yield f"column {name!r} (not in the schema)"
                continue
            if name in self._options.drop:
                yield f"column {name!r} (dropped)"
            elif column.role == "id":
                yield f"column {name!r} (the id of the row)"
            elif self._options.keep is not None and not column.is_read and name not in self._options.keep:
                yield f"column {name!r} (not kept)"
            elif not column.is_read:
                yield f"column {name!r} (text)"

    def where(self, row: int) -> str:
        return self._stream.where(row)


class _FoundLabels:
    """Labels as columns, in the order of their first rows.

    Parameters
    ----------
    known : labels that have a column each; all others have the last one together. None: each has a column.
    """

    def __init__(self, known: Sequence[str] | None = None) -> None:
        self.places = {name: place for place, name in enumerate(known or ())}
        self._closed = known is not None
        self._weight: Float = np.zeros(len(self.places))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return (*self.places, _OTHERS) if self._closed else tuple(self.places)

    def one_hot(self, codes: Int, names: Sequence[str], weights: Float | None) -> Float | None:
        """1 in the column of each row's label (b, q), 0 in others; None for too many columns."""
        if not self._closed:
            for name in names:
                self.places.setdefault(name, len(self.places))
        place = np.array([self.places.get(name, len(self.places)) for name in names], dtype=np.int64)[codes]
        count = len(self.names)
        counted = np.bincount(place, weights, minlength=count).astype(np.float64)
        counted[: len(self._weight)] += self._weight
        self._weight = counted
        if count > MOST_OUTPUTS:
            return None
        found = np.zeros((codes.size, count))
        found[np.arange(codes.size), place] = 1.0
        return found

    def frequent(self) -> _FoundLabels:
        """The labels of most weight; equal ones in the order of their texts."""
        weight = dict(zip(self.places, self._weight.tolist(), strict=True))
        return _FoundLabels(sorted(sorted(weight), key=lambda name: -weight[name])[: MOST_OUTPUTS - 1])
