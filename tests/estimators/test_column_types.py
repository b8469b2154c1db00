"""Columns of types that NumPy does not know are read as the same values of other types, or refused with their name."""

from __future__ import annotations

from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from streamkernel import KernelRidge, KernelRidgeClassifier, TableEncoder, open_table
from streamkernel.errors import DTypeError, EmptyDataError, NonFiniteDataError, ShapeError

pl: Any = import_module("polars") if find_spec("polars") else None
X = np.random.default_rng(0).standard_normal((60, 2))
PLAIN: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "alpha": 1.0}
UNION = pa.UnionArray.from_sparse(
    pa.array([0, 1] * 30, pa.int8()), [pa.array(range(60)), pa.array([str(value) for value in range(60)])]
)
TEXTS = [str(value % 7) for value in range(60)]


def columns_of(values: list[Any], kind: pa.DataType, of_pandas: Any) -> dict[str, Any]:
    """One column in the types of each library."""
    found = {
        "Arrow": pa.chunked_array([pa.array(values, kind)]),
        "an array of Arrow": pa.array(values, kind),
        "pandas with Arrow's types": pd.Series(values, dtype=pd.ArrowDtype(kind)),
        "pandas": pd.Series(values, dtype=of_pandas),
        "an array of pandas": pd.array(values, dtype=of_pandas),
    }
    return found if pl is None else {**found, "polars": pl.Series(values)}


