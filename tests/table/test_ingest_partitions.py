"""Columns in the names of folders: year=2020/part.parquet."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from streamkernel.errors import NonFiniteDataError, SourceFormatError
from streamkernel.table import open_table
from streamkernel.table.ingest import append_rows, ingest

ROWS = pa.table({"a": np.arange(6.0), "y": np.arange(6.0) ** 2, "year": [2020, 2020, 2021, 2021, 2021, 2020]})


def part(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = columns or {"a": [1.0, 2.0], "y": [3.0, 4.0]}
    if path.suffix == ".csv":
        rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        path.write_text("\n".join(rows))
    else:
        pq.write_table(pa.table(columns), path)
    return path


def read(store):
    table = open_table(store)
    block = table.read(0, table.n_rows)
    return dict(zip(table.columns, block.X.T.tolist(), strict=True))


@pytest.mark.parametrize("kind", ["parquet", "ipc", "csv"])
def test_what_pyarrow_writes_is_read_as_pyarrow_reads_it(tmp_path, kind):
    ds.write_dataset(ROWS, tmp_path / "f", format=kind, partitioning=["year"], partitioning_flavor="hive")
    if kind == "ipc":
        for file in (tmp_path / "f").rglob("*.ipc"):
            file.rename(file.with_suffix(".arrow"))
    expected = ds.dataset(tmp_path / "f", format=kind, partitioning="hive").to_table().to_pydict()
    info = ingest(tmp_path / "f", tmp_path / "s", target="y")
    assert (info.columns, info.left_out) == (("a", "year"), ())
    assert read(tmp_path / "s") == {name: expected[name] for name in ("a", "year")}
    assert open_table(tmp_path / "s").read(0, 6).Y[:, 0].tolist() == expected["y"]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_pattern_a_list_and_an_append_have_the_columns_of_a_folder(tmp_path, suffix):
    parts = [part(tmp_path / "f" / f"year={year}" / "month=01" / f"p.{suffix}") for year in (2020, 2021)]
    for source in (tmp_path / "f", f"{tmp_path}/f/*/*/*.{suffix}"):
        info = ingest(source, tmp_path / "s", target="y", overwrite=True)
        assert info.columns == ("a", "year", "month")
        assert read(tmp_path / "s") == {"a": [1, 2] * 2, "year": [2020] * 2 + [2021] * 2, "month": [1] * 4}
    assert ingest(parts, tmp_path / "l", target="y").columns == ("a", "year", "month")
    append_rows(f"{tmp_path}/f/year=2021*", tmp_path / "s")
    assert read(tmp_path / "s")["year"] == [2020] * 2 + [2021] * 4
    # A file by its own name has its own columns alone.
    assert ingest(parts[0], tmp_path / "o", target="y").columns == ("a",)


def test_weights_targets_and_labels_in_folders(tmp_path):
    for name, weight in (("b%20c", "0.5"), ("a", "2")):
        part(tmp_path / "f" / f"t={name}" / f"w={weight}" / "p.parquet", a=[1.0, 2.0])
    info = ingest(tmp_path / "f", tmp_path / "s", target="t", weight="w")
    assert (info.columns, info.target_names, info.classes, info.weight) == (("a",), ("t",), ("a", "b c"), "w")
    block = open_table(tmp_path / "s").read(0, 4)
    assert block.Y[:, 0].tolist() == [1, 1, 0, 0]
    assert block.weights.tolist() == [2, 2, 0.5, 0.5]
    info = ingest(tmp_path / "f", tmp_path / "n", target="w")
    assert (info.columns, info.classes) == (("a",), None)
    assert info.left_out == ("column 't' of the folders t=... (text; a category would be a feature)",)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_column_that_is_in_the_file_too_must_agree(tmp_path, suffix):
    part(tmp_path / "f" / "year=2020" / f"p.{suffix}", a=[1.0], year=[2020])
    bad = part(tmp_path / "f" / "year=2021" / f"p.{suffix}", a=[1.0] * 3, year=[2021] * 3)
    assert ingest(tmp_path / "f", tmp_path / "s").columns == ("a", "year")
    assert read(tmp_path / "s")["year"] == [2020, 2021, 2021, 2021]
    part(bad, a=[1.0] * 3, year=[2021, 2021, 2020])
    with pytest.raises(SourceFormatError, match=r"p\.\w+: column 'year' of its row 2 is 2020.*folder is year=2021"):
        ingest(tmp_path / "f", tmp_path / "t")


def test_text_that_is_in_the_file_too(tmp_path):
    for name in "uv":
        part(tmp_path / "f" / f"t={name}" / "p.parquet", a=[1.0], t=pa.array([name]).dictionary_encode())
    assert ingest(tmp_path / "f", tmp_path / "s", target="t").classes == ("u", "v")
    part(tmp_path / "f" / "t=v" / "p.parquet", a=[1.0], t=["u"])
    with pytest.raises(SourceFormatError, match=r"'t' of its row 0 is 'u', and its folder is t=v"):
        ingest(tmp_path / "f", tmp_path / "t", target="t")


def test_a_missing_value_is_named_and_folders_must_be_alike(tmp_path):
    part(tmp_path / "f" / "year=2020" / "p.parquet")
    part(tmp_path / "f" / "year=__HIVE_DEFAULT_PARTITION__" / "p.parquet")
    with pytest.raises(NonFiniteDataError, match=r"row 2, column 'year', in .*PARTITION__/p\.parquet \(row 0"):
        ingest(tmp_path / "f", tmp_path / "s")
    part(tmp_path / "g" / "year=2020" / "p.parquet")
    part(tmp_path / "g" / "p.parquet")
    with pytest.raises(SourceFormatError, match=r"g/p\.parquet lies in no folder year=\.\.\., and .*year=2020"):
        ingest(tmp_path / "g", tmp_path / "s")
    part(tmp_path / "h" / "year=2020" / "year=2021" / "p.parquet")
    with pytest.raises(SourceFormatError, match=r"lies in two folders year="):
        ingest(tmp_path / "h", tmp_path / "s")


@pytest.mark.parametrize(
    ("values", "folders"),
    [
        (pa.array([False, True]), ("false", "true")),
        (pa.array([False, True]), ("False", "True")),
        (pa.array(["2020-01-01", "2020-02-28"]).cast(pa.date32()), ("2020-01-01", "2020-02-28")),
        (
            pa.array(["2020-01-01", "2020-02-28"]).cast(pa.timestamp("us")),
            ("2020-01-01%2000%3A00%3A00.000000", "2020-02-28"),
        ),
    ],
)
def test_truth_values_and_dates_of_folders_may_stand_in_the_files_too(tmp_path, values, folders):
    for row, folder in enumerate(folders):
        part(tmp_path / "f" / f"k={folder}" / "p.parquet", a=[1.0, 2.0], y=[3.0, 4.0], k=values.take([row, row]))
    info = ingest(tmp_path / "f", tmp_path / "s", target="y", schema="auto")
    assert (info.rows, info.left_out) == (4, ())
    part(tmp_path / "f" / f"k={folders[0]}" / "q.parquet", a=[1.0], y=[3.0], k=values.take([1]))
    with pytest.raises(SourceFormatError, match=f"column 'k' of its row 0 is .*folder is k={folders[0][:5]}"):
        ingest(tmp_path / "f", tmp_path / "s", target="y", schema="auto", overwrite=True)
