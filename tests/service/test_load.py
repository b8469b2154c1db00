"""Many clients at once, and a reload in the middle: nothing is lost, doubled or exchanged."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from streamkernel.service import Settings

CLIENTS, SECONDS = 8, 1.2
ROUTES = ("/healthz", "/v1/models", "/metrics", "/")


@pytest.mark.slow
def test_a_reload_under_load(models: Path, estimators: dict[str, Any], rows: np.ndarray, live: Any) -> None:
    running = live(Settings(models))
    bodies = [json.dumps({"row": row}).encode() for row in rows.tolist()]
    expected = [[estimators[name].predict(row[None])[0] for row in rows[:200]] for name in ("ridge", "gp")]
    counted: Counter[str] = Counter()
    wrong: list[Any] = []
    stop = threading.Event()

    def ask(first: int) -> None:
        own: Counter[str] = Counter()
        with httpx.Client(base_url=running.url, trust_env=False, timeout=20) as client:
            i = first
            while not stop.is_set():
                i = (i + 1) % 200
                answer = client.post(
                    "/v1/models/ridge/predict", content=bodies[i], headers={"content-type": "application/json"}
                )
                told = answer.json().get("prediction")
                known = [side for side, values in zip(("before", "after"), expected, strict=True) if told == values[i]]
                if not known:
                    wrong.append((answer.status_code, answer.text))
                    return
                own[known[0]] += 1
        counted.update(own)

    threads = [threading.Thread(target=ask, args=(25 * k,)) for k in range(CLIENTS)]
    for thread in threads:
        thread.start()
    stop.wait(SECONDS / 2)
    estimators["gp"].save(models / "ridge", overwrite=True)
    stop.wait(SECONDS)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert counted["before"] > 0
    assert counted["after"] > 0
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        text = client.get("/metrics").text
    answered = sum(counted.values())
    assert f'streamkernel_requests_total{{route="predict",status="200"}} {float(answered)}' in text
    assert f'streamkernel_rows_predicted_total{{model="ridge"}} {float(answered)}' in text
    assert "streamkernel_queue_depth 0.0" in text


@pytest.mark.slow
def test_a_large_body_is_never_held_whole(saved: Path, tmp_path: Path) -> None:
    """In a process of its own, whose memory is its own."""
    code = """
import io, json, sys, threading
from pathlib import Path
import httpx, numpy as np, psutil
sys.path.insert(0, sys.argv[2])
from service.live import Live
from streamkernel.service import Settings

def main():
    live = Live(Settings(Path(sys.argv[1])))
    head = io.BytesIO()
    m = 1_500_000
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (m, 4)})
    block = np.random.default_rng(0).uniform(size=(10_000, 4)).tobytes()
    def body(times):
        yield head.getvalue()
        for _ in range(times):
            yield block
    def ask(client):
        headers = {"content-type": "application/x-npy", "accept": "application/x-npy"}
        seen = 0
        with client.stream("POST", "/v1/models/ridge/predict", content=body(150), headers=headers) as answer:
            assert answer.status_code == 200
            for piece in answer.iter_bytes():
                seen += len(piece)
        return seen
    with httpx.Client(base_url=live.url, trust_env=False, timeout=120) as client:
        client.post("/v1/models/ridge/predict", json={"row": [1, 2, 3, 4]})
        process = psutil.Process()
        before = peak = process.memory_info().rss
        done = threading.Event()
        def watch():
            nonlocal peak
            while not done.wait(0.01):
                peak = max(peak, process.memory_info().rss)
        watcher = threading.Thread(target=watch)
        watcher.start()
        seen = ask(client)
        done.set()
        watcher.join()
    live.stop()
    print(json.dumps({"seen": seen, "grown": peak - before}))

main()
"""
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code, str(saved), str(tests)], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["seen"] == 8 * 1_500_000 + 128
    # 48 MB went in and 12 MB came out.
    assert found["grown"] < 30e6


def test_metrics_know_routes_and_not_names(live: Any, saved: Path) -> None:
    running = live(Settings(saved))
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        for route in ROUTES:
            client.get(route)
        for i in range(20):
            client.get(f"/v1/models/unknown{i}")
            client.get(f"/elsewhere{i}")
        text = client.get("/metrics").text
    for route in ROUTES:
        assert f'streamkernel_requests_total{{route="{route}",status="200"}}' in text
    assert 'streamkernel_requests_total{route="/v1/models/{name}",status="404"} 20.0' in text
    assert "unknown1" not in text
    assert "elsewhere1" not in text
