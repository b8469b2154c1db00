"""Target means: no row's own target is in its feature, and no mean loses its digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from streamkernel import TableEncoder, ingest, open_table
from streamkernel.errors import StreamKernelWarning
from streamkernel.table.schema import Column, Schema

MEANS = Column("c", "category", encoding="target-mean", missing="mean", unknown="ignore")


def features(tmp_path, labels, y, column=MEANS, w=None):
    given = {"c": labels, "y": y} | ({} if w is None else {"w": w})
    weight = None if w is None else "w"
    ingest(
        pa.table(given),
        tmp_path / "s",
        target="y",
        weight=weight,
        schema=Schema((column,)),
        dtype="float64",
        overwrite=True,
    )
    table = open_table(tmp_path / "s")
    return table.read(0, table.n_rows).X, Schema.from_config(table.schema)["c"]


CASES = {
    "some": ["a", "b", None, "a", "b", None, "a", "z"] * 3,
    "one row each": [f"c{i}" for i in range(24)],
    "one category": ["a"] * 24,
    "one and gaps": ["a", None] * 12,
    "a single row": ["a"],
    "two rows": ["a", "b"],
}


# Each case in two of the four ways, with weights and without, categories given and found.
@pytest.mark.parametrize(
    ("case", "given", "weighted"),
    [
        pytest.param(case, given, weighted, marks=[pytest.mark.slow] * ((number + (given is None) + weighted) % 2))
        for number, case in enumerate(CASES)
        for given in (None, ("a", "b"))
        for weighted in (False, True)
    ],
)
@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
def test_no_target_is_in_its_own_feature(tmp_path, case, given, weighted):
    labels = CASES[case]
    rng = np.random.default_rng(0)
    y = rng.normal(size=len(labels))
    w = rng.integers(0, 3, len(labels)) + (np.arange(len(labels)) < 2) if weighted else None
    column = Column(**{**MEANS.__dict__, "categories": given})
    first, _ = features(tmp_path, labels, y, column, w)
    for row in range(min(len(labels), 6)):
        other = y.copy()
        other[row] += 100.0
        found, _ = features(tmp_path, labels, other, column, w)
        np.testing.assert_allclose(found[row], first[row], rtol=1e-9, atol=1e-9)


def test_an_unknown_category_is_no_gap_and_no_mean_of_gaps(tmp_path):
    labels, y = ["a", "b", "z", "a", "b", "z"] * 4, [1.0, 2.0, 9.0, 1.5, 2.5, 9.0] * 4
    column = Column("c", "category", categories=("a", "b"), missing="mean", unknown="ignore")
    with pytest.warns(StreamKernelWarning, match="'z' of column 'c' is none of its categories; 8 rows"):
        found, column = features(tmp_path, labels, y, column)
    assert column.features == ("c=a", "c=b")
    assert found[:3].tolist() == [[1, 0], [0, 1], [0, 0]]
    column = Column(**{**MEANS.__dict__, "categories": ("a", "b")})
    with pytest.warns(StreamKernelWarning, match="8 rows"):
        _, column = features(tmp_path, labels, y, column)
    assert (column.gaps, column.mean_of_gaps) == (False, None)
    assert column.overall[0] == pytest.approx(np.mean(y))


def test_targets_far_from_zero_keep_their_digits(tmp_path):
    rng = np.random.default_rng(1)
    labels = [f"c{i}" for i in rng.integers(0, 20, 2000)]
    y = np.round(np.array([hash_of(label) for label in labels]) + rng.normal(size=2000), 3)
    near, column = features(tmp_path, labels, y)
    far, moved = features(tmp_path, labels, y + 1.7e9)
    # Twelve digits of a mean are thousandths here.
    np.testing.assert_allclose(far - 1.7e9, near, atol=6e-3)
    np.testing.assert_allclose(np.array(moved.means) - 1.7e9, column.means, atol=6e-3)


def hash_of(label):
    return 0.3 * int(label[1:])


def many_classes(m: int = 4000) -> pd.DataFrame:
    """A category of 60 values, and 45 classes whose shares differ among them."""
    rng = np.random.default_rng(3)
    city = rng.integers(0, 60, m)
    label = (city + rng.zipf(1.5, m)) % 45
    return pd.DataFrame({"city": [f"city {each}" for each in city], "y": [f"class {each}" for each in label]})


@pytest.mark.parametrize("weighted", [False, True])
def test_the_rarer_ones_of_many_classes_have_one_mean(weighted: bool, tmp_path: Path) -> None:
    frame = many_classes()
    frame["w"] = np.random.default_rng(0).integers(1, 5, len(frame)).astype(float) if weighted else 1.0
    weight = frame.groupby("y")["w"].sum()
    frequent = sorted(weight.index, key=lambda name: (-weight[name], name))[:31]
    grouped = frame.assign(y=frame["y"].where(frame["y"].isin(frequent), "all other labels"))
    tables = []
    for name, each in (("all", frame), ("grouped", grouped)):
        ingest(each, tmp_path / name, target="y", weight="w", schema="auto", dtype="float64")
        tables.append(open_table(tmp_path / name))
    many, few = tables
    assert many.n_features == 32
    assert many.columns == few.columns
    assert (many.n_targets, few.n_targets) == (45, 32)
    np.testing.assert_array_equal(many.read(0, 4000).X, few.read(0, 4000).X)
    encoder = TableEncoder().fit(frame[["city"]], frame["y"], frame["w"])
    assert [name.rpartition(" of ")[2] for name in encoder.get_feature_names_out()] == [
        name.rpartition(" of ")[2] for name in many.columns
    ]


def test_many_classes_of_a_file_are_the_same_however_it_is_cut(tmp_path: Path) -> None:
    frame = many_classes(1000)
    frame.to_csv(tmp_path / "whole.csv", index=False)
    for part, rows in enumerate(np.array_split(np.arange(1000), 7)):
        frame.iloc[rows].to_csv(tmp_path / f"part-{part}.csv", index=False)
    for name, source in (("a", tmp_path / "whole.csv"), ("b", str(tmp_path / "part-*.csv"))):
        ingest(source, tmp_path / name, target="y", schema="auto")
    one, two = (open_table(tmp_path / name) for name in "ab")
    assert one.columns == two.columns
    np.testing.assert_array_equal(one.read(0, 1000).X, two.read(0, 1000).X)
