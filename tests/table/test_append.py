"""Rows appended to a table: what an ingest of all of them would have made, while readers see what they opened."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import zarr
from forks import Forks
from hypothesis import given, settings
from hypothesis import strategies as st
from table.zarr_stores import WANT, X, Y, chunk_files, foreign, gathered

from streamkernel import manifest
from streamkernel.errors import (
    CorruptChunkError,
    DataError,
    InputChangedError,
    NonFiniteDataError,
    NumericRangeError,
    ParameterError,
    RunLockedError,
    ShapeMismatchError,
    StoreError,
    StoreNotFoundError,
)
from streamkernel.outputs import PartialFolder, partial
from streamkernel.table import open_table
from streamkernel.table.ingest import append_rows, ingest
from streamkernel.table.ingest.writers import appending as appending
from streamkernel.table.ingest.writers.locked_table import locked_store
from streamkernel.table.stored import zarr_rows as zarr_rows

M = len(X)


def grown(path, *ends, chunk_rows=32):
    """Rows up to each of `ends`, the first ingested, the others appended."""
    ingest(open_table(X[: ends[0]], Y[: ends[0]]), path, chunk_rows=chunk_rows)
    for start, stop in pairwise(ends):
        info = append_rows(open_table(X[start:stop], Y[start:stop]), path)
        assert info.rows == stop
    return path


def manifest_of(path):
    return json.loads((path / "COMPLETE").read_text(encoding="utf-8"))


@given(cuts=st.lists(st.integers(1, M - 1), max_size=4, unique=True), chunk_rows=st.sampled_from([25, 32, 100, 400]))
@settings(max_examples=8)
def test_any_split_is_one_ingest(tmp_path_factory, cuts, chunk_rows):
    folder = tmp_path_factory.mktemp("append")
    store = grown(folder / "store", *sorted(cuts), M, chunk_rows=chunk_rows)
    whole = ingest(open_table(X, Y), folder / "whole", chunk_rows=chunk_rows)
    assert manifest_of(store)["arrays"] == manifest_of(folder / "whole")["arrays"]
    np.testing.assert_array_equal(gathered(open_table(store)), WANT)
    one, other = whole.statistics, open_table(store).statistics.to_config()
    for part in ("X", "y"):
        assert one[part]["count"] == other[part]["count"] == M
        for name in ("mean", "std", "min", "max"):
            np.testing.assert_allclose(other[part][name], one[part][name], rtol=1e-12, atol=1e-15)
    assert sorted(os.listdir(folder)) == ["store", "whole"], "no generation is left behind"
    attributes = zarr.open_group(store, mode="r").attrs
    assert attributes.get("appended", {"times": 0})["times"] == len(cuts)
    np.testing.assert_array_equal(zarr.open_group(store, mode="r")["X"][:], X)


def test_a_reader_goes_on_with_the_rows_that_it_opened(tmp_path):
    store = grown(tmp_path / "store", 75)
    before = open_table(store)
    sent, fingerprint, bits = pickle.dumps(before), before.fingerprint, gathered(before)
    blocks = before.blocks(0, 75, 10)
    next(blocks)
    for ends in ((75, 80), (80, 128), (128, M)):
        append_rows(open_table(X[slice(*ends)], Y[slice(*ends)]), store)
        for table in (before, pickle.loads(sent)):
            table.check_unchanged()
            assert (table.n_rows, table.fingerprint) == (75, fingerprint)
            np.testing.assert_array_equal(gathered(table), bits)
            table.check_unchanged()
    assert sum(len(block) for block in blocks) == 75 - 9 - (75 % 9 > 8), "blocks that were under way end as they began"
    assert open_table(store).n_rows == M
    # A part of an older part, sent on: still the same.
    again = pickle.loads(pickle.dumps(pickle.loads(sent).slice(30, 70)))
    np.testing.assert_array_equal(gathered(again), bits[30:70])


@pytest.mark.parametrize("generation", [0, 1])
def test_a_reader_looks_while_rows_are_appended(tmp_path, monkeypatch, generation):
    """It has the metadata of one generation, and the manifest of a later one; neither need be its own."""
    store = grown(tmp_path / "store", 75)
    before, known = open_table(store), []
    sent = pickle.dumps(before)
    for ends in ((75, 80), (80, 90)):
        known.append({name: (store / name / "zarr.json").read_bytes() for name in ("X", "y")})
        append_rows(open_table(X[slice(*ends)], Y[slice(*ends)]), store)
    monkeypatch.setattr(zarr_rows, "array_metadata", lambda store, path: known[generation][path])
    before.check_unchanged()
    np.testing.assert_array_equal(gathered(pickle.loads(sent)), WANT[:75])


def test_a_reader_of_one_array_goes_on_too(tmp_path):
    store = grown(tmp_path / "store", 75)
    before = open_table(store / "X", store / "y")
    append_rows(open_table(X[75:], Y[75:]), store)
    before.check_unchanged()
    np.testing.assert_array_equal(gathered(before), WANT[:75])


def test_a_last_chunk_is_not_written_in_place(tmp_path):
    store = grown(tmp_path / "store", 75)
    last = store / "X" / "c" / "2" / "0"
    os.link(last, tmp_path / "held")
    bits = last.read_bytes()
    append_rows(open_table(X[75:], Y[75:]), store)
    assert (tmp_path / "held").read_bytes() == bits
    assert last.read_bytes() != bits


def test_full_chunks_are_not_copied(tmp_path):
    store = grown(tmp_path / "store", 75)
    before = {file.relative_to(store): file.stat().st_ino for file in chunk_files(store)}
    append_rows(open_table(X[75:], Y[75:]), store)
    same = {name for name, number in before.items() if (store / name).stat().st_ino == number}
    assert {str(name) for name in before.keys() - same} == {"X/c/2/0", "y/c/2"}


def test_what_the_history_does_not_reach_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "KEPT_GENERATIONS", 1)
    store = grown(tmp_path / "store", 75)
    before = open_table(store)
    append_rows(open_table(X[75:80], Y[75:80]), store)
    before.check_unchanged()
    append_rows(open_table(X[80:90], Y[80:90]), store)
    with pytest.raises(InputChangedError, match="rewritten or resized"):
        before.check_unchanged()


def test_a_store_ingested_anew_is_no_descendant(tmp_path):
    store = grown(tmp_path / "store", 75, 100)
    before, sent = open_table(store), pickle.dumps(open_table(store))
    ingest(open_table(X[::-1].copy(), Y), store, chunk_rows=32, overwrite=True)
    with pytest.raises(InputChangedError):
        before.check_unchanged()
    with pytest.raises(InputChangedError):
        pickle.loads(sent)


@pytest.mark.parametrize("key", ["X/c/0/0", "y/c/1", "X/c/2/0"])
def test_damage_is_found_by_readers_of_every_generation(tmp_path, key):
    store = grown(tmp_path / "store", 75)
    before = open_table(store)
    append_rows(open_table(X[75:], Y[75:]), store)
    bits = bytearray((store / key).read_bytes())
    bits[-6] ^= 1
    (store / key).unlink()
    (store / key).write_bytes(bits)
    for table in (before, open_table(store)):
        with pytest.raises(CorruptChunkError, match=key):
            gathered(table)


def test_an_edited_history_is_refused(tmp_path):
    store = grown(tmp_path / "store", 75)
    before = open_table(store)
    append_rows(open_table(X[75:], Y[75:]), store)
    config = manifest_of(store)
    config["history"][0]["last"]["X"] = config["arrays"]["X"]["digests"][0]
    (store / "COMPLETE").write_text(json.dumps(config), encoding="utf-8")
    before.features.load(0, 32)
    with pytest.raises(CorruptChunkError):
        # The manifest that was pinned is no longer proved by the one that is there: nothing wrong is ever read.
        pickle.loads(pickle.dumps(before)).features.load(64, 75)


def unchanged(store, action, error, match):
    """An append that fails leaves the store, and the folder around it, as they were."""
    before, names = open_table(store).fingerprint, sorted(os.listdir(store.parent))
    with pytest.raises(error, match=match):
        action()
    assert open_table(store).fingerprint == before
    assert sorted(os.listdir(store.parent)) == names


def test_what_does_not_fit_the_table(tmp_path, store):
    wrong = X[:5].copy()
    wrong[3, 2] = np.nan
    large = np.full((5, 6), 1e150)
    for source, error, match in (
        (open_table(X[:5, :5], Y[:5]), ShapeMismatchError, "has the 6 columns x0, .*the source 5"),
        (open_table(X[:5]), ShapeMismatchError, "have the target y, and the source has none"),
        (open_table(X[:5], np.column_stack([Y, Y])[:5]), ShapeMismatchError, "targets y, the source 2: y0, y1"),
        (open_table(wrong, Y[:5]), NonFiniteDataError, "row 3, column 'x2'"),
        (open_table(large, Y[:5]), NumericRangeError, "beyond float32"),
        (open_table(X[:2], np.array(["a", "b"]), classify=True), DataError, "are labels, those of .* are numbers"),
    ):
        unchanged(store, lambda source=source: append_rows(source, store), error, match)


def test_stores_that_cannot_be_appended_to(tmp_path, store):
    with pytest.raises(StoreNotFoundError, match="ingest without append"):
        append_rows(open_table(X, Y), tmp_path / "nowhere")
    foreign(tmp_path / "foreign")
    with pytest.raises(ParameterError, match="not a table that was ingested"):
        append_rows(open_table(X, Y), tmp_path / "foreign")
    (store / "y" / "c" / "0").unlink()
    with pytest.raises(StoreError, match="y/c/0"):
        append_rows(open_table(X, Y), store)
    assert sorted(os.listdir(tmp_path)) == ["foreign", "source.npz", "store"]


def test_columns_in_another_order_are_refused_and_csv_targets_found(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,t\n1,2,3\n4,5,6\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("t,a,b\n9,7,8\n", encoding="utf-8")
    (tmp_path / "c.csv").write_text("b,a,t\n8,7,9\n", encoding="utf-8")
    ingest(tmp_path / "a.csv", tmp_path / "s", target="t", dtype="float64")
    append_rows(tmp_path / "b.csv", tmp_path / "s")
    np.testing.assert_array_equal(gathered(open_table(tmp_path / "s")), [[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    with pytest.raises(ShapeMismatchError, match=r"columns a, b, the source 2: b, a"):
        append_rows(tmp_path / "c.csv", tmp_path / "s")


def test_labels_keep_their_codes(tmp_path):
    for name, rows in {"a": "1,red\n2,green\n3,blue\n", "b": "4,green\n5,green\n", "c": "6,pink\n"}.items():
        (tmp_path / f"{name}.csv").write_text(f"a,colour\n{rows}", encoding="utf-8")
    store = tmp_path / "s"
    ingest(tmp_path / "a.csv", store, target="colour")
    append_rows(tmp_path / "b.csv", store)
    table = open_table(store)
    assert list(table.classes) == ["blue", "green", "red"]
    np.testing.assert_array_equal(np.argmax(table.read(0, 5).Y, axis=1), [2, 1, 0, 1, 1])
    unchanged(store, lambda: append_rows(tmp_path / "c.csv", store), DataError, r"'pink' in row 0, in .*c\.csv:2")


def test_two_at_once(tmp_path, store):
    held = locked_store(store)
    unchanged(store, lambda: append_rows(open_table(X, Y), store), RunLockedError, "another process is appending")
    held.lock.release()
    assert append_rows(open_table(X, Y), store).rows == 2 * M


def test_an_output_whose_name_ends_in_append_is_another_one(tmp_path, store, monkeypatch):
    """Of two builders beside each other neither takes the other's folder for what a dead one left."""
    write = appending.AppendingWriter._write_chunk

    def meanwhile(self, *arguments):
        if not (tmp_path / "store.append").exists():
            ingest(open_table(X[:40], Y[:40]), tmp_path / "store.append", chunk_rows=32)
        write(self, *arguments)

    held = PartialFolder(tmp_path / "store.append", "table")
    (held.folder / "chunk").write_bytes(b"x")
    with monkeypatch.context() as patch:
        patch.setattr(appending.AppendingWriter, "_write_chunk", meanwhile)
        assert append_rows(open_table(X, Y), store).rows == 2 * M
    assert (held.folder / "chunk").read_bytes() == b"x"
    held.abandon()
    np.testing.assert_array_equal(gathered(open_table(store)), np.concatenate([WANT, WANT]))
    assert sorted(os.listdir(tmp_path)) == ["source.npz", "store", "store.append"]


