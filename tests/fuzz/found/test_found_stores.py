"""What fuzzing broke, once: each finding under its own name."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from fsspec.implementations.local import LocalFileSystem
from fuzz.cases import JOB
from fuzz.command import Refused, commanded
from fuzz.damage import lay, resealed, taken
from fuzz.jobs import place_of_job
from fuzz.limits import Yard, refused

from streamkernel import Factor, ingest, open_table
from streamkernel.blobs import LocalBlobs, RecordLog, blobs_at
from streamkernel.errors import (
    CorruptMetadataError,
    ParameterError,
    SourceFormatError,
    StoreError,
    StoreNotFoundError,
    StreamKernelError,
)
from streamkernel.factors.factor import entries_of
from streamkernel.manifest import parse_manifest
from streamkernel.store import Bundle, bundle_kind, check_target, read_bundle, write_bundle

X = np.random.default_rng(0).standard_normal((20, 3))


def stand_in(path: Path, what: str) -> None:
    path.unlink()
    os.mkfifo(path) if what == "pipe" else path.symlink_to("/dev/zero")


@pytest.mark.parametrize("what", ["pipe", "zeros"])
class TestReadForEver:
    """A pipe waits for a writer, a device never ends."""

    def test_table(self, yard: Yard, what: str) -> None:
        ingest(X, yard.place("t"))
        stand_in(yard.folder / "t" / "zarr.json", what)
        refused(yard, lambda: open_table(yard.folder / "t"), StoreError, "zarr.json")

    def test_bundle(self, yard: Yard, what: str) -> None:
        path = yard.place("b")
        write_bundle(path, Bundle("model", 1, {}, {"v": np.arange(3)}))
        stand_in(path / "config.json", what)
        refused(yard, lambda: read_bundle(path, "model"), StoreError, "config.json" if what == "zeros" else "regular")
        assert yard.run(lambda: bundle_kind(path)) is None

    def test_record(self, yard: Yard, what: str) -> None:
        log = RecordLog(LocalBlobs(yard.folder), "state")
        log.append({}, after=None)
        stand_in(yard.folder / "state" / "00000001.json", what)
        refused(yard, log.latest, StoreError, "00000001.json")


def test_record_of_a_number_with_more_zeros_is_none(yard: Yard) -> None:
    """`latest` asked for number 2 again and again, whose name is another."""
    log = RecordLog(LocalBlobs(yard.folder), "state")
    first = log.append({"a": 1}, after=None)
    shutil.copy(yard.folder / "state" / "00000001.json", yard.folder / "state" / "000000002.json")
    assert yard.run(log.latest) is None
    assert log.latest() == first
    assert log.append({"a": 2}, after=first) is not None


@pytest.mark.parametrize("raw", ["[" * 100_000 + "]" * 100_000, "1e999"])
def test_manifest_nested_or_infinite(raw: str) -> None:
    text = (
        f'{{"format": "streamkernel.table", "version": 2, "metadata": {{}}, "arrays": {{"X": {{"shape": [{raw}]}}}}}}'
    )
    text = text.replace("]}}", '], "chunk_rows": 1, "dtype": "<f4", "digests": []}}')
    with pytest.raises(CorruptMetadataError, match="not a streamkernel manifest"):
        parse_manifest(text, "COMPLETE")


@pytest.mark.parametrize("sparse", [False, True])
def test_statistics_that_are_a_list(yard: Yard, sparse: bool) -> None:
    """They were asked for the value of a name: an `AttributeError`, as a list has no `get`."""
    rows = scipy.sparse.csr_array(X) if sparse else X
    ingest(open_table(rows, X[:, 0], sparse=sparse), yard.place("t"))
    files = taken(yard.folder / "t")
    group = json.loads(files["zarr.json"])
    counted = group["attributes"]["statistics"]
    group["attributes"]["statistics"] = {**counted, "X": [1, 2]} if sparse else list(counted.values())
    lay(yard.place("damaged"), resealed({**files, "zarr.json": json.dumps(group).encode()}), [])
    refused(yard, lambda: open_table(yard.folder / "damaged"), CorruptMetadataError, "lacks a table's attributes")


@pytest.mark.parametrize("classes", [1, "yes", [["no"], ["yes"]], ["no", None]])
def test_classes_that_are_no_list_of_labels(yard: Yard, classes: Any) -> None:
    """The table was opened, and its first block ended with a `TypeError`."""
    ingest(open_table(X, np.where(X[:, 0] > 0, "yes", "no"), classify=True), yard.place("t"))
    files = taken(yard.folder / "t")
    group = json.loads(files["zarr.json"])
    assert group["attributes"]["classes"] == ["no", "yes"]
    group["attributes"]["classes"] = classes
    lay(yard.place("damaged"), resealed({**files, "zarr.json": json.dumps(group).encode()}), [])
    refused(yard, lambda: open_table(yard.folder / "damaged"), CorruptMetadataError, "lacks a table's attributes")


@pytest.mark.parametrize("listed", [{}, {"y ": "y"}], ids=["gone", "renamed"])
def test_manifest_that_does_not_list_y(yard: Yard, listed: dict[str, str]) -> None:
    """The table was read as one without targets, and rows that were appended to it had none."""
    ingest(open_table(X, X[:, 0]), yard.place("t"))
    path = yard.folder / "t" / "COMPLETE"
    manifest = json.loads(path.read_text())
    y = manifest["arrays"].pop("y")
    manifest["arrays"] |= dict.fromkeys(listed, y)
    path.write_text(json.dumps(manifest))
    refused(yard, lambda: open_table(yard.folder / "t"), CorruptMetadataError, "not a streamkernel manifest")
    np.save(yard.folder / "more.npy", np.column_stack([X, X[:, 0]]))
    more = ("ingest", yard.folder / "more.npy", yard.folder / "t", "--append", "--target", 3, "--json")
    refused(yard, lambda: commanded(*more), Refused, "not a streamkernel manifest")


def source(yard: Yard, name: str, content: bytes) -> Path:
    path = yard.place(name)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,t\n1,2\r3\n4,5\n", "csv:2:1: a carriage return within the line"),
        (b'a,t\n1,"' + b"x" * 200_000 + b'"\n', "csv:2:1: field larger than"),
    ],
)
def test_lines_that_the_csv_module_refuses(yard: Yard, content: bytes, words: str) -> None:
    path = source(yard, "s.csv", content)
    refused(yard, lambda: ingest(path, yard.folder / "out", target="t"), SourceFormatError, words)


def saved(values: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        (b"(20, 3), }", b"(20, 3),( "),  # tokenize.TokenError
        (b"(20, 3), }", b"(-2, 3), }"),  # a table of -2 rows
        (b"(20, 3), }          ", b"(20, 30000000000), }"),  # a row of 240 GB was asked for
        (b"'<f8'", b"'<U0'"),  # divided by the bytes of a value
    ],
)
def test_headers_of_npy(yard: Yard, change: tuple[bytes, bytes]) -> None:
    content = saved(X)
    assert change[0] in content
    path = source(yard, "s.npy", content.replace(*change))
    refused(yard, lambda: ingest(path, yard.folder / "out"), SourceFormatError, "s.npy")


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (b"PK\x03\x04", b"PK\x03\x05"),  # BadZipFile on opening a member
        (b"PK\x05\x06", b"PK\x05\x07"),
    ],
)
def test_members_of_npz(yard: Yard, at: bytes, value: bytes) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, X=X)
    path = source(yard, "s.npz", buffer.getvalue().replace(at, value))
    refused(yard, lambda: ingest(path, yard.folder / "out"), SourceFormatError, "s.npz")


def test_member_whose_compression_is_unknown(yard: Yard) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("X.npy", saved(X))
    content = bytearray(buffer.getvalue())
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        content[content.index(mark) + offset] = 77
    path = source(yard, "s.npz", bytes(content))
    refused(yard, lambda: ingest(path, yard.folder / "out"), SourceFormatError, "damaged")


def test_paths_that_no_file_can_have(yard: Yard) -> None:
    """OSError: name too long; a surrogate, as Python writes a byte that is no text, could not be digested."""
    long = "x" * 5000
    # Since Python 3.14 `Path.exists` answers in place of the system.
    said = "File name too long" if sys.version_info < (3, 14) else "there is no store at"
    refused(yard, lambda: open_table(long), StoreNotFoundError, said)
    refused(yard, lambda: Factor.load(long), StoreNotFoundError, "does not exist")
    refused(yard, lambda: commanded("status", "--jobs", yard.folder, "model\udcff"), Refused, "no job in")


def listed(action: Callable[[], object]) -> list[str]:
    """Places of which all that is below was asked for."""
    looked: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            LocalFileSystem, "find", lambda self, path, **_: looked.append(path.rstrip("/")) or {f"{path}/a": {}}
        )
        with suppress(StreamKernelError):
            action()
    return looked


def test_factors_in_large_places(yard: Yard) -> None:
    """Whether one is there was asked of a list of all keys below: of a whole bucket, or the machine's files."""
    (yard.folder / "a" / "deeper").mkdir(parents=True)
    url = f"local://{yard.folder}"
    assert str(yard.folder) not in listed(lambda: entries_of(url))
    assert entries_of(url) == {"a", "neighbour"}


