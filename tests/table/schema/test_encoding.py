"""Columns of any kind as features: an oracle in plain NumPy and pandas, and every way to cut the rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from messy_tables import messy

from streamkernel import TableEncoder, append_rows, ingest, open_table
from streamkernel.errors import DataError, NonFiniteDataError, ParameterError, SourceFormatError, StreamKernelWarning
from streamkernel.table.schema import Column, Schema


def stored(store):
    table = open_table(store)
    block = table.read(0, table.n_rows)
    return dict(zip(table.columns, block.X.T, strict=True)), block


def by_hand(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """The features of `messy` but for target means."""
    found = {}
    hours = pd.to_numeric(frame["hours"].replace("?", np.nan))
    for name, values in (("age", frame["age"]), ("hours", hours)):
        found[name] = values.fillna(values.mean()).to_numpy()
        found[f"{name} is missing"] = values.isna().to_numpy(dtype=float)
    for job in sorted(frame["job"].dropna().unique()):
        found[f"job={job}"] = (frame["job"] == job).to_numpy(dtype=float)
    found["job is missing"] = frame["job"].isna().to_numpy(dtype=float)
    married = frame["married"].map({"yes": 1.0, "no": 0.0})
    found["married"] = married.fillna(married.mean()).to_numpy()
    found["married is missing"] = married.isna().to_numpy(dtype=float)
    when = pd.to_datetime(frame["when"])
    gap = when.isna().to_numpy()
    days = (when - when.min().normalize()) / pd.Timedelta(days=1)
    found["when (elapsed)"] = days.fillna(days.mean()).to_numpy()
    begin = pd.to_datetime(when.dt.year.astype("Int64").astype(str) + "-01-01", errors="coerce")
    shares = {
        "year": (when - begin) / pd.Timedelta(days=1) / (365.0 + when.dt.is_leap_year),
        "week": (when.dt.day_of_week + when.dt.hour / 24.0) / 7.0,
        "day": when.dt.hour / 24.0,
    }
    for part, share in shares.items():
        angle = 2.0 * np.pi * share.to_numpy(dtype=float)
        found[f"when (sine of the {part})"] = np.where(gap, 0.0, np.sin(angle))
        found[f"when (cosine of the {part})"] = np.where(gap, 0.0, np.cos(angle))
    found["when is missing"] = gap.astype(float)
    return found


def means_by_hand(labels, y, n_folds=5):
    """Means of categories in plain Python, and those of the other folds for each row."""
    rows = np.arange(len(y), dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = (rows + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        folds = (z ^ (z >> np.uint64(31))) % np.uint64(n_folds)

    def shrunk(of):
        groups = {label: y[of & (labels == label)] for label in np.unique(labels[of])}
        everything, count = y[of].mean(), len(groups)
        within = sum(((g - g.mean()) ** 2).sum() for g in groups.values()) / (of.sum() - count)
        n_0 = (of.sum() - sum(len(g) ** 2 for g in groups.values()) / of.sum()) / (count - 1)
        spread = sum(len(g) * (g.mean() - everything) ** 2 for g in groups.values()) / (count - 1)
        between = max(spread - within, 0.0) / n_0
        k = within / between if between > 0 else np.inf
        means = {label: everything + (g.mean() - everything) * len(g) / (len(g) + k) for label, g in groups.items()}
        return means, everything

    whole, everything = shrunk(np.ones(len(y), dtype=bool))
    others = [shrunk(folds != fold) for fold in range(n_folds)]
    of_rows = [others[fold][0].get(label, others[fold][1]) for fold, label in zip(folds, labels, strict=True)]
    return np.array([whole[label] for label in labels]), np.array(of_rows), everything


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_features_are_those_of_an_oracle(tmp_path, suffix):
    frame = messy()
    path = tmp_path / f"rows.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path, index=False)
    info = ingest(path, tmp_path / "s", target="y", schema="auto", dtype="float64")
    assert info.left_out == ("column 'key' (the id of the row)",)
    columns, block = stored(tmp_path / "s")
    expected = by_hand(frame)
    city = frame["city"].fillna("").to_numpy(dtype=str)
    _, expected["city (mean of y)"], _ = means_by_hand(city, frame["y"].to_numpy())
    assert columns.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(columns[name], values, rtol=1e-9, atol=1e-9, err_msg=name)
    np.testing.assert_array_equal(block.Y[:, 0], frame["y"])


def test_later_rows_have_the_means_of_all_rows():
    frame = messy()
    encoder = TableEncoder(drop=["key"])
    first = encoder.fit_transform(frame.drop(columns="y"), frame["y"])
    names = encoder.get_feature_names_out().tolist()
    [column] = [name for name in names if name.startswith("city")]
    means, of_rows, everything = means_by_hand(frame["city"].fillna("").to_numpy(dtype=str), frame["y"].to_numpy())
    np.testing.assert_allclose(first[:, names.index(column)], of_rows, rtol=1e-9)
    later = encoder.transform(frame)
    np.testing.assert_allclose(later[:, names.index(column)], means, rtol=1e-9)
    with pytest.warns(StreamKernelWarning, match="'nowhere' of column 'city' is none of its categories; 600 rows"):
        unknown = encoder.transform(frame.assign(city="nowhere"))
    np.testing.assert_allclose(unknown[:, names.index(column)], everything, rtol=1e-9)


def test_no_cut_of_the_rows_shows(tmp_path):
    frame = messy(1500)
    whole = pa.Table.from_pandas(frame, preserve_index=False)
    expected = TableEncoder(drop=["key"]).fit(frame.drop(columns="y"), frame["y"])
    # Parts of one row, of seven and of 400, at the ends and in the middle: 1,500 parts of one row took four seconds.
    edges = np.unique([*range(40), *range(40, 400, 7), 400, 800, *range(800, 840), 1200, *range(1460, 1501)]).tolist()
    parts = [whole.slice(first, stop - first) for first, stop in pairwise(edges)]
    assert {part.num_rows for part in parts} >= {1, 7, 400}
    found = TableEncoder(drop=["key", "y"]).fit(pa.concat_tables(parts), frame["y"])
    assert found.schema_.replaced([Column("y", "text")]).columns[:-1] == expected.schema_.columns
    frame.iloc[:700].to_csv(tmp_path / "a.csv", index=False)
    frame.iloc[700:].to_csv(tmp_path / "b.csv", index=False)
    frame.to_csv(tmp_path / "whole.csv", index=False)
    ingest(tmp_path / "whole.csv", tmp_path / "s", target="y", schema="auto", chunk_rows=64)
    ingest([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "t", target="y", schema="auto", chunk_rows=500)
    one, two = open_table(tmp_path / "s"), open_table(tmp_path / "t")
    assert one.schema == two.schema
    np.testing.assert_array_equal(one.read(0, 1500).X, two.read(0, 1500).X)


def test_integer_weights_are_repeated_rows():
    frame = messy(400)
    w = np.random.default_rng(1).integers(0, 4, 400)
    for missing in ("mean", "median"):
        options = {"drop": ["key"], "missing": missing}
        weighted = TableEncoder(**options).fit(frame.drop(columns="y"), frame["y"], sample_weight=w)
        again = frame.loc[np.repeat(frame.index, w)]
        repeated = TableEncoder(**options).fit(again.drop(columns="y"), again["y"])
        for one, two in zip(weighted.schema_.columns, repeated.schema_.columns, strict=True):
            if one.fill is not None:
                assert one.fill == pytest.approx(two.fill, rel=1e-9), one.name
            if one.means is not None:
                of_one, of_two = dict(zip(one.categories, one.means)), dict(zip(two.categories, two.means))  # noqa: B905
                assert all(of_one[name] == pytest.approx(mean, rel=1e-9) for name, mean in of_two.items())


def test_two_classes_have_one_share_and_three_have_three(tmp_path):
    frame = messy()
    for bins, names in ((2, ["high"]), (3, ["high", "low", "middle"])):
        labels = pd.qcut(frame["y"], bins, labels=["low", "high"] if bins == 2 else ["low", "middle", "high"])
        table = frame.drop(columns="y").assign(label=labels.astype(str))
        table.to_csv(tmp_path / "rows.csv", index=False)
        ingest(tmp_path / "rows.csv", tmp_path / "s", target="label", schema="auto", overwrite=True)
        columns, _ = stored(tmp_path / "s")
        found = [name for name in columns if name.startswith("city")]
        assert found == [f"city (mean of {name})" for name in (["low"] if bins == 2 else names)]
        # The order of the rows decides nothing of it.
        table.iloc[::-1].to_csv(tmp_path / "rows.csv", index=False)
        ingest(tmp_path / "rows.csv", tmp_path / "r", target="label", schema="auto", overwrite=True)
        assert open_table(tmp_path / "r").columns == open_table(tmp_path / "s").columns


def test_appended_rows_are_encoded_as_the_first_ones(tmp_path):
    frame = messy()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame[frame.columns[::-1]].iloc[:50].to_csv(tmp_path / "more.csv", index=False)
    ingest(tmp_path / "rows.csv", tmp_path / "s", target="y", schema="auto", dtype="float64")
    schema = open_table(tmp_path / "s").schema
    append_rows(tmp_path / "more.csv", tmp_path / "s")
    table = open_table(tmp_path / "s")
    assert table.n_rows == 650
    assert table.schema == schema
    later = TableEncoder(Schema.from_config(schema)).fit(frame).transform(frame)
    rows = table.read(600, 650).X
    city = table.columns.index("city (mean of y)")
    others = [j for j in range(rows.shape[1]) if j != city]
    np.testing.assert_array_equal(rows[:, others], table.read(0, 50).X[:, others])
    np.testing.assert_array_equal(rows, later[:50])


def test_several_targets_are_columns_of_y(tmp_path):
    frame = messy()[["age", "hours", "y"]].assign(z=np.arange(600.0))
    frame = frame[frame["hours"] != "?"].fillna(1.0)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    info = ingest(tmp_path / "rows.csv", tmp_path / "s", target=["z", "y"])
    assert info.target_names == ("y", "z")
    assert info.columns == ("age", "hours")
    np.testing.assert_array_equal(stored(tmp_path / "s")[1].Y, frame[["y", "z"]])
    with pytest.raises(ParameterError, match="several targets are numbers"):
        ingest(messy(), tmp_path / "t", target=["y", "job"], schema="auto")


def test_the_same_table_of_pandas_arrow_and_typed_columns(tmp_path):
    frame = messy()
    typed = frame.assign(
        job=frame["job"].astype("category"),
        when=pd.to_datetime(frame["when"]),
        married=frame["married"].map({"yes": True, "no": False}).astype("boolean"),
    )
    expected, _ = stored_of(frame, tmp_path / "a")
    for number, other in enumerate((typed, pa.Table.from_pandas(typed, preserve_index=False))):
        found, _ = stored_of(other, tmp_path / f"b{number}")
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-12, atol=1e-12)


def stored_of(frame, store):
    ingest(frame, store, target="y", schema="auto", drop=["key"], dtype="float64")
    return stored(store)


ONE = "a,b,c,y\n"


@pytest.mark.parametrize(
    ("rows", "options", "error", "words"),
    [
        (
            "1,x,2020-01-01,1\n,y,2020-01-02,2\n",
            {"missing": "refuse"},
            NonFiniteDataError,
            "rows.csv:3: column 'a' has",
        ),
        (
            "1,x,2020-01-01,1\n2,,2020-01-02,2\n",
            {"missing": "refuse"},
            NonFiniteDataError,
            "rows.csv:3: column 'b' has",
        ),
        (
            "1,x,2020-01-01,1\n2,y,,2\n",
            {"missing": "refuse"},
            NonFiniteDataError,
            "rows.csv:3: column 'c' has no value",
        ),
        (
            "1,x,2020-01-01,1\n2,y,2020-13-02,2\n",
            {},
            SourceFormatError,
            "rows.csv:3: '2020-13-02' of column 'c' is not",
        ),
        ("1,x,2020-01-01,1\n2,y,soon,2\n", {}, SourceFormatError, "rows.csv:3: 'soon' of column 'c' is not a date"),
        ("1,x,2020-01-01,1\n2e400,y,2020-01-01,2\n", {}, SourceFormatError, "rows.csv:3: inf of column 'a' is not fin"),
        (",x,2020-01-01,1\n,y,2020-01-01,2\n", {"missing": "mean"}, DataError, "column 'a' has no value in any row"),
        ("1,,2020-01-01,1\n2,,2020-01-01,2\n", {"missing": "mean"}, DataError, "column 'b' has no value in any row"),
        ("1,x,,1\n2,y,,2\n", {"missing": "mean"}, DataError, "column 'c' has no date in any row"),
        ("1,x,2020-01-01,\n2,y,2020-01-01,2\n", {}, NonFiniteDataError, "rows.csv:2: y has no value in row 0"),
        ("1,x,2020-01-01,1\n", {"drop": ["b"]}, ParameterError, "column 'b' is in use"),
        ("1,x,2020-01-01,1\n", {"categories": ["q"]}, ParameterError, "no column 'q' for categories"),
        ("1,x,2020-01-01,1\n", {"categories": ["b", "c"]}, ParameterError, "is a category and a date"),
        ("1,x,2020-01-01,1\n", {"missing": "zero"}, ParameterError, "missing must be one of"),
        ("1,x,2020-01-01,1\n", {"schema": [{"name": "d"}]}, ParameterError, "has no column 'd', which the schema"),
        ("1,x,2020-01-01,1\n", {"schema": "none.toml"}, OSError, "there is no schema at none.toml"),
        ("1,x,2020-01-01,1\n", {"target": "q"}, ParameterError, "there is no target column 'q'"),
    ],
)
def test_one_error_says_what_is_wrong_where(tmp_path, rows, options, error, words):
    (tmp_path / "rows.csv").write_text(ONE + rows)
    given = {"target": "y", "categories": ["b"], "dates": ["c"], **options}
    with pytest.raises(error) as caught:
        ingest(tmp_path / "rows.csv", tmp_path / "s", **given)
    assert words in str(caught.value)
    assert not (tmp_path / "s").exists()


def test_an_unknown_category_is_refused_or_counts_as_none(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,x\n2,y\n3,x\n")
    (tmp_path / "b.csv").write_text("b,a\nz,1\nx,2\nz,1\n")
    for unknown in (None, "ignore"):
        ingest(tmp_path / "a.csv", tmp_path / "s", categories=["b"], unknown=unknown, overwrite=True)
        if unknown is None:
            with pytest.raises(DataError, match=r"b\.csv:2: 'z' of column 'b' is none of its 2 categories"):
                append_rows(tmp_path / "b.csv", tmp_path / "s")
        else:
            with pytest.warns(StreamKernelWarning, match=r"b\.csv:2: 'z' of column 'b'.*; 2 rows with such values"):
                append_rows(tmp_path / "b.csv", tmp_path / "s")
    columns, _ = stored(tmp_path / "s")
    assert {name: values.tolist() for name, values in columns.items()} == {
        "a": [1, 2, 3, 1, 2, 1],
        "b=x": [1, 0, 1, 0, 1, 0],
        "b=y": [0, 1, 0, 0, 0, 0],
    }


def test_a_source_of_numbers_has_no_schema(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)))
    with pytest.raises(ParameterError, match="schema is for columns of CSV, Parquet and Arrow files and of frames"):
        ingest(tmp_path / "a.npz", tmp_path / "s", schema="auto")
    with pytest.raises(ParameterError, match="several targets by target are columns of CSV"):
        ingest(np.ones((3, 3)), tmp_path / "s", target=[0, 1])


def test_later_gaps_are_filled_where_the_fit_had_none(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,x\n3,y\n")
    (tmp_path / "b.csv").write_text("a,b\n,x\n3,\n")
    ingest(tmp_path / "a.csv", tmp_path / "s", schema="auto")
    append_rows(tmp_path / "b.csv", tmp_path / "s")
    columns, _ = stored(tmp_path / "s")
    assert columns["a"].tolist() == [1, 3, 2, 3]
    assert columns["b=x"].tolist() == [1, 0, 1, 0]
