"""Services of models in an object store that is lost, comes back, or was never there; over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
import pytest
from objects.flaky_proxy import FlakyProxy

from streamkernel.service import Settings


@pytest.mark.slow
def test_over_http(
    s3: str, proxy: FlakyProxy, estimators: dict[str, Any], live: Any, rows: np.ndarray, until: Any
) -> None:
    url = f"{s3}/our/models"
    estimators["ridge"].save(f"{url}/ridge")
    running = live(Settings(url, poll_seconds=0.05))
    with httpx.Client(base_url=running.url, trust_env=False, timeout=30) as client:

        def predicted() -> Any:
            return client.post("/v1/models/ridge/predict", json={"row": rows[0].tolist()}).json()["prediction"]

        assert predicted() == estimators["ridge"].predict(rows[:1])[0]
        assert client.get("/healthz").json() == {"status": "ok", "models": 1, "failing": 0, "stale": False}
        estimators["gp"].save(f"{url}/ridge", overwrite=True)
        wanted = estimators["gp"].predict(rows[:1])[0]
        until(lambda: predicted() == wanted)
        seen = client.get("/metrics").text
        assert 'streamkernel_model_generation{model="ridge"} 2.0' in seen
        assert "streamkernel_models_stale 0.0" in seen
        proxy.fault = lambda method, path: "reset"
        until(lambda: client.get("/healthz").json()["stale"])
        assert client.get("/healthz").json() == {"status": "degraded", "models": 1, "failing": 0, "stale": True}
        assert predicted() == wanted
        assert "streamkernel_models_stale 1.0" in client.get("/metrics").text
        told = client.get("/v1/models").json()
        assert [model["ready"] for model in told["models"]] == [True]
        assert told["stale"]["error"] == {"type": "StoreError", "message": "the object store does not answer"}
        proxy.fault = lambda method, path: None
        until(lambda: client.get("/healthz").json()["status"] == "ok")
        assert client.get("/v1/models").json()["stale"] is None
        for path in ("/v1/models", "/v1/models/ridge", "/v1/models/other"):
            text = client.get(path).text
            assert not any(part in text for part in (url, "our/models", "127.0.0.1"))


def test_a_service_that_starts_while_the_store_is_down(
    bucket: str, proxy: FlakyProxy, live: Any, rows: np.ndarray, until: Any
) -> None:
    proxy.fault = lambda method, path: "503"
    running = live(Settings(bucket, poll_seconds=0.05))
    with httpx.Client(base_url=running.url, trust_env=False, timeout=30) as client:
        assert client.get("/healthz").json() == {"status": "degraded", "models": 0, "failing": 0, "stale": True}
        answer = client.post("/v1/models/ridge/predict", json={"row": rows[0].tolist()})
        assert (answer.status_code, answer.json()["error"]["type"]) == (503, "StoreError")
        proxy.fault = lambda method, path: None
        until(lambda: client.get("/healthz").json()["models"] == 2)


def test_a_service_ends_while_the_store_is_silent(bucket: str, proxy: FlakyProxy, live: Any, until: Any) -> None:
    running = live(Settings(f"{bucket}/gp", poll_seconds=0.05))
    proxy.fault = lambda method, path: "silent"
    until(lambda: proxy.faults)
    running.stop()
    # The look has not ended yet, and nobody has waited for it.
    assert running.service.registry.stale is None
