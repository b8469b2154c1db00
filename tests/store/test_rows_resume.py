"""Outputs that are interrupted and gone on with: nothing finished is written again, the end is that of one run."""

from __future__ import annotations

import json
import os
import pickle
import signal
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import Forks
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel import errors
from streamkernel.store import RowSink
from streamkernel.table import open_table

M, CHUNK = 50, 4
COLUMNS = {"G": (3, np.float32), "code": (None, np.int64)}


def value(rows: np.ndarray, name: str) -> np.ndarray:
    # Zeros are the fill value of integers: a lost chunk of them looks like one that is there.
    return np.zeros(len(rows), np.int64) if name == "code" else np.sin(np.outer(rows, [1, 2, 3])).astype(np.float32)


def sink_at(path: Path, *, resume: bool = True, **changes: Any) -> RowSink:
    made: dict[str, Any] = {"n_rows": M, "columns": COLUMNS, "chunk_rows": CHUNK, "fingerprint": "basis 1, data 2"}
    return RowSink.create(path, **{**made, **changes}, resume=resume)


def write_rows(sink: RowSink, start: int, stop: int) -> dict[str, str]:
    rows = np.arange(start, stop)
    return {key: digest for name in sink.columns for key, digest in sink.write(name, start, value(rows, name)).items()}


def write_rest(sink: RowSink, span: int = 8) -> int:
    """What an engine does: the spans that are not finished, on copies of the sink. Returns how many there were."""
    digests: dict[str, str] = {}
    starts = [first for first in range(0, M, span) if not sink.is_finished(first, min(first + span, M))]
    for first in starts:
        digests |= write_rows(pickle.loads(pickle.dumps(sink)), first, min(first + span, M))
    sink.finish(digests)
    return len(starts)


def interrupted(path: Path, *spans: tuple[int, int]) -> Path:
    """An output of which these rows were written; returns the folder that holds it so far."""
    with sink_at(path, resume=False) as sink:
        for start, stop in spans:
            write_rows(sink, start, stop)
    return sink.folder


