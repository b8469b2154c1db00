"""Ids of rows: they go from the source to the predictions, in any order of the rows, and are no feature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from messy_tables import messy

from streamkernel import KernelRidge, append_rows, ingest, open_table
from streamkernel.cli.main import main
from streamkernel.errors import ShapeMismatchError, SourceFormatError
from streamkernel.table._row_ids import as_texts
from streamkernel.table.rows import RowReader


def ids_of(store):
    table = open_table(store)
    return as_texts(RowReader(table.ids).read(table.start, table.stop))


@pytest.mark.parametrize("shuffle", [False, True])
def test_ids_stay_with_their_rows(tmp_path, shuffle):
    frame = messy(700)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    options = {"target": "y", "schema": "auto", "chunk_rows": 128, "dtype": "float64"}
    info = ingest(tmp_path / "rows.csv", tmp_path / "s", shuffle=shuffle, seed=3, **options)
    assert not any("key" in name for name in info.columns)
    found = pd.DataFrame({"key": ids_of(tmp_path / "s"), "y": open_table(tmp_path / "s").read(0, 700).Y[:, 0]})
    assert (found["key"].tolist() == frame["key"].tolist()) != shuffle
    pd.testing.assert_frame_equal(found.sort_values("key", ignore_index=True), frame[["key", "y"]], check_dtype=False)
    append_rows(frame.iloc[:130], tmp_path / "s")
    assert ids_of(tmp_path / "s")[700:] == frame["key"].tolist()[:130]
    with pytest.raises(ShapeMismatchError, match="have ids, of column 'key', and the source has no such column"):
        append_rows(frame.drop(columns="key"), tmp_path / "s")


def test_ids_of_all_types_are_texts(tmp_path):
    for number, values in enumerate(([7, 10, 2**60], ["007", " a ", "é"], [1.0, None, 2.5], ["NA", "null", ""])):
        frame = pa.table({"k": values, "a": [1.0, 2.0, 3.0]})
        ingest(frame, tmp_path / str(number), id="k")
    found = [ids_of(tmp_path / str(number)) for number in range(4)]
    assert found == [
        ["7", "10", str(2**60)],
        ["007", "a", "é"],
        ["1", "", "2.5"],
        ["NA", "null", ""],
    ]
    (tmp_path / "rows.csv").write_text("k,a\n007,1\n8,2\n")
    ingest(tmp_path / "rows.csv", tmp_path / "c", id="k")
    assert ids_of(tmp_path / "c") == ["007", "8"]


def test_an_id_of_more_than_64_bytes_is_refused(tmp_path):
    (tmp_path / "rows.csv").write_text(f"k,a\n{'x' * 64},1\n{'é' * 33},2\n")
    with pytest.raises(SourceFormatError, match=r"rows\.csv:3: the id in column 'k' has 66 bytes, and 64 are the most"):
        ingest(tmp_path / "rows.csv", tmp_path / "s", id="k")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_have_the_ids(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMKERNEL_SCHEDULER", "threads")
    frame = messy()
    frame.to_csv("rows.csv", index=False)
    plain = "--basis 20 --kernel gaussian --metric none --alpha 1 --lengthscale 5 --quiet"
    assert main(["fit", "rows.csv", "m", "--target", "y", "--schema", "auto", *plain.split()]) == 0
    for _ in range(2):  # the second one replaces the first
        assert main(["predict", "m", "rows.csv", f"p.{suffix}", "--rows", "100:200", "--quiet", "--overwrite"]) == 0
    found = pd.read_csv("p.csv") if suffix == "csv" else pd.read_parquet("p.parquet")
    assert found.columns.tolist() == ["row", "prediction", "key"]
    assert found["key"].tolist() == frame["key"].tolist()[100:200]
    ingest("rows.csv", "s", target="y", schema="auto", shuffle=True)
    assert main(["predict", "m", "s", f"q.{suffix}", "--quiet"]) == 0
    other = pd.read_csv("q.csv") if suffix == "csv" else pd.read_parquet("q.parquet")
    both = found.merge(other, on="key")
    assert len(both) == 100
    np.testing.assert_allclose(both["prediction_x"], both["prediction_y"], rtol=0.05)  # mean targets differ


def test_an_id_named_as_another_column(tmp_path):
    ingest(
        pa.table({"prediction": ["u", "v"], "a": [1.0, 2.0], "y": [1.0, 2.0]}),
        tmp_path / "s",
        id="prediction",
        target="y",
    )
    KernelRidge(n_components=2, lengthscale=1.0, alpha=1.0).fit(open_table(tmp_path / "s")).save(tmp_path / "m")
    assert (
        main(["predict", str(tmp_path / "m"), str(tmp_path / "s"), str(tmp_path / "p.csv"), "--scheduler", "threads"])
        == 0
    )
    assert pd.read_csv(tmp_path / "p.csv").columns.tolist() == ["row", "prediction", "prediction_id"]
