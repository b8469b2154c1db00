"""The external shuffle is one uniform permutation, fixed by seed and number of rows, however it is carried out."""

import errno
import itertools
import os

import numpy as np
import pytest
import scipy.stats
from forks import Forks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import few_examples

from streamkernel.errors import StoreError
from streamkernel.table import open_table
from streamkernel.table.ingest import ingest
from streamkernel.table.ingest.writers.shuffle import RowSpool, row_keys


def order_of(folder, seed, rows, batches, bucket_bytes=1 << 26):
    X = np.arange(rows, dtype=np.float64)[:, None] * [1.0, -1.0]
    with RowSpool(folder, seed, np.dtype("f8"), 2, np.dtype("f8"), 1, bucket_bytes=bucket_bytes) as spool:
        for part in np.split(np.arange(rows), sorted(batches)):
            if part.size:
                spool.append(X[part], X[part, :1] + 0.5)
        pieces = [(a.copy(), b.copy()) for a, b, _, _ in spool.rows()]
        assert os.listdir(folder) == []
    assert not folder.exists()
    got = np.concatenate([a for a, _ in pieces])
    np.testing.assert_array_equal(got[:, 1], -got[:, 0])  # rows stay whole
    np.testing.assert_array_equal(np.concatenate([b for _, b in pieces])[:, 0], got[:, 0] + 0.5)
    return got[:, 0].astype(int)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**64 - 1), st.integers(0, 10**6), st.lists(st.integers(0, 400), min_size=2, max_size=2))
def test_keys_are_windows_of_one_stream(seed, start, lengths):
    middle = start + lengths[0]
    stop = middle + lengths[1]
    whole = row_keys(seed, start, stop)
    np.testing.assert_array_equal(whole, np.concatenate([row_keys(seed, start, middle), row_keys(seed, middle, stop)]))


@few_examples(0.25)
@given(
    st.integers(1, 200),
    st.integers(0, 2**32),
    st.lists(st.integers(0, 200), max_size=5),
    st.sampled_from([1, 200, 1 << 26]),
)
def test_order_is_that_of_the_keys_whatever_the_batches_and_buckets(tmp_path, rows, seed, batches, bucket_bytes):
    got = order_of(tmp_path / "spool", seed, rows, [b for b in batches if b <= rows], bucket_bytes)
    np.testing.assert_array_equal(got, np.argsort(row_keys(seed, 0, rows), kind="stable"))


def test_order_is_uniform():
    # All 4! orders of four rows over 12,000 seeds, and where each of 20 rows goes.
    counts = dict.fromkeys(itertools.permutations(range(4)), 0)
    for seed in range(12_000):
        counts[tuple(np.argsort(row_keys(seed, 0, 4)).tolist())] += 1
    assert scipy.stats.chisquare(list(counts.values())).pvalue > 1e-4
    places = np.zeros((20, 20))
    for seed in range(4_000):
        places[np.arange(20), np.argsort(row_keys(seed, 0, 20))] += 1
    assert scipy.stats.chisquare(places, axis=None).pvalue > 1e-4


def test_neighbouring_rows_and_seeds_are_unrelated():
    keys = np.array([row_keys(seed, 0, 2000) for seed in range(4)]) / 2.0**64
    flat = np.abs(np.corrcoef(keys)[np.triu_indices(4, 1)])
    assert flat.max() < 0.1
    assert abs(np.corrcoef(keys[0, :-1], keys[0, 1:])[0, 1]) < 0.1
    assert scipy.stats.kstest(keys.ravel(), "uniform").pvalue > 1e-4


def test_same_rows_from_csv_and_npz_are_shuffled_alike(tmp_path):
    X = np.random.default_rng(0).integers(0, 1000, (5000, 3)).astype(float)
    np.savez(tmp_path / "s.npz", X=X, y=X[:, 0])
    np.savetxt(tmp_path / "s.csv", np.column_stack([X, X[:, 0]]), delimiter=",", fmt="%g")
    for name, target in (("npz", None), ("csv", -1)):
        ingest(tmp_path / f"s.{name}", tmp_path / name, target=target, shuffle=True, seed=5)
    first, second = (open_table(tmp_path / name).read(0, 5000) for name in ("npz", "csv"))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.X, X[np.argsort(row_keys(5, 0, 5000))])
    np.testing.assert_array_equal(first.Y[:, 0], first.X[:, 0])
    ingest(tmp_path / "s.npz", tmp_path / "other", shuffle=True, seed=6)
    assert not np.array_equal(open_table(tmp_path / "other").read(0, 5000).X, first.X)


def test_spool_is_removed_when_the_block_is_left_by_an_error(tmp_path):
    def fail():
        with RowSpool(tmp_path / "spool", 0, np.dtype("f4"), 1, np.dtype("f8"), 0) as spool:
            spool.append(np.ones((10, 1), np.float32), None)
            raise RuntimeError("in mid-write")

    with pytest.raises(RuntimeError, match="mid-write"):
        fail()
    assert os.listdir(tmp_path) == []


FULL = """
import resource, sys
import numpy as np
from streamkernel.table.ingest.writers.shuffle import RowSpool
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
with RowSpool(__import__("pathlib").Path(sys.argv[1]), 0, np.dtype("f8"), 16, None, 0) as spool:
    try:
        spool.append(np.ones((int(sys.argv[2]), 16)), None)
    except OSError as error:
        print(error.errno)
"""


@pytest.mark.parametrize("rows", [2500, 20_000])
def test_a_full_disk_is_the_systems_error_however_few_the_rows(forks: Forks, tmp_path, rows):
    """Of few records in a file NumPy's tofile told nothing, and of many no number of an error."""
    done = forks.run(FULL, tmp_path / "spool", rows)
    assert (done.returncode, done.stdout.split()) == (0, [str(errno.EFBIG)]), done.stderr


@pytest.mark.parametrize("bucket_bytes", [1 << 26, 256])
@pytest.mark.parametrize("harm", [os.unlink, lambda path: os.truncate(path, 1), lambda path: os.truncate(path, 0)])
def test_rows_that_vanish_from_the_spool_are_missed(tmp_path, harm, bucket_bytes):
    """A table without them would be whole, and wrong."""
    folder = tmp_path / "spool"
    with RowSpool(folder, 0, np.dtype("f8"), 2, np.dtype("f8"), 1, bucket_bytes=bucket_bytes) as spool:
        spool.append(np.ones((1000, 2)), np.ones(1000))
        harm(sorted(folder.iterdir())[7])
        with pytest.raises(StoreError, match=r"spool had \d+ of the 1000 rows.*run again"):
            for _ in spool.rows():
                pass
