"""Frames of other libraries than pandas: Arrow's tables, DataFrames of Dask and of pl."""

from __future__ import annotations

import datetime as dt
import decimal
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from messy_tables import messy

from streamkernel import KernelCCA, KernelRidge, KernelRidgeClassifier, Nystroem, TableEncoder, ingest, open_table
from streamkernel.errors import DTypeError, EmptyDataError, NonFiniteDataError, ParameterError, SourceFormatError

M = 60
Y = np.arange(M, dtype=float)


def stored(frame: Any, folder: Path, name: str = "s", **options: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    ingest(frame, folder / name, target="y", dtype="float64", **options)
    table = open_table(folder / name)
    return table.features.load(0, table.n_rows), table.columns


def test_codes_of_a_dictionary_may_be_unsigned(tmp_path: Path) -> None:
    codes = pa.array([0, 1, None] * 20, pa.uint32())
    texts = pa.DictionaryArray.from_arrays(codes, pa.array(["u", "v"]))
    X, names = stored(pa.table({"c": texts, "y": Y}), tmp_path, schema="auto")
    assert names == ("c=u", "c=v", "c is missing")
    np.testing.assert_array_equal(X, np.tile(np.eye(3), (20, 1)))
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 30, pa.uint8()), pa.array(["b", "a"]))
    info = ingest(pa.table({"x": Y, "y": labels}), tmp_path / "labels", target="y")
    assert info.classes == ("a", "b")


