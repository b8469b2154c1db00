"""Rows in, predictions out: every model, every pair of formats, the bits of `predict`."""

from __future__ import annotations

import io
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from service.bodies import as_arrow, as_npy

from streamkernel.service.formats import ARROW, JSON, MEDIA_TYPES, NPY

NAMES = ["ridge", "two", "labels", "gp", "gp-classifier"]


def post(
    client: httpx.Client, name: str, sent: str, body: bytes, wanted: str | None = None, **query: str
) -> httpx.Response:
    headers = {"content-type": MEDIA_TYPES[sent]}
    if wanted is not None:
        headers["accept"] = MEDIA_TYPES[wanted]
    return client.post(f"/v1/models/{name}/predict", content=body, headers=headers, params=query)


def body_of(sent: str, X: np.ndarray) -> bytes:
    if sent == JSON:
        return httpx.Request("POST", "http://x", json={"rows": X.tolist()}).read()
    return as_npy(X) if sent == NPY else as_arrow(X)


def read(answer: httpx.Response, form: str) -> Any:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPES[form]
    if form == JSON:
        return np.array(answer.json()["prediction"])
    if form == NPY:
        return np.load(io.BytesIO(answer.content))
    table = pa.ipc.open_stream(answer.content).read_all()
    columns = [column.to_numpy() for column in table.columns]
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


