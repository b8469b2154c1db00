"""Row outputs: whole chunks from anywhere, in any order, twice if need be; there when every chunk is."""

from __future__ import annotations

import json
import os
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

from streamkernel import errors
from streamkernel.atomic import array_digest
from streamkernel.manifest import parse_manifest
from streamkernel.store import Bundle, RowSink, write_bundle

COLUMNS = {"prediction": (None, "float64"), "scores": (3, np.float32)}


def value(rows: np.ndarray, name: str) -> np.ndarray:
    column = np.sin(rows.astype(float))
    return column if name == "prediction" else np.stack([column, 2 * column, rows], axis=1).astype(np.float32)


def write_rows(sink: RowSink, start: int, stop: int) -> dict[str, str]:
    rows = np.arange(start, stop)
    return {key: digest for name in sink.columns for key, digest in sink.write(name, start, value(rows, name)).items()}


@given(st.integers(1, 60), st.integers(1, 25), st.integers(1, 4), st.randoms(use_true_random=False))
def test_any_order_of_whole_chunks(
    tmp_path_factory: pytest.TempPathFactory, n_rows: int, chunk_rows: int, chunks_each: int, random: object
) -> None:
    path = tmp_path_factory.mktemp("out") / "out"
    sink = RowSink.create(path, n_rows, COLUMNS, chunk_rows, attributes={"model": "abc"})
    step = sink.chunk_rows * chunks_each
    starts = list(range(0, n_rows, step))
    random.shuffle(starts)
    digests: dict[str, str] = {}
    for start in [*starts, starts[0]]:
        digests |= write_rows(pickle.loads(pickle.dumps(sink)), start, min(start + step, n_rows))
    assert not path.exists()
    sink.finish(digests)
    group = zarr.open_group(path, mode="r")
    assert sorted(group.array_keys()) == sorted(COLUMNS)
    for name in COLUMNS:
        np.testing.assert_array_equal(group[name][:], value(np.arange(n_rows), name))
    assert group.attrs["model"] == "abc"
    assert os.listdir(path.parent) == ["out"]


def test_manifest_is_that_of_a_table(tmp_path: Path) -> None:
    sink = RowSink.create(tmp_path / "out", 10, COLUMNS, 4)
    sink.finish(write_rows(sink, 0, 10))
    text = (tmp_path / "out" / "COMPLETE").read_text()
    manifest = parse_manifest(text, "COMPLETE")
    scores = manifest.arrays["scores"]
    assert (scores.shape, scores.chunk_rows, scores.dtype) == ((10, 3), 4, "<f4")
    rows = np.arange(10)
    assert scores.digests == tuple(array_digest(value(rows[i : i + 4], "scores")) for i in (0, 4, 8))
    assert set(manifest.metadata) == {"", "prediction", "scores"}


def test_several_processes(tmp_path: Path) -> None:
    sink = RowSink.create(tmp_path / "out", 1000, COLUMNS, 64)
    starts = range(0, 1000, 128)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(write_rows, [sink] * len(starts), starts, [min(s + 128, 1000) for s in starts]))
    sink.finish({key: digest for part in parts for key, digest in part.items()})
    group = zarr.open_group(tmp_path / "out", mode="r")
    np.testing.assert_array_equal(group["prediction"][:], value(np.arange(1000), "prediction"))


@pytest.mark.parametrize(("start", "stop"), [(1, 5), (0, 3), (2, 8), (4, 9), (3, 10)])
def test_parts_of_chunks_are_refused(tmp_path: Path, start: int, stop: int) -> None:
    with RowSink.create(tmp_path / "out", 10, COLUMNS, 4) as sink:
        with pytest.raises(errors.ChunkAlignmentError, match="whole chunks of 4 rows"):
            sink.write("prediction", start, np.zeros(stop - start))
        assert not (sink.folder / "prediction" / "c").exists()


def test_values_that_do_not_fit(tmp_path: Path) -> None:
    with RowSink.create(tmp_path / "out", 8, COLUMNS, 4) as sink:
        for values in (np.zeros((4, 2)), np.zeros(4), np.zeros(())):
            with pytest.raises(errors.ShapeMismatchError):
                sink.write("scores", 0, values)
        for start, rows in ((8, 4), (4, 8), (-4, 4), (0, 0)):
            with pytest.raises(errors.ShapeMismatchError):
                sink.write("prediction", start, np.zeros(rows))
        for values in (np.zeros(4, complex), np.array(["a"] * 4), np.array([None] * 4)):
            with pytest.raises(errors.DTypeError):
                sink.write("prediction", 0, values)
        with pytest.raises(errors.ParameterError, match="no array 'std'"):
            sink.write("std", 0, np.zeros(4))