def test_runs_of_equal_values_are_the_values(tmp_path: Path) -> None:
    ends = pa.array([20, M], pa.int32())
    numbers = pa.RunEndEncodedArray.from_arrays(ends, pa.array([2.0, 3.0]))
    texts = pa.RunEndEncodedArray.from_arrays(ends, pa.array(["u", None]))
    table = pa.table({"n": numbers, "c": texts, "y": Y})
    rows = np.repeat([[2.0, 1.0, 0.0], [3.0, 0.0, 1.0]], [20, 40], axis=0)
    with pa.OSFile(str(tmp_path / "runs.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    pandas = pd.DataFrame({"n": pd.arrays.ArrowExtensionArray(numbers), "c": pd.Series(texts.to_pylist()), "y": Y})
    for place, source in enumerate([table, tmp_path / "runs.arrow", pandas]):
        X, names = stored(source, tmp_path, f"s{place}", schema="auto")
        assert names == ("n", "c=u", "c is missing")
        np.testing.assert_array_equal(X, rows)
    plain = KernelRidge(2, metric="none").fit(rows[:, :1], Y).predict(rows[:, :1])
    for columns in (table.select(["n"]), pandas[["n"]]):
        np.testing.assert_array_equal(open_table(columns).read(0, M).X, rows[:, :1])
        np.testing.assert_allclose(KernelRidge(2, metric="none").fit(columns, Y).predict(columns), plain, rtol=1e-9)
    steps = KernelRidge(10, metric="none").fit(Y[:, None], rows[:, 0])
    for targets in (pandas["n"], pandas[["n"]]):
        found = KernelRidge(10, metric="none").fit(Y[:, None], targets)
        np.testing.assert_array_equal(np.ravel(found.dual_coef_), steps.dual_coef_)


def test_columns_of_a_table_of_arrow_keep_their_names(tmp_path: Path) -> None:
    table = pa.table({"a": Y, "b": Y.astype(np.float32), "y": Y})
    X, names = stored(table, tmp_path)
    assert names == ("a", "b")
    np.testing.assert_array_equal(X, np.stack([Y, Y], axis=1))
    assert ingest(table, tmp_path / "kept", target="y", drop=["a"]).columns == ("b",)
    with pytest.raises(ParameterError, match="sparse=True is for libsvm text"):
        ingest(table, tmp_path / "sparse", target="y", sparse=True)


def test_durations_are_days(tmp_path: Path) -> None:
    hours = pd.to_timedelta(Y, "h")
    X, _ = stored(pd.DataFrame({"took": hours, "y": Y}), tmp_path, schema="auto")
    np.testing.assert_allclose(X[:, 0], Y / 24, rtol=1e-15)
    gap = hours.to_series(index=range(M)).where(Y > 0)
    X, names = stored(pd.DataFrame({"took": gap, "y": Y}), tmp_path, "gaps", schema="auto")
    assert names == ("took", "took is missing")
    np.testing.assert_allclose(X[0], [Y[1:].mean() / 24, 1])


def test_a_dask_frame_is_read_by_partitions(tmp_path: Path) -> None:
    frame = messy()
    whole, names = stored(frame, tmp_path, "whole", schema="auto", id="key")
    parts = dd.from_pandas(frame, npartitions=7, sort=False)
    found, same = stored(parts, tmp_path, "parts", schema="auto", id="key")
    assert same == names
    np.testing.assert_array_equal(found, whole)
    np.testing.assert_array_equal(
        TableEncoder().fit_transform(parts.drop(columns="y"), frame["y"].to_numpy()),
        TableEncoder().fit_transform(frame.drop(columns="y"), frame["y"].to_numpy()),
    )
    frame.loc[590, "hours"] = "many"
    hours = [{"name": "hours", "missing": "mean", "missing_values": ["?"]}]
    with pytest.raises(ValueError, match=r"partition 6 of DataFrame \(row 75 of it\): 'many' of column 'hours'"):
        ingest(dd.from_pandas(frame, npartitions=7, sort=False), tmp_path / "bad", schema=hours, target="y")
    # Partitions may have no rows; the whole must have some.
    some = parts[parts["age"] > 80]
    rows = frame["age"].to_numpy(dtype=float) > 80
    assert ingest(some, tmp_path / "some", target="y", keep=["age"]).rows == rows.sum()
    with pytest.raises(EmptyDataError, match="has no rows"):
        ingest(parts[parts["age"] > 800], tmp_path / "none", target="y", keep=["age"])


def test_a_query_of_polars_is_refused(tmp_path: Path) -> None:
    class LazyFrame:
        def collect(self) -> None: ...

        @property
        def columns(self) -> None:
            raise AssertionError("polars warns that this resolves the query")

        dtypes = columns

    LazyFrame.__module__ = "polars.lazyframe.frame"
    X = np.stack([Y, Y], axis=1)
    fitted = KernelRidge(10, alpha=0.1, kernel="gaussian", metric="none").fit(X, Y)
    reads: list[Any] = [
        lambda frame: ingest(frame, tmp_path / "s", schema="auto"),
        TableEncoder().fit,
        open_table,
        lambda frame: open_table(X, frame),
        lambda frame: KernelRidge(10).fit(frame, Y),
        lambda frame: KernelRidgeClassifier(10).fit(X, frame),
        fitted.predict,
        lambda frame: fitted.update(X, frame),
        Nystroem(10).fit,
        lambda frame: KernelCCA(1).fit(X, frame),
        lambda frame: KernelRidge(10).fit(X, Y, sample_weight=frame),
    ]
    for read in reads:
        with pytest.raises(ParameterError, match=r"has no rows yet; give its collect\(\)"):
            read(LazyFrame())


pl: Any = import_module("polars") if find_spec("polars") else None
needs_polars = pytest.mark.skipif(pl is None, reason="polars is not installed")


def of_polars() -> dict[str, tuple[Any, list[str]]]:
    """Columns of each type, and the features that they become."""
    first, start = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)
    hours = [start + dt.timedelta(hours=i) for i in range(M)]
    week, day = (["sine of the week", "cosine of the week"], ["sine of the day", "cosine of the day"])
    odd = [None if i % 7 == 0 else i for i in range(M)]
    return {
        "categorical": (pl.Series(["u", "v", None] * 20, dtype=pl.Categorical), ["=u", "=v", " is missing"]),
        "enum": (pl.Series(["lo", "hi"] * 30, dtype=pl.Enum(["lo", "mid", "hi"])), ["=hi", "=lo"]),
        "date": (
            pl.Series([first + dt.timedelta(days=i) for i in range(M)]),
            [f" ({part})" for part in ("elapsed", *week)],
        ),
        "zoned": (
            pl.Series(hours).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo"),
            [f" ({part})" for part in ("elapsed", *day)],
        ),
        "plain": (pl.Series(hours).cast(pl.Datetime("ns")), [f" ({part})" for part in ("elapsed", *day)]),
        "duration": (pl.Series([dt.timedelta(hours=i) for i in range(M)]), [""]),
        "integer": (pl.Series(odd, dtype=pl.Int16), ["", " is missing"]),
        "boolean": (
            pl.Series([None if i is None else i % 2 == 0 for i in odd]),
            ["", " is missing"],
        ),
        "decimal": (pl.Series([decimal.Decimal(i) / 4 for i in range(M)]), [""]),
        "text": (pl.Series(["a", "b", "c"] * 20), ["=a", "=b", "=c"]),
        "list": (pl.Series([[1, 2]] * M), []),
        "struct": (pl.Series([{"a": 1}] * M), []),
    }


@needs_polars
def test_a_polars_frame_is_ingested_encoded_and_fitted(tmp_path: Path) -> None:
    columns = of_polars()
    frame = pl.DataFrame({name: values for name, (values, _) in columns.items()} | {"y": Y})
    X, names = stored(frame, tmp_path, schema="auto")
    assert list(names) == [f"{name}{feature}" for name, (_, features) in columns.items() for feature in features]
    left = ingest(frame, tmp_path / "again", target="y", schema="auto").left_out
    assert left == ("column 'list' (text)", "column 'struct' (text)")
    by = dict(zip(names, X.T, strict=True))
    np.testing.assert_allclose(by["zoned (elapsed)"], Y / 24, atol=1e-12)
    np.testing.assert_allclose(by["plain (elapsed)"], Y / 24, atol=1e-12)
    np.testing.assert_allclose(by["duration"], Y / 24, rtol=1e-15)
    np.testing.assert_array_equal(by["decimal"], Y / 4)
    encoder = TableEncoder()
    np.testing.assert_array_equal(encoder.fit_transform(frame.drop("y"), frame["y"]), X)
    np.testing.assert_array_equal(encoder.transform(frame.drop("y")), X)
    numbers = frame.select("decimal", "y").with_columns(x=pl.col("y") ** 2)
    model = KernelRidge(10).fit(numbers.drop("y"), numbers["y"])
    assert list(model.feature_names_in_) == ["decimal", "x"]
    swapped = numbers.select("x", "decimal")
    np.testing.assert_array_equal(model.predict(swapped), model.predict(numbers.drop("y")))
    with pytest.raises(DTypeError):
        KernelRidge(10).fit(frame.select("text"), frame["y"])
    with pytest.raises(ValueError, match=r"column 'list' is not a .*: the column holds lists"):
        ingest(frame, tmp_path / "list", target="y", keep=["list"])


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_frame_opened_in_place_keeps_its_names(kind: str) -> None:
    columns: dict[str, Any] = {"a": Y, "b": (Y % 3 == 0), "c": Y.astype(np.int8), "y": Y * 2}
    if kind == "polars" and pl is None:
        pytest.skip("polars is not installed")
    frame = {"pandas": pd.DataFrame, "pyarrow": pa.table, "polars": pl and pl.DataFrame}[kind](columns)
    table = open_table(frame, target="y")
    assert (table.columns, table.named, table.targets and table.targets.names) == (("a", "b", "c"), True, ("y",))
    np.testing.assert_array_equal(table.read(0, M).X, np.stack([Y, Y % 3 == 0, Y], axis=1))
    model = KernelRidge(10, alpha=0.1, kernel="gaussian", metric="none").fit(table)
    swapped = open_table(frame[["c", "b", "a"]] if kind != "pyarrow" else frame.select(["c", "b", "a"]))
    np.testing.assert_array_equal(model.predict(swapped).compute(), model.predict(table).compute())


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_targets_of_typed_frames_are_numbers(backend: Any) -> None:
    y = pd.DataFrame({"u": range(M), "v": Y / 2, "w": [True, False] * 30})
    typed = y.convert_dtypes(dtype_backend=backend)
    for frame in (typed, pa.table(y)):
        np.testing.assert_array_equal(open_table(Y[:, None], frame).read(0, M).Y, y.to_numpy(dtype=float))
    typed.loc[3, "v"] = None
    with pytest.raises(NonFiniteDataError, match="first in row 3"):
        open_table(Y[:, None], typed).read(0, M)


def test_columns_of_arrow_are_opened_as_the_numbers_that_they_hold() -> None:
    quarters = pa.array([decimal.Decimal(i) / 4 for i in range(M)])
    assert open_table(pa.table({"a": pa.array([1, 2] * 30, pa.int8())})).features.dtype == np.int8
    assert open_table(pa.table({"a": pa.array(Y, pa.float32())})).dtype == np.float32
    np.testing.assert_array_equal(open_table(pa.table({"a": quarters})).read(0, M).X[:, 0], Y / 4)
    for gaps in (pa.array([True, None] * 30), pa.array([1, None] * 30), quarters.take(pa.array([0, None] * 30))):
        with pytest.raises(NonFiniteDataError, match=r"first in row 1, column 'a'"):
            open_table(pa.table({"a": gaps})).read(0, M)
    for wrong in (pa.array(["u"] * M), pa.array(["u"] * M).dictionary_encode(), pa.array([[1]] * M)):
        with pytest.raises(DTypeError, match=r"column 'a' holds .*; leave it out, encode it as numbers, or name it"):
            open_table(pa.table({"a": wrong, "b": Y}))
    with pytest.raises(EmptyDataError, match="no columns"):
        open_table(pa.table({"y": Y}), target="y")


@needs_polars
def test_whole_numbers_of_128_bits_are_numbers() -> None:
    for kind in (pl.Int128, pl.UInt128):
        wide = pl.Series("n", [2**70 + 2**60 * value for value in range(M)], dtype=kind)
        plain = np.array([float(2**70 + 2**60 * value) for value in range(M)])
        frame = pl.DataFrame([wide])
        np.testing.assert_array_equal(open_table(frame).read(0, M).X[:, 0], plain)
        np.testing.assert_array_equal(TableEncoder().fit_transform(frame)[:, 0], plain)
        model = KernelRidge(10, metric="none").fit(frame, Y)
        np.testing.assert_array_equal(model.predict(frame), model.predict(pl.DataFrame({"n": plain})))
        for y in (frame, wide):
            assert np.ravel(KernelRidge(10, metric="none").fit(Y[:, None], y).predict([[0.0]]))[0] > 2**69


@needs_polars
def test_a_query_of_real_polars_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="LazyFrame"):
        ingest(pl.DataFrame({"a": Y}).lazy(), tmp_path / "s", schema="auto")


