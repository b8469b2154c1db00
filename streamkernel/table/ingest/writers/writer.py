"""The writer of a Zarr v3 store in whole chunks: it adds checksums and digests, and sums the statistics.

Memory: one chunk of X, y and w being filled, one being written (with its compressed copy), for any number of rows.
"""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

import numpy as np

from streamkernel.atomic import parsed_json, read_file
from streamkernel.errors import EmptyDataError
from streamkernel.manifest import TABLE_FORMAT, VERSION, WEIGHTED_VERSION, Ancestor, manifest_content, table_content
from streamkernel.outputs import Building
from streamkernel.table._row_ids import ID_BYTES
from streamkernel.table.ingest.writers._written_array import ZARR_JSON, WrittenArray
from streamkernel.table.statistics import ColumnStatistics, TableStatistics
from streamkernel.type_aliases import AnyArray, AnyDType, Fields, Float, Int, Untyped


class ChunkWriter:
    """A store under construction beside its target; `finish` publishes it, leaving the block otherwise removes it.

    Parameters
    ----------
    building
        The building of the store.
    n_features, n_targets
        Widths of X and y (0: no y).
    dtype
        float32 or float64 of X.
    chunk_rows
        Rows of a chunk.
    coded
        y holds class codes (int64) instead of numbers (float64).
    weighted
        Rows have weights w; the statistics are then weighted.
    named_rows
        Rows have ids.
    """

    def __init__(
        self,
        building: Building,
        n_features: int,
        n_targets: int,
        dtype: AnyDType,
        chunk_rows: int,
        *,
        coded: bool,
        weighted: bool = False,
        named_rows: bool = False,
    ) -> None:
        self._building = building
        self._chunk_rows = chunk_rows
        self._widths = (n_features, n_targets)
        self._coded, self._weighted, self._named_rows = coded, weighted, named_rows
        self._version = WEIGHTED_VERSION if weighted else VERSION
        self._dtype = dtype
        self._filled = 0
        self.n_rows = 0
        self._counted = 0  # number of first rows that the statistics contain already
        self._digests: dict[str, list[str]] = {"X": [], "y": [], "w": [], "id": []}
        self._statistics: dict[str, ColumnStatistics | None] = {"X": None, "y": None}
        self._history: tuple[Ancestor, ...] = ()
        self._pending: Future[None] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="streamkernel-ingest")
        try:
            self._y, self._w, self._id = self._buffers()
            self._begin_features()
            self._arrays = self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> dict[str, WrittenArray]:
        """Empty arrays; a subclass may begin with rows."""
        n_features, n_targets = self._widths
        # The format is written first: a killed writer then leaves an incomplete table, not a foreign group.
        self._describe({"format": TABLE_FORMAT, "version": self._version})
        arrays = self._create_features(n_features)
        if n_targets:
            dtype = np.dtype(np.int64 if self._coded else np.float64)
            # Fill with -1, which is no class: a lost code then cannot be read as the first class.
            tail = () if n_targets == 1 else (n_targets,)
            arrays["y"] = self._create("y", tail, dtype, -1 if self._coded else np.nan)
        if self._weighted:
            arrays["w"] = self._create("w", (), np.dtype(np.float64), np.nan)
        if self._named_rows:
            arrays["id"] = self._create("id", (ID_BYTES,), np.dtype(np.uint8), 0)
        return arrays

    def _create_features(self, n_features: int) -> dict[str, WrittenArray]:
        return {"X": self._create("X", (n_features,), self._dtype, np.nan)}

    def _create(
        self, name: str, tail: tuple[int, ...], dtype: AnyDType, fill: float, chunk_rows: int | None = None
    ) -> WrittenArray:
        return WrittenArray.create(self._building.folder, name, tail, dtype, fill, chunk_rows or self._chunk_rows)

    def _describe(self, attributes: Fields) -> None:
        """Give the group these attributes, and those that it has by other names."""
        file = self._building.folder / ZARR_JSON
        group: Fields = parsed_json(read_file(file)) if file.exists() else {"zarr_format": 3, "node_type": "group"}
        group["attributes"] = group.get("attributes", {}) | attributes
        file.write_text(json.dumps(group, indent=2), encoding="utf-8")

    def _buffers(self) -> tuple[AnyArray | None, Float | None, AnyArray | None]:
        d = self._widths[1]
        y = None if not d else np.empty((self._chunk_rows, d), dtype=np.int64 if self._coded else np.float64)
        w = np.empty(self._chunk_rows) if self._weighted else None
        ids = np.empty((self._chunk_rows, ID_BYTES), dtype=np.uint8) if self._named_rows else None
        return y, w, ids

    def _begin_features(self) -> None:
        """Make room for the features of a chunk."""
        self._X: AnyArray = np.empty((self._chunk_rows, self._widths[0]), dtype=self._dtype)

    def _hold_features(self, X: AnyArray) -> None:
        """Hold features of the chunk that is being filled."""
        self._X[self._filled : self._filled + len(X)] = X

    def _held_features(self) -> Untyped:
        """The features that are held, in the form that `_write_features` takes."""
        return self._X[: self._filled]

    @property
    def rows_given(self) -> int:
        """Rows given so far, including those in a chunk that is not full yet."""
        return self.n_rows + self._filled

    def append(self, X: AnyArray, y: AnyArray | None, w: Float | None = None, ids: AnyArray | None = None) -> None:
        """Add any number of rows (b, p), targets (b, d), or (b,) for one, weights (b,) and ids, already checked."""
        y = None if y is None else y.reshape(X.shape[0], -1)
        row = 0
        while row < X.shape[0]:
            take = min(X.shape[0] - row, self._chunk_rows - self._filled)
            into = slice(self._filled, self._filled + take)
            self._hold_features(X[row : row + take])
            if self._y is not None:
                assert y is not None
                self._y[into] = y[row : row + take]
            if self._w is not None:
                assert w is not None
                self._w[into] = w[row : row + take]
            if self._id is not None:
                assert ids is not None
                self._id[into] = ids[row : row + take]
            self._filled += take
            row += take
            if self._filled == self._chunk_rows:
                self._flush()

    def _flush(self) -> None:
        if not self._filled:
            return
        X = self._held_features()
        y, w, ids = (None if part is None else part[: self._filled] for part in (self._y, self._w, self._id))
        start = self.n_rows
        self.n_rows += self._filled
        self._filled = 0
        self._wait()
        self._pending = self._pool.submit(self._write, start, X, y, w, ids)
        self._y, self._w, self._id = self._buffers()
        self._begin_features()

    def _wait(self) -> None:
        if self._pending is not None:
            self._pending.result()
            self._pending = None

    def _write(self, start: int, X: Untyped, y: AnyArray | None, w: Float | None, ids: AnyArray | None = None) -> None:
        self._write_features(start, X, w)
        if y is not None:
            self._write_chunk("y", start, y if y.shape[1] > 1 else y[:, 0])
            if not self._coded:
                self._count("y", start, y, w)
        if w is not None:
            self._write_chunk("w", start, w)
        if ids is not None:
            self._write_chunk("id", start, ids)

    def _write_features(self, start: int, X: Untyped, w: Float | None) -> None:
        self._write_chunk("X", start, X)
        self._count("X", start, X, w)

    def _write_chunk(self, name: str, start: int, values: AnyArray) -> None:
        array = self._arrays[name]
        self._digests[name].append(array.write(start, values))
        self._building.send(array.key(start))

    def _count(self, name: str, start: int, values: AnyArray, w: Float | None) -> None:
        """Add the rows of one chunk that are not counted yet to the statistics, which are those of weighted rows.

        Statistics are summed by chunks, not by read batches: the same rows then give the same bits from any source.
        """
        first = max(0, self._counted - start)
        self._merge(name, ColumnStatistics.of(values[first:], None if w is None else w[first:]))

    def _merge(self, name: str, part: ColumnStatistics) -> None:
        known = self._statistics[name]
        self._statistics[name] = part if known is None else known.merge(part)

    def relabel(self, codes: Int) -> None:
        """Replace every stored code c by ``codes[c]``: labels can be sorted only when all are known."""
        self._flush()
        self._wait()
        if np.array_equal(codes, np.arange(codes.size)):
            return
        array = self._arrays["y"]
        for index, start in enumerate(range(0, self.n_rows, self._chunk_rows)):
            key = array.key(start)
            self._building.fetch(key)
            self._digests["y"][index] = array.write(start, codes[array.read(start)])
            self._building.send(key)

    def finish(self, attributes: Fields, *, overwrite: bool) -> None:
        """Write the last chunk, attributes and COMPLETE, and move the store to its name."""
        self._flush()
        self._wait()
        statistics = self._statistics["X"]
        if statistics is None:
            raise EmptyDataError("the source has no rows; give at least one")
        if statistics.total == 0.0:
            raise EmptyDataError(
                f"all {statistics.count} row weights are 0, so no row counts; give some rows a weight > 0"
            )
        self._describe({**attributes, **self._described(statistics)})
        arrays = {name: array.finish(self._digests[name]) for name, array in self._arrays.items()}
        folder = self._building.folder
        metadata = {name: (folder / name / ZARR_JSON).read_bytes() for name in ("", *arrays)}
        content = table_content(arrays, parsed_json(metadata[""])["attributes"])
        manifest = manifest_content(arrays, metadata, self._history, self._version, content)
        self._building.publish(manifest, overwrite=overwrite)

    def _described(self, statistics: ColumnStatistics) -> Fields:
        """The attributes of the table that follow from its rows."""
        return {"statistics": TableStatistics(statistics, self._statistics["y"]).to_config()}

    def close(self) -> None:
        """Remove the store if it was not published."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._building.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
