"""Jobs over HTTP: submitted, watched, cancelled; what they may read and write; what becomes of a lost scheduler."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import data_sets
import httpx
import numpy as np
import pytest
from dask_processes import Cluster
from jsonschema import Draft202012Validator
from problems import zarr_of_chunks
from service.bodies import refused
from service.browser import Browser, missing
from service.live import Live

from streamkernel import KernelRidge
from streamkernel.blobs import blobs_at
from streamkernel.errors import ParameterError
from streamkernel.service import JobsPlace, Settings, create_app
from streamkernel.service.refusals import Refused
from streamkernel.service.roots import Roots

TOKEN = "correct-horse-battery"
OPTIONS = {"n_components": 20, "seed": 1}
# Of some forty sweeps, so that there is something to look at and to cancel.
LONG = {"n_components": 320, "rule": "rpcholesky", "rule_options": {"block": 8}, "lengthscale": 3.0}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    running.start(workers=1, threads=1)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With tables, models and jobs below it, and something beside them that nobody may see."""
    folder = tmp_path_factory.mktemp("served")
    small, large = data_sets.friedman(600, 5, seed=1), data_sets.friedman(40_000, 5, seed=1)
    for name in ("models", "tables", "secret"):
        (folder / name).mkdir()
    zarr_of_chunks(folder / "tables" / "rows.zarr", small.X, small.y, 100)
    zarr_of_chunks(folder / "tables" / "large.zarr", large.X.astype(np.float32), large.y, 1000)
    zarr_of_chunks(folder / "secret" / "rows.zarr", small.X, small.y, 100)
    broken = small.X.copy()
    broken[321, 2] = np.nan
    zarr_of_chunks(folder / "tables" / "broken.zarr", broken, small.y, 100)
    for name in ("models", "tables"):
        os.symlink(folder / "secret", folder / name / "escape")
    return folder


def settings_of(folder: Path, scheduler: str | None, **changes: Any) -> Settings:
    jobs = JobsPlace(str(folder / "jobs"), scheduler, roots=(str(folder / "tables"), "s3://bucket/tables"))
    return Settings(folder / "models", jobs=jobs, **changes)


@pytest.fixture(scope="module")
def running(cluster: Cluster, folder: Path) -> Iterator[Live]:
    found = Live(settings_of(folder, cluster.address))
    yield found
    found.stop()


@pytest.fixture(scope="module")
def asking(running: Live) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=running.url, trust_env=False, timeout=60) as client:
        yield client


def asked(model: str, table: str = "rows.zarr", **changes: Any) -> dict[str, Any]:
    return {"estimator": "ridge", "options": OPTIONS, "table": table, "model": model, **changes}


def until(what: Callable[[], Any], seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)
    return value


def ended(client: httpx.Client, id: str) -> dict[str, Any]:
    def look() -> Any:
        told = client.get(f"/v1/jobs/{id}").json()
        return told if told["status"] in ("done", "failed", "cancelled") else None

    return until(look)


