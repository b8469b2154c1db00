"""Frames with columns that are no numbers: the message names the column, a value and the way out."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

from streamkernel import GaussianProcessRegressor, KernelRidge, KernelRidgeClassifier, TableEncoder, open_table
from streamkernel.errors import DTypeError

RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame({"a": RNG.random(60), "b": RNG.random(60)})
Y = NUMBERS.a + NUMBERS.b
KIND = ["flat", "house"] * 30
PLAIN: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "alpha": 1.0}

OTHERS = {
    "text": (KIND, "text, such as 'flat'"),
    "categories": (pd.Categorical(KIND), "text, such as 'flat'"),
    "dates with a zone": (pd.date_range("2020-01-01", periods=60, tz="UTC"), "dates, such as '2020-01-01"),
    "lists": ([[1.0]] * 60, "values of list, such as"),
    "one text at the end": ([1.0] * 59 + ["n/k"], "text, such as 'n/k'"),
    "gaps before it": ([None, np.nan, pd.NA] * 19 + ["x", "y", "z"], "text, such as 'x'"),
}


@pytest.mark.parametrize(("values", "says"), OTHERS.values(), ids=OTHERS)
def test_a_column_that_is_no_number_is_named(values: Any, says: str) -> None:
    frame = NUMBERS.assign(**{"the kind": pd.Series(values)})
    for estimator in (KernelRidge(10, **PLAIN), GaussianProcessRegressor(10)):
        with pytest.raises(DTypeError, match=f"X: column 'the kind' holds {says}") as caught:
            estimator.fit(frame, Y)
        assert f"make_pipeline(TableEncoder(), {type(estimator).__name__}(...)), or leave it out" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_the_way_out() -> None:
    frame = NUMBERS.assign(kind=KIND, when=pd.date_range("2020-01-01", periods=60, tz="UTC"))
    model = make_pipeline(TableEncoder(), KernelRidge(10, **PLAIN)).fit(frame, Y)
    assert model.predict(frame).shape == (60,)


def test_rows_to_predict_are_told_of_too() -> None:
    model = KernelRidge(10, **PLAIN).fit(NUMBERS, Y)
    with pytest.raises(DTypeError, match="X: column 'b' holds text, such as 'flat'"):
        model.predict(NUMBERS.assign(b=KIND))


def test_what_can_be_read_as_numbers_is() -> None:
    plain = KernelRidge(10, **PLAIN).fit(NUMBERS, Y).predict(NUMBERS)
    for frame in (NUMBERS.astype(object), NUMBERS.astype(str), NUMBERS.astype("Float64")):
        np.testing.assert_allclose(KernelRidge(10, **PLAIN).fit(frame, Y).predict(frame), plain, rtol=1e-6)


def test_a_target_of_text_is_told_of_a_classifier() -> None:
    for y in (KIND, np.array(KIND), np.array(KIND, dtype=object), pd.Series(KIND)):
        with pytest.raises(DTypeError, match=r"y holds text.* KernelRidgeClassifier or another classifier"):
            KernelRidge(10, **PLAIN).fit(NUMBERS, y)
        assert KernelRidgeClassifier(10, **PLAIN).fit(NUMBERS, y).classes_.tolist() == ["flat", "house"]


def test_errors_of_scikit_learn_stay() -> None:
    with pytest.raises(ValueError, match="not compatible with arrays of bytes"):
        KernelRidge(10, **PLAIN).fit(np.array([["x", "y"]] * 10), np.arange(10.0))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelRidge(10, **PLAIN).fit(NUMBERS, Y[:10])


DAYS = pd.date_range("2020-01-01", periods=60)
TIMES: dict[str, Any] = {
    "moments": (pa.array(DAYS), "dates, such as '2020-01-01"),
    "moments with a zone": (pa.array(DAYS.tz_localize("Asia/Tokyo")), "dates, such as '2020-01-01"),
    "dates": (pa.array(DAYS.date), "dates, such as '2020-01-01"),
    "durations": (pa.array(DAYS - DAYS[0]), "values of "),
    "times of day": (pa.array(DAYS.time), "values of time, such as '00:00:00'"),
    "a gap first": (pa.array([None, *DAYS[1:]], pa.timestamp("us")), "dates, such as '2020-01-02"),
}


def frames_of(table: pa.Table) -> dict[str, Any]:
    """The table as frames of each library; those of polars where it is installed."""
    frames = {"pyarrow": table, "batch": table.combine_chunks().to_batches()[0], "pandas": table.to_pandas()}
    frames["pandas with Arrow's types"] = table.to_pandas(types_mapper=pd.ArrowDtype)
    return frames | ({} if find_spec("polars") is None else {"polars": import_module("polars").DataFrame(table)})


@pytest.mark.parametrize(("values", "says"), TIMES.values(), ids=TIMES)
def test_times_of_frames_are_no_numbers_of_microseconds(values: pa.Array, says: str) -> None:
    numbers = frames_of(pa.table(NUMBERS))
    for kind, frame in frames_of(pa.table({"a": NUMBERS.a, "when": values})).items():
        with pytest.raises(DTypeError, match=f"X: column 'when' holds {says}"):
            KernelRidge(10, **PLAIN).fit(frame, Y)
        with pytest.raises(DTypeError, match=f"y: column 'when' holds {says}.*leave it out, or give numbers$"):
            KernelRidge(10, **PLAIN).fit(numbers[kind], frame)
        with pytest.raises(DTypeError, match=r"column 'when' holds .*, encode it as numbers, or name it as target$"):
            open_table(frame)
        with pytest.raises(DTypeError, match=r"column 'when' holds .*; leave it out, or give numbers$"):
            open_table(NUMBERS, frame)


def test_columns_of_arrow_that_are_no_numbers_are_named_too() -> None:
    for values, says in (
        (KIND, "text, such as 'flat'"),
        ([[1.0]] * 60, "values of "),
        ([{"u": 1}] * 60, "values of"),
    ):
        for frame in frames_of(pa.table({"a": NUMBERS.a, "kind": values})).values():
            with pytest.raises(DTypeError, match=f"X: column 'kind' holds {says}"):
                KernelRidge(10, **PLAIN).fit(frame, Y)