TARGETS = {
    "truth values": ([True, False] * 30, pa.bool_(), "boolean"),
    "decimals": ([Decimal("1.5"), Decimal("-2.25")] * 30, pa.decimal128(9, 2), pd.ArrowDtype(pa.decimal128(9, 2))),
    "whole numbers": ([3, 4] * 30, pa.int16(), "Int16"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_targets_and_weights_of_any_type_of_numbers(name: str) -> None:
    values, kind, of_pandas = TARGETS[name]
    numbers = np.array(values, dtype=float)
    model = KernelRidge(10, **PLAIN).fit(X, numbers)
    gaps = [*values[:7], None, *values[8:]]
    for column, with_gap in zip(
        columns_of(values, kind, of_pandas).values(), columns_of(gaps, kind, of_pandas).values(), strict=True
    ):
        np.testing.assert_array_equal(KernelRidge(10, **PLAIN).fit(X, column).dual_coef_, model.dual_coef_)
        np.testing.assert_array_equal(open_table(X, column).read(0, 60).Y[:, 0], numbers)
        with pytest.raises(NonFiniteDataError, match="first in row 7, column 'y'"):
            KernelRidge(10, **PLAIN).fit(X, with_gap)
        with pytest.raises(NonFiniteDataError, match="first in row 7, column 'y'"):
            open_table(X, with_gap).read(0, 60)
        with pytest.raises(NonFiniteDataError, match=r"weights contain NaN .* first in row 7"):
            KernelRidge(10, **PLAIN).fit(X, numbers, with_gap)


@pytest.mark.parametrize("name", TARGETS)
def test_a_column_of_a_frame_as_target(name: str) -> None:
    values, kind, of_pandas = TARGETS[name]
    for column in columns_of(values, kind, of_pandas).values():
        make = pd.DataFrame if type(column).__module__.startswith("pandas") else pa.table
        frame = (pl.DataFrame if type(column).__module__.startswith("polars") else make)({"a": X[:, 0], "y": column})
        np.testing.assert_array_equal(open_table(frame, target="y").read(0, 60).Y[:, 0], np.array(values, dtype=float))
        np.testing.assert_array_equal(open_table(frame).read(0, 60).X[:, 1], np.array(values, dtype=float))


@pytest.mark.parametrize("gap", [False, True])
def test_text_that_reads_as_numbers(gap: bool) -> None:
    texts = [None if gap and row == 3 else text for row, text in enumerate(TEXTS)]
    numbers = KernelRidge(10, **PLAIN).fit(pd.DataFrame({"a": X[:, 0], "t": np.array(TEXTS, dtype=float)}), X[:, 1])
    for column in columns_of(texts, pa.string(), "string").values():
        frame = pd.DataFrame({"a": X[:, 0], "t": pd.array(column)})
        model = KernelRidge(10, **PLAIN)
        if gap:
            with pytest.raises(NonFiniteDataError, match="first in row 3, column 't'"):
                model.fit(frame, X[:, 1])
        else:
            np.testing.assert_allclose(model.fit(frame, X[:, 1]).dual_coef_, numbers.dual_coef_, rtol=1e-12)


def test_unions_of_arrow_are_refused_by_name() -> None:
    column = pd.arrays.ArrowExtensionArray(pa.chunked_array([UNION]))
    frames = (pa.table({"a": X[:, 0], "u": UNION}), pd.DataFrame({"a": X[:, 0], "u": column}))
    for kind in (KernelRidge, KernelRidgeClassifier):
        for frame in frames:
            with pytest.raises(DTypeError, match="X: column 'u' holds values of several types, a union of Arrow; give"):
                kind(10, **PLAIN).fit(frame, TEXTS)
        for y in (UNION, pa.chunked_array([UNION])):
            with pytest.raises(DTypeError, match="y holds values of several types, a union of Arrow; give"):
                kind(10, **PLAIN).fit(X, y)
    for frame in frames:
        with pytest.raises(DTypeError, match="y: column 'u' holds values of several types"):
            KernelRidge(10, **PLAIN).fit(X, frame)
        with pytest.raises(DTypeError, match="y holds values of several types, a union of Arrow; give it one type"):
            open_table(frame, target="u")
    with pytest.raises(DTypeError, match="weights holds values of several types"):
        open_table(X, weights=UNION)


TYPES = [
    pa.run_end_encoded(pa.int32(), pa.bool_()), pa.dictionary(pa.int8(), pa.int64()), pa.time32("s"), pa.binary(),
    pa.float16(), pa.null(), pa.string_view(), pa.list_(pa.float32(), 2), pa.map_(pa.string(), pa.int8()), pa.date32(),
    pa.struct({"a": pa.int8()}), pa.duration("s"), pa.month_day_nano_interval(),
]  # fmt: skip


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_columns_of_gaps_alone(kind: pa.DataType) -> None:
    """Whatever their type is, they are refused by name, in all libraries alike."""
    gaps = pa.nulls(60, kind)
    of_pandas = pd.Series(gaps, dtype=pd.ArrowDtype(kind))
    for column, make in ((gaps, pa.table), (of_pandas, pd.DataFrame)):
        frame, refused = make({"a": X[:, 0], "c": column}), (DTypeError, NonFiniteDataError)
        with pytest.raises(refused, match="column 'c'"):
            KernelRidge(10, **PLAIN).fit(frame, X[:, 1])
        with pytest.raises(refused, match="column 'c'"):
            open_table(frame).read(0, 60)
        with pytest.raises(refused, match=r"^y "):
            KernelRidge(10, **PLAIN).fit(X, column)
        with pytest.raises(refused, match=r"^y "):
            open_table(X, column).read(0, 60)


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame])
def test_columns_of_equal_numbers_stored_once(make: Any) -> None:
    kind = pa.dictionary(pa.int8(), pa.int64())
    column = pa.array([3, 4] * 30).dictionary_encode().cast(kind)
    frame = make({"a": X[:, 0], "c": column if make is pa.table else pd.Series(column, dtype=pd.ArrowDtype(kind))})
    plain = make({"a": X[:, 0], "c": [3, 4] * 30})
    wanted = KernelRidge(10, **PLAIN).fit(plain, X[:, 1]).predict(plain)
    np.testing.assert_array_equal(KernelRidge(10, **PLAIN).fit(frame, X[:, 1]).predict(frame), wanted)


def test_sparse_columns_of_pandas_that_leave_out_gaps() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    wanted = KernelRidge(10, **PLAIN).fit(frame, X[:, 1]).predict(frame)
    for fill in (np.nan, 0.0, X[0, 0]):
        sparse = frame.astype(pd.SparseDtype(float, fill))
        np.testing.assert_allclose(KernelRidge(10, **PLAIN).fit(sparse, X[:, 1]).predict(sparse), wanted, rtol=1e-6)
    with pytest.raises(NonFiniteDataError, match="column 'a'"):
        KernelRidge(10, **PLAIN).fit(frame.mask(frame > 1).astype(pd.SparseDtype(float)), X[:, 1])


