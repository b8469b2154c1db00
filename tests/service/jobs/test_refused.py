"""What is refused of jobs over HTTP, what is told of damaged ones, and that the schema says so."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from service.bodies import refused
from service.submitting import asked, settings_of

from streamkernel.blobs import LocalBlobs, blobs_at
from streamkernel.errors import StoreError
from streamkernel.service import JobsPlace, Settings, create_app

TOKEN = "correct-horse-battery"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"estimator": "forest"}, ["forest"]),
        ({"estimator": 1}, ["estimator"]),
        ({"options": {"depth": 3}}, ["depth"]),
        ({"options": {"n_components": "many"}}, []),
        ({"options": {"n_components": {"a": 1}}}, []),
        ({"options": {"alpha": -1}}, ["alpha"]),
        ({"options": {"kernel": {"kernel": "none"}}}, []),
        ({"options": {"metric": "learnt"}}, ["metric", "'learned'"]),
        ({"options": {"metric": 3}}, ["metric", "matrix of finite numbers"]),
        ({"options": {"metric": [1.0, 2.0]}}, ["metric", "shape (2,)"]),
        ({"options": {"metric": [[1.0], ["a"]]}}, ["metric", "matrix of finite numbers"]),
        ({"options": {"metric": [[1.0], [1.0, 2.0]]}}, ["metric", "matrix of finite numbers"]),
        ({"options": {"metric": {"a": 1}}}, ["metric"]),
        ({"options": {"metric": "none", "metric_rank": 2}}, ["metric_rank", "only a learned metric"]),
        ({"options": []}, ["options"]),
        ({"rows": [1]}, ["rows"]),
        ({"rows": [0.5, 2]}, ["rows"]),
        ({"rows": [500, 100]}, []),
        ({"rows": [0, 10**30]}, []),
        ({"memory_limit": "much"}, []),
        ({"overwrite": "yes"}, ["overwrite"]),
        ({"table": ""}, ["table"]),
        ({"table": 3}, ["table"]),
        ({"table": "none.zarr"}, ["none.zarr"]),
        ({"client": "tcp://127.0.0.1:1"}, ["client"]),
    ],
)
def test_what_cannot_be_fitted(asking: httpx.Client, changes: dict[str, Any], words: list[str]) -> None:
    answer = asking.post("/v1/jobs", json={**asked("made"), **changes})
    refused(answer, 422, answer.json()["error"]["type"], *words)


@pytest.mark.parametrize(
    "store", ["/", "/etc", "../rows.zarr", "s3://another/bucket", "file:///etc", "http://127.0.0.1/x"]
)
def test_held_out_rows_beyond_the_roots(asking: httpx.Client, store: str) -> None:
    body = {**asked("made"), "estimator": "kmp", "options": {"validation": store}}
    answer = asking.post("/v1/jobs", json=body)
    refused(answer, 403, answer.json()["error"]["type"], "validation rows")


def test_a_disk_that_is_full(asking: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrong with the request: it is to be sent again later, and is taken then."""

    def full(self: LocalBlobs, key: str, value: bytes) -> bool:
        raise StoreError(f"no space left while creating {self.folder}/{key}; free some, then run again")

    before = asking.get("/v1/jobs").json()["jobs"]
    with monkeypatch.context() as patched:
        patched.setattr(LocalBlobs, "create", full)
        answer = asking.post("/v1/jobs", json=asked("made"))
    refused(answer, 503, "StoreError", "no space left")
    assert str(folder) not in answer.text
    assert asking.get("/v1/jobs").json()["jobs"] == before


def test_bodies_that_are_none(asking: httpx.Client) -> None:
    headers = {"content-type": "application/json"}
    for body in (b"", b'{"estimator": ', b"\xff\xfe", b"[" * 100_000):
        assert asking.post("/v1/jobs", content=body, headers=headers).status_code in (400, 422)
    twice = b'{"estimator": "ridge", "table": "rows.zarr", "model": "a", "options": {"alpha": 1, "alpha": 2}}'
    refused(asking.post("/v1/jobs", content=twice, headers=headers), 400, "MalformedBody", "'alpha' is there twice")
    refused(asking.post("/v1/jobs", content=b" " * 2_000_000, headers=headers), 413, "TooLarge")
    # A page of another site can send these without asking first.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = asking.post("/v1/jobs", content=b"{}", headers={"content-type": kind})
        refused(answer, 415, "UnsupportedMediaType", "application/json")


