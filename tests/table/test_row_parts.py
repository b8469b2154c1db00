"""Parts of the rows: by content, by group, by time. The same for any order and chunks, and for weights as copies."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.errors import DataError, NonFiniteDataError, ParameterError
from streamkernel.table import Table, open_table
from streamkernel.table.ingest import ingest
from streamkernel.table.parts import search
from streamkernel.table.parts.row_parts import GroupParts, RowParts
from streamkernel.table.parts.search import check_filled, content_parts, group_parts, time_parts
from streamkernel.table.parts.weights import PartSums, part_numbers
from streamkernel.table.stored.zarr_rows import ZarrRows

RNG = np.random.default_rng(3)
M = 230
X = RNG.standard_normal((M, 4))
X[:, 2] = RNG.choice([0.0, 0.5, 2.0], M)  # weights
X[:, 3] = RNG.integers(-8, 9, M)  # groups or times
Y = RNG.standard_normal(M)
KINDS = ("content", "group", "time")


def parted(table: Table, kind: str, count: int) -> tuple[Table, RowParts]:
    """The table without the column of groups or times, and its parts."""
    if kind == "content":
        return table, content_parts(table, count)
    features, column = table.apart("x3", f"{kind}s", "x3")
    return features, (group_parts if kind == "group" else time_parts)(features, column, count)


def of_rows(X: Any, kind: str, count: int = 4, weights: Any = None) -> Any:
    _, parts = parted(open_table(X, weights=weights), kind, count)
    return part_numbers(parts, 0, len(X))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parts") / "store"
    ingest(open_table(X, Y), path, chunk_rows=50, dtype="float64")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_no_order_and_no_chunks_change_the_part_of_a_row(kind: str, stored: Path) -> None:
    parts = of_rows(X, kind)
    order = np.random.default_rng(0).permutation(M)
    np.testing.assert_array_equal(of_rows(X[order], kind), parts[order])
    _, of_store = parted(open_table(stored), kind, 4)
    np.testing.assert_array_equal(part_numbers(of_store, 0, M), parts)
    assert set(parts) == {0, 1, 2, 3}


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 1000), count=st.integers(2, 5))
def test_weights_count_as_copies(kind: str, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.standard_normal((60, 3)), rng.integers(0, 9, 60)])
    w = rng.integers(0, 4, 60)
    w[:9], rows[:9, 3] = 1, np.arange(9)
    copies = np.repeat(np.arange(60), w)
    whole, repeated = of_rows(rows, kind, count, w.astype(float)), of_rows(rows[copies], kind, count)
    np.testing.assert_array_equal(whole[copies], repeated)
    # 0.1 of each has other sums in other orders.
    order = rng.permutation(60)
    np.testing.assert_array_equal(of_rows(rows[order], kind, count, 0.1 * w[order]), whole[order])


@given(groups=st.lists(st.integers(0, 30), min_size=5, max_size=200), count=st.integers(2, 6))
def test_groups_are_never_split_and_fill_the_parts_evenly(groups: list[int], count: int) -> None:
    column = np.array(groups, dtype=float)
    rows = np.column_stack([np.arange(len(groups)), np.arange(len(groups)), np.zeros(len(groups)), column])
    sizes = np.unique(column, return_counts=True)[1]
    if len(sizes) < count:
        with pytest.raises(ParameterError, match=r"too few for|the same in all rows"):
            of_rows(rows, "group", count)
        return
    parts = of_rows(rows, "group", count)
    for group in set(groups):
        assert len(set(parts[column == group])) == 1
    filled = np.bincount(parts, minlength=count)
    assert filled.min() > 0
    # The heaviest part got its last group when it was the lightest.
    assert filled.max() <= len(groups) / count + sizes.max()


def test_more_groups_than_are_counted_go_where_their_hash_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_GROUPS", 50)
    rows = np.column_stack([RNG.standard_normal((4000, 3)), RNG.integers(0, 900, 4000)])
    parts = of_rows(rows, "group")
    _, of = parted(open_table(rows), "group", 4)
    assert isinstance(of, GroupParts)
    assert of.keys is None
    assert all(len(set(parts[rows[:, 3] == group])) <= 1 for group in range(900))
    assert np.bincount(parts).min() > 800


@given(
    times=st.lists(
        st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 1.0, 5e-324]),
        min_size=1,
        max_size=80,
    ),
    count=st.integers(2, 6),
    weighted=st.booleans(),
)
def test_times_are_cut_at_the_quantiles_of_plain_numpy(times: list[float], count: int, weighted: bool) -> None:
    t = np.array(times)
    w = np.arange(len(t)) % 3 + 1.0 if weighted else np.ones(len(t))
    table = open_table(np.column_stack([np.zeros(len(t)), t]), weights=w)
    features, column = table.apart("x1", "times", "x1")
    parts = time_parts(features, column, count)
    copies = np.sort(np.repeat(t, w.astype(int)))
    expected = copies[np.ceil(np.arange(1, count) * len(copies) / count - 1e-9).astype(int) - 1]
    np.testing.assert_array_equal(parts.thresholds, expected)
    numbers = part_numbers(parts, 0, len(t))
    for part in range(count - 1):
        before, after = t[numbers <= part], t[numbers > part]
        assert not len(before) or not len(after) or before.max() < after.min()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [None, "x2"])
@pytest.mark.parametrize("pickled", [False, True])
def test_blocks_of_a_part_have_weight_0_outside_and_decode_each_chunk_once(
    kind: str, weight: str | None, pickled: bool, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = open_table(stored)
    table, parts = parted(table if weight is None else table.weighted_by(weight), kind, 4)
    kept = PartSums(table, parts).table_of(0, 2)
    own, given = np.isin(part_numbers(parts, 0, M), (0, 2)), np.ones(M) if weight is None else X[:, 2]
    w = own * given
    np.testing.assert_array_equal(kept.weights_of(0, M), w)
    assert (kept.counted, kept.weight, kept.statistics) == (np.count_nonzero(w), w.sum(), None)
    loads, load = [], ZarrRows.load
    monkeypatch.setattr(ZarrRows, "load", lambda self, *span: loads.append((self.name, *span)) or load(self, *span))  # type: ignore[func-returns-value]
    blocks = list((pickle.loads(pickle.dumps(kept)) if pickled else kept).blocks(0, M, 35))
    np.testing.assert_array_equal(np.concatenate([block.row_weights for block in blocks]), w)
    # Equality with the features would be lost in a copy: those of a pickled table are still one object.
    assert sorted(loads) == sorted((name, a, min(a + 50, M)) for name in "Xy" for a in range(0, M, 50))


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_a_pass_over_the_weights(kind: str, stored: Path) -> None:
    table, parts = parted(open_table(stored).weighted_by("x2").slice(20, 201), kind, 3)
    sums = PartSums(table, parts)
    for kept in ((0,), (1, 2), (0, 1, 2)):
        known = sums.table_of(*kept)
        found, again = known.weight_sums, pickle.loads(pickle.dumps(known)).weight_sums
        assert found is not None
        assert (found.first, found.counted) == (again.first, again.counted)
        for name in ("cuts", "sums", "largest", "least", "counts"):
            np.testing.assert_allclose(getattr(found, name), getattr(again, name), rtol=1e-14)


def test_the_parts_are_in_the_fingerprint(stored: Path) -> None:
    found = set()
    for kind in KINDS:
        table, parts = parted(open_table(stored), kind, 4)
        found |= {table.fingerprint, *(PartSums(table, parts).table_of(*kept).fingerprint for kept in ((0,), (1, 2)))}
    assert len(found) == 8  # groups and times leave out the same column


@pytest.mark.parametrize("kind", ["group", "time"])
def test_a_column_of_a_split_must_be_finite(kind: str) -> None:
    bad = X.copy()
    bad[7, 3] = np.nan
    with pytest.raises(NonFiniteDataError, match=r"column of the split contains NaN: .* row 7, column 'x3'"):
        of_rows(bad, kind)
    with pytest.raises(ParameterError, match=f"no column 'z' of {kind}s; choose one of x0, x1, x2, x3"):
        open_table(X).apart("z", f"{kind}s", "z")


def test_empty_parts_are_refused() -> None:
    with pytest.raises(DataError, match="3 rows are too few, or too many of them are equal in all features, for 5"):
        check_filled(np.array([1, 2, 0]), "all features", 5)
    check_filled(np.array([1, 2]), "all features", 2)