def test_a_job_is_submitted_and_its_model_predicts(asking: httpx.Client, folder: Path) -> None:
    answer = asking.post("/v1/jobs", json=asked("fresh"))
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["model"], told["table"], told["estimator"]) == ("fresh", "rows.zarr", "ridge")
    done = ended(asking, told["id"])
    assert done["status"] == "done", done
    assert done["progress"]["sweeps_done"] >= 2
    local = KernelRidge(20, random_state=1).fit(str(folder / "tables" / "rows.zarr"))
    assert done["result"]["digest"] == local.model_.digest
    until(lambda: "fresh" in [model["name"] for model in asking.get("/v1/models").json()["models"]])
    row = data_sets.friedman(600, 5, seed=1).X[3]
    predicted = asking.post("/v1/models/fresh/predict", json={"row": row.tolist()})
    assert predicted.json() == {"prediction": local.predict(row[None])[0]}
    listed = asking.get("/v1/jobs").json()
    assert done["id"] in [job["id"] for job in listed["jobs"]]
    assert listed["submits"]
    # Made from one place to the next in the log; of the machine there is nothing in it.
    logs = asking.get(f"/v1/jobs/{told['id']}/logs").json()
    assert [event["event"] for event in logs["events"]][:: len(logs["events"]) - 1] == ["submitted", "done"]
    assert asking.get(f"/v1/jobs/{told['id']}/logs", params={"after": logs["last"]}).json() == {
        "events": [], "last": logs["last"],
    }  # fmt: skip
    for path in ("", f"/{told['id']}", f"/{told['id']}/logs"):
        text = asking.get(f"/v1/jobs{path}").text
        assert str(folder) not in text
        assert "/tmp" not in text
        assert socket.gethostname() not in text
        assert "127.0.0.1" not in text
    # The same again is refused; asked for, it replaces.
    refused(asking.post("/v1/jobs", json=asked("fresh")), 409, "StoreExistsError", "fresh exists")
    again = asking.post("/v1/jobs", json=asked(str(folder / "models" / "fresh"), overwrite=True, rows=[0, 500]))
    assert ended(asking, again.json()["id"])["status"] == "done"
    refused(asking.delete(f"/v1/jobs/{told['id']}"), 409, "ParameterError", "done already")


def test_a_job_that_fails_says_why(asking: httpx.Client) -> None:
    told = asking.post("/v1/jobs", json=asked("never", "broken.zarr")).json()
    failed = ended(asking, told["id"])
    assert failed["status"] == "failed"
    assert failed["error"]["type"] == "NonFiniteDataError"
    assert failed["error"]["message"].startswith("X contains NaN")
    assert "chunk X/c/3/0 of broken.zarr;" in failed["error"]["message"]


def test_a_job_is_watched_and_cancelled(asking: httpx.Client, folder: Path, tmp_path: Path) -> None:
    told = asking.post("/v1/jobs", json=asked("stopped", "large.zarr", options=LONG)).json()
    id = told["id"]
    until(lambda: (asking.get(f"/v1/jobs/{id}").json()["progress"] or {}).get("sweeps_done"))
    refused(asking.post("/v1/jobs", json=asked("stopped")), 409, "StoreExistsError", "is making stopped already")
    assert asking.delete(f"/v1/jobs/{id}").json()["status"] in ("cancelling", "cancelled")
    assert ended(asking, id)["status"] == "cancelled"
    assert not (folder / "models" / "stopped").exists()


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
    roots = Roots([tmp_path / "root", "s3://b/data/"], str(tmp_path / "real" / "jobs"))
    real = tmp_path / "real"
    # What is handed on is what was compared.
    assert roots.location("table", "current") == str(real / "model")
    assert roots.location("table", str(tmp_path / "root" / "a" / "b")) == str(real / "a" / "b")
    assert roots.location("model", "s3://b/data/x/y.zarr/") == "s3://b/data/x/y.zarr"
    assert [roots.name(each) for each in (str(real / "a/b"), "s3://b/data/x/y", "/elsewhere/z", "s3://c/d/e")] == [
        "a/b", "x/y", "z", "e",
    ]  # fmt: skip
    assert (
        roots.told(f"made {tmp_path}/root/a/b of s3://b/data/x by tls://host:1 from /q/w")
        == "made a/b of x by a worker from w"
    )
    with pytest.raises(Refused, match="records of jobs"):
        roots.location("model", "jobs/specs", output=True)
    for wrong in ("http://host/data", "memory://x", str(tmp_path / "none")):
        with pytest.raises(ParameterError, match="root of data"):
            Roots([wrong], "jobs")


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


def test_bodies_that_are_none(asking: httpx.Client) -> None:
    headers = {"content-type": "application/json"}
    for body in (b"", b'{"estimator": ', b"\xff\xfe", b"[" * 100_000):
        assert asking.post("/v1/jobs", content=body, headers=headers).status_code in (400, 422)
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


