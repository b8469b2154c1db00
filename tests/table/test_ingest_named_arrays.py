"""Arrays of other names than X and y: NPZ, Zarr groups, and Datasets that xarray wrote."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from table.sources import FRAME, M, X, Y
from zarr.codecs import Crc32cCodec

from streamkernel.errors import (
    DTypeError,
    ParameterError,
    ShapeError,
    ShapeMismatchError,
    SourceFormatError,
    StoreNotFoundError,
)
from streamkernel.table import open_table
from streamkernel.table.ingest import append_rows, ingest

# xarray writes text so that zarr warns.
pytestmark = pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification")

CHECKED = [Crc32cCodec()]
W = np.arange(M) % 3.0
NAMES = list("abcd")


def npz(path):
    np.savez(path / "s.npz", features=X, label=Y, w=W, X=-X, y=-Y)
    return path / "s.npz"


def group(path):
    made = zarr.create_group(path / "g")
    for name, values in {"features": X, "label": Y, "w": W, "X": -X, "y": -Y}.items():
        made.create_array(name, data=values, chunks=(400, 4)[: values.ndim], compressors=CHECKED)
    return path / "g"


def dataset(coords=True):
    return xr.Dataset(
        {
            "features": (("row", "column"), X), "label": ("row", Y), "w": ("row", W),
            "X": (("row", "column"), -X), "y": ("row", -Y), "depth": ("level", np.arange(3.0)),
        },
        {"column": NAMES, "row": np.arange(M) + 7, "place": ("row", Y)} if coords else None,
    )  # fmt: skip


def stored(path, version=3):
    # xarray 2025.7 cannot write the type that pandas 3 has for text.
    written = dataset().assign_coords(column=pd.Index(NAMES, dtype=object))
    written.to_zarr(path / "d", zarr_format=version, consolidated=False)
    return path / "d"


KINDS = {
    "npz": npz, "zarr": group, "xarray 3": stored, "xarray 2": lambda path: stored(path, 2),
    "memory": lambda path: dataset(),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_any_names(tmp_path, kind):
    source = KINDS[kind](tmp_path)
    info = ingest(source, tmp_path / "s", X="features", y="label", weight="w", dtype="float64")
    named = kind not in ("npz", "zarr")
    assert info.columns == (tuple(NAMES) if named else ("x0", "x1", "x2", "x3"))
    assert (info.target_names, info.weight) == (("label",), "w")
    block = open_table(tmp_path / "s").read(0, M)
    np.testing.assert_array_equal(block.X, X)
    np.testing.assert_array_equal(block.Y[:, 0], Y)
    np.testing.assert_array_equal(block.weights, W)
    left = ("coordinate 'row'", "coordinate 'place'", "variable 'X'", "variable 'y'", "variable 'depth'")
    assert sorted(info.left_out) == (sorted(left) if named else [])
    append_rows(source, tmp_path / "s", X="features", y="label")
    assert open_table(tmp_path / "s").n_rows == 2 * M
    # The other array stays the default.
    info = ingest(source, tmp_path / "n", X="features")
    assert info.target_names == ("y",)
    np.testing.assert_array_equal(open_table(tmp_path / "n").read(0, 5).Y[:, 0], -Y[:5])
    info = ingest(source, tmp_path / "t", X="features", target=1)
    np.testing.assert_array_equal(open_table(tmp_path / "t").read(0, 5).Y[:, 0], X[:5, 1])
    with pytest.raises(ParameterError, match=r"there is no (variable|array|target) '?none'?; "):
        ingest(source, tmp_path / "e", y="none")
    with pytest.raises(
        (ParameterError, SourceFormatError, StoreNotFoundError), match=r"no (member|array|variable) '?none"
    ):
        ingest(source, tmp_path / "e", X="none")
    with pytest.raises((ShapeError, ShapeMismatchError), match="shape"):
        ingest(source, tmp_path / "e", X="label")


@pytest.mark.parametrize("kind", ["memory", "xarray"])
def test_a_dataset_of_columns(tmp_path, kind):
    columns = xr.Dataset({name: ("row", FRAME[name].abs().to_numpy()) for name in FRAME})
    columns = columns.assign_coords(row=pd.date_range("2020-01-01", periods=M), lat=("row", Y))
    source = columns
    if kind == "xarray":
        columns.to_zarr(tmp_path / "d", consolidated=False, encoding={"a": {"chunks": (256,)}})
        source = tmp_path / "d"
    info = ingest(source, tmp_path / "s", target="t", weight="b", dtype="float64")
    assert (sorted(info.columns), info.target_names, info.weight) == (["a", "c", "d"], ("t",), "b")
    np.testing.assert_array_equal(open_table(tmp_path / "s").read(0, M).X, FRAME[list(info.columns)].abs())
    assert sorted(info.left_out) == ["coordinate 'lat'", "coordinate 'row'"]


def test_packed_numbers_are_those_that_are_meant(tmp_path):
    counts = np.arange(20.0)
    packed = {"dtype": "i2", "scale_factor": 0.5, "add_offset": 3.0, "_FillValue": -9}
    both = xr.Dataset({"X": (("r", "f"), counts.reshape(10, 2)), "y": ("r", counts[:10])})
    for name in "Xy":
        both.to_zarr(tmp_path / name, consolidated=False, encoding={name: packed})
        ingest(tmp_path / name, tmp_path / "s", overwrite=True)
        block = open_table(tmp_path / "s").read(0, 10)
        np.testing.assert_array_equal(block.X, counts.reshape(10, 2))
        np.testing.assert_array_equal(block.Y[:, 0], counts[:10])


def test_an_array_in_a_group_within_the_group(tmp_path):
    made = zarr.create_group(tmp_path / "g").create_group("train")
    for name, values in {"images": X, "labels": Y}.items():
        made.create_array(name, data=values, chunks=values.shape, compressors=CHECKED)
    info = ingest(tmp_path / "g", tmp_path / "s", X="train/images", y="train/labels")
    assert (info.rows, info.target_names) == (M, ("train/labels",))


@pytest.mark.parametrize("version", [2, 3, None])
def test_text_labels(tmp_path, version):
    words = np.where(Y > 2, "yes", "no")
    if version is None:
        made = zarr.create_group(tmp_path / "d")
        for name, values in {"f": X, "label": words}.items():
            made.create_array(name, data=values, chunks=values.shape, compressors=CHECKED)
    else:
        made = xr.Dataset({"f": (("r", "c"), X), "label": ("r", words)})
        made.to_zarr(tmp_path / "d", zarr_format=version, consolidated=False)
    assert ingest(tmp_path / "d", tmp_path / "s", X="f", y="label").classes == ("no", "yes")
    columns = xr.Dataset({"a": ("r", Y), "label": ("r", words)})
    assert ingest(columns, tmp_path / "c", target="label").classes == ("no", "yes")


def test_what_does_not_make_one_table_is_refused(tmp_path):
    source = stored(tmp_path)
    cube = xr.Dataset({"t": (("time", "lat", "lon"), np.ones((2, 3, 4))), "a": ("time", np.ones(2))})
    cube.to_zarr(tmp_path / "cube", consolidated=False)
    with pytest.raises(ShapeError, match=r"several dimensions, .*a \(time\).*; name one of two dimensions by X"):
        ingest(tmp_path / "cube", tmp_path / "s")
    with pytest.raises(ShapeError, match=r"\(2, 3, 4\); a table is 2-d"):
        ingest(tmp_path / "cube", tmp_path / "s", X="t")
    with pytest.raises(ParameterError, match="y is given twice"):
        ingest(source, tmp_path / "s", y="label", target="a")
    with pytest.raises(ParameterError, match="X and y are the same array, 'X'"):
        ingest(source, tmp_path / "s", y="X")
    zarr.create_group(tmp_path / "g").create_array("other", data=X, chunks=X.shape)
    with pytest.raises(StoreNotFoundError, match=r"g has no array X, .*; name its arrays by X and y"):
        ingest(tmp_path / "g", tmp_path / "s")
    dates = xr.Dataset({"a": ("r", pd.date_range("2020-01-01", periods=5)), "b": ("r", np.ones(5))})
    dates.to_zarr(tmp_path / "dates", consolidated=False)
    with pytest.raises(DTypeError, match="column 'a' of the Dataset holds datetime64"):
        ingest(tmp_path / "dates", tmp_path / "s")


@pytest.mark.parametrize("name", ["", "a/../b", "/a", "..", 3, True])
@pytest.mark.parametrize("which", ["X", "y"])
def test_what_is_no_name_of_an_array(tmp_path, name, which):
    with pytest.raises(ParameterError, match=f"^{which} must be the name of an array"):
        ingest(tmp_path / "absent.npz", tmp_path / "s", **{which: name})


def test_names_for_a_source_that_has_one_array(tmp_path):
    FRAME.to_csv(tmp_path / "s.csv")
    FRAME.to_parquet(tmp_path / "s.parquet")
    np.save(tmp_path / "s.npy", X)
    ingest(X, tmp_path / "ours")
    zarr.create_array(tmp_path / "bare", data=X, chunks=X.shape)
    sources = [tmp_path / name for name in ("s.csv", "s.parquet", "s.npy", "ours", "bare")]
    for source in (*sources, X, FRAME, "synthetic://friedman?rows=9"):
        for which in "Xy":
            with pytest.raises(ParameterError, match=f"^{which} names an array of an NPZ file"):
                ingest(source, tmp_path / "s", **{which: "a"})


def test_without_xarray_the_error_names_the_extra(tmp_path, monkeypatch):
    xr.Dataset({"a": ("r", Y)}).to_zarr(tmp_path / "d", consolidated=False)
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ParameterError, match=r"pip install 'streamkernel\[xarray\]'"):
        ingest(tmp_path / "d", tmp_path / "s")


def test_a_group_of_groups_is_told_to_name_its_arrays(tmp_path: Path) -> None:
    zarr.open_group(tmp_path / "g", mode="w").create_array("train/images", data=X, compressors=CHECKED)
    with pytest.raises(
        StoreNotFoundError, match=r"no array X, and is no Dataset of xarray; name its arrays by X and y"
    ):
        ingest(tmp_path / "g", tmp_path / "s")
    assert ingest(tmp_path / "g", tmp_path / "s", X="train/images").rows == len(X)
