"""A column of a table as the weights of its rows: a view, in any chunks, read once with the features."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.errors import NonFiniteDataError, ParameterError, ShapeError
from streamkernel.table import KnownColumns, open_table, with_weights_of
from streamkernel.table.ingest import ingest
from streamkernel.table.stored.zarr_rows import ZarrRows

RNG = np.random.default_rng(8)
M = 230
X = RNG.standard_normal((M, 4))
X[:, 2] = RNG.choice([0.0, 0.5, 2.0], M)
Y = RNG.standard_normal(M)
NAMES = ("a", "b", "n", "c")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "store"
    ingest(open_table(X, Y), path, chunk_rows=50, dtype="float64")
    return path


@pytest.mark.parametrize("kind", ["stored", "memory"])
@given(start=st.integers(0, M - 1), length=st.integers(1, M), rows=st.integers(1, 120), turned=st.booleans())
def test_blocks_have_the_column_as_weights(stored, kind, start, length, rows, turned):
    table = open_table(stored) if kind == "stored" else open_table(X, Y)
    order = [3, 2, 0, 1] if turned else [0, 1, 2, 3]
    weighted = (table.reordered(order) if turned else table).weighted_by("x2")
    stop = min(M, start + length)
    features = [column for column in order if column != 2]
    for same in (weighted, pickle.loads(pickle.dumps(weighted))):
        blocks = list(same.blocks(start, stop, rows))
        np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), X[start:stop][:, features])
        np.testing.assert_array_equal(np.concatenate([block.weights for block in blocks]), X[start:stop, 2])
        np.testing.assert_array_equal(np.concatenate([block.Y[:, 0] for block in blocks]), Y[start:stop])
    assert weighted.columns == tuple(f"x{column}" for column in features)
    assert (weighted.n_features, weighted.statistics, weighted.weight_column) == (3, None, "x2")


@pytest.mark.parametrize("pickled", [False, True])
def test_every_chunk_is_decoded_once(stored, pickled, monkeypatch):
    table, loads, load = open_table(stored).weighted_by("x2"), [], ZarrRows.load
    monkeypatch.setattr(ZarrRows, "load", lambda self, *span: loads.append((self.name, *span)) or load(self, *span))
    for _ in (pickle.loads(pickle.dumps(table)) if pickled else table).blocks(0, M, 35):
        pass
    assert sorted(loads) == sorted((name, a, min(a + 50, M)) for name in "Xy" for a in range(0, M, 50))


def test_the_view_is_part_of_fingerprint_and_digest(stored):
    table = open_table(stored)
    by_column, by_array = table.weighted_by("x2"), table.reordered([0, 1, 3])
    assert len({each.fingerprint for each in (table, by_column, by_array, table.weighted_by("x1"))}) == 4
    assert by_column.digest(0, 50) == open_table(X[:, [0, 1, 3]], Y, weights=X[:, 2]).digest(0, 50)
    assert with_weights_of(by_column, "none").weights is None
    assert with_weights_of(by_column, None) is by_column
    assert with_weights_of(table, "x2").fingerprint == by_column.fingerprint
    by_column.check_unchanged()


def test_bad_columns_are_refused(tmp_path):
    table = open_table(X)
    with pytest.raises(ParameterError, match=r"no column 'z' of row weights; choose one of x0, x1, x2, x3"):
        table.weighted_by("z")
    with pytest.raises(ParameterError, match="only column"):
        open_table(X[:, :1]).weighted_by("x0")
    with pytest.raises(ParameterError, match=r"must not be negative, row \d+, column 'x0', has"):
        table.weighted_by("x0").read(0, M)
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(NonFiniteDataError, match="row 7, column 'x2'"):
        open_table(bad).weighted_by("x2").read(0, M)


def test_known_columns_leave_the_weights_of_the_fit_out():
    known = KnownColumns(("a", "b", "c"), True, "the model was fitted on", "give the same", weight="n")
    assert known.order_in(("a", "b", "c"), named=True) is None
    assert known.order_in(NAMES, named=True) == (0, 1, 3)
    assert known.order_in(("n", "c", "b", "a"), named=True) == (3, 2, 1)
    with pytest.raises(ShapeError, match="extra 'm'"):
        known.order_in(("a", "b", "c", "m"), named=True)
    unnamed = KnownColumns(("x0", "x1", "x3"), False, "the model was fitted on", "give the same", weight="x2")
    assert unnamed.order_in(("x0", "x1", "x2", "x3"), named=False) == (0, 1, 3)
    assert unnamed.order_in(("x0", "x1", "x2"), named=False) is None