def test_jobs_that_are_not_there(asking: httpx.Client) -> None:
    for id in ("20260101-000000-01234567", "none", "..", "%2e%2e", "specs"):
        for path in (f"/v1/jobs/{id}", f"/v1/jobs/{id}/logs"):
            assert asking.get(path).status_code == 404
        assert asking.delete(f"/v1/jobs/{id}").status_code in (404, 405)
    refused(asking.get("/v1/jobs/none"), 404, "UnknownJob")
    refused(asking.get("/v1/jobs?limit=0"), 422, "ParameterError", "limit")
    refused(asking.get("/v1/jobs/none/logs?after=x"), 422, "ParameterError", "after")


def test_a_damaged_record_hides_no_other(folder: Path, live: Any, tmp_path: Path) -> None:
    place = tmp_path / "jobs"
    if (folder / "jobs").exists():
        shutil.copytree(folder / "jobs", place)
    blobs_at(str(place)).create("specs/20990101-000000-01234567.json", b"{")
    before = len(list((place / "specs").iterdir()))
    running = live(Settings(folder / "models", jobs=JobsPlace(str(place))))
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        listed = client.get("/v1/jobs").json()
        assert len(listed["jobs"]) == before
        assert listed["jobs"][0]["status"] == "unreadable"
        assert listed["jobs"][0]["error"]["type"] == "CorruptMetadataError"
        assert not listed["submits"]
        # Without a scheduler nothing is submitted.
        refused(client.post("/v1/jobs", json=asked("made")), 405, "MethodNotAllowed")
        assert "post" not in client.get("/openapi.json").json()["paths"]["/v1/jobs"]


def test_without_the_token_nothing_is_told(folder: Path, live: Any) -> None:
    running = live(settings_of(folder, "tcp://127.0.0.1:1", token=TOKEN))
    id = "20260101-000000-01234567"
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        for method, path in (
            ("GET", ""),
            ("GET", f"/{id}"),
            ("GET", f"/{id}/logs"),
            ("DELETE", f"/{id}"),
            ("POST", ""),
        ):
            for headers in ({}, {"authorization": "Bearer another-token-than-this"}):
                answer = client.request(method, f"/v1/jobs{path}", headers=headers)
                refused(answer, 401, "Unauthorized")
        assert client.get("/v1/jobs", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_without_a_place_there_are_no_routes(client: httpx.Client) -> None:
    assert not [path for path in client.get("/openapi.json").json()["paths"] if "jobs" in path]
    refused(client.get("/v1/jobs"), 404, "NotFound")
    refused(client.post("/v1/jobs", json={}), 404, "NotFound")
    assert "data-jobs" not in client.get("/").text


def test_the_schema_says_what_is_so(asking: httpx.Client, folder: Path) -> None:
    schema = asking.get("/openapi.json").json()
    paths = {path: set(operations) for path, operations in schema["paths"].items() if "jobs" in path}
    assert paths == {"/v1/jobs": {"get", "post"}, "/v1/jobs/{id}": {"get", "delete"}, "/v1/jobs/{id}/logs": {"get"}}

    def validate(name: str, told: Any) -> None:
        Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": schema["components"]}).validate(
            told
        )

    listed = asking.get("/v1/jobs").json()
    validate("JobList", listed)
    for job in listed["jobs"]:
        validate("JobStatus", asking.get(f"/v1/jobs/{job['id']}").json())
        validate("JobLogs", asking.get(f"/v1/jobs/{job['id']}/logs").json())
    validate("JobRequest", asked("model", rows=[0, None], memory_limit="4GB"))
    secured = create_app(settings_of(folder, None, token=TOKEN)).openapi()
    assert all(each["security"] == [{"token": []}] for each in secured["paths"]["/v1/jobs/{id}"].values())