def test_an_append_does_not_wait_for_the_lock_that_it_holds(tmp_path, store, monkeypatch):
    """It removes the former generation itself: `_clear` would wait two seconds for the lock of this process."""

    def waits(folder, successor):
        raise AssertionError(f"waited for the lock of {folder}")

    monkeypatch.setattr(partial, "_clear", waits)
    append_rows(open_table(X[:3], Y[:3]), store)
    assert sorted(os.listdir(tmp_path)) == ["source.npz", "store"]


def test_a_store_replaced_meanwhile_is_left_alone(tmp_path, store, monkeypatch):
    finish = appending.AppendingWriter.finish

    def replaced(self, *arguments, **options):
        ingest(open_table(X[:40], Y[:40]), store, chunk_rows=32, overwrite=True)
        finish(self, *arguments, **options)

    monkeypatch.setattr(appending.AppendingWriter, "finish", replaced)
    with pytest.raises(InputChangedError, match="nothing was appended"):
        append_rows(open_table(X, Y), store)
    assert open_table(store).n_rows == 40
    assert sorted(os.listdir(tmp_path)) == ["source.npz", "store"]


def test_without_links_chunks_are_copied(tmp_path, store, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    append_rows(open_table(X, Y), store)
    np.testing.assert_array_equal(gathered(open_table(store)), np.concatenate([WANT, WANT]))


def test_a_full_disk_changes_nothing(tmp_path, store, monkeypatch):
    monkeypatch.setattr(
        appending.AppendingWriter,
        "_write_chunk",
        lambda *arguments: (_ for _ in ()).throw(OSError(28, "No space left")),
    )
    unchanged(store, lambda: append_rows(open_table(X, Y), store), StoreError, "nothing was appended")


# The process kills itself before the named function is called for the n-th time, or after it.
_KILLED = """
import os, signal, sys
from importlib import import_module
module, owner, name, times, when, source, store = sys.argv[1:]
place = import_module(module)
place = getattr(place, owner) if owner else place
function, left = getattr(place, name), [int(times)]
def killing(*arguments, **options):
    left[0] -= 1
    if left[0] == 0 and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = function(*arguments, **options)
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return result
setattr(place, name, killing)
from streamkernel.table.ingest import append_rows
append_rows(source, store)
"""


@pytest.mark.parametrize(
    ("moment", "rows"),
    [
        pytest.param(
            ("streamkernel.table.ingest.writers.locked_table", "", "link_tree", 1, "after"), M, marks=pytest.mark.slow
        ),
        (("streamkernel.table.ingest.writers.writer", "ChunkWriter", "_write_chunk", 3, "before"), M),
        pytest.param(("streamkernel.outputs.partial", "", "publish_folder", 1, "before"), M, marks=pytest.mark.slow),
        (("streamkernel.atomic", "", "_exchange", 1, "before"), M),
        (("streamkernel.atomic", "", "_exchange", 1, "after"), 2 * M),
    ],
)
@pytest.mark.parametrize("weighted", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_killed_at_any_moment(
    forks: Forks, tmp_path: Path, store: Path, moment: tuple, rows: int, weighted: bool
) -> None:
    """The old rows are there, or all; the same append then has each row once, and what was left behind is gone."""
    W = np.arange(1.0, M + 1)
    if weighted:
        np.savez(tmp_path / "source.npz", X=X, y=Y, w=W)
        ingest(tmp_path / "source.npz", store, weight="w", chunk_rows=32, overwrite=True)
    done = forks.run(_KILLED, *moment, tmp_path / "source.npz", store)
    assert done.returncode == -signal.SIGKILL, done.stderr
    table = open_table(store)
    np.testing.assert_array_equal(gathered(table), np.concatenate([WANT] * (rows // M)))
    if weighted:
        np.testing.assert_array_equal(table.read(0, rows).weights, np.tile(W, rows // M))
    assert len(os.listdir(tmp_path)) == 3, "a generation was left behind"
    append_rows(tmp_path / "source.npz", store, repeated="skip")
    assert sorted(os.listdir(tmp_path)) == ["source.npz", "store"]
    np.testing.assert_array_equal(gathered(open_table(store)), np.concatenate([WANT] * 2))
    table.check_unchanged()


def test_a_link_to_the_store_stays_one(tmp_path, store):
    os.symlink(store, tmp_path / "link")
    append_rows(open_table(X, Y), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert open_table(store).n_rows == 2 * M
    shutil.rmtree(store)


def test_openers_and_readers_meet_no_half_of_an_append(tmp_path):
    store = grown(tmp_path / "store", 75)
    before, seen, errors = open_table(store), [], []
    done = threading.Event()

    def read():
        try:
            while not done.is_set():
                table = open_table(store)
                np.testing.assert_array_equal(gathered(table), WANT[: table.n_rows])
                before.check_unchanged()
                np.testing.assert_array_equal(gathered(before), WANT[:75])
                seen.append(table.n_rows)
        except BaseException as error:
            errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for start in range(75, 150, 5):
        append_rows(open_table(X[start : start + 5], Y[start : start + 5]), store)
    done.set()
    for reader in readers:
        reader.join()
    assert errors == []
    assert len(set(seen)) > 2, "readers and the writer were at work together"