def stamps(folder: Path) -> dict[str, int]:
    return {str(file.relative_to(folder)): file.stat().st_mtime_ns for file in folder.rglob("c/**/*") if file.is_file()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("whole") / "out"
    write_rest(sink_at(path, resume=False))
    return (path / "COMPLETE").read_text()


@settings(max_examples=4)
@given(st.lists(st.integers(0, 6), max_size=7, unique=True), st.sampled_from([4, 8, 16, 52]))
def test_any_part_is_gone_on_with(
    tmp_path_factory: pytest.TempPathFactory, undisturbed: str, done: list[int], span: int
) -> None:
    path = tmp_path_factory.mktemp("out") / "out"
    folder = interrupted(path, *((8 * i, min(8 * i + 8, M)) for i in done))
    before = stamps(folder)
    sink = sink_at(path)
    assert set(sink.finished()) == set(before)
    assert len(before) == sum(2 if i == 6 else 4 for i in done)
    spans = -(-M // span)
    left = write_rest(sink, span)
    assert left == spans - sum(
        all(row // 8 in done for row in range(first, min(first + span, M))) for first in range(0, M, span)
    )
    assert (path / "COMPLETE").read_text() == undisturbed
    assert stamps(path).items() >= before.items()
    assert os.listdir(path.parent) == ["out"]


# The writer kills itself in the middle: at the fifth chunk or at the end.
WRITER = """
    import os, signal, sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[3])
    import streamkernel.blobs.direct_file as direct_file
    import streamkernel.store.rows as rows
    import streamkernel.store._unfinished as unfinished
    from streamkernel.store._journal import LogJournal
    from test_rows_resume import sink_at, write_rest
    path, stage = Path(sys.argv[1]), sys.argv[2]
    calls = iter(range(10**6))

    def die(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    def at_the_fifth(function, before):
        def wrapped(*arguments, **options):
            if next(calls) == 5:
                before(*arguments)
                die()
            return function(*arguments, **options)
        return wrapped

    if stage == "in a chunk":
        writer = direct_file._PieceWriter
        writer.finish = at_the_fifth(writer.finish, lambda self: os.ftruncate(self.descriptor, 9))
    elif stage == "before the note":
        LogJournal.note = at_the_fifth(LogJournal.note, lambda *_: None)
    elif stage == "in the note":
        LogJournal.note = at_the_fifth(
            LogJournal.note,
            lambda self, log, key, digest: (self.folder / f"{log}.log").open("a").write(f"{key} {digest[:20]}"),
        )
    elif stage == "before COMPLETE":
        rows.manifest_content = die
    elif stage == "before publishing":
        unfinished.publish = die
    else:
        unfinished.shutil.rmtree = die
    write_rest(sink_at(path, overwrite=True))
"""


def killed(forks: Forks, path: Path, stage: str) -> None:
    done = forks.run(textwrap.dedent(WRITER), path, stage, Path(__file__).parent)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(
    ("stage", "chunks"),
    [
        pytest.param("in a chunk", 5, marks=pytest.mark.slow),
        pytest.param("before the note", 5, marks=pytest.mark.slow),
        ("in the note", 5),
        pytest.param("before COMPLETE", 26, marks=pytest.mark.slow),
        ("before publishing", 26),
    ],
)
def test_killed_writer(forks: Forks, tmp_path: Path, undisturbed: str, stage: str, chunks: int) -> None:
    path = tmp_path / "out"
    killed(forks, path, stage)
    assert os.listdir(tmp_path) == [".out.unfinished"]
    [folder] = [f for f in (tmp_path / ".out.unfinished").iterdir() if f.is_dir() and f.suffix != ".journal"]
    assert (folder / "COMPLETE").exists() == (stage == "before publishing")
    before = stamps(folder)
    sink = sink_at(path)
    with pytest.raises(errors.IncompleteStoreError, match="write it again"):
        open_table(folder / "G")
    finished = sink.finished()
    assert len(finished) == chunks
    write_rest(sink)
    assert (path / "COMPLETE").read_text() == undisturbed
    after = stamps(path)
    assert {key: after[key] for key in finished} == {key: before[key] for key in finished}
    assert len(after) == 26
    assert os.listdir(tmp_path) == ["out"]
    np.testing.assert_array_equal(open_table(path / "G").read(0, M).X, value(np.arange(M), "G"))


@pytest.mark.parametrize("former", ["none", "equal", "other"])
def test_killed_after_publishing(forks: Forks, tmp_path: Path, undisturbed: str, former: str) -> None:
    path = tmp_path / "out"
    if former == "equal":
        write_rest(sink_at(path))
    elif former == "other":
        other = sink_at(path, attributes={"generation": 0})
        write_rest(other)
    killed(forks, path, "after publishing")
    assert (path / "COMPLETE").read_text() == undisturbed
    with pytest.raises(errors.StoreExistsError):
        sink_at(path)
    if former == "other":
        # What publishing exchanged for the new output is not taken for a part of it.
        with pytest.warns(errors.StreamKernelWarning, match="written anew"):
            sink = sink_at(path, overwrite=True)
        assert sink.finished() == {}
    else:
        sink = sink_at(path, overwrite=True)
        assert len(sink.finished()) == (26 if former == "equal" else 0)
    write_rest(sink)
    assert (path / "COMPLETE").read_text() == undisturbed
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("damage", ["torn", "empty", "lost", "other values", "flipped"])
@pytest.mark.parametrize("key", ["G/c/1/0", "code/c/1"])
def test_damaged_chunks_are_written_again(tmp_path: Path, undisturbed: str, damage: str, key: str) -> None:
    path = tmp_path / "out"
    folder = interrupted(path, (0, 12))
    file = folder / key
    content = file.read_bytes()
    if damage == "lost":
        file.unlink()
    elif damage == "other values":
        # Its own checksum is right: only the noted digest tells.
        write_elsewhere = sink_at(tmp_path / "elsewhere", resume=False)
        write_elsewhere.write(key.partition("/")[0], 4, np.ones_like(value(np.arange(4), key.partition("/")[0])))
        file.write_bytes((write_elsewhere.folder / key).read_bytes())
        write_elsewhere.abort()
    else:
        flipped = bytes([content[0] ^ 1, *content[1:]])
        file.write_bytes({"torn": content[:-6], "empty": b"", "flipped": flipped}[damage])
    before = stamps(folder)
    sink = sink_at(path)
    assert set(sink.finished()) == {f"{name}/c/{i}{'/0' * (name == 'G')}" for name in COLUMNS for i in range(3)} - {key}
    write_rest(sink)
    assert (path / "COMPLETE").read_text() == undisturbed
    after = stamps(path)
    assert {k for k, stamp in before.items() if after[k] != stamp} <= {key}
    assert (path / key).read_bytes() == content


def test_torn_lines_of_the_journal(tmp_path: Path, undisturbed: str) -> None:
    path = tmp_path / "out"
    folder = interrupted(path, (0, 8), (8, 16))
    log = folder.with_suffix(".journal") / "G-0.log"
    lines = log.read_bytes()
    assert lines.count(b"G/c/") == 2
    log.write_bytes(lines[:-3])
    (log.parent / "G-8.log").write_bytes(b"\0" * 100 + b"\n../G/c/0 " + b"0" * 64 + b"\nnonsense")
    with sink_at(path) as sink:
        assert set(sink.finished()) == {"G/c/0/0", *(f"code/c/{i}" for i in range(4))}
        # The line after a torn one is whole.
        write_rows(sink, 0, 8)
    sink = sink_at(path)
    assert {"G/c/0/0", "G/c/1/0"} <= set(sink.finished())
    write_rest(sink)
    assert (path / "COMPLETE").read_text() == undisturbed


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"fingerprint": "basis 1, data 3"}, 'fingerprint: "basis 1, data 2" there, "basis 1, data 3" here'),
        ({"n_rows": M + 1}, "rows: 50 there, 51 here"),
        ({"chunk_rows": 8}, "chunk_rows: 4 there, 8 here"),
        ({"columns": {**COLUMNS, "G": (3, np.float64)}}, 'arrays.G.dtype: "float32" there, "float64" here'),
        ({"columns": {**COLUMNS, "G": (2, np.float32)}}, "arrays.G.width: 3 there, 2 here"),
        ({"columns": {"G": COLUMNS["G"]}}, "arrays.code"),
        ({"attributes": {"model": "b"}}, 'attributes.model: absent there, "b" here'),
    ],
)
def test_another_configuration_is_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    path = tmp_path / "out"
    folder = interrupted(path, (0, 8))
    before = sorted((str(file), file.stat().st_mtime_ns) for file in tmp_path.rglob("*"))
    with pytest.raises(errors.CheckpointMismatchError, match="another configuration") as caught:
        sink_at(path, **changes)
    assert says in str(caught.value)
    assert sorted((str(file), file.stat().st_mtime_ns) for file in tmp_path.rglob("*")) == before
    with sink_at(path, resume=False, **changes) as sink:
        assert sink.finished() == {}
    assert not folder.exists()


