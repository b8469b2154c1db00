"""What fuzzing broke, once: each finding under its own name."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.limits import Yard

from streamkernel import GaussianProcessRegressor, KernelRidge, ingest, open_table
from streamkernel.blobs import LocalBlobs, RecordLog
from streamkernel.errors import (
    CorruptMetadataError,
    ModelFormatError,
    SourceFormatError,
    StoreError,
    StreamKernelError,
)
from streamkernel.manifest import parse_manifest
from streamkernel.store import Bundle, bundle_kind, read_bundle, write_bundle

X = np.random.default_rng(0).standard_normal((20, 3))


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path / "yard")


def refused(yard: Yard, action: Any, kind: type[StreamKernelError], words: str) -> None:
    error = yard.run(action)
    assert isinstance(error, kind), error
    assert words in str(error)


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


@pytest.mark.parametrize("estimator", [KernelRidge, GaussianProcessRegressor])
def test_models_without_a_field(yard: Yard, estimator: Any) -> None:
    """Whole to the last digest, so that only their readers can tell."""
    path = yard.place("m")
    estimator(5).fit(X, X[:, 0]).save(path)
    kind = json.loads((path / "config.json").read_text())["kind"]
    bundle = read_bundle(path, kind, versions=range(9))
    for field in ("kernel", "scaler", "columns", "estimator", "targets_are_2d", "certificate", "lengthscale"):
        config = {name: value for name, value in bundle.config.items() if name != field}
        write_bundle(path, Bundle(kind, bundle.version, config, bundle.arrays), overwrite=True)
        refused(yard, lambda: estimator.load(path), ModelFormatError, "fit it again")
