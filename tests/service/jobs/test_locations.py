"""Where jobs may read and write: below the roots, by whatever name it is asked for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import httpx
import pytest
from service.bodies import refused
from service.submitting import asked

from streamkernel.errors import ParameterError
from streamkernel.service.allowed_locations import AllowedLocations
from streamkernel.service.http_errors import Refused

FORBIDDEN = [
    "../secret/rows.zarr", "models/../../secret/rows.zarr", "rows.zarr/../../secret/rows.zarr", "..", "/",
    "/etc/passwd", "escape/rows.zarr", "{folder}/tables/escape/rows.zarr", "{folder}/secret/rows.zarr",
    "{folder}/tables/../secret", "{folder}/tables", "{folder}/tables/", "{folder}", "{folder}/tables2/rows.zarr",
    "{folder}/jobs", "{folder}/jobs/specs", "file:///etc", "file://{folder}/tables/rows.zarr",
    "file:{folder}/tables/rows.zarr", "FILE:///etc", "http://host/rows", "https://host/rows", "memory://rows",
    "s3://bucket", "s3://bucket/tables", "s3://bucket/tables2/rows", "s3://other/tables/rows",
    "s3://bucket/tables/../secret", "s3://bucket/tables/./x", "s3://bucket/tables//x", "s3://bucket/tables/%2e%2e/x",
    "s3://bucket/tables/x?versionId=1", "s3://bucket/tables/x#y", "S3://bucket/tables/x", "s3://user@bucket/tables/x",
    "zip::rows.zarr", "simplecache::s3://bucket/tables/x", "zip://x::file:///etc",
    "s3://bucket/tables/x::file:///etc", "reference://", "rows.zarr\n", "rows\0", "\\\\host\\share", ".hidden",
    ".jobs/specs", "~/rows", "$HOME", "C:\\rows", "a" * 1000 + "/../b", "rows.zarr/.zattrs",
]  # fmt: skip


def contents(folder: Path) -> list[Path]:
    """What is there; not what jobs at work may write meanwhile."""
    return [*sorted(folder.glob("[!.]*/[!.]*")), *sorted(folder.glob("jobs/specs/*"))]


@pytest.mark.parametrize("name", FORBIDDEN)
def test_locations_that_lead_elsewhere(asking: httpx.Client, folder: Path, name: str) -> None:
    given = name.format(folder=folder)
    before = contents(folder)
    for body in (asked("made", given), asked(given), asked("made", queries=given)):
        refused(asking.post("/v1/jobs", json=body), 403, "ForbiddenLocation")
    assert contents(folder) == before


def test_what_is_there_is_not_written_into(asking: httpx.Client, folder: Path, saved: Path) -> None:
    if not (folder / "models" / "kept").exists():
        shutil.copytree(saved / "gp", folder / "models" / "kept")
    for model in ("kept/inner", "kept/components/c", str(folder / "tables" / "rows.zarr" / "model")):
        refused(asking.post("/v1/jobs", json=asked(model)), 403, "ForbiddenLocation", "inside of a table or model")
    table = str(folder / "tables" / "rows.zarr")
    refused(asking.post("/v1/jobs", json=asked(table, overwrite=True)), 409, "StoreExistsError", "not a saved model")


def test_roots_follow_links_and_know_names(tmp_path: Path) -> None:
    for name in ("real", "other"):
        (tmp_path / name).mkdir()
    os.symlink("real", tmp_path / "root")
    os.symlink("model", tmp_path / "real" / "current")
    roots = AllowedLocations([tmp_path / "root", "s3://b/data/"], str(tmp_path / "real" / "jobs"))
    real = tmp_path / "real"
    # What is handed on is what was compared.
    assert roots.location("table", "current") == str(real / "model")
    assert roots.location("table", str(tmp_path / "root" / "a" / "b")) == str(real / "a" / "b")
    assert roots.location("model", "s3://b/data/x/y.zarr/") == "s3://b/data/x/y.zarr"
    named = (str(real / "a/b"), "s3://b/data/x/y", "/elsewhere/z", "s3://c/d/e")
    assert [roots.public_name(each) for each in named] == ["a/b", "x/y", "z", "e"]
    assert (
        roots.without_locations(f"made {tmp_path}/root/a/b of s3://b/data/x by tls://host:1 from /q/w")
        == "made a/b of x by a worker from w"
    )
    with pytest.raises(Refused, match="records of jobs"):
        roots.location("model", "jobs/specs", output=True)
    for wrong in ("http://host/data", "memory://x", str(tmp_path / "none")):
        with pytest.raises(ParameterError, match="root of data"):
            AllowedLocations([wrong], "jobs")
