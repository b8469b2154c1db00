"""Jobs over HTTP: submitted, watched, cancelled; on the page; and what becomes of a lost scheduler."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import data_sets
import httpx
import pytest
from clusters import Cluster
from service.bodies import refused
from service.browser import Browser, missing
from service.live import Live
from service.submitting import LONG, asked, ended, settings_of, until

from streamkernel import KernelRidge
from streamkernel.service import job_actions


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


@pytest.mark.parametrize(
    "metric",
    [pytest.param("learned", marks=pytest.mark.slow), [[2.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.5], [0.1, 0.0]]],
)
def test_a_job_takes_a_metric(asking: httpx.Client, folder: Path, metric: Any) -> None:
    """As a word, or as a matrix: the rows of a nested array."""
    name = "in-a-metric" if isinstance(metric, str) else "in-a-given-metric"
    answer = asking.post("/v1/jobs", json=asked(name, options={"n_components": 20, "metric": metric}))
    assert answer.status_code == 201, answer.text
    told = ended(asking, answer.json()["id"])
    assert told["status"] == "done", told
    fitted = KernelRidge(20, metric=metric).fit(str(folder / "tables" / "rows.zarr"))
    assert told["result"]["digest"] == fitted.model_.digest


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


@pytest.fixture
def refusing() -> Iterator[str]:
    """An address that is bound and not listening: nobody else gets the port meanwhile, and whoever calls is refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"tcp://127.0.0.1:{taken.getsockname()[1]}"


def test_a_scheduler_that_is_lost(folder: Path, live: Any, refusing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_actions, "_CONNECT_SECONDS", 0.3)
    running = live(settings_of(folder, refusing))
    with httpx.Client(base_url=running.url, trust_env=False, timeout=60) as client:
        for _ in range(3):
            answer = client.post("/v1/jobs", json=asked("made"))
            refused(answer, 503, "ClusterError", "nothing was submitted")
            assert refusing.rpartition(":")[2] not in answer.text
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


@pytest.mark.skipif(missing is not None, reason=missing or "")
@pytest.mark.slow
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
