"""A model of sparse rows takes rows as objects, as libsvm text and as arrays: the bits of `predict`."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from service.bodies import as_arrow, as_npy, refused
from service.live import Live
from sparse_rows import sparse_problem

from streamkernel import GaussianProcessRegressor, KernelOneClass, KernelRidge, KernelRidgeClassifier
from streamkernel.models.few_rows import DirectPredictions
from streamkernel.service.formats import ARROW, LIBSVM_TYPE, MEDIA_TYPES, NPY
from streamkernel.service.formats.sparse_rows import libsvm_rows, sparse_json
from streamkernel.service.http_errors import Refused
from streamkernel.service.settings import Limits, Settings

COLUMNS = 40
X, Y = sparse_problem(400, COLUMNS, 4.0)
NAMES = tuple(f"x{j}" for j in range(COLUMNS))
POSITIONS = {name: j for j, name in enumerate(NAMES)}


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    gp = GaussianProcessRegressor(20, kernel="gaussian", tune="none", signal_variance=1.0, noise_variance=0.1)
    return {
        "ridge": KernelRidge(20, alpha=0.1).fit(X, Y),
        "labels": KernelRidgeClassifier(20, alpha=0.1).fit(X, np.where(Y > 0.0, "high", "low")),
        "gp": gp.fit(X, Y),
        "one": KernelOneClass(20, scale="none").fit(X),
        "dense": KernelRidge(20, alpha=0.1, kernel="gaussian", metric="none").fit(X.toarray(), Y),
    }


@pytest.fixture(scope="module")
def client(fitted: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder: Path = tmp_path_factory.mktemp("sparse") / "models"
    folder.mkdir()
    for name, estimator in fitted.items():
        estimator.save(folder / name)
    with (
        Live(Settings(folder)) as running,
        httpx.Client(base_url=running.url, trust_env=False, timeout=30) as found,
    ):
        yield found


def objects(rows: Any) -> list[dict[str, float]]:
    """The values that are not 0, by the names of their columns."""
    parts = np.split(np.column_stack([rows.indices, rows.data]), rows.indptr[1:-1])
    return [{f"x{int(j)}": v for j, v in part.tolist()} for part in parts]


def svm(rows: Any, label: str = "0 ") -> bytes:
    parts = np.split(np.column_stack([rows.indices, rows.data]), rows.indptr[1:-1])
    return "\n".join(label + " ".join(f"{int(j) + 1}:{v!r}" for j, v in part.tolist()) for part in parts).encode()


def post(client: httpx.Client, name: str, body: Any, kind: str = "application/json", query: str = "") -> httpx.Response:
    content = json.dumps(body).encode() if kind == "application/json" else body
    return client.post(f"/v1/models/{name}/predict{query}", content=content, headers={"content-type": kind})


def test_predictions_have_the_bits_of_predict(client: httpx.Client, fitted: dict[str, Any]) -> None:
    expected = fitted["ridge"].predict(X)
    answers = [
        post(client, "ridge", {"rows": objects(X)}),
        post(client, "ridge", svm(X), LIBSVM_TYPE),
        client.post(
            "/v1/models/ridge/predict",
            content=as_npy(X.toarray()),
            headers={"content-type": MEDIA_TYPES[NPY], "accept": "application/json"},
        ),
        client.post(
            "/v1/models/ridge/predict",
            content=as_arrow(X.toarray(), NAMES),
            headers={"content-type": MEDIA_TYPES[ARROW], "accept": "application/json"},
        ),
        post(client, "ridge", {"rows": X.toarray().tolist()}),
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.text
    np.testing.assert_array_equal(answers[0].json()["prediction"], expected)
    np.testing.assert_array_equal(answers[1].json()["prediction"], expected)
    np.testing.assert_array_equal(answers[2].json()["prediction"], fitted["ridge"].predict(X.toarray()))
    for answer in answers[3:]:
        np.testing.assert_allclose(answer.json()["prediction"], expected, rtol=1e-12)
    for i in (0, 7, 399):
        assert post(client, "ridge", {"row": objects(X[[i]])[0]}).json() == {
            "prediction": fitted["ridge"].predict(X[[i]])[0]
        }


def test_other_kinds(client: httpx.Client, fitted: dict[str, Any]) -> None:
    found = post(client, "labels", {"rows": objects(X)}).json()
    assert found["prediction"] == fitted["labels"].predict(X).tolist()
    found = post(client, "gp", svm(X), LIBSVM_TYPE, "?std=true").json()
    mean, std = fitted["gp"].predict(X, return_std=True)
    np.testing.assert_array_equal(found["prediction"], mean)
    np.testing.assert_array_equal(found["std"], std)
    found = post(client, "one", svm(X[1:100], ""), LIBSVM_TYPE).json()
    assert found["prediction"] == fitted["one"].predict(X[1:100]).tolist()
    in_npy = client.post(
        "/v1/models/ridge/predict", content=svm(X), headers={"content-type": LIBSVM_TYPE, "accept": MEDIA_TYPES[NPY]}
    )
    assert in_npy.content[:6] == b"\x93NUMPY"


def test_what_it_says_of_a_model(client: httpx.Client, fitted: dict[str, Any]) -> None:
    about = client.get("/v1/models/ridge").json()
    assert (about["sparse"], about["kernel"], about["means"]) == (True, "gaussian", None)
    [first] = objects(scipy.sparse.csr_array(fitted["ridge"].components_[[0]]))
    assert about["example"] == pytest.approx(first)
    assert post(client, "ridge", {"row": about["example"]}).status_code == 200
    assert client.get("/v1/models/dense").json()["sparse"] is False


@pytest.mark.parametrize(
    ("body", "status", "kind", "words"),
    [
        ({"rows": [{}, {"x40": 1.0}]}, 422, "ShapeError", ("row 1", "'x40'", "40")),
        ({"row": {"x3": None}}, 422, "NonFiniteDataError", ("row 0", "'x3'")),
        ({"row": {"x3": "1"}}, 422, "DTypeError", ("row 0", "'x3'")),
        ({"row": {"x3": True}}, 422, "DTypeError", ("row 0", "'x3'")),
        ({"row": {"x3": 10**400}}, 422, "NonFiniteDataError", ("row 0", "'x3'", "beyond float64")),
        ({"row": [1.0, 2.0]}, 422, "ShapeError", ("row 0", "2 values", "40")),
        ({"row": [0] * 39 + [[]]}, 422, "DTypeError", ("row 0", "'x39'")),
        ({"rows": [3]}, 422, "ShapeError", ("row 0", "object")),
        ({"rows": []}, 422, "EmptyDataError", ("empty",)),
        ({"rows": [[0.0] * 40], "columns": list(NAMES)}, 422, "ShapeError", ("columns",)),
        ({"rows": [{}] * 2000 + [{"x3": 1e200}]}, 422, "NumericRangeError", ("row 2000",)),
        (b"1 3:1\n1 0:2\n", 422, "ShapeError", ("line 2", "index 0", "1 to 40")),
        (b"1 41:2", 422, "ShapeError", ("line 1", "index 41", "1 to 40")),
        (b"1 4:1 3:2", 422, "ShapeError", ("line 1", "index 3", "rise")),
        (b"1 4:1 4:2", 422, "ShapeError", ("index 4", "rise")),
        (b"1 4:nan", 422, "NonFiniteDataError", ("line 1", "index 4")),
        (b"1 4:1e999", 422, "NonFiniteDataError", ("line 1", "index 4")),
        (b"1 four:1", 400, "MalformedBody", ("line 1", "'four:1'")),
        (b"1 4:1 5", 400, "MalformedBody", ("line 1", "'5'")),
        (b"1 1_0:1", 400, "MalformedBody", ("line 1",)),
        (b"1 4:1_0", 400, "MalformedBody", ("line 1",)),
        ("1 \u0663:1".encode(), 400, "MalformedBody", ("line 1",)),
        (b"1 " + b"9" * 5000 + b":1", 400, "MalformedBody", ("line 1",)),
        (b"\xff", 400, "MalformedBody", ("UTF-8",)),
        (b"# nothing\n\n", 422, "EmptyDataError", ("no rows",)),
        (b"", 422, "EmptyDataError", ("no rows",)),
    ],
)
def test_what_is_wrong_is_said_in_its_place(
    client: httpx.Client, body: Any, status: int, kind: str, words: Any
) -> None:
    answer = post(client, "ridge", body, LIBSVM_TYPE if isinstance(body, bytes) else "application/json")
    refused(answer, status, kind, *words)


def test_a_model_of_dense_rows_takes_no_libsvm_text(client: httpx.Client) -> None:
    refused(post(client, "dense", svm(X), LIBSVM_TYPE), 415, "UnsupportedMediaType", "sparse rows", "application/json")


@given(st.lists(st.dictionaries(st.integers(0, COLUMNS - 1), st.floats(-1e6, 1e6, width=32)), min_size=1, max_size=8))
@settings(max_examples=40)
def test_any_rows_are_read_as_they_are(rows: list[dict[int, float]]) -> None:
    """In any order of names, with zeros among them."""
    expected = np.zeros((len(rows), COLUMNS))
    for i, row in enumerate(rows):
        for j, value in row.items():
            expected[i, j] = value
    body = json.dumps({"rows": [{f"x{j}": value for j, value in row.items()} for row in rows]}).encode()
    found = sparse_json(body, POSITIONS, Limits())
    np.testing.assert_array_equal(found.X.toarray(), expected)
    assert not found.single
    lines = ("-1 qid:3 " + " ".join(f"{j + 1}:{row[j]!r}" for j in sorted(row)) + " # words" for row in rows)
    text = "\r\n\n".join(lines).encode()
    np.testing.assert_array_equal(libsvm_rows(text, COLUMNS, Limits()).X.toarray(), expected)


def test_more_rows_than_are_taken_are_refused() -> None:
    for read in (
        lambda limits: libsvm_rows(b"0\n" * 11, COLUMNS, limits),
        lambda limits: sparse_json(json.dumps({"rows": [{}] * 11}).encode(), POSITIONS, limits),
    ):
        with pytest.raises(Refused, match="11 rows exceed the limits"):
            read(Limits(rows=10))


def test_a_full_row_among_many_takes_its_own_memory(fitted: dict[str, Any]) -> None:
    """With room for the entries of the fullest row in each, all rows would take 32 GB; its block alone does."""
    wide = scipy.sparse.csr_array((X.data, X.indices * 2500, X.indptr), (400, 100_000))
    model = KernelRidge(10, alpha=0.1, lengthscale=3.0).fit(wide, Y).model_
    text = b"0 1:1\n" * 19_999 + b"0 " + b" ".join(b"%d:1" % j for j in range(1, 100_001)) + b"\n"
    tracemalloc.start()
    try:
        rows = libsvm_rows(text, 100_000, Limits())
        direct = DirectPredictions(model)
        count = sum(len(direct.of_block(block)["prediction"]) for block in direct.sparse_blocks(rows.X))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 20_000
    assert peak < 600e6
