"""Tables over NumPy, pandas, Dask and xarray: the same rows whatever holds them, and one typed error for bad ones."""

import itertools
import pickle
import threading

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.errors import (
    DataError,
    DTypeError,
    EmptyDataError,
    NonFiniteDataError,
    NumericRangeError,
    ParameterError,
    ShapeError,
    ShapeMismatchError,
)
from streamkernel.table import Table, open_table

RNG = np.random.default_rng(0)
X = RNG.standard_normal((257, 5))
Y = RNG.standard_normal((257, 2))


def gathered(table: Table, rows: int = 50) -> np.ndarray:
    blocks = [b for span in table.spans(rows) for b in table.blocks(*span, rows)]
    assert [b.start for b in blocks] == sorted(b.start for b in blocks)
    return np.concatenate([b.X if b.Y is None else np.column_stack([b.X, b.Y]) for b in blocks])


def dataset(chunks=None):
    columns = {f"c{j}": ("row", X[:, j]) for j in range(5)} | {"t": ("row", Y[:, 0])}
    found = xr.Dataset(columns)
    return found if chunks is None else found.chunk(row=chunks)


INPUTS = {
    "numpy": lambda: open_table(X, Y[:, 0]),
    "fortran": lambda: open_table(np.asfortranarray(X), Y[:, 0]),
    "list": lambda: open_table(X.tolist(), Y[:, 0].tolist()),
    "pandas": lambda: open_table(pd.DataFrame(X, columns=list("abcde")), pd.Series(Y[:, 0], name="t")),
    "pandas target": lambda: open_table(
        pd.DataFrame({**dict(zip("abcde", X.T, strict=True)), "t": Y[:, 0]}), target="t"
    ),
    "dask": lambda: open_table(da.from_array(X, chunks=((100, 7, 150), (2, 3))), da.from_array(Y[:, 0], chunks=64)),
    "dask and numpy": lambda: open_table(da.from_array(X, chunks=(64, 5)), Y[:, 0]),
    "xarray X y": lambda: open_table(xr.Dataset({"X": (("row", "f"), X), "y": ("row", Y[:, 0])})),
    "xarray columns": lambda: open_table(dataset(), target="t"),
    "xarray dask columns": lambda: open_table(dataset(40), target=5),
    "xarray DataArray": lambda: open_table(xr.DataArray(X), xr.DataArray(Y[:, 0], name="t")),
    "xarray dask DataArray": lambda: open_table(xr.DataArray(X).chunk({"dim_0": 99}), Y[:, 0]),
}


@pytest.mark.parametrize("name", INPUTS)
def test_every_input_gives_the_same_rows(name):
    table = INPUTS[name]()
    want = np.column_stack([X, Y[:, 0]])
    assert (table.n_rows, table.n_features, table.n_targets) == (257, 5, 1)
    np.testing.assert_array_equal(gathered(table), want)
    np.testing.assert_array_equal(gathered(table.slice(31, 200), 17), want[31:200])
    again = pickle.loads(pickle.dumps(table))
    assert again.fingerprint == table.fingerprint == INPUTS[name]().fingerprint
    np.testing.assert_array_equal(gathered(again), want)
    table.check_unchanged()
    assert table.slice(1, 9).fingerprint != table.fingerprint


def test_lazily_opened_netcdf_like_variables_are_sliced(tmp_path):
    pytest.importorskip("zarr")
    made = xr.Dataset({"X": (("row", "f"), X), "y": ("row", Y[:, 0])}).chunk(row=64)
    made.to_zarr(tmp_path / "made", zarr_format=3, consolidated=False)
    opened = xr.open_dataset(tmp_path / "made", engine="zarr", chunks=None, consolidated=False)
    table = open_table(opened)
    assert table.chunk_rows == 64
    np.testing.assert_array_equal(gathered(table), np.column_stack([X, Y[:, 0]]))


