"""A location means the key, or the path, that it spells; or it is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from streamkernel import KernelRidge, ingest, open_table
from streamkernel.blobs import beside, blobs_at, generation_of, is_url, joined, local_path, normalised, parent_of
from streamkernel.errors import ParameterError
from streamkernel.store import bundle_kind, check_target

X = np.random.default_rng(0).normal(size=(32, 2))
NAMES = [
    "runs#2", "runs?x=1", "a%41", "100%", "%2e%2e", "a b", " a ", "it's", 'a"b', "é", "\U0001f600", "*", "[a]", "{a}",
    "a|b^c`d", "a\\b", "<a>", "~", "a&b=c+d,e;f@g:h$i!j(k)", "-", "...", "a::b", "x" * 200,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_a_place_of_its_own(s3: str, tmp_path: Path, name: str) -> None:
    for place in (s3, str(tmp_path)):
        around = blobs_at(place)
        blobs_at(f"{place}/{name}").write(f"in{name}", b"1")
        assert around.keys() == [f"{name}/in{name}"]
        assert blobs_at(f"{place}/{name}").read(f"in{name}") == b"1"
        assert around.level().prefixes == [f"{name}/"]
        assert parent_of(f"{place}/{name}") == (place, name)
        assert joined(place, name) == f"{place}/{name}"
        assert beside(f"{place}/{name}", ".{}.run") == f"{place}/.{name}.run"


def test_the_sent_key_is_the_spelled_one(s3: str, s3_server: object) -> None:
    """As the server has it, which decodes once."""
    import boto3
    from s3_server import S3Server

    assert isinstance(s3_server, S3Server)
    client = boto3.client("s3", endpoint_url=s3_server.endpoint)
    for name in NAMES:
        blobs_at(f"{s3}/{name}").write("k", b"1")
    listed = client.list_objects_v2(Bucket=s3.removeprefix("s3://"))["Contents"]
    assert sorted(entry["Key"] for entry in listed) == sorted(f"{name}/k" for name in NAMES)


REFUSED = [
    "{}/a/../b", "{}/..", "{}/.", "{}/./a", "{}/a//b", "{}//a", "{}/a//", "{}/a\nb", "{}/a\tb", "{}/a\r", "{}/\x00",
    "{}/a\x7f", "{}/a\x85", "{}/\udcff", "\x00", "",
]  # fmt: skip


@pytest.mark.parametrize("url", REFUSED)
def test_what_no_key_is_spelled_by(url: str, tmp_path: Path) -> None:
    url = url.format("s3://bucket")
    for call in (
        normalised,
        blobs_at,
        parent_of,
        check_target,
        open_table,
        KernelRidge.load,
        bundle_kind,
        generation_of,
    ):
        with pytest.raises(ParameterError) as caught:
            call(url)
        assert str(caught.value).isprintable()
    with pytest.raises(ParameterError):
        ingest(X, url, overwrite=True)


@pytest.mark.parametrize(
    "url",
    ["memory://a/b#c", "memory://a/b?c", "memory://a/%41", "memory://a/../b", "http://h/a?b", "http://h/%2E%2e/a",
     "http://h/a%2fb", "http://h/a#b", "zip://a::file:///b", "sftp://h/a#b"],
)  # fmt: skip
def test_what_other_drivers_would_read_in_their_own_way(url: str) -> None:
    with pytest.raises(ParameterError, match="means no place"):
        blobs_at(url)


@pytest.mark.parametrize(
    "path", ["s3:/bucket/a", "S3:/a", " s3://bucket/a", "./a://b", "file://relative", "FILE://a", "a\0b"]
)
def test_what_no_path_is_spelled_by(path: str) -> None:
    for call in (normalised, check_target, open_table):
        with pytest.raises(ParameterError):
            call(path)
    with pytest.raises(ParameterError):
        normalised(Path("s3://bucket/a"))


def test_an_overwritten_neighbour(s3: str) -> None:
    ingest(X, f"{s3}/runs", chunk_rows=16)
    before = {key: blobs_at(s3).read(key) for key in blobs_at(s3).stamps()}
    for name in ("runs#2", "runs?2", "r%75ns"):
        ingest(X[:20], f"{s3}/{name}", overwrite=True, chunk_rows=16)
        assert len(open_table(f"{s3}/{name}")) == 20
    assert {key: blobs_at(s3).read(key) for key in before} == before
    assert len(open_table(f"{s3}/runs")) == 32


def test_forms_of_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert normalised("S3://b/x/") == normalised("s3://b/x") == "s3://b/x"
    assert normalised(f"file://{tmp_path}/a") == normalised(f"FILE://{tmp_path}/a") == tmp_path / "a"
    assert not is_url("FILE:///a")
    assert local_path(os.fsencode(tmp_path)) == tmp_path  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    assert normalised("s3") == tmp_path / "s3"
    assert normalised("./s3:/x") == tmp_path / "s3:" / "x"


def test_around_a_linked_folder(tmp_path: Path) -> None:
    """``link/..`` is what is around the folder that the link leads to, as the system has it."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    assert normalised(tmp_path / "link" / ".." / "x") == tmp_path / "a" / "x"
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "thesis").write_text("x")
    ingest(X, f"{tmp_path}/link/../x", overwrite=True, chunk_rows=16)
    assert os.listdir(tmp_path / "x") == ["thesis"]
    assert len(open_table(tmp_path / "a" / "x")) == 32
    assert normalised(tmp_path / "none" / ".." / "x") == tmp_path / "x"


@pytest.mark.parametrize("name", [*NAMES, "a\nb", "a\tb\x1b[31m", "\udcff\udcfe", "n" * 223])
def test_local_tables_and_models_of_any_name(tmp_path: Path, name: str) -> None:
    ingest(X, tmp_path / name, chunk_rows=16)
    assert len(open_table(tmp_path / name)) == 32
    assert os.listdir(os.fsencode(tmp_path)) == [os.fsencode(name)]
    ingest(X[:20], tmp_path / name, chunk_rows=16, overwrite=True)
    assert len(open_table(tmp_path / name)) == 20
    assert os.listdir(os.fsencode(tmp_path)) == [os.fsencode(name)]