def test_a_scheduler_that_is_lost(folder: Path, live: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    running = live(settings_of(folder, address))
    with httpx.Client(base_url=running.url, trust_env=False, timeout=60) as client:
        for _ in range(3):
            answer = client.post("/v1/jobs", json=asked("made"))
            refused(answer, 503, "ClusterError", "nothing was submitted")
            assert address.rpartition(":")[2] not in answer.text
        # What is written down is told all the same.
        assert client.get("/v1/jobs").status_code == 200
        assert client.get("/healthz").json()["status"] == "ok"


@pytest.mark.slow
def test_a_scheduler_that_comes_back(folder: Path, live: Any, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.start(workers=0)
    port = int(cluster.address.rpartition(":")[2])
    try:
        running = live(settings_of(folder, cluster.address))
        with httpx.Client(base_url=running.url, trust_env=False, timeout=60) as client:
            first = client.post("/v1/jobs", json=asked("one")).json()
            assert client.get(f"/v1/jobs/{first['id']}").json()["status"] == "queued"
            cluster.kill(cluster.scheduler)
            refused(client.post("/v1/jobs", json=asked("two")), 503, "ClusterError")
            cluster.start(workers=1, port=port)
            second = until(lambda: _submitted(client, "two"))
            # The one that the former scheduler knew is had driven again by the service itself.
            assert {ended(client, id)["status"] for id in (first["id"], second)} == {"done"}
    finally:
        cluster.stop()


def _submitted(client: httpx.Client, model: str) -> str | None:
    answer = client.post("/v1/jobs", json=asked(model))
    return answer.json()["id"] if answer.status_code == 201 else None


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
        validate("JobTold", asking.get(f"/v1/jobs/{job['id']}").json())
        validate("JobLogs", asking.get(f"/v1/jobs/{job['id']}/logs").json())
    validate("JobAsked", asked("model", rows=[0, None], memory_limit="4GB"))
    secured = create_app(settings_of(folder, None, token=TOKEN)).openapi()
    assert all(each["security"] == [{"token": []}] for each in secured["paths"]["/v1/jobs/{id}"].values())


@pytest.mark.skipif(missing is not None, reason=missing or "")
def test_the_page_follows_a_job(asking: httpx.Client, running: Live, tmp_path: Path) -> None:
    id = asking.post("/v1/jobs", json=asked("watched", "large.zarr", options=LONG)).json()["id"]
    until(lambda: asking.get(f"/v1/jobs/{id}").json()["progress"])
    row = "[...document.querySelectorAll('.job')].find((each) => each.querySelector('.name').textContent === 'watched')"
    with Browser(tmp_path, 1280, 1400) as page:
        page.open(running.url)
        page.wait_for(f"{row}?.classList.contains('running')")
        page.wait_for(f"/sweep \\d+ of \\d+, .+ rows/.test({row}.querySelector('.now').textContent)")
        width = f"parseFloat({row}.querySelector('.sweeps span').style.width)"
        first = page.run(f"return {width}")
        page.wait_for(f"{width} > {first}")
        page.run(f"{row}.querySelector('.show-log').click()")
        page.wait_for(f"{row}.querySelectorAll('.log li').length > 2")
        page.picture(tmp_path / "jobs.png")
        # Once is not enough.
        page.run(f"{row}.querySelector('.cancel').click()")
        assert page.run(f"return {row}.querySelector('.cancel').textContent") == "Really?"
        page.run(f"{row}.querySelector('.cancel').click()")
        page.wait_for(f"{row}.classList.contains('cancelled')")
        assert page.run(f"return {row}.querySelector('.cancel').hidden")
        assert page.complaints() == []
        asked_for = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        assert all(name.startswith(running.url) for name in asked_for)
    assert ended(asking, id)["status"] == "cancelled"