def test_bad_outputs_create_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out"
    for n_rows, columns, chunk_rows, error in [
        (0, COLUMNS, 4, errors.EmptyDataError),
        (5, COLUMNS, 0, errors.ParameterError),
        (5, {"a/b": (None, "f8")}, 2, errors.ParameterError),
        (5, {"a": (0, "f8")}, 2, errors.ParameterError),
        (5, {"a": (None, "complex128")}, 2, errors.DTypeError),
        (5, {"a": (None, "nonsense")}, 2, errors.DTypeError),
    ]:
        with pytest.raises(error):
            RowSink.create(path, n_rows, columns, chunk_rows)
    with pytest.raises(errors.ParameterError, match=r"attributes\.x is nan"):
        RowSink.create(path, 5, COLUMNS, 2, attributes={"x": float("nan")})
    assert os.listdir(tmp_path) == []


def test_missing_chunks_are_named_and_can_be_written_then(tmp_path: Path) -> None:
    sink = RowSink.create(tmp_path / "out", 10, COLUMNS, 4)
    digests = write_rows(sink, 0, 4) | write_rows(sink, 8, 10)
    with pytest.raises(errors.MissingChunkError, match=r"2 chunks .* prediction/c/1 first") as caught:
        sink.finish(digests)
    assert caught.value.key == "prediction/c/1"
    assert not (tmp_path / "out").exists()
    digests |= write_rows(sink, 4, 8)
    lost = sink.folder / "scores/c/2/0"
    body = lost.read_bytes()
    lost.unlink()
    with pytest.raises(errors.MissingChunkError, match="scores/c/2/0"):
        sink.finish(digests)
    lost.write_bytes(body)
    sink.finish(digests)
    assert (tmp_path / "out" / "COMPLETE").is_file()


def test_existing_outputs(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = RowSink.create(path, 4, COLUMNS, 4)
    sink.finish(write_rows(sink, 0, 4))
    with pytest.raises(errors.StoreExistsError, match="ask for overwrite"):
        RowSink.create(path, 4, COLUMNS, 4)
    with RowSink.create(path, 6, COLUMNS, 4, overwrite=True) as abandoned:
        write_rows(abandoned, 0, 4)
    assert zarr.open_group(path, mode="r")["prediction"].shape == (4,)
    sink = RowSink.create(path, 6, COLUMNS, 4, overwrite=True)
    sink.finish(write_rows(sink, 0, 6))
    assert zarr.open_group(path, mode="r")["prediction"].shape == (6,)
    assert os.listdir(tmp_path) == ["out"]


def test_overwrite_never_replaces_a_table_or_a_model(tmp_path: Path) -> None:
    zarr.create_group(tmp_path / "table", attributes={"format": "streamkernel.table"})
    write_bundle(tmp_path / "model", Bundle("model", 1))
    for name in ("table", "model"):
        with pytest.raises(errors.StoreExistsError, match="not an output of rows"):
            RowSink.create(tmp_path / name, 4, COLUMNS, 4, overwrite=True)


def test_output_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    first = RowSink.create(tmp_path / "out", 4, COLUMNS, 4)
    second = RowSink.create(tmp_path / "out", 8, COLUMNS, 4)
    first.finish(write_rows(first, 0, 4))
    with second, pytest.raises(errors.StoreExistsError):
        second.finish(write_rows(second, 0, 8))
    assert json.loads((tmp_path / "out" / "prediction" / "zarr.json").read_text())["shape"] == [4]
    assert os.listdir(tmp_path) == ["out"]


def test_stragglers_and_copies(tmp_path: Path) -> None:
    sink = RowSink.create(tmp_path / "out", 4, COLUMNS, 4)
    copy = pickle.loads(pickle.dumps(sink))
    digests = write_rows(copy, 0, 4)
    with pytest.raises(errors.StoreNotFoundError, match="another process"):
        copy.finish(digests)
    copy.abort()
    sink.finish(digests)
    for late in (copy, sink):
        with pytest.raises(errors.StoreNotFoundError, match="no longer being written"):
            write_rows(late, 0, 4)
    with pytest.raises(errors.StoreNotFoundError):
        sink.finish(digests)
    sink.abort()
    assert os.listdir(tmp_path) == ["out"]