def test_rows_without_columns_and_records() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    for rows in (frame[[]], pa.table(frame).select([])):
        with pytest.raises(EmptyDataError, match=r"X has 0 feature\(s\).*give at least one column"):
            KernelRidge(10, **PLAIN).fit(rows, X[:, 1])
    with pytest.raises(EmptyDataError, match="DataFrame has no columns; give at least one"):
        TableEncoder().fit(frame[[]])
    with pytest.raises(DTypeError, match=r"X holds structured values \(a, b\); give a frame"):
        KernelRidge(10, **PLAIN).fit(frame.to_records(index=False), X[:, 1])


DAYS = pd.date_range("2020-01-01", periods=60)


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (list(DAYS), "dates, such as '2020-01-01 00:00:00'; give numbers$"),
        (list(DAYS.to_pydatetime()), "dates, such as '2020-01-01 00:00:00'; give numbers$"),
        (list(DAYS.date), "dates, such as '2020-01-01'; give numbers$"),
        (DAYS.to_period(), "dates, such as '2020-01-01'; give numbers$"),
        (list(DAYS - DAYS[0]), "values of Timedelta, such as '0 days 00:00:00'; give numbers$"),
        ([*DAYS[:30], *TEXTS[:29], "red"], "text, such as 'red'; give numbers, or for class labels KernelRidgeClass"),
    ],
)
def test_targets_that_are_no_numbers(y: Any, says: str) -> None:
    with pytest.raises(DTypeError, match=f"y holds {says}"):
        KernelRidge(10, **PLAIN).fit(X, y)


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (DAYS, r"y holds datetime64\[us\]; give numbers, or class labels"),
        (DAYS - DAYS[0], r"y holds timedelta64\[us\]; give numbers"),
        (np.full(60, 1j), "y holds complex128; give numbers"),
        (UNION, "y holds values of several types, a union of Arrow"),
    ],
)
def test_targets_of_the_encoder_are_numbers_or_labels(y: Any, says: str) -> None:
    """Each date was a class, and each complex number."""
    with pytest.raises(DTypeError, match=says):
        TableEncoder().fit(pd.DataFrame({"t": TEXTS}), y)


@pytest.mark.parametrize(
    ("weights", "error", "says"),
    [
        (TEXTS, DTypeError, "sample_weight holds <U1; give real numbers"),
        (DAYS, DTypeError, r"sample_weight holds datetime64\[us\]; give real"),
        (UNION, DTypeError, "sample_weight holds values of several types"),
        (np.array([{}] * 60), DTypeError, "sample_weight holds object; give real numbers"),
        (np.ones((60, 1)), ShapeError, r"sample_weight has shape \(60, 1\); give one weight per row"),
        (pd.array([1, None] * 30, dtype="Int64"), NonFiniteDataError, "first in row 1 in the sample_weight array"),
    ],
)
def test_weights_of_the_encoder(weights: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        TableEncoder().fit(pd.DataFrame({"t": TEXTS}), X[:, 0], weights)


def test_decimals_are_targets_and_weights_of_the_encoder() -> None:
    values = pa.array([Decimal("1.5")] * 60)
    encoder = TableEncoder().fit(pd.DataFrame({"t": TEXTS}), values, values)
    assert encoder.get_feature_names_out().tolist() == ["t"]


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy has no such type")
def test_labels_of_strings_of_any_length() -> None:
    """NumPy's new type of text cannot be cast to the old one."""
    labels = np.array(["short", "a longer one", "long"] * 20)
    new = labels.astype(np.dtypes.StringDType())
    assert open_table(X, new, classify=True).classes.tolist() == sorted(set(labels.tolist()))
    model = KernelRidgeClassifier(10, **PLAIN)
    np.testing.assert_array_equal(model.fit(X, new).predict(X), model.fit(X, labels).predict(X))


@pytest.mark.parametrize("kind", [np.array, list, pd.Series])
def test_labels_that_no_signed_number_holds(kind: Any) -> None:
    """They became floats, of which two labels may be one, and the model could not be saved."""
    labels = np.array([2**64 - 1, 2**64 - 2, 3] * 20, dtype=np.uint64)
    with pytest.raises(DTypeError, match=r"y holds 18446744073709551615 among its labels.* below 2\^63; give text"):
        KernelRidgeClassifier(10, **PLAIN).fit(X, kind(labels.tolist() if kind is list else labels))
    assert KernelRidgeClassifier(10, **PLAIN).fit(X, kind(labels >> np.uint64(1))).classes_.max() == 2**63 - 1