ODD = {
    "cut": (pd.cut(Y, [-1, 20, 60]), ["=(-1, 20]", "=(20, 60]"]),
    "intervals": (pd.arrays.IntervalArray.from_breaks([0, 1, 2]).take([0, 1] * 29 + [-1, 0], allow_fill=True), None),
    "periods": (pd.period_range("2020-01", periods=M, freq="M"), [" (elapsed)", " (sine of the year)"]),
    "quarters": (pd.Categorical(pd.period_range("2020-01", periods=2, freq="Q").repeat(30)), ["=2020Q1", "=2020Q2"]),
    "mixed": (["u", 1, 1.0, None, True, "1"] * 10, ["=1", "=true", "=u", " is missing"]),
    "mixed categories": (pd.Categorical(["u", 1] * 30), ["=1", "=u"]),
    "numbers in text": (["1", 2, 2.5, None] * 15, ["", " is missing"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_columns_of_pandas_without_a_type_of_arrow_are_read_as_from_csv(name: str, tmp_path: Path) -> None:
    values, features = ODD[name]
    frame = pd.DataFrame({"a": Y, "c": values, "y": Y})
    before = frame.copy()
    found, names = stored(frame, tmp_path, schema="auto")
    if features is not None:
        assert list(names[1 : 1 + len(features)]) == [f"c{each}" for each in features]
    pd.testing.assert_frame_equal(frame, before)
    if name != "periods":  # whose text, 2020-01, is no date in CSV
        frame.to_csv(tmp_path / "rows.csv", index=False)
        again, same = stored(tmp_path / "rows.csv", tmp_path, "csv", schema="auto")
        assert same == names
        np.testing.assert_array_equal(found, again)
    encoder = TableEncoder().fit(frame[["a", "c"]], Y)
    np.testing.assert_array_equal(encoder.transform(frame[["c", "a"]][:9]), encoder.transform(frame[["a", "c"]])[:9])


def test_values_of_no_kind_are_named_with_their_column() -> None:
    for values, shown in ((Y * 1j, "complex, such as 0j"), ([{1}, "u"] * 30, "type set, such as {1}")):
        with pytest.raises(DTypeError, match=rf"DataFrame: column 'c' holds values of the .*{shown}.*leave it out"):
            TableEncoder().fit(pd.DataFrame({"a": Y, "c": values}))


def test_raw_values_of_pandas_are_named_with_their_column() -> None:
    with pytest.raises(DTypeError, match=r"DataFrame: column 'c' holds values of the type (void|bytes), .*leave it"):
        TableEncoder().fit(pd.DataFrame({"a": Y, "c": np.zeros(60, "V8")}))


def test_sparse_columns_and_large_whole_numbers_are_numbers() -> None:
    values = np.where(Y > 3.0, Y, 0.0)
    frame = pd.DataFrame({"a": pd.arrays.SparseArray(values), "b": pd.Series([10**30, 7] * 30, dtype=object)})
    found = TableEncoder().fit_transform(frame)
    np.testing.assert_array_equal(found, np.column_stack([values, [1e30, 7.0] * 30]))


def test_a_frame_of_pandas_has_the_options_of_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": Y, "c": ["u", "v"] * 30, "gap": np.where(Y > 3, Y, np.nan), "y": Y})
    with pytest.raises(SourceFormatError, match=r"'u' of column 'c' is not a number; .*categories or"):
        ingest(frame, tmp_path / "s", target="y")
    with pytest.raises(NonFiniteDataError, match=r"column 'gap' has no value in row 0; fill .* by missing='mean'"):
        ingest(frame, tmp_path / "s", target="y", drop=["c"])
    X, names = stored(frame, tmp_path, drop=["c", "gap"])
    assert names == ("a",)
    np.testing.assert_array_equal(X[:, 0], Y)
    assert ingest(frame, tmp_path / "kept", target="y", weight="a", keep=["y", "gap"], missing="mean").weight == "a"
    assert ingest(frame[["a", "c"]], tmp_path / "t", target="c").classes == ("u", "v")
    # Numbers alone keep their dtype.
    assert ingest(frame[["a", "y"]].astype(np.float32), tmp_path / "n", target=-1, dtype="keep").dtype == "float32"


def test_a_dask_frame_is_opened_lazily_and_with_its_names() -> None:
    columns = {"a": Y, "b": Y % 3 == 0, "c": (Y % 7).astype(np.int8), "y": Y * 2}
    frame = dd.from_pandas(pd.DataFrame(columns), npartitions=4)
    table = open_table(frame, target="y")
    assert (table.columns, table.named, table.features.in_memory) == (("a", "b", "c"), True, False)
    np.testing.assert_array_equal(table.read(0, M).X, np.stack([Y, Y % 3 == 0, Y % 7], axis=1))
    np.testing.assert_array_equal(table.read(0, M).Y[:, 0], Y * 2)
    model = KernelRidge(10, alpha=0.1, kernel="gaussian", metric="none").fit(frame[["a", "b", "c"]], Y)
    expected = model.predict(frame[["a", "b", "c"]]).compute()
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(frame[["c", "a", "b"]]).compute(), expected)
    np.testing.assert_array_equal(model.predict(frame[["c", "a", "b"]].compute()), expected)
    typed = dd.from_pandas(pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"), npartitions=3)
    np.testing.assert_array_equal(model.predict(typed[["b", "c", "a"]]).compute(), expected)
    gaps = dd.from_pandas(pd.DataFrame({"a": pd.array([1, None] * 30, "Int64")}), npartitions=2)
    with pytest.raises(NonFiniteDataError, match=r"first in row 1, column 'a'"):
        open_table(gaps).read(0, M)
    for wrong in (["u"] * M, pd.date_range("2020-01-01", periods=M), pd.Categorical(["u"] * M)):
        with pytest.raises(DTypeError, match=r"column 'z' holds .*; leave it out, encode it as numbers"):
            open_table(frame.assign(z=dd.from_pandas(pd.Series(wrong), npartitions=4)))
