"""Rows of a store are encoded as those of a model's fit, or refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from streamkernel import KernelRidge, ingest, open_table
from streamkernel.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore:.*is none of its categories")


def frame(first, seed=0, rows=120):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "when": pd.date_range(first, periods=rows, freq="D"),
            "size": rng.normal(size=rows),
            "city": rng.choice([f"c{i}" for i in range(40)], rows),
            "y": rng.normal(size=rows),
        }
    )


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    store = tmp_path_factory.mktemp("rows") / "s"
    ingest(frame("2020-01-01"), store, target="y", schema="auto", dtype="float64")
    return KernelRidge(10, lengthscale=3.0, alpha=1.0).fit(str(store)), open_table(store).schema


def test_rows_of_the_same_schema_are_taken_in_any_order_of_their_columns(fitted, tmp_path):
    model, schema = fitted
    turned = {**schema, "columns": schema["columns"][::-1]}
    for number, given in enumerate((schema, turned)):
        ingest(
            frame("2021-03-01", 1), tmp_path / f"t{number}", target="y", schema=given, unknown="ignore", dtype="float64"
        )
    assert open_table(tmp_path / "t0").columns != open_table(tmp_path / "t1").columns
    one, two = (np.asarray(model.predict(open_table(tmp_path / name))) for name in ("t0", "t1"))
    np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.parametrize(
    ("rows", "changes", "words"),
    [
        (frame("2021-03-01"), {}, "column 'when' has another origin than in the rows of the model: '2021-03-01'"),
        (
            frame("2020-01-01", 3),
            {},
            "column 'city' has other mean targets than in the rows of the model; predict on the files",
        ),
        (
            frame("2020-01-01"),
            {"size": {"unit": 2.0}},
            "column 'size' has another unit than in the rows of the model: 2.0",
        ),
    ],
)
def test_features_of_the_same_names_and_another_meaning_are_refused(fitted, tmp_path, rows, changes, words):
    model, schema = fitted
    given = "auto"
    if changes:
        given = [{**column, **changes.get(column["name"], {})} for column in schema["columns"]]
    rows["city"] = [f"c{i % 40}" for i in range(len(rows))] if "mean targets" in words else rows["city"]
    ingest(rows, tmp_path / "t", target="y", schema=given, unknown="ignore", dtype="float64")
    with pytest.raises(DataError) as caught:
        model.predict(open_table(tmp_path / "t"))
    assert words in str(caught.value)


def test_a_table_of_numbers_without_a_schema_is_taken(fitted):
    model, _ = fitted
    found = np.asarray(
        model.predict(pd.DataFrame(np.zeros((2, model.n_features_in_)), columns=model.feature_names_in_))
    )
    assert np.isfinite(found).all()
