"""Paths and URLs at random, given to `open_table`, to jobs and to commands: refused in one line, and nothing made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from fuzz.command import commanded
from fuzz.forgery import of_inputs
from fuzz.limits import Yard
from hypothesis import given, seed
from hypothesis import strategies as st

from streamkernel import Factor, KernelRidge, open_table
from streamkernel.blobs import retries as patience

QUICK, MANY = 30, 1500

# Nobody listens at port 1; no name of another machine is looked up.
_SCHEMES = [
    "", "file://", "FILE://", "file:", "s3://", "S3://", "s3a://", "memory://", "http://127.0.0.1:1/", "HTTP://",
    "https://127.0.0.1:1/", "http://", "https://[", "http://[::1]:1/", "ftp://127.0.0.1:1/", "local://", "zip://",
    "simplecache::file://", "filecache::file://", "blockcache::memory://", "zip://x::file://", "simplecache://",
    "filecache://", "reference://", "dir://", "dirfs://", "cached://", "tar://", "libarchive://", "data:", "data://,",
    "git://", "github://", "gs://", "az://", "abfs://", "adl://", "nosuch://", "://", "1s3://", "a+b://", "webhdfs://",
    "generic://", "arrow_hdfs://", "ssh://", "sftp://", "smb://", "dask://", "jupyter://", "asynclocal://", "hf://",
    "lakefs://", "oci://", "oss://", "root://", "tos://", "wandb://", "box://", "dropbox://", "gdrive://", "dbfs://",
]  # fmt: skip
# Of these now and then with a bucket.
_BUCKETS = {"s3://", "S3://", "s3a://"}
# Of these only what lacks the name of a bucket: with one they would look for servers and credentials.
_NAMELESS = {
    "gs://", "az://", "abfs://", "adl://", "git://", "github://", "webhdfs://", "ssh://", "sftp://", "smb://", "hf://",
    "HTTP://", "http://", "https://[", "lakefs://", "oci://", "oss://", "root://", "tos://", "wandb://", "box://",
    "dropbox://", "gdrive://", "dbfs://", "jupyter://", "dask://", "arrow_hdfs://",
}  # fmt: skip
_PARTS = [
    "", ".", "..", "/", "//", "~", "a", "b.zarr", "neighbour", "secret", "bucket", "etc", "passwd", "*", "?", "#", "%",
    "%2e%2e", "%00", "a b", "\u00e9", "\U0001f600", "\udcff", "\n", "\t", ":", "::", "@", "user:word@host", "[", "]",
    "{}", "x" * 300, "-", "--help", "\\", "$HOME", "`", "'", '"', "COMPLETE", "zarr.json", "dev", "zero", "proc",
    "self",
]  # fmt: skip


@st.composite
def locations(draw: st.DrawFn) -> str:
    """A location made of what locations are made of, and of what they should not be."""
    scheme = draw(st.sampled_from(_SCHEMES))
    if scheme in _NAMELESS:
        return scheme + draw(st.sampled_from(["", "/", "//", "/a", "?", "#", ":", " ", "\n", "/../b"]))
    part = st.sampled_from(_PARTS) | st.text(max_size=6).filter(lambda text: "\0" not in text)
    parts = draw(st.lists(part, max_size=5)) or ["a"]
    if draw(st.integers(0, 30)) == 0:
        parts *= 1000
    if scheme in _BUCKETS:
        scheme += draw(st.sampled_from(["", "bucket/", "b-1.x/", "bucket/../", "/"]))
    return scheme + draw(st.sampled_from(["/", "", "/../"])).join(parts)


@pytest.fixture(autouse=True)
def elsewhere(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to be in and a home in the yard, credentials that are none, and no patience with who does not answer."""
    for name in ("here", "home"):
        (yard.folder / name).mkdir(exist_ok=True)
    monkeypatch.chdir(yard.folder / "here")
    monkeypatch.setenv("HOME", str(yard.folder / "home"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_REGION", "none")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    proxies = [f"{scheme}_proxy" for scheme in ("http", "https", "ftp", "all")]
    for name in ("STREAMKERNEL_JOBS", "STREAMKERNEL_SCHEDULER", *proxies, *map(str.upper, proxies)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(patience, "PAUSES", ())


def calls(location: str, source: Path) -> dict[str, Any]:
    """What is done with a location."""
    # The command line makes one line of a message whose path has several, Python leaves it as it is.
    of_one_line = " ".join(location.split("\n"))
    return {
        "open_table": lambda: open_table(of_one_line),
        "load": lambda: KernelRidge.load(of_one_line),
        "load of a factor": lambda: Factor.load(of_one_line),
        "info": lambda: commanded("info", "--", location),
        "info, as it is": lambda: commanded("info", location),
        "evaluate": lambda: commanded("evaluate", "--scheduler", "threads", "--", location, location),
        "report": lambda: commanded("report", "--", location, "out.html"),
        "ingest": lambda: commanded("ingest", "--quiet", "--", location, "out"),
        "append": lambda: commanded("ingest", "--quiet", "--append", "--", source, location),
        "predict to it": lambda: commanded("predict", "--scheduler", "threads", "--", "model", source, location),
        "status": lambda: commanded("status", "--", location),
        "jobs": lambda: commanded("jobs", "--", location),
        "cancel": lambda: commanded("cancel", "--jobs", location, "20260131-235959-0a1b2c3d"),
    }


CALLS = list(calls("", Path()))


def fuzz_locations(yard: Yard, examples: int) -> None:
    source = yard.place("source.csv")
    source.write_text("a,b\n1,2\n3,4\n")

    @of_inputs(examples)
    @seed(1)
    @given(location=locations(), call=st.sampled_from(CALLS))
    def run(location: str, call: str) -> None:
        yard.run(calls(location, source)[call])
        assert not os.listdir(yard.folder / "here")
        assert not os.listdir(yard.folder / "home")

    run()
    yard.place("source.csv")


def test_locations(yard: Yard, told: Any) -> None:
    with told("locations", QUICK):
        fuzz_locations(yard, QUICK)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_locations(yard: Yard, told: Any) -> None:
    with told("locations", MANY):
        fuzz_locations(yard, MANY)