def test_without_resume_nothing_is_kept(tmp_path: Path, undisturbed: str) -> None:
    path = tmp_path / "out"
    straggler = sink_at(path, resume=False)
    write_rows(straggler, 0, 8)
    copy = pickle.loads(pickle.dumps(straggler))
    straggler.abort()
    sink = sink_at(path, resume=False)
    assert sink.finished() == {}
    # A task of the run that was given up finds its folder gone.
    with pytest.raises(errors.StoreNotFoundError, match="no longer being written"):
        write_rows(copy, 8, 16)
    assert write_rest(sink) == 7
    assert (path / "COMPLETE").read_text() == undisturbed
    with pytest.raises(errors.ParameterError, match="fingerprint"):
        RowSink.create(tmp_path / "other", 4, COLUMNS, 4, resume=True)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with sink_at(path) as sink:
        write_rows(sink, 0, 8)
        for resume in (True, False):
            with pytest.raises(errors.RunLockedError, match="another process"):
                sink_at(path, resume=resume)
        copy = pickle.loads(pickle.dumps(sink))
        copy.abort()
        with pytest.raises(errors.RunLockedError):
            sink_at(path)
    with sink_at(path) as sink:
        assert len(sink.finished()) == 4


def test_a_former_output_stays_until_the_end(tmp_path: Path, undisturbed: str) -> None:
    path = tmp_path / "out"
    write_rest(sink_at(path, attributes={"generation": 0}))
    former = (path / "COMPLETE").read_text()
    with sink_at(path, overwrite=True) as sink:
        write_rows(sink, 0, 24)
    assert (path / "COMPLETE").read_text() == former
    assert write_rest(sink_at(path, overwrite=True)) == 4
    assert (path / "COMPLETE").read_text() == undisturbed
    assert os.listdir(tmp_path) == ["out"]


def test_finished_rows_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "out"
    folder = interrupted(path, (0, 8), (48, 50))
    with sink_at(path) as sink:
        copy = pickle.loads(pickle.dumps(sink))
        for start, stop in [(0, 8), (4, 8), (48, 50)]:
            for name in COLUMNS:
                values = copy.read(name, start, stop)
                np.testing.assert_array_equal(values, value(np.arange(start, stop), name))
                assert values.dtype == COLUMNS[name][1]
        with pytest.raises(errors.MissingChunkError, match=r"G/c/2/0 .* is not finished"):
            sink.read("G", 4, 12)
        for name, key in [("G", "G/c/1/0"), ("code", "code/c/1")]:
            for damage in ("torn", "lost"):
                (folder / key).write_bytes(b"torn") if damage == "torn" else (folder / key).unlink()
                with pytest.raises(errors.CorruptChunkError, match="damaged") as caught:
                    copy.read(name, 0, 8)
                assert caught.value.key == key


def test_damaged_metadata_of_an_unfinished_output(tmp_path: Path) -> None:
    path = tmp_path / "out"
    folder = interrupted(path, (0, 8))
    run = folder.parent / "run.json"
    text = run.read_text()
    for damaged, says in [
        ("", "empty"),
        ("[]", "list"),
        (json.dumps({**json.loads(text), "name": "../../x"}), "resum"),
    ]:
        run.write_text(damaged)
        with pytest.raises(errors.CorruptMetadataError, match=says):
            sink_at(path)
    run.write_text(text)
    (folder / "G" / "zarr.json").write_text("{}")
    with pytest.warns(errors.StreamKernelWarning, match="is damaged and is written anew"), sink_at(path) as sink:
        assert sink.finished() == {}
    run.unlink()
    with sink_at(path) as sink:
        assert sink.finished() == {}
