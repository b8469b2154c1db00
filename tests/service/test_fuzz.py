"""Requests made at random against our own OpenAPI: answers it knows, in time, and never a fault of the service.

Schemathesis makes what the schema allows and what it forbids; the bodies of NPY and Arrow, which no schema describes,
are good ones that were damaged. `slow` does the same with more than 10,000 of them.
"""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS, load_all_checks
from service.bodies import as_arrow, as_npy
from service.live import Live

from streamkernel.service import JobsPlace, Settings, job_actions
from streamkernel.service.formats import ARROW, JSON, MEDIA_TYPES, NPY

load_all_checks()

QUICK, MANY = 6, 400
SECONDS = 10.0
X = np.arange(12.0).reshape(3, 4)
GOOD = {
    NPY: [as_npy(X), as_npy(X[0]), as_npy(X.astype(np.float32)), as_npy(np.asfortranarray(X))],
    ARROW: [as_arrow(X), as_arrow(X, batch=1), as_arrow(X.astype(np.int8)), as_arrow(X, list("abcd"))],
    JSON: [b'{"row": [1, 2, 3, 4]}', b'{"rows": [[1, 2.5, -3e2, 4], [0, 0, 0, 0]]}'],
}  # fmt: skip


@pytest.fixture(scope="module")
def fuzzed(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    # Nobody listens at port 1: what could be submitted is answered with 503.
    jobs = JobsPlace(str(tmp_path_factory.mktemp("jobs")), "tcp://127.0.0.1:1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_actions, "_CONNECT_SECONDS", 0.3)
        running = Live(Settings(saved, jobs=jobs))
        yield running
        running.stop()


def of_requests(examples: int) -> settings:
    return settings(
        max_examples=examples, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def by_schema(running: Live, examples: int) -> Counter[int]:
    """Every operation, what the schema allows and what it forbids; a name that exists is put in now and then."""
    schema = schemathesis.openapi.from_url(f"{running.url}/openapi.json")
    names = ["ridge", "gp", "gp-classifier", "features", "none"]
    statuses: Counter[int] = Counter()
    # What the schema cannot say: how many columns the model of that name takes, or whether it has deviations.
    checks = [CHECKS.get_one(name) for name in (
        "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    )]  # fmt: skip
    for found in schema.get_all_operations():
        operation = found.ok()
        cases = operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE)
        negative = operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)

        @of_requests(3 * examples if operation.path.endswith("/predict") else examples)
        @given(case=cases | negative, name=st.sampled_from(names), known=st.booleans())
        def run(case: Any, name: str, known: bool) -> None:
            if known and "name" in (case.path_parameters or {}):
                case.path_parameters["name"] = name
            began = time.monotonic()
            answer = case.call(base_url=running.url, timeout=SECONDS)
            assert time.monotonic() - began < SECONDS
            statuses[answer.status_code] += 1
            # 503 is what a model that cannot be read is answered with, and a job that no scheduler takes.
            if answer.status_code != 503:
                case.validate_response(answer, checks=checks)
            looked_at(answer.status_code, answer.content)

        run()
    return statuses


def looked_at(status: int, content: bytes) -> None:
    assert status < 500 or status == 503, content
    assert b"Traceback" not in content
    assert b"site-packages" not in content
    if status >= 400:
        told = json.loads(content)
        assert set(told["error"]) == {"type", "message"}


@st.composite
def damaged(draw: st.DrawFn, form: str) -> bytes:
    """A good body with bytes changed, taken out, put in, or an end cut off."""
    body = bytearray(draw(st.sampled_from(GOOD[form])))
    for _ in range(draw(st.integers(1, 6))):
        if not body:
            break
        at = draw(st.integers(0, len(body) - 1))
        what = draw(st.integers(0, 4))
        if what == 0:
            body[at] = draw(st.integers(0, 255))
        elif what == 1:
            del body[at : at + draw(st.integers(1, 40))]
        elif what == 2:
            body[at:at] = draw(st.binary(max_size=40))
        elif what == 3:
            del body[at:]
        else:
            body[at : at + 8] = draw(st.sampled_from([b"\xff" * 8, b"\x00" * 8, b"\xff" * 7 + b"\x7f", b"9" * 8]))
    return bytes(body)


def by_damage(running: Live, examples: int) -> Counter[int]:
    statuses: Counter[int] = Counter()
    with httpx.Client(base_url=running.url, trust_env=False, timeout=SECONDS) as client:
        for form, other in ((NPY, ARROW), (ARROW, JSON), (JSON, NPY)):
            of_form(client, form, other, examples, statuses)
    return statuses


def of_form(client: httpx.Client, form: str, other: str, examples: int, statuses: Counter[int]) -> None:
    @of_requests(examples)
    @seed(1)
    @given(
        body=damaged(form) | st.sampled_from(GOOD[form]) | st.binary(max_size=200),
        name=st.sampled_from(["ridge", "gp", "gp-classifier", "labels"]),
        accept=st.sampled_from([form, other]),
        query=st.sampled_from(["", "?std=true", "?probabilities=true"]),
    )
    def run(body: bytes, name: str, accept: str, query: str) -> None:
        headers = {"content-type": MEDIA_TYPES[form], "accept": MEDIA_TYPES[accept]}
        answer = client.post(f"/v1/models/{name}/predict{query}", content=body, headers=headers)
        statuses[answer.status_code] += 1
        looked_at(answer.status_code, answer.content)
        if answer.status_code == 200:
            readable(accept, answer.content)

    run()


def readable(form: str, content: bytes) -> None:
    if form == JSON:
        assert "prediction" in json.loads(content)
    elif form == NPY:
        assert np.isfinite(np.load(io.BytesIO(content))).all()
    else:
        assert pa.ipc.open_stream(content).read_all().num_rows


def alive(running: Live) -> None:
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        assert client.post("/v1/models/ridge/predict", json={"row": [1, 2, 3, 4]}).status_code == 200


def test_requests_by_the_schema(fuzzed: Live) -> None:
    statuses = by_schema(fuzzed, QUICK)
    assert {200, 422} <= set(statuses)
    assert sum(statuses.values()) >= 60
    alive(fuzzed)


def test_a_first_message_that_is_no_schema(fuzzed: Live) -> None:
    """Arrow reads any message as a schema when it is told to, and ends the process where it then points."""
    body = GOOD[ARROW][0]
    batches = body[8 + int.from_bytes(body[4:8], "little") :]
    assert first_message(batches) == "record batch"
    # The type of a message is one byte of its metadata.
    others = [body[:at] + bytes([value]) + body[at + 1 :] for at in range(8, 64) for value in (2, 3, 4, 5)]
    others = [changed for changed in others if first_message(changed) not in (None, "schema")]
    assert others
    with httpx.Client(base_url=fuzzed.url, trust_env=False) as client:
        for sent in (batches, *others):
            answer = client.post("/v1/models/ridge/predict", content=sent, headers={"content-type": MEDIA_TYPES[ARROW]})
            assert answer.status_code == 400
    alive(fuzzed)


def first_message(body: bytes) -> str | None:
    try:
        return str(pa.ipc.MessageReader.open_stream(pa.BufferReader(body)).read_next_message().type)
    except (pa.ArrowException, OSError, ValueError, EOFError, StopIteration):
        return None


def test_bodies_that_were_damaged(fuzzed: Live) -> None:
    statuses = by_damage(fuzzed, 40)
    assert {200, 400, 422} <= set(statuses)
    alive(fuzzed)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_more(fuzzed: Live) -> None:
    by_the_schema, of_bodies = by_schema(fuzzed, MANY), by_damage(fuzzed, 8 * MANY)
    for name, statuses in (("requests by the schema", by_the_schema), ("bodies that were damaged", of_bodies)):
        ends = ", ".join(f"{status}: {count}" for status, count in statuses.most_common())
        print(f"\nfuzz: {name}: {statuses.total()} inputs: {ends}")
    assert by_the_schema.total() + of_bodies.total() >= 10_000
    alive(fuzzed)
