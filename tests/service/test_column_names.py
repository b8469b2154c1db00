"""Rows that name their columns, as JSON and as Arrow: in the model's order where they are the model's, else refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from service.bodies import as_arrow, refused
from service.live import Live

from streamkernel import KernelRidge
from streamkernel.service import Settings
from streamkernel.service.formats import ARROW, MEDIA_TYPES

pd = pytest.importorskip("pandas")

NAMES = ["age", "income in €", "Age"]
TURNED = [2, 0, 1]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))


@pytest.fixture(scope="module")
def model() -> KernelRidge:
    return KernelRidge(10).fit(pd.DataFrame(X, columns=NAMES), X[:, 0] + X[:, 1] ** 2)


@pytest.fixture(scope="module")
def expected(model: KernelRidge) -> list[float]:
    found: list[float] = model.predict(pd.DataFrame(X, columns=NAMES)).tolist()
    return found


@pytest.fixture(scope="module")
def ask(model: KernelRidge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Any], httpx.Response]]:
    folder = tmp_path_factory.mktemp("models")
    model.save(folder / "named")
    running = Live(Settings(folder))
    client = httpx.Client(base_url=running.url, trust_env=False, timeout=30)

    def ask(body: Any) -> httpx.Response:
        if isinstance(body, bytes):
            kind = {"content-type": MEDIA_TYPES[ARROW], "accept": "application/json"}
            return client.post("/v1/models/named/predict", content=body, headers=kind)
        return client.post("/v1/models/named/predict", json=body)

    with client:
        yield ask
    running.stop()


def test_in_any_order(ask: Any, expected: list[float]) -> None:
    names = [NAMES[position] for position in TURNED]
    rows = X[:, TURNED].tolist()
    objects = [dict(zip(names, row, strict=True)) for row in rows]
    for body in (
        {"rows": X.tolist()},
        {"rows": rows, "columns": names},
        {"rows": objects},
        {"rows": [*objects[:20], *rows[20:]], "columns": names},
        as_arrow(X[:, TURNED], names),
        as_arrow(X, [f"x{j}" for j in range(3)]),
    ):
        answer = ask(body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["prediction"] == expected
    assert ask({"row": objects[3]}).json() == ask({"row": X[3].tolist()}).json()
    assert ask({"columns": names, "row": rows[3]}).json() == ask({"row": X[3].tolist()}).json()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"rows": X.tolist(), "columns": ["age", "income in €", "AGE"]}, ["missing 'Age'", "extra 'AGE'"]),
        ({"rows": X[:, :2].tolist(), "columns": NAMES[:2]}, ["missing 'Age'"]),
        ({"rows": X.tolist(), "columns": ["age", "age", "Age"]}, ["two columns 'age'"]),
        ({"rows": X.tolist(), "columns": [*NAMES, "more"]}, ["extra 'more'"]),
        ({"rows": X.tolist(), "columns": "age"}, ["list of names"]),
        ({"rows": X.tolist(), "columns": [1, 2, 3]}, ["list of names"]),
        ({"columns": NAMES}, ["must be"]),
        ({"row": {"age": 1.0, "Age": 2.0}}, ["row 0", "missing 'income in €'"]),
        ({"rows": [X[0].tolist(), dict.fromkeys([*NAMES, "more"], 1.0)]}, ["row 1", "extra 'more'"]),
        (as_arrow(X, ["a", "b", "c"]), ["'age' is missing", "'a' is none of the model's"]),
        (as_arrow(X, ["age", "income in €", "AGE"]), ["'Age' is missing", "'AGE' is none of the model's"]),
    ],
)
def test_other_names(ask: Any, body: Any, words: list[str]) -> None:
    refused(ask(body), 422, "ShapeError", *words)
    assert ask({"rows": X.tolist()}).status_code == 200


def test_values_of_objects_are_checked_as_those_of_lists(ask: Any) -> None:
    refused(ask({"row": {"Age": "a", "age": 1, "income in €": 2}}), 422, "DTypeError", "'Age'", "text")
    refused(ask({"row": {"Age": None, "age": 1, "income in €": 2}}), 422, "NonFiniteDataError", "'Age'", "null")
    refused(ask({"row": {"Age": 10**400, "age": 1, "income in €": 2}}), 422, "NonFiniteDataError", "'Age'")
    refused(ask({"row": [1, "a", 2], "columns": ["Age", "age", "income in €"]}), 422, "DTypeError", "'age'")