def test_names_come_from_the_input():
    assert open_table(X).columns == ("x0", "x1", "x2", "x3", "x4")
    frame = INPUTS["pandas target"]()
    assert frame.columns == tuple("abcde")
    assert frame.target_names == ("t",)
    named = xr.DataArray(X, dims=("row", "f"), coords={"f": list("vwxyz")})
    assert open_table(named).columns == tuple("vwxyz")
    assert open_table(X, Y).target_names == ("y0", "y1")


@given(st.integers(1, 257), st.integers(1, 300), st.integers(0, 256), st.integers(1, 257))
def test_any_cutting_reads_every_row_once(chunk, rows, start, length):
    stop = min(257, start + length)
    table = open_table(da.from_array(X, chunks=(chunk, 5)), rows=(start, stop))
    spans = table.spans(rows)
    assert spans[0][0] == start
    assert spans[-1][1] == stop
    assert all(a[1] == b[0] for a, b in itertools.pairwise(spans))
    assert len(spans) <= max(1, (stop - start) // rows)
    for a, b in spans[:-1]:
        assert b % chunk == 0
        assert b > a
    sizes = [len(block) for block in table.blocks(start, stop, rows)]
    assert sum(sizes) == stop - start
    assert len(sizes) == -(-(stop - start) // rows)
    assert max(sizes) - min(sizes) <= 1
    np.testing.assert_array_equal(gathered(table, rows), X[start:stop])


@pytest.mark.parametrize(
    ("given_dtype", "kept"),
    [
        ("f4", "f4"), ("f8", "f8"), ("f2", "f4"), (">f4", "f4"), (">f8", "f8"), ("g", "f8"), ("?", "f8"),
        ("i1", "f8"), ("u2", "f8"), ("i4", "f8"), (">i8", "f8"), ("u8", "f8"),
    ],
)  # fmt: skip
def test_casts(given_dtype, kept):
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(given_dtype)
    for source in (values, da.from_array(values, chunks=1)):
        block = open_table(source, values[:, 0]).read(0, 2)
        assert block.X.dtype == np.dtype(kept)
        assert block.X.dtype.isnative
        assert block.X.flags.c_contiguous
        assert block.Y.dtype == np.float64
        np.testing.assert_array_equal(block.X, values.astype(float))
    assert open_table(values, dtype="float32").read(0, 2).X.dtype == np.float32
    assert open_table(values, dtype="float64").dtype == np.float64


def test_read_only_rows_are_given_out_writable():
    frozen = X.copy()
    frozen.setflags(write=False)
    assert open_table(frozen).read(0, 5).X.flags.writeable


BAD = [
    (np.ones((3, 2), complex), None, DTypeError, "complex"),
    (np.array([["a", "b"]]), None, DTypeError, "text"),
    (np.array([[1, "b"]], object), None, DTypeError, "objects"),
    (np.array([["2020-01-01"]], "M8[D]"), None, DTypeError, "datetime"),
    (scipy.sparse.eye(3).tocsr(), None, ParameterError, "toarray"),
    (pd.DataFrame({"a": [1.0], "b": ["u"]}), None, DTypeError, "'b'"),
    (xr.Dataset({"a": ("r", [1.0]), "b": ("r", ["u"])}), None, DTypeError, "'b'"),
    (np.ones((0, 3)), None, EmptyDataError, "no rows"),
    (np.ones((3, 0)), None, EmptyDataError, "no columns"),
    (xr.Dataset(), None, EmptyDataError, "variables"),
    (np.float64(3), None, ShapeError, r"\(\)"),
    (np.ones(3), None, ShapeError, "reshape"),
    (np.ones((3, 2, 2)), None, ShapeError, "2-d"),
    ([[1.0, 2.0], [3.0]], None, ShapeError, "rectangular"),
    (pd.Series([1.0]), None, ShapeError, "to_frame"),
    (xr.Dataset({"a": ("r", [1.0]), "b": ("s", [1.0])}), None, ShapeError, "dimensions"),
    (np.ones((3, 2)), np.ones((3, 1, 1)), ShapeError, "y has shape"),
    (np.ones((3, 2)), np.ones(4), ShapeMismatchError, r"\(3, 2\).*\(4,\)"),
    (np.ones((3, 2)), np.array(["a", "b", "c"]), DTypeError, "text"),
    (np.ones((3, 2)), np.ones(3, complex), DTypeError, "complex"),
]


@pytest.mark.parametrize(("rows", "y", "error", "says"), BAD)
def test_bad_rows_are_refused_when_opened(rows, y, error, says):
    with pytest.raises(error, match=says) as caught:
        open_table(rows, y)
    assert "\n" not in str(caught.value)


def test_unknown_dask_chunks_are_refused_with_the_way_out():
    unknown = da.from_array(X, chunks=(50, 5))
    with pytest.raises(ShapeError, match="compute_chunk_sizes"):
        open_table(unknown[unknown[:, 0] > 0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_non_finite_values_are_named(bad, dtype):
    spoiled = X.astype(dtype)
    spoiled[[123, 124], 3] = bad
    table = open_table(spoiled, Y)
    with pytest.raises(NonFiniteDataError, match=r"^X contains .*2 values.*row 123, column 'x3'"):
        table.read(0, 257)
    assert len(table.read(125, 257)) == 132
    targets = Y.copy()
    targets[7, 1] = bad
    with pytest.raises(NonFiniteDataError, match=r"^y contains .*1 value .*row 7, column 'y1'"):
        open_table(X, targets).read(0, 257)
    with pytest.raises(NonFiniteDataError, match="Dask block 2 of X"):
        open_table(da.from_array(spoiled, chunks=(50, 5))).read(0, 257)


def test_overflow_of_squared_norms_is_a_range_error_but_large_sums_are_not():
    large = np.full((1000, 4), 1e18, np.float32)  # each |x|^2 = 4e36, their sum overflows
    assert len(open_table(large).read(0, 1000)) == 1000
    large[17] = 1e19
    with pytest.raises(NumericRangeError, match=r"row 17 .*use float64, or divide"):
        open_table(large).read(0, 1000)
    with pytest.raises(NumericRangeError, match="float64"):
        open_table(np.full((2, 2), 1e300), dtype="float32").read(0, 2)
    with pytest.raises(NumericRangeError):
        open_table(np.full((2, 2), 1e200)).read(0, 2)


def test_classes_from_text_and_numbers():
    text = np.array(["pear", "apple", "fig", "apple"])
    table = open_table(X[:4], text, classify=True)
    assert table.classes.tolist() == ["apple", "fig", "pear"]
    assert table.n_targets == 3
    np.testing.assert_array_equal(table.read(0, 4).Y, np.eye(3)[[2, 0, 1, 0]])
    assert table.slice(1, 2).classes.tolist() == ["apple", "fig", "pear"]
    objects = open_table(X[:4], text.astype(object), classify=True)
    np.testing.assert_array_equal(objects.read(0, 4).Y, table.read(0, 4).Y)
    numbers = open_table(X[:4], np.array([5, -1, 5, 2]), classify=True)
    assert numbers.classes.tolist() == [-1, 2, 5]
    assert numbers.classes.dtype.kind == "i"
    lazy = open_table(X, da.from_array(np.arange(257.0) % 3, chunks=20), classify=True)
    assert lazy.classes.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(lazy.read(5, 90).Y, np.eye(3)[np.arange(5, 90) % 3])
    assert open_table(open_table(X, np.arange(257) % 3), classify=True).n_targets == 3


def test_what_is_no_class_label():
    with pytest.raises(DataError, match="regression"):
        open_table(X, Y[:, 0], classify=True)
    with pytest.raises(DataError, match="10000 distinct"):
        open_table(np.ones((10_001, 1)), np.arange(10_001), classify=True)
    with pytest.raises(DataError, match="one target column"):
        open_table(X, Y, classify=True)
    with pytest.raises(ParameterError, match="give y"):
        open_table(X, classify=True)
    with pytest.raises(DTypeError, match="position 1"):
        open_table(X[:2], np.array(["a", 3], object), classify=True)
    with pytest.raises(NonFiniteDataError):
        open_table(X[:2], np.array([1.0, np.nan]), classify=True)


def test_weights_follow_the_rows():
    weights = RNG.random(257)
    table = open_table(X, Y, weights=weights, rows=slice(10, 100))
    np.testing.assert_array_equal(table.read(20, 30).weights, weights[20:30])
    assert open_table(X, Y).read(0, 3).weights is None
    for bad, error in [
        (weights[:9], ShapeMismatchError),
        (-weights, ParameterError),
        (weights * np.nan, NonFiniteDataError),
    ]:
        with pytest.raises(error):
            open_table(X, Y, weights=bad)
    with pytest.raises(ParameterError, match="cannot be a Table"):
        open_table(X, weights=table)
    with pytest.raises(DTypeError, match=r"weights holds? text"):
        open_table(X, weights=["a"] * 257)


def test_weights_of_a_lazy_array_are_read_with_the_rows():
    weights = RNG.random(257)
    for lazy in (da.from_array(weights, chunks=50), da.from_array(weights.astype(np.float32), chunks=64)):
        table = open_table(da.from_array(X, chunks=(100, -1)), Y, weights=lazy)
        for first, last in [(0, 257), (45, 130)]:
            np.testing.assert_array_equal(table.read(first, last).weights, weights.astype(lazy.dtype)[first:last])
        assert table.fingerprint != open_table(da.from_array(X, chunks=(100, -1)), Y).fingerprint
    weights[200] = -1.0
    table = open_table(X, Y, weights=da.from_array(weights, chunks=50))
    assert table.read(0, 200).weights is not None
    with pytest.raises(ParameterError, match="row 200 has -1"):
        table.read(150, 257)
    weights[200] = np.inf
    with pytest.raises(NonFiniteDataError, match="first in row 200"):
        open_table(X, Y, weights=da.from_array(weights, chunks=50)).read(150, 257)


def test_row_ranges():
    assert open_table(X, rows=slice(None, 10)).stop == 10
    assert open_table(X, rows=slice(-7, None)).start == 250
    narrowed = open_table(open_table(X, rows=(10, 100)), rows=(20, 30))
    assert next(narrowed.blocks(20, 30, 100)).start == 20
    for bad in [(0, 258), (-1, 5), (9, 3), (0, 1.5), "0:5", (True, 3), slice(0, 9, 2)]:
        with pytest.raises(ParameterError):
            open_table(X, rows=bad)
    with pytest.raises(EmptyDataError):
        open_table(X, rows=(3, 3))
    table = open_table(X)
    for bad in (0, -1, True, 2.5):
        with pytest.raises(ParameterError):
            table.spans(bad)
    with pytest.raises(ParameterError):
        table.blocks(0, 300, 10)
    with pytest.raises(ParameterError):
        open_table(X, dtype="int8")
    with pytest.raises(ParameterError, match="not a column"):
        open_table(pd.DataFrame({"a": [1.0]}), target="z")


def test_missing_values_of_nullable_frames_are_non_finite():
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [0.5, 1.5, 2.5]})
    with pytest.raises(NonFiniteDataError, match="row 1, column 'a'"):
        open_table(frame).read(0, 3)


def test_truth_values_beside_numbers_in_a_frame():
    for kind, kept in ((np.int8, np.float64), (np.float32, np.float32), (np.float64, np.float64)):
        frame = pd.DataFrame({"a": np.array([1, 0, 3], dtype=kind), "b": [True, False, True], "t": [1.0, 2.0, 3.0]})
        table = open_table(frame, target="t")
        assert table.dtype == kept
        np.testing.assert_array_equal(table.read(0, 3).X, [[1, 1], [0, 0], [3, 1]])


def test_threads_share_one_table():
    table = open_table(da.from_array(X, chunks=(16, 5)), Y)
    parts: dict[int, np.ndarray] = {}

    def read(index: int, span: tuple[int, int]) -> None:
        parts[index] = np.concatenate([b.X for b in table.blocks(*span, 9)])

    threads = [threading.Thread(target=read, args=item) for item in enumerate(table.spans(20))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(np.concatenate([parts[i] for i in range(len(threads))]), X)