def test_outputs_in_large_places(yard: Yard) -> None:
    """A hang at local:///, of which every key below was asked for."""
    assert str(yard.folder) not in listed(lambda: check_target(f"local://{yard.folder}", overwrite=False))


@pytest.mark.parametrize("url", ["reference://x", "ftp://127.0.0.1:1/x"])
def test_drivers_that_cannot_begin(yard: Yard, url: str) -> None:
    """TypeError, and ConnectionRefusedError, of the drivers' constructors."""
    refused(yard, lambda: open_table(url), ParameterError, "cannot be opened")


def test_buckets_that_end_obstore(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    # A panic, which is no Exception.
    with pytest.raises(ParameterError, match="is no name of a bucket"):
        blobs_at("s3://a`b/c").keys("CURRENT/")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("specs/{}.json", {"work": {"lease_seconds": "x"}}),
        ("{}/state/00000002.json", {"value": {"status": []}}),
        ("{}/progress/00000001.json", {"value": {"attempt": None, "rows_total": "x"}}),
    ],
)
def test_records_of_jobs_with_fields_of_another_kind(yard: Yard, name: str, change: dict[str, Any]) -> None:
    ingest(X, yard.place("rows"))
    place_of_job(yard, "running")
    path = yard.folder / "store" / name.format(JOB)
    [(part, fields)] = change.items()
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, part: {**document[part], **fields}}))
    for command in (["status", JOB, "--jobs", yard.folder / "store"], ["jobs", yard.folder / "store"]):
        error = yard.run(lambda command=command: commanded(*command))
        # One that is damaged does not hide the others from a list.
        assert isinstance(error, Refused) or command[0] == "jobs"


def test_reservation_of_a_model_without_its_job(yard: Yard) -> None:
    ingest(X, yard.place("rows"))
    place_of_job(yard, "running")
    place = yard.folder / "store"
    [path] = (place / "models").rglob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "value": {}}))
    refused(
        yard, lambda: commanded("status", yard.folder / "model", "--jobs", place), Refused, "is not the id of a job"
    )
