"""Below which URLs a request may name something, where the models are at a URL, too."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import data_sets
import httpx
import pytest
from clusters import Cluster
from problems import zarr_of_chunks

from streamkernel import KernelRidge
from streamkernel.blobs import blobs_at
from streamkernel.errors import ParameterError, StoreError
from streamkernel.service import JobsPlace, Settings
from streamkernel.service.allowed_locations import AllowedLocations
from streamkernel.service.http_errors import Refused
from streamkernel.service.job_actions import JobActions

ASKED = {
    "estimator": "ridge",
    "options": {"n_components": 20, "seed": 1},
    "table": "rows.zarr",
    "model": "fresh",
    "rows": None,
    "queries": None,
    "overwrite": False,
    "memory_limit": None,
}


@pytest.fixture
def roots(s3: str, tmp_path: Path) -> AllowedLocations:
    (tmp_path / "tables").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "tables" / "escape").symlink_to(tmp_path / "secret")
    blobs = blobs_at(s3)
    for key in ("tables/far/zarr.json", "tables/made/CURRENT/00000001.json", "models/m/config.json"):
        blobs.write(key, b"{}")
    places = [f"{s3}/models/", tmp_path / "tables", f"{s3}/tables"]
    return AllowedLocations(places, f"{s3}/models/jobs")


def test_names_are_of_the_first_root_that_has_them(roots: AllowedLocations, s3: str, tmp_path: Path) -> None:
    (tmp_path / "tables" / "near").mkdir()
    assert roots.location("table", "near") == str(tmp_path / "tables" / "near")
    assert roots.location("table", "far") == f"{s3}/tables/far"
    assert roots.location("table", "made/") == f"{s3}/tables/made"
    assert roots.location("table", "m") == f"{s3}/models/m"
    # What is nowhere is looked for, and not found, below the first; there models are made.
    assert roots.location("table", "none") == f"{s3}/models/none"
    assert roots.location("model", "far", output=True) == f"{s3}/models/far"
    assert roots.location("model", f"{s3}/tables/new", output=True) == f"{s3}/tables/new"
    assert roots.location("table", str(tmp_path / "tables" / "near")) == str(tmp_path / "tables" / "near")
    assert roots.public_name(f"{s3}/models/a/b") == "a/b"
    assert roots.without_locations(f"nothing at {s3}/models/a/b") == "nothing at a/b"


def test_a_table_that_is_made_when_it_is_read_is_below_no_root(roots: AllowedLocations) -> None:
    url = "synthetic://friedman?rows=1000&seed=0"
    assert roots.location("table", "synthetic://friedman?rows=1e3") == url
    assert roots.public_name(url) == url
    with pytest.raises(ParameterError, match="no generator 'secret'"):
        roots.location("table", "synthetic://secret")
    with pytest.raises(Refused, match="a URL must be of"):
        roots.location("model", url, output=True)


ELSEWHERE = [
    "..", "../secret", "a/../../secret", "/", "/etc/passwd", ".hidden", "a//b", "a/./b", "a%2e%2e/b", "x?versionId=1",
    "x#y", "file:///etc", "memory://x", "http://host/x", "zip::x", "{s3}", "{s3}/models", "{s3}/models/../secret",
    "{s3}/models2/x", "{s3}/secret/x", "s3://other/models/x", "jobs", "jobs/specs", "{s3}/models/jobs/specs",
    "{folder}/secret", "{folder}/tables/escape/rows",
]  # fmt: skip


@pytest.mark.parametrize("output", [False, True])
def test_nothing_leads_elsewhere(roots: AllowedLocations, s3: str, tmp_path: Path, output: bool) -> None:
    for given in ELSEWHERE if output else [*ELSEWHERE, "escape/rows"]:
        with pytest.raises(Refused) as refused:
            print(given, roots.location("table", given.format(s3=s3, folder=tmp_path), output=output))
        assert refused.value.status == 403


def test_nothing_is_made_inside_of_a_table_or_model(roots: AllowedLocations, s3: str) -> None:
    for given in ("m/x", f"{s3}/tables/made/x", f"{s3}/tables/far/X/y"):
        with pytest.raises(Refused, match="inside of a table or model"):
            roots.location("model", given, output=True)
    with pytest.raises(Refused, match="inside of a table or model"):
        AllowedLocations([f"{s3}/models/m"], "jobs").location("model", "x", output=True)


def test_a_store_that_does_not_answer_is_no_fault_of_the_service(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*arguments: object, **options: object) -> None:
        raise StoreError(f"{s3}/models/rows.zarr/CURRENT failed while listing it; check the endpoint")

    desk = JobActions(
        JobsPlace(str(tmp_path / "jobs")), AllowedLocations([f"{s3}/models", f"{s3}/tables"], str(tmp_path / "jobs"))
    )
    monkeypatch.setattr("streamkernel.service.allowed_locations._is_store", down)
    with pytest.raises(Refused) as refused:
        desk.submit(ASKED)
    assert refused.value.status == 503
    assert s3 not in str(refused.value)


@pytest.fixture
def cluster(s3: str, tmp_path: Path) -> Iterator[Cluster]:
    running = Cluster(tmp_path / "cluster")
    running.folder.mkdir()
    running.start(workers=1, threads=1)
    yield running
    running.stop()


# A scheduler, a worker and a service of its own.
@pytest.mark.slow
def test_a_job_makes_a_model_in_the_bucket_that_is_served(
    s3: str, cluster: Cluster, tmp_path: Path, live: Any, until: Any
) -> None:
    problem = data_sets.friedman(600, 5, seed=1)
    rows = tmp_path / "rows.zarr"
    zarr_of_chunks(rows, problem.X, problem.y, 100)
    for file in (each for each in rows.rglob("*") if each.is_file()):
        blobs_at(f"{s3}/tables").write(f"rows.zarr/{file.relative_to(rows)}", file.read_bytes())
    local = KernelRidge(20, random_state=1).fit(str(rows))
    shutil.rmtree(rows)
    jobs = JobsPlace(f"{s3}/jobs", cluster.address, roots=(f"{s3}/tables",))
    running = live(Settings(f"{s3}/models", poll_seconds=0.2, jobs=jobs))
    with httpx.Client(base_url=running.url, trust_env=False, timeout=60) as client:
        asked = {name: ASKED[name] for name in ("estimator", "options", "table", "model")}
        told = client.post("/v1/jobs", json=asked).json()
        assert (told["table"], told["model"]) == ("rows.zarr", "fresh")
        until(lambda: client.get(f"/v1/jobs/{told['id']}").json()["status"] == "done")
        until(lambda: [model["name"] for model in client.get("/v1/models").json()["models"]] == ["fresh"])
        answer = client.post("/v1/models/fresh/predict", json={"row": problem.X[3].tolist()})
        assert answer.json() == {"prediction": local.predict(problem.X[3][None])[0]}
