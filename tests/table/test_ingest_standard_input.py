"""CSV from the standard input."""

import bz2
import gzip
import io
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from table.sources import FRAME, M, X, Y

from streamkernel.errors import NonFiniteDataError, ParameterError, SourceFormatError, StoreNotFoundError
from streamkernel.table import open_table
from streamkernel.table.ingest import append_rows, ingest

CSV = FRAME.to_csv(index=False).encode()


@pytest.fixture
def given(monkeypatch):
    return lambda content: monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_rows_from_the_standard_input(tmp_path, given, name, shuffle):
    given(CSV)
    calls = []
    info = ingest(
        name, tmp_path / "s", target="t", dtype="float64", shuffle=shuffle, progress=lambda *call: calls.append(call)
    )
    assert (info.rows, info.columns, info.source) == (M, tuple("abcd"), "standard input")
    block = open_table(tmp_path / "s").read(0, M)
    order = np.lexsort(X.T), np.lexsort(block.X.T)
    np.testing.assert_array_equal(block.X[order[1]], X[order[0]])
    assert (len(CSV), None, "bytes") in calls
    given(CSV)
    append_rows(name, tmp_path / "s")
    np.testing.assert_array_equal(open_table(tmp_path / "s").read(M, 2 * M).Y[:, 0], Y)
    assert os.listdir(tmp_path) == ["s"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (gzip.compress(CSV), r"as \.gz files are\), .* through zcat"),
        (bz2.compress(CSV), r"as \.bz2 files are\), .* through bzcat"),
        (pa.compress(CSV, "zstd", asbytes=True), r"as \.zst files are\), .* through zstdcat"),
    ],
    ids=["gzip", "bzip2", "zstd"],  # not the bytes: gzip's have the second in which each process of the suite began
)
def test_compressed_bytes_are_told_from_text(tmp_path, given, content, says):
    given(content)
    with pytest.raises(SourceFormatError, match=rf"^standard input: it is compressed \({says}"):
        ingest("-", tmp_path / "s", target="t")
    assert os.listdir(tmp_path) == []


def test_the_place_of_a_fault_is_a_line_of_the_standard_input(tmp_path, given):
    for rows, error, says in (
        (b"1,2,3,4\n", SourceFormatError, r"^standard input:3002:4: 4 fields where the table has 5"),
        (b"1,2,,4,5\n", NonFiniteDataError, r"row 3000, column 'c', in standard input:3002; "),
        (b"1,2,3,4,z\n", SourceFormatError, r"^standard input:3002:5: 'z'"),
    ):
        given(CSV + rows)
        with pytest.raises(error, match=says):
            ingest("-", tmp_path / "s", target="t")
    given(CSV)
    with pytest.raises(ParameterError, match=r"^standard input: there is no target column 'u'"):
        ingest("-", tmp_path / "s", target="u")
    given(b"")
    with pytest.raises(SourceFormatError, match=r"^standard input:1:1: it is empty"):
        ingest("-", tmp_path / "s")
    assert os.listdir(tmp_path) == []


def test_no_standard_input_and_one_of_several(tmp_path, monkeypatch, given):
    given(CSV)
    with pytest.raises(ParameterError, match="cannot be one of several sources"):
        ingest(["-", tmp_path / "a.csv"], tmp_path / "s")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(StoreNotFoundError, match="standard input is closed"):
        ingest("-", tmp_path / "s")


def test_nothing_is_read_where_the_store_cannot_be_written(tmp_path, given):
    given(CSV)
    with pytest.raises(StoreNotFoundError, match="does not exist"):
        ingest("-", tmp_path / "none" / "s")
    assert sys.stdin.buffer.tell() == 0


def test_a_pipe_of_commands(tmp_path):
    """With the options of the command, through a real pipe."""
    text = "a|y\n1,5|2\n2,5|3\n"
    command = [sys.executable, "-m", "streamkernel", "ingest", "-", str(tmp_path / "s"), "--separator", "|"]
    done = subprocess.run([*command, "--decimal", ",", "--target", "y"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(open_table(tmp_path / "s").read(0, 2).X, [[1.5], [2.5]])
