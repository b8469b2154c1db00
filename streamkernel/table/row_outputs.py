"""Outputs of rows (predictions, features, components): what they hold, and their values as one CSV or Parquet file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamkernel.blobs import is_url
from streamkernel.errors import CorruptMetadataError, ParameterError, StoreExistsError, StoreNotFoundError
from streamkernel.outputs import check_new_file, new_file, refuse_link, translated_os_errors
from streamkernel.table._row_ids import as_texts
from streamkernel.table.rows import RowArray, RowReader
from streamkernel.table.stored.location import open_row_arrays
from streamkernel.table.table import Table
from streamkernel.type_aliases import AnyArray, Fields, Untyped
from streamkernel.wording import switch

FILE_SUFFIXES = (".csv", ".parquet")
# Names by which users expect a file, where a group of arrays would be written.
_OTHER_SUFFIXES = (
    *(".tsv", ".txt", ".json", ".jsonl", ".xls", ".xlsx", ".html"),
    *(".pq", ".arrow", ".feather", ".npy", ".npz", ".h5", ".libsvm", ".svm", ".pkl"),
    *(".gz", ".bz2", ".zst", ".zip"),
)
_ORDER = ("prediction", "std", "lower", "upper")  # of columns; others come after these, by their names
_BATCH = 1 << 22  # numbers that are in memory at once
_MARK = b"streamkernel.rows"  # in the metadata of Parquet files
_FIRST = (b"prediction", b"features", b"scores", b"variates")  # names of the first column after `row` in CSV files
_LONGEST = 64


def is_values_file(path: str | os.PathLike[str]) -> bool:
    """Whether an output with this name is a CSV or Parquet file."""
    return os.fspath(path).lower().endswith(FILE_SUFFIXES)


def check_group_name(path: str | os.PathLike[str]) -> None:
    """Refuse a name of a kind of file that is not written, in whose place a folder of arrays would be.

    Raises
    ------
    ParameterError
        The name has the suffix of such a file.
    """
    text = os.fspath(path)
    if text.lower().endswith(_OTHER_SUFFIXES):
        raise ParameterError(
            f"{text}: values of rows are written as a .csv or .parquet file, or as a Zarr group; choose such a name, "
            "as rows.csv or rows.zarr"
        )


def values_file_info(path: str | os.PathLike[str]) -> Fields | None:
    """What a CSV or Parquet file of `RowOutput.write` holds, as plain JSON; None for anything else."""
    found = Path(path)
    if is_url(os.fspath(path)) or not is_values_file(path) or not found.is_file() or not _is_ours(found):
        return None
    import pyarrow.csv
    import pyarrow.parquet

    if found.suffix.lower() == ".parquet":
        metadata = pyarrow.parquet.read_metadata(found)
        rows, columns = metadata.num_rows, metadata.schema.names
    else:
        parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
        with pyarrow.csv.open_csv(found, parse_options=parse) as batches:
            columns = batches.schema.names
            rows = sum(batch.num_rows for batch in batches)
    return {"path": str(found), "rows": rows, "columns": [name for name in columns if name != "row"]}


def check_values_file(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """The path of a new CSV or Parquet file.

    Raises
    ------
    ParameterError
        It is a URL.
    StoreExistsError
        Something is there. Only a file of ours is ever replaced, so that a mistyped path costs no data. Or it would be
        inside of another output.
    StoreNotFoundError
        Its folder does not exist.
    """
    text = os.fspath(path)
    if is_url(text):
        raise ParameterError(f"{text}: CSV and Parquet files are written to a local path; give one, and copy the file")
    found = Path(text)
    if not found.parent.is_dir():
        raise StoreNotFoundError(f"the folder {found.parent} for {found.name} does not exist; make it first")
    check_new_file(found.absolute())
    refuse_link(found)
    if found.is_dir():
        raise StoreExistsError(f"{found} is a folder; choose another path")
    if found.exists():
        if not overwrite:
            raise StoreExistsError(f"{found} exists; choose another path or {switch('overwrite')}")
        if not _is_ours(found):
            raise StoreExistsError(
                f"{found} exists and holds no rows that streamkernel has written; remove it yourself or choose another "
                "path"
            )
    return found


def _is_ours(path: Path) -> bool:
    """Whether the file begins, or as Parquet is marked, as those of `RowOutput.write`."""
    import pyarrow as pa
    import pyarrow.parquet

    if path.suffix.lower() == ".parquet":
        try:
            return _MARK in (pyarrow.parquet.read_schema(path).metadata or {})
        except (pa.ArrowException, OSError):
            return False
    with path.open("rb") as file:
        return file.readline(_LONGEST).startswith(tuple(b'"row","' + name for name in _FIRST))


@dataclass(frozen=True)
class RowOutput:
    """An output of rows, opened for reading; every chunk is compared with its digest when it is read.

    Attributes
    ----------
    place : path or URL.
    attributes : those of the group: digest of the model, rows of the table, classes, names of the targets.
    arrays : rows (m,) or (m, d), by name.
    """

    place: str
    attributes: Fields
    arrays: dict[str, RowArray]

    @classmethod
    def open(cls, place: str | os.PathLike[str]) -> RowOutput | None:
        """The output at a place; None where there is something else, or nothing."""
        found = open_row_arrays(place)
        return None if found is None else cls(os.fspath(place), *found)

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return next(iter(self.arrays.values())).n_rows

    @property
    def first_row(self) -> int:
        """Number of the first row in the table that the values are of."""
        rows = self.attributes.get("rows")
        return int(rows[0]) if isinstance(rows, list) and rows else 0

    @property
    def columns(self) -> list[tuple[str, str, int | None]]:
        """For each column of a file its name, the array, and the position in it (None for an array (m,))."""
        named = self.attributes.get("column_names") or {}
        found: list[tuple[str, str, int | None]] = []
        rank = {name: place for place, name in enumerate(_ORDER)}
        for name in sorted(self.arrays, key=lambda name: (rank.get(name, len(rank)), name)):
            rows = self.arrays[name]
            if len(rows.shape) == 1:
                found.append((name, name, None))
                continue
            labels = named.get(name) or list(range(rows.width))
            if len(labels) != rows.width:
                raise CorruptMetadataError(f"{self.place} has {rows.width} columns {name} and {len(labels)} names")
            found += [(f"{name}_{label}", name, index) for index, label in enumerate(labels)]
        return found

    def info(self) -> Fields:
        """What it holds, as plain JSON."""
        return {
            "path": self.place,
            "rows": self.n_rows,
            "arrays": {name: list(rows.shape) for name, rows in self.arrays.items()},
            "columns": [name for name, _, _ in self.columns],
            "of_rows": self.attributes.get("rows"),
            "target_names": self.attributes.get("target_names"),
            "classes": self.attributes.get("classes"),
            "model_digest": self.attributes.get("model_digest"),
        }

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False, table: Table | None = None) -> None:
        """Write all values as a CSV or Parquet file, whole or not at all, some megabytes at a time.

        The first column, ``row``, has the number of each row in the table. Codes of classes become their labels. Where
        the rows of the table have ids, these are the last column.

        Parameters
        ----------
        table : the table that the values are of; None for one without ids.

        Raises
        ------
        ParameterError, StoreError
            As of `check_values_file`, or the output cannot be read.
        """
        import pyarrow as pa

        target = check_values_file(path, overwrite=overwrite)
        batches = self._batches(table)
        first = pa.table(next(batches)).replace_schema_metadata({_MARK: b"1"})
        suffix, written = target.suffix.lower(), translated_os_errors(target, "writing", "nothing was left behind")
        # The writer ends before the file gets its name.
        with (
            written,
            new_file(target, overwrite=overwrite) as partial,
            _writer(partial, suffix, first.schema) as writer,
        ):
            writer.write_table(first)
            for batch in batches:
                writer.write_table(pa.table(batch, schema=first.schema))

    def _batches(self, table: Table | None) -> Iterator[dict[str, AnyArray | list[str]]]:
        readers = {name: RowReader(rows) for name, rows in self.arrays.items()}
        columns, classes = self.columns, self.attributes.get("classes")
        ids = None if table is None or table.ids is None else RowReader(table.ids)
        id_name = _free_name(table, {name for name, _, _ in columns})
        step = max(_BATCH // (len(columns) + 1), 1)
        for start in range(0, self.n_rows, step):
            stop = min(start + step, self.n_rows)
            values = {name: reader.read(start, stop) for name, reader in readers.items()}
            batch: dict[str, AnyArray | list[str]] = {"row": np.arange(start, stop) + self.first_row}
            for column, name, index in columns:
                found = values[name] if index is None else np.ascontiguousarray(values[name][:, index])
                batch[column] = _labelled(found, classes)
            if ids is not None:
                batch[id_name] = as_texts(ids.read(start + self.first_row, stop + self.first_row))
            yield batch


def _free_name(table: Table | None, taken: Set[str]) -> str:
    """Name of the column of ids: that in the source, if no other column has it."""
    columns = [] if table is None or table.schema is None else table.schema["columns"]
    name = next((str(column["name"]) for column in columns if column.get("role") == "id"), "id")
    while name in taken or name == "row":
        name += "_id"
    return name


def _labelled(values: AnyArray, classes: Sequence[object] | None) -> AnyArray | list[str]:
    """Codes of classes as their labels; other values as they are."""
    if not classes or values.dtype.kind != "i":
        return values
    labels = np.asarray(classes, dtype=None if all(isinstance(label, int) for label in classes) else object)
    found = labels[values]
    return found if found.dtype.kind != "O" else [str(label) for label in found]


def _writer(path: Path, suffix: str, schema: Untyped) -> Untyped:
    import pyarrow.csv
    import pyarrow.parquet

    if suffix == ".parquet":
        return pyarrow.parquet.ParquetWriter(path, schema)
    return pyarrow.csv.CSVWriter(path, schema)
