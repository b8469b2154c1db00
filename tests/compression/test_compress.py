"""Compressed tables have the sums and the weights of their table, for any chunks, workers and weights."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from compressed_rows import TARGETS, WAYS, problem, ways
from slow_cases import slow_but
from thread_clients import thread_client

from streamkernel import CompressedTable, compress, open_table
from streamkernel.engine import Session, ThreadExecutor
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.errors import (
    StreamKernelWarning,
)
from streamkernel.fits.compression.compress import make_compressed
from streamkernel.settings.compression import CompressionSettings


def assert_same(one: CompressedTable, other: CompressedTable, exact: bool = False) -> None:
    if exact:
        assert one.table.fingerprint == other.table.fingerprint
    assert one.rows.tolist() == other.rows.tolist()
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-10)
    np.testing.assert_allclose(one.X, other.X, rtol=1e-5, atol=1e-6)
    if one.y is not None and one.y.dtype.kind == "U":
        assert one.y.tolist() == other.y.tolist()
    elif one.y is not None:
        np.testing.assert_allclose(one.y, other.y, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("targets", TARGETS)
def test_weights_sum_to_those_of_the_rows_and_all_rows_are_the_original_problem(targets: str) -> None:
    X, y, w = problem(targets, 150)
    held = np.flatnonzero(w)
    for options in ways(targets):
        if "metric" in options:
            continue  # needs more rows to learn from
        few = compress(X, y, size=20, sample_weight=w, **options)
        assert len(few) <= 20
        assert few.weights.sum() == pytest.approx(w.sum(), rel=1e-12)
        if targets == "labels" and options["method"] != "subsample":
            for label in np.unique(y):
                assert few.weights[few.y == label].sum() == pytest.approx(w[y == label].sum(), rel=1e-12)
        all_rows = compress(X, y, size=len(held), sample_weight=w, **options)
        order, before = np.lexsort(all_rows.X.T), held[np.lexsort(X[held].T)]
        assert np.array_equal(all_rows.X[order], X[before])
        assert np.array_equal(all_rows.y[order], y[before])
        np.testing.assert_allclose(all_rows.weights[order], w[before], rtol=1e-14)


@pytest.mark.parametrize("way", slow_but(WAYS.keys() - {"joint", "squash, linear", "squash, kernel"}, WAYS))
def test_any_chunks_and_any_workers_give_the_same_table(way: str) -> None:
    X, y, w = problem()
    options = {"size": 24, "sample_weight": w, "lengthscale": "median", **WAYS[way]}
    if options["method"] == "squash" and options.get("functions") == "linear":
        del options["lengthscale"]
    whole = compress(X, y, **options)
    for chunks in (600, 97):
        rows, targets = da.from_array(X, chunks=(chunks, -1)), y
        assert_same(whole, compress(rows, targets, **options))
    settings = CompressionSettings(size=24, **WAYS[way])
    table = open_table(da.from_array(X, chunks=(97, -1)), y, classify=True, weights=w)
    found = [make_compressed(table, settings, Session(ThreadExecutor(threads))) for threads in (1, 3)]
    with thread_client() as client:
        found.append(make_compressed(table, settings, Session(ClusterExecutor(client))))
    for each in found[1:]:
        assert_same(found[0], each, exact=True)


@pytest.mark.parametrize("targets", TARGETS)
def test_rows_of_weight_0_count_nothing(targets: str) -> None:
    X, y, w = problem(targets, 200)
    odd = np.full((50, 4), 1e3, np.float32)
    more = np.concatenate([y, np.full((50, *y.shape[1:]), "other" if targets == "labels" else -1e3, y.dtype)])
    for options in ways(targets):
        if "metric" in options or (options["method"] == "squash" and targets == "labels"):
            continue  # another class changes the fit's shapes; see below
        one = compress(X, y, size=20, sample_weight=w, **options)
        other = compress(np.concatenate([X, odd]), more, size=20, sample_weight=np.append(w, np.zeros(50)), **options)
        assert_same(one, other)
    if targets == "labels":
        with_class = np.concatenate([y, np.full(50, "low", y.dtype)])
        for options in ({"method": "squash"}, {"method": "squash", "functions": "kernel"}):
            one = compress(X, y, size=20, sample_weight=w, **options)
            other = compress(
                np.concatenate([X, odd]), with_class, size=20, sample_weight=np.append(w, np.zeros(50)), **options
            )
            assert_same(one, other)


@pytest.mark.slow
def test_equal_seeds_give_equal_tables_and_other_seeds_others() -> None:
    X, y, _ = problem()
    for options in ways("labels"):
        # Where all rows are candidates, the seed decides little.
        one, same, other = (compress(X, y, size=24, oversampling=4, random_state=seed, **options) for seed in (1, 1, 2))
        assert_same(one, same, exact=True)
        assert one.table.fingerprint != other.table.fingerprint


def test_whole_weights_are_repeated_rows_for_the_means_of_all_rows() -> None:
    """Draws of repeated rows are others, but the means of the rows that are kept are near the same exact means."""
    X, y, w = problem("numbers", 400)
    repeated = np.repeat(np.arange(400), w.astype(int))
    mean = X[repeated].mean(axis=0)
    for method in ("precluster", "squash"):
        for found in (
            compress(X, y, size=40, method=method, sample_weight=w),
            compress(X[repeated], y[repeated], size=40, method=method),
        ):
            assert found.weights.sum() == w.sum()
            np.testing.assert_allclose(np.average(found.X, axis=0, weights=found.weights), mean, atol=1e-6)
            assert np.average(found.y, weights=found.weights) == pytest.approx(y[repeated].mean())


def test_one_class_and_constant_columns() -> None:
    X, _, _ = problem()
    X[:, 3] = 2.0
    with pytest.warns(StreamKernelWarning, match="1 of 4 columns are constant"):
        found = compress(X, np.full(600, "only"), size=20)
    assert set(found.y.tolist()) == {"only"}
    assert (found.X[:, 3] == 2.0).all()


def test_true_and_false_are_classes() -> None:
    X, y, _ = problem("numbers")
    for targets in (y > 0.0, pd.Series(y > 0.0), (y > 0.0).tolist()):
        found = compress(X, targets, size=20)
        assert found.y.dtype == bool
        assert found.weights[found.y].sum() == pytest.approx((y > 0.0).sum())