@pytest.mark.parametrize("wanted", MEDIA_TYPES)
@pytest.mark.parametrize("sent", MEDIA_TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_every_pair_of_formats(
    client: httpx.Client, estimators: dict[str, Any], rows: np.ndarray, name: str, sent: str, wanted: str
) -> None:
    answer = read(post(client, name, sent, body_of(sent, rows[:250]), wanted), wanted)
    expected = estimators[name].predict(rows[:250])
    if wanted == NPY and estimators[name].model_.classes is not None:
        answer = estimators[name].classes_[answer]
    assert answer.shape == expected.shape
    assert (answer == expected).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_row_alone_has_the_bits_of_its_own_predict(
    client: httpx.Client, estimators: dict[str, Any], rows: np.ndarray, name: str
) -> None:
    for row in rows[:5]:
        told = client.post(f"/v1/models/{name}/predict", json={"row": row.tolist()}).json()
        assert told == {"prediction": estimators[name].predict(row[None]).tolist()[0]}


def test_float32_and_integers_are_predicted_as_predict_does(
    client: httpx.Client, estimators: dict[str, Any], rows: np.ndarray
) -> None:
    for X in (rows.astype(np.float32), (5 * rows).astype(np.int16), rows.astype(">f8"), rows.astype(np.float16)):
        expected = estimators["ridge"].predict(X)
        np.testing.assert_array_equal(read(post(client, "ridge", NPY, as_npy(X)), NPY), expected)
        if X.dtype.isnative:
            np.testing.assert_array_equal(read(post(client, "ridge", ARROW, as_arrow(X)), ARROW), expected)


def test_more_rows_than_are_held(client: httpx.Client, estimators: dict[str, Any], rows: np.ndarray) -> None:
    X = np.random.default_rng(0).uniform(size=(150_000, 4))
    expected = estimators["ridge"].predict(X)
    for sent in (NPY, ARROW):
        for wanted in (NPY, ARROW, JSON):
            body = as_npy(X) if sent == NPY else as_arrow(X, batch=7_777)
            np.testing.assert_array_equal(read(post(client, "ridge", sent, body, wanted), wanted), expected)


def test_deviations(client: httpx.Client, estimators: dict[str, Any], rows: np.ndarray) -> None:
    mean, std = estimators["gp"].predict(rows[:700], return_std=True)
    told = post(client, "gp", JSON, body_of(JSON, rows[:700]), std="true").json()
    assert told == {"prediction": mean.tolist(), "std": std.tolist()}
    both = read(post(client, "gp", NPY, as_npy(rows[:700]), std="1"), NPY)
    np.testing.assert_array_equal(both, np.column_stack([mean, std]))
    table = pa.ipc.open_stream(post(client, "gp", ARROW, as_arrow(rows[:700]), std="true").content).read_all()
    assert table.column_names == ["prediction", "std"]
    one = estimators["gp"].predict(rows[:1], return_std=True)
    told = client.post("/v1/models/gp/predict?std=true", json={"row": rows[0].tolist()}).json()
    assert told == {"prediction": one[0][0], "std": one[1][0]}


def test_probabilities(client: httpx.Client, estimators: dict[str, Any], rows: np.ndarray) -> None:
    estimator = estimators["gp-classifier"]
    expected = estimator.predict_proba(rows[:300])
    told = post(client, "gp-classifier", JSON, body_of(JSON, rows[:300]), probabilities="true").json()
    assert told["classes"] == estimator.classes_.tolist()
    assert told["prediction"] == estimator.predict(rows[:300]).tolist()
    assert told["probabilities"] == expected.tolist()
    found = read(post(client, "gp-classifier", NPY, as_npy(rows[:300]), probabilities="true"), NPY)
    np.testing.assert_array_equal(found, expected)
    answer = post(client, "gp-classifier", ARROW, as_arrow(rows[:300]), probabilities="true")
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.column_names == ["prediction", "probability_high", "probability_low", "probability_middle"]
    one = client.post("/v1/models/gp-classifier/predict?probabilities=true", json={"row": rows[0].tolist()}).json()
    assert one["probabilities"] == estimator.predict_proba(rows[:1])[0].tolist()
    assert set(one) == {"prediction", "probabilities", "classes"}


def test_arrow_columns_go_by_name(client: httpx.Client, estimators: dict[str, Any], rows: np.ndarray) -> None:
    expected = estimators["ridge"].predict(rows[:50])
    X = np.column_stack([rows[:50, ::-1], np.arange(50.0)])
    answer = post(client, "ridge", ARROW, as_arrow(X, ["x3", "x2", "x1", "x0", "extra"]))
    np.testing.assert_array_equal(read(answer, ARROW), expected)
    np.testing.assert_array_equal(
        read(post(client, "ridge", ARROW, as_arrow(rows[:50], list("abcd"))), ARROW), expected
    )


def test_one_row_as_a_vector(client: httpx.Client, estimators: dict[str, Any], rows: np.ndarray) -> None:
    expected = estimators["ridge"].predict(rows[:1])
    np.testing.assert_array_equal(read(post(client, "ridge", NPY, as_npy(rows[0])), NPY), expected)
    assert post(client, "ridge", NPY, as_npy(rows[0]), JSON).json() == {"prediction": expected[0]}
    two = post(client, "two", NPY, as_npy(rows[0]), JSON).json()
    assert two == {"prediction": estimators["two"].predict(rows[:1])[0].tolist()}


def test_the_format_of_the_answer(client: httpx.Client, rows: np.ndarray) -> None:
    def asked(accept: str) -> httpx.Response:
        headers = {"content-type": MEDIA_TYPES[NPY], "accept": accept}
        return client.post("/v1/models/ridge/predict", content=as_npy(rows[:3]), headers=headers)

    assert asked("*/*").headers["content-type"] == MEDIA_TYPES[NPY]
    assert asked("text/html, application/json;q=0.5").headers["content-type"] == MEDIA_TYPES[JSON]
    ranked = f"application/json;q=0.2, {MEDIA_TYPES[ARROW]};q=0.9, */*;q=0.1"
    assert asked(ranked).headers["content-type"] == MEDIA_TYPES[ARROW]
    assert asked("application/json;q=0, text/html").status_code == 406


def test_answers_name_the_model(client: httpx.Client, estimators: dict[str, Any], rows: np.ndarray) -> None:
    for sent in MEDIA_TYPES:
        assert (
            post(client, "gp", sent, body_of(sent, rows[:3])).headers["x-model-digest"]
            == estimators["gp"].model_.digest
        )
