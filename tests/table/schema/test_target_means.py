"""Target means: no row's own target is in its feature, and no mean loses its digits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamkernel import ingest, open_table
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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("given", [None, ("a", "b")])
@pytest.mark.parametrize("case", CASES)
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
