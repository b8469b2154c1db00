"""What cannot be answered is refused in one shape, which names row and column and no path of the machine."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from service.bodies import as_arrow, as_npy, refused
from service.live import Live

from streamkernel.service import Settings
from streamkernel.service.formats import ARROW, JSON, MEDIA_TYPES, NPY
from streamkernel.service.http_errors import without_paths

X = np.arange(12.0).reshape(3, 4)


def send(client: httpx.Client, body: Any, sent: str = JSON, name: str = "ridge", **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post(
        f"/v1/models/{name}/predict", content=content, headers={"content-type": MEDIA_TYPES.get(sent, sent), **headers}
    )


@pytest.mark.parametrize(
    ("body", "status", "kind", "words"),
    [
        ({"row": [1, 2, 3]}, 422, "ShapeError", ["row 0", "3 values", "takes 4"]),
        ({"rows": [[1, 2, 3, 4], [1, 2, 3, 4, 5]]}, 422, "ShapeError", ["row 1", "5 values"]),
        ({"rows": [[1, 2, 3, 4], 7]}, 422, "ShapeError", ["row 1", "not a list"]),
        ({"rows": [[1, 2, 3, 4], [1, 2, "3", 4]]}, 422, "DTypeError", ["row 1", "'x2'", "text"]),
        ({"rows": [[1, 2, 3, 4], [1, True, 3, 4]]}, 422, "DTypeError", ["row 1", "'x1'"]),
        ({"rows": [[1, 2, 3, 4], [1, 2, 3, [4]]]}, 422, "DTypeError", ["row 1", "'x3'", "a list"]),
        ({"row": [1, 2, None, 4]}, 422, "NonFiniteDataError", ["row 0", "'x2'", "null"]),
        (b'{"rows": [[1, 2, 3, 4], [1, NaN, 3, 4]]}', 422, "NonFiniteDataError", ["row 1", "'x1'", "NaN"]),
        (b'{"row": [1, 2, 3, -Infinity]}', 422, "NonFiniteDataError", ["row 0", "'x3'", "infinite"]),
        (b'{"row": [1, 2, 3, 1e999]}', 422, "NonFiniteDataError", ["row 0", "'x3'"]),
        (b'{"row": [1, 2, 3, 1' + b"0" * 400 + b"]}", 422, "NonFiniteDataError", ["row 0", "'x3'"]),
        (b'{"row": [1, 2, 3, 1' + b"0" * 5000 + b"]}", 400, "MalformedBody", []),
        ({"row": [1e300, 2, 3, 4]}, 422, "NumericRangeError", ["row 0"]),
        ({"rows": [[0, 0, 0, 0], [0, 0, 1e300, 0]]}, 422, "NumericRangeError", ["row 1"]),
        ({"rows": []}, 422, "EmptyDataError", []),
        ({"rows": 1}, 422, "ShapeError", []),
        ({"row": "abcd"}, 422, "ShapeError", []),
        ({}, 422, "ShapeError", []),
        ({"row": [1, 2, 3, 4], "rows": []}, 422, "ShapeError", []),
        ([1, 2, 3, 4], 422, "ShapeError", []),
        (b"", 400, "MalformedBody", []),
        (b'{"row": [1, 2', 400, "MalformedBody", ["character"]),
        (b"\xff\xfe\x00", 400, "MalformedBody", []),
        (b"[" * 100_000, 400, "MalformedBody", []),
        (b'{"row": [1, 2, 3, 4], "row": [5, 6, 7, 8]}', 400, "MalformedBody", ["'row' is there twice"]),
        (b'{"rows": [[1, 2, 3, {"a": 1, "a": 1}]]}', 400, "MalformedBody", ["'a' is there twice"]),
        (b'{"r\\u006fw": [1, 2, 3, 4], "row": [1, 2, 3, 4]}', 400, "MalformedBody", ["twice"]),
    ],
)  # fmt: skip
def test_json(client: httpx.Client, body: Any, status: int, kind: str, words: list[str]) -> None:
    refused(send(client, body), status, kind, *words)


def with_value(value: float) -> np.ndarray:
    changed = np.tile(X, (1000, 1))
    changed[2345, 2] = value
    return changed


def shaped(shape: str, descr: str = "'<f8'", order: str = "False") -> bytes:
    """An NPY file whose header says that."""
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(96)


@pytest.mark.parametrize(
    ("body", "status", "kind", "words"),
    [
        (as_npy(with_value(np.nan)), 422, "NonFiniteDataError", ["row 2345", "'x2'", "NaN"]),
        (as_npy(with_value(np.inf)), 422, "NonFiniteDataError", ["row 2345", "infinity"]),
        (as_npy(with_value(1e300)), 422, "NumericRangeError", ["row 2345"]),
        (as_npy(X[:, :3]), 422, "ShapeError", ["3 values", "takes 4"]),
        (as_npy(X[:0]), 422, "EmptyDataError", []),
        (as_npy(np.float64(1.0)), 422, "ShapeError", ["0 dimensions"]),
        (as_npy(X[None]), 422, "ShapeError", ["3 dimensions"]),
        (as_npy(X.astype(complex)), 422, "DTypeError", ["complex"]),
        (as_npy(X.astype(str)), 422, "DTypeError", ["text"]),
        (as_npy(np.asfortranarray(X)), 422, "DataError", ["Fortran"]),
        (as_npy(X.astype([("a", float)])), 422, "DTypeError", []),
        (as_npy(X)[:-1], 400, "MalformedBody", []),
        (as_npy(X) + b"0", 400, "MalformedBody", []),
        (as_npy(X)[:20], 400, "MalformedBody", []),
        (as_npy(X).replace(b"<f8", b"|O8"), 422, "DTypeError", []),
        (as_npy(X).replace(b"(3, 4)", b"(-3,4)"), 400, "MalformedBody", []),
        (as_npy(X).replace(b"(3, 4)", b"(9**9)"), 400, "MalformedBody", []),
        (as_npy(X).replace(b"(3, 4), }   ", b"(99999999, 4)}"), 413, "TooLarge", []),
        (shaped("(" + "9" * 2500 + ", 4)"), 413, "TooLarge", ["larger than any array"]),
        (shaped("(3, " + "9" * 2500 + ")"), 413, "TooLarge", []),
        (shaped("(" + "9" * 2500 + ",)"), 413, "TooLarge", []),
        (shaped("(" + "9" * 5000 + ", 4)"), 400, "MalformedBody", []),
        (shaped("(" + "9" * 19 + ", 0)"), 413, "TooLarge", []),
        (shaped("(" + "99999999, " * 600 + ")"), 422, "ShapeError", ["600 dimensions"]),
        (shaped("(-1, 4)"), 400, "MalformedBody", []),
        (shaped("(3, -4)"), 400, "MalformedBody", []),
        (shaped("(True, 4)"), 400, "MalformedBody", []),
        (shaped("(3.0, 4)"), 400, "MalformedBody", []),
        (shaped("3"), 400, "MalformedBody", []),
        (shaped("()"), 422, "ShapeError", []),
        (shaped("(0, 0)"), 422, "ShapeError", []),
        (shaped("(" * 1000 + "3" + ")" * 1000), 400, "MalformedBody", []),
        (shaped("(3, 4)", "'<f" + "9" * 500 + "'"), 400, "MalformedBody", []),
        (shaped("(3, 4)", "'|V999999999'"), 422, "DTypeError", []),
        (shaped("(3, 4)", "'<U999999999'"), 400, "MalformedBody", []),
        (shaped("(3, 4)", "('<f8', (99999, 99999))"), 400, "MalformedBody", []),
        (shaped("(3, 4)", "[('a', '<f8'), ('a', '<f8')]"), 400, "MalformedBody", []),
        (shaped("(3, 4)", "'<M8[ns]'"), 422, "DTypeError", []),
        (shaped("(3, 4)", "'nothing'"), 400, "MalformedBody", []),
        (shaped("(3, 4)", order="1"), 400, "MalformedBody", []),
        (shaped("(3, 4)", order="True"), 422, "DataError", ["Fortran"]),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", 400, "MalformedBody", []),
        (b"not an array", 400, "MalformedBody", []),
        (b"", 400, "MalformedBody", []),
    ],
)  # fmt: skip
def test_npy(client: httpx.Client, body: bytes, status: int, kind: str, words: list[str]) -> None:
    refused(send(client, body, NPY), status, kind, *words)


def test_npy_in_chunks_that_ends_early_or_late(client: httpx.Client) -> None:
    for body in (as_npy(X)[:-9], as_npy(X) + b"more", as_npy(X)[:5]):
        refused(send_pieces(client, body), 400, "MalformedBody")
    assert send_pieces(client, as_npy(X)).status_code == 200


def send_pieces(client: httpx.Client, body: bytes) -> httpx.Response:
    pieces = (body[i : i + 7] for i in range(0, len(body), 7))
    return client.post("/v1/models/ridge/predict", content=pieces, headers={"content-type": MEDIA_TYPES[NPY]})


def arrow(columns: dict[str, Any], **options: Any) -> bytes:
    table, sink = pa.table(columns), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


FOUR = {f"x{j}": [1.0, 2.0] for j in range(4)}


@pytest.mark.parametrize(
    ("body", "status", "kind", "words"),
    [
        (arrow({**FOUR, "x2": [1.0, None]}), 422, "NonFiniteDataError", ["row 1", "'x2'", "null"]),
        (as_arrow(with_value(np.nan)), 422, "NonFiniteDataError", ["row 2345", "'x2'", "NaN"]),
        (arrow({**FOUR, "x2": ["a", "b"]}), 422, "DTypeError", ["'x2'", "text"]),
        (arrow({**FOUR, "x2": [[1.0], [2.0]]}), 422, "DTypeError", ["'x2'"]),
        (arrow({**FOUR, "z": pa.array(["a", "b"]).dictionary_encode()}), 422, "DTypeError", ["'z'"]),
        (arrow({**FOUR, "z": pa.nulls(2)}), 422, "DTypeError", ["'z'"]),
        (arrow({"x0": [1.0], "x1": [1.0], "x3": [1.0], "z": [0.0]}), 422, "ShapeError", ["'x2' is missing"]),
        (arrow({"a": [1.0], "b": [1.0]}), 422, "ShapeError", ["2 columns", "takes 4"]),
        (arrow({name: pa.nulls(2) for name in FOUR}), 422, "DTypeError", ["'x0'", "no value in any row"]),
        (as_arrow(X[:0]), 422, "EmptyDataError", []),
        (as_arrow(X, ["x0", "x1", "x2", "x2"]), 422, "ShapeError", ["twice"]),
        (arrow({name: np.ones(4000) for name in FOUR}, compression="zstd"), 422, "DataError", ["compressed"]),
        (as_arrow(X) + as_arrow(X), 400, "MalformedBody", ["goes on after the end of its Arrow stream"]),
        (as_arrow(X)[:-200], 400, "MalformedBody", []),
        (as_arrow(X)[:40], 400, "MalformedBody", []),
        (b"ARROW1\x00\x00", 400, "MalformedBody", []),
        (b"", 400, "MalformedBody", []),
    ],
)  # fmt: skip
def test_arrow(client: httpx.Client, body: bytes, status: int, kind: str, words: list[str]) -> None:
    refused(send(client, body, ARROW), status, kind, *words)


def test_decimals_of_arrow_are_numbers(client: httpx.Client) -> None:
    decimals = {name: pa.array([1.0, 2.0]).cast(pa.decimal128(20, 2)) for name in FOUR}
    assert send(client, arrow(decimals), ARROW).content == send(client, arrow(FOUR), ARROW).content


def test_arrow_with_flipped_bytes_never_breaks_anything(client: httpx.Client) -> None:
    good, generator = as_arrow(X), np.random.default_rng(0)
    for _ in range(150):
        bad = bytearray(good)
        for at in generator.integers(0, len(bad), 3):
            bad[at] ^= 1 << int(generator.integers(8))
        answer = send(client, bytes(bad), ARROW)
        assert answer.status_code in (200, 400, 413, 422), answer.text
        if answer.status_code != 200:
            refused(answer, answer.status_code, answer.json()["error"]["type"])


def test_types_of_bodies_and_answers(client: httpx.Client) -> None:
    refused(send(client, b"1,2,3,4", "text/csv"), 415, "UnsupportedMediaType", "application/json")
    refused(client.post("/v1/models/ridge/predict", content=b"{}"), 415, "UnsupportedMediaType")
    zipped = send(client, b"x", JSON, **{"content-encoding": "gzip"})
    refused(zipped, 415, "UnsupportedMediaType", "compressed")
    refused(send(client, {"row": [1, 2, 3, 4]}, accept="text/html"), 406, "NotAcceptable")
    assert send(client, {"row": [1, 2, 3, 4]}, "application/json; charset=utf-8").status_code == 200


def test_what_the_model_does_not_have(client: httpx.Client) -> None:
    for query, name in (("std", "ridge"), ("std", "labels"), ("std", "gp-classifier"), ("probabilities", "gp")):
        answer = client.post(f"/v1/models/{name}/predict?{query}=true", json={"row": [1, 2, 3, 4]})
        refused(answer, 422, "ParameterError", name)
    for query in ("std=maybe", "what=true", "std="):
        refused(client.post(f"/v1/models/gp/predict?{query}", json={"row": [1] * 4}), 422, "ParameterError")


def test_addresses_and_methods(client: httpx.Client) -> None:
    refused(client.get("/v1/nothing"), 404, "NotFound")
    refused(client.get("/static/nothing.js"), 404, "NotFound")
    refused(client.post("/v1/models"), 405, "MethodNotAllowed")
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        answer = client.request(method, "/v1/models/ridge/predict")
        refused(answer, 405, "MethodNotAllowed")
        assert answer.headers["allow"] == "POST"
    refused(client.get("/v1/models/ridge/other"), 403, "ForbiddenName")
    refused(client.delete("/v1/models/ridge"), 405, "MethodNotAllowed")
    refused(client.get("/v1/models/none"), 404, "UnknownModel", "'none'")
    refused(send(client, {}, name="none"), 404, "UnknownModel")


def test_probes_may_ask_for_the_head_alone(client: httpx.Client) -> None:
    for path in ("/healthz", "/metrics"):
        probed, told = client.head(path), client.get(path)
        assert (probed.status_code, probed.content) == (200, b"")
        assert probed.headers["content-type"] == told.headers["content-type"]
        assert int(probed.headers["content-length"]) > 0


def test_sizes(saved: Path, live: Any) -> None:
    small = Settings(saved).with_limits(body_bytes=5000, json_bytes=200, rows=20)
    running: Live = live(small)
    with httpx.Client(base_url=running.url, trust_env=False) as client:
        refused(send(client, {"rows": [[1, 2, 3, 4]] * 50}), 413, "TooLarge", "200 bytes")
        refused(send(client, as_npy(np.ones((1000, 4))), NPY), 413, "TooLarge")
        refused(send(client, as_npy(np.ones((30, 4))), NPY), 413, "TooLarge", "30 rows")
        refused(send(client, as_arrow(np.ones((30, 4))), ARROW), 413, "TooLarge", "20 rows")
        refused(send(client, as_arrow(np.ones((1000, 4))), ARROW), 413, "TooLarge")
        # Without a Content-Length it is seen on the way.
        pieces = (b" " * 1000 for _ in range(1000))
        answer = client.post("/v1/models/ridge/predict", content=pieces, headers={"content-type": MEDIA_TYPES[JSON]})
        refused(answer, 413, "TooLarge")
        assert send(client, as_npy(np.ones((20, 4))), NPY).status_code == 200


def test_paths_are_taken_out_of_messages() -> None:
    assert without_paths("/srv/x/models/a lacks the array") == "a lacks the array"
    assert without_paths("damaged: /a/b.zarr/c/0; 1/2 of m/s") == "damaged: 0; 1/2 of m/s"
