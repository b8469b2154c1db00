"""TableEncoder: the schema of a table as a transformer of scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from messy_tables import messy
from scikit_learn_checks import with_checks
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from streamkernel import KernelRidge, KernelRidgeClassifier, Schema, TableEncoder, ingest, open_table
from streamkernel.errors import DataError, DTypeError, NonFiniteDataError, ParameterError, ShapeMismatchError


@with_checks(TableEncoder())
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_in_a_pipeline_with_gaps_and_categories():
    frame = messy()
    pipeline = make_pipeline(TableEncoder(), KernelRidge(n_components=50, lengthscale=5.0, alpha=1e-2))
    scores = cross_val_score(pipeline, frame.drop(columns="y"), frame["y"], cv=3)
    assert scores.min() > 0.7
    labels = np.where(frame["y"] > frame["y"].median(), "high", "low")
    classifier = make_pipeline(TableEncoder(), KernelRidgeClassifier(n_components=50, lengthscale=5.0, alpha=1e-2))
    assert cross_val_score(classifier, frame.drop(columns="y"), labels, cv=3).min() > 0.7


def test_columns_go_by_name_and_extra_ones_are_left_out():
    frame = messy()
    encoder = TableEncoder().fit(frame.drop(columns="y"), frame["y"])
    expected = encoder.transform(frame.drop(columns="y"))
    mixed = frame[frame.columns[::-1]].assign(more=1.0)
    np.testing.assert_array_equal(encoder.transform(mixed), expected)
    with pytest.raises(ParameterError, match="no column 'age', which the schema makes a feature"):
        encoder.transform(frame.drop(columns="age"))
    assert expected.shape[1] == len(encoder.get_feature_names_out())
    assert encoder.feature_names_in_.tolist() == frame.columns[:-1].tolist()


def test_it_is_cloned_pickled_and_gives_frames():
    frame = messy()
    encoder = TableEncoder(categories=["job"], missing="median").fit(frame, frame["y"])
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(frame), encoder.transform(frame))
    assert clone(encoder).get_params() == encoder.get_params()
    framed = TableEncoder().set_output(transform="pandas").fit_transform(frame)
    assert framed.columns.tolist() == TableEncoder().fit(frame).get_feature_names_out().tolist()


def test_files_are_read_in_parts_and_give_what_ingest_stores(tmp_path):
    frame = messy()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    encoder = TableEncoder(drop=["key"])
    first = encoder.fit_transform(tmp_path / "rows.csv", "y")
    ingest(tmp_path / "rows.csv", tmp_path / "s", target="y", schema="auto", drop=["key"], dtype="float64")
    table = open_table(tmp_path / "s")
    np.testing.assert_array_equal(table.read(0, 600).X, first)
    assert [column for column in table.schema["columns"] if column.get("role") != "target"] == (
        encoder.schema_.to_config()["columns"]
    )
    ingest(tmp_path / "rows.csv", tmp_path / "t", target="y", schema=encoder.schema_, dtype="float64")
    later = np.concatenate(list(encoder.transform_batches([tmp_path / "rows.csv"])))
    # The schema has features alone: the target is named anew.
    np.testing.assert_array_equal(open_table(tmp_path / "t").read(0, 600).X, later)


def test_the_encoder_of_a_model(tmp_path):
    frame = messy()
    ingest(frame, tmp_path / "s", target="y", schema="auto", dtype="float64")
    model = KernelRidge(n_components=50, lengthscale=5.0, alpha=1e-2).fit(open_table(tmp_path / "s"))
    model.save(tmp_path / "m")
    again = KernelRidge.load(tmp_path / "m")
    encoder = TableEncoder.of(again).set_output(transform="pandas")
    predicted = again.predict(encoder.transform(frame.drop(columns="y")))
    assert 1.0 - np.var(predicted - frame["y"]) / np.var(frame["y"]) > 0.8
    with pytest.raises(ParameterError, match="without a schema"):
        TableEncoder.of(KernelRidge(n_components=5).fit(np.eye(8), np.arange(8.0)))


def test_arrays_of_text_and_numbers():
    X = np.array([[1, "a"], [2, "b"], [np.nan, "a"]], dtype=object)
    found = TableEncoder().fit_transform(X)
    np.testing.assert_array_equal(found, [[1, 0, 1, 0], [2, 0, 0, 1], [1.5, 1, 1, 0]])
    with pytest.raises(ShapeMismatchError, match="X has 3 features"):
        TableEncoder().fit(X).transform(np.ones((2, 3)))


def test_a_frame_with_values_of_several_types_says_so():
    with pytest.raises(DataError, match="give each column one type"):
        TableEncoder().fit(pd.DataFrame({"a": [1, "x", (2,)]}))


def test_a_schema_that_is_given_is_followed():
    frame = messy()
    schema = Schema.from_config({"columns": [{"name": "age", "unit": 10.0, "missing": "mean", "fill": 0.0}]})
    found = TableEncoder(schema).fit_transform(pa.Table.from_pandas(frame))
    np.testing.assert_allclose(found[:, 0], frame["age"].fillna(0.0) / 10.0)


def test_mean_targets_have_the_name_of_the_target():
    frame = pd.DataFrame({"city": [f"c{i % 40}" for i in range(200)]})
    y = np.arange(200.0)
    encoder = TableEncoder()
    for target, names in (
        (y, ["y"]),
        (pd.Series(y, name="price"), ["price"]),
        (np.stack([y, y], axis=1), ["y0", "y1"]),
        (pd.DataFrame({"u": y, "v": -y}), ["u", "v"]),
        (np.where(y > 50, "high", "low"), ["low"]),
    ):
        found = encoder.fit(frame, target).get_feature_names_out().tolist()
        assert found == [f"city (mean of {name})" for name in names]


def test_masked_values_are_missing():
    rows = np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 9.0]])
    hidden = np.array([[False, True], [False, False], [True, False]])
    expected = TableEncoder().fit_transform(np.where(hidden, np.nan, rows))
    assert expected.shape == (3, 4)
    np.testing.assert_array_equal(TableEncoder().fit_transform(np.ma.masked_array(rows, hidden)), expected)
    texts = np.array([["a", 1], ["b", 2], ["a", 3]], dtype=object)
    expected = TableEncoder().fit_transform(np.where(hidden, None, texts))
    np.testing.assert_array_equal(TableEncoder().fit_transform(np.ma.masked_array(texts, hidden)), expected)
    for beside in (
        (np.ma.masked_array(rows[:, 0], hidden[:, 0]),),
        (None, np.ma.masked_array(rows[:, 0], hidden[:, 0])),
    ):
        with pytest.raises(NonFiniteDataError, match="is masked in 1 values, which are missing, first in row 2"):
            TableEncoder().fit(rows, *beside)


@pytest.mark.parametrize("dtype", [">f8", ">i2", np.longdouble])
def test_numbers_of_types_that_arrow_lacks(dtype):
    rows = np.array([[1, 2], [3, 5], [7, 9]])
    np.testing.assert_array_equal(TableEncoder().fit_transform(rows.astype(dtype)), rows)
    np.testing.assert_array_equal(
        TableEncoder().fit_transform(pd.DataFrame(rows.astype(dtype), columns=["a", "b"])), rows
    )


def test_a_series_has_no_columns():
    with pytest.raises(ValueError, match="Expected a 2-dimensional container"):
        TableEncoder().fit(pd.Series(["a", "b"]))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.zeros((10, 2), "V8"), r"X holds values of the dtype \|V8; give numbers, text or dates$"),
        (np.zeros((10, 2), [("p", "f8"), ("q", "i4")]), r"X holds structured values \(p, q\); give a frame"),
        (np.zeros(10, [("p", "f8"), ("q", "i4")]), r"X holds structured values \(p, q\); give a frame"),
        (np.zeros((10, 2), complex), "X holds complex numbers; give real ones$"),
    ],
    ids=["raw", "structured", "records", "complex"],
)
def test_arrays_of_values_without_a_kind_are_refused(values, said) -> None:
    with pytest.raises(DTypeError, match=said):
        TableEncoder().fit(values)


def test_whole_numbers_beyond_64_bits_are_refused_in_an_array() -> None:
    with pytest.raises(DataError, match="X has a column of values"):
        TableEncoder().fit(np.array([[10**30], [1]], dtype=object))


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"])
def test_times_and_durations_have_any_unit(unit) -> None:
    """Arrow has some of NumPy's units; a frame of pandas makes these of the others, too."""
    fine = unit in ("ps", "fs", "as")  # these do not reach this century
    durations = np.arange(3).astype(f"m8[{unit}]").reshape(-1, 1)
    expected = durations.astype("m8[ns]") / np.timedelta64(1, "D")
    np.testing.assert_allclose(TableEncoder().fit_transform(durations), expected, rtol=1e-12)
    times = np.arange("2020-01-01", "2024-01-01", 365, "M8[D]").astype(f"M8[{'ns' if fine else unit}]").reshape(-1, 1)
    found, known = (TableEncoder(dates=["x0"]).fit_transform(each) for each in (times, times.astype("M8[ns]")))
    np.testing.assert_allclose(found, known, rtol=1e-12)
