"""Where the store goes: options first, nothing overwritten by accident, nothing left of what fails."""

import errno
import os

import numpy as np
import pytest
import zarr
from table.sources import (
    GOOD,
    M,
    X,
    csv,
)

from streamkernel.errors import (
    ParameterError,
    SourceFormatError,
    StoreAccessError,
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
)
from streamkernel.manifest import ROWS_FORMAT
from streamkernel.store import Bundle, write_bundle
from streamkernel.table import open_table
from streamkernel.table.ingest import ingest
from streamkernel.table.ingest.writers.writer import ChunkWriter


@pytest.mark.parametrize(
    "options",
    [
        {"chunk_rows": 0},
        {"chunk_rows": True},
        {"chunk_rows": 2.5},
        {"dtype": "int8"},
        {"seed": -1},
        {"seed": 1.5},
        {"target": 1.5},
    ],
)
def test_options_are_checked_before_anything(tmp_path, options):
    with pytest.raises(ParameterError):
        ingest(tmp_path / "absent.csv", tmp_path / "store", **options)


def test_existing_output(tmp_path):
    source, target = csv(tmp_path / "s.csv")
    ingest(source, tmp_path / "store", target=target)
    with pytest.raises(StoreExistsError, match="overwrite"):
        ingest(source, tmp_path / "store", target=target)
    ingest(source, tmp_path / "store", overwrite=True)
    assert open_table(tmp_path / "store").n_targets == 0
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "letter").write_text("dear")
    with pytest.raises(StoreExistsError, match="not a Zarr store"):
        ingest(source, tmp_path / "precious", overwrite=True)
    with pytest.raises(StoreNotFoundError, match="make it first"):
        ingest(source, tmp_path / "no" / "store")
    assert sorted(os.listdir(tmp_path)) == ["precious", "s.csv", "store"]


def test_models_and_outputs_are_no_tables(tmp_path):
    source, _ = csv(tmp_path / "s.csv")
    write_bundle(tmp_path / "model", Bundle("ridge", 1, {}, {"coef": np.ones(3)}))
    zarr.create_group(tmp_path / "rows", attributes={"format": ROWS_FORMAT})
    for name, what in {"model": "a saved model", "rows": "an output of rows"}.items():
        before = sorted((tmp_path / name).rglob("*"))
        with pytest.raises(StoreExistsError, match=f"{name} is {what}.*, not a table; remove it yourself"):
            ingest(source, tmp_path / name, overwrite=True)
        assert sorted((tmp_path / name).rglob("*")) == before
    (tmp_path / "rows" / "zarr.json").write_text("damaged")
    with pytest.raises(StoreExistsError, match="is not a whole table that streamkernel wrote"):
        ingest(source, tmp_path / "rows", overwrite=True)


def test_a_store_can_be_ingested_over_itself(tmp_path):
    ingest(csv(tmp_path / "s.csv")[0], tmp_path / "store", target="t", dtype="float64")
    info = ingest(tmp_path / "store", tmp_path / "store", chunk_rows=100, shuffle=True, dtype="float64", overwrite=True)
    assert (info.rows, info.chunk_rows, info.seed, info.target_names) == (M, 100, 0, ("t",))
    np.testing.assert_array_equal(np.sort(open_table(tmp_path / "store").read(0, M).X, axis=0), np.sort(X, axis=0))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(
    ("failure", "error"),
    [(OSError(errno.ENOSPC, "No space left on device"), StoreError), (PermissionError(13, "no"), StoreAccessError),
     (KeyboardInterrupt(), KeyboardInterrupt), (MemoryError(), MemoryError)],
)  # fmt: skip
def test_failure_in_mid_write_leaves_the_old_store(tmp_path, monkeypatch, failure, error, shuffle):
    source, target = csv(tmp_path / "s.csv")
    ingest(source, tmp_path / "store", target=target)
    before = open_table(tmp_path / "store").fingerprint
    plain = ChunkWriter._write_chunk
    calls = iter(range(100))

    def fail(self, name, start, values):
        if next(calls) == 3:
            raise failure
        plain(self, name, start, values)

    monkeypatch.setattr(ChunkWriter, "_write_chunk", fail)
    with pytest.raises(error):
        ingest(source, tmp_path / "store", target=target, chunk_rows=500, overwrite=True, shuffle=shuffle)
    assert sorted(os.listdir(tmp_path)) == ["s.csv", "store"]
    assert open_table(tmp_path / "store").fingerprint == before


def test_progress_object_is_told_of_the_end_even_after_an_error(tmp_path):
    class Watch:
        events: list[tuple] = []  # noqa: RUF012

        def start(self, total, unit):
            self.events.append(("start", total, unit))

        def advance(self, amount):
            self.events.append(("advance", amount))

        def finish(self):
            self.events.append(("finish",))

    (tmp_path / "s.csv").write_text(GOOD + "x,y,z\n")
    with pytest.raises(SourceFormatError):
        ingest(tmp_path / "s.csv", tmp_path / "store", progress=Watch())
    assert Watch.events[0] == ("start", (tmp_path / "s.csv").stat().st_size, "bytes")
    assert Watch.events[-1] == ("finish",)
