"""Compressed tables end to end: what they keep of a table, whatever its chunks, workers and weights."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask.array as da
import data_sets
import numpy as np
import pandas as pd
import pytest
from naive import compression as naive
from naive.dense import gaussian
from thread_clients import thread_client

from streamkernel import CompressedTable, KernelRidge, KernelRidgeClassifier, compress, ingest, open_table
from streamkernel.compression.drawing import groups
from streamkernel.engine import Machine, Session, ThreadExecutor
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.errors import (
    NonFiniteDataError,
    ParameterError,
    ResourceLimitError,
    StoreExistsError,
    StreamKernelWarning,
)
from streamkernel.fits.compress import make_compressed
from streamkernel.fits.compression_plan import plan_of_compression
from streamkernel.reductions import stream_generator
from streamkernel.settings.compression import METHODS, CompressionSettings
from streamkernel.table import table_info

WAYS: dict[str, dict[str, Any]] = {
    **{method: {"method": method} for method in METHODS},
    "squash, kernel": {"method": "squash", "functions": "kernel"},
    "squash, linear": {"method": "squash", "functions": "linear", "loss": "hinge"},
    "seeds": {"method": "squash", "functions": "linear", "representative": "seed", "sweeps": 0},
    "joint": {"method": "precluster", "target_weight": 0.3},
    "learned": {"method": "precluster", "metric": "diagonal", "scale": "robust"},
}
TARGETS = ("numbers", "labels", "several")


def problem(targets: str = "labels", m: int = 600, seed: int = 0) -> tuple[Any, Any, Any]:
    """Rows, targets, and whole weights, some 0."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((m, 4)).astype(np.float32)
    f = np.sin(2.0 * X[:, 0]) + X[:, 1].astype(np.float64)
    y = f + 0.1 * generator.standard_normal(m)
    w = generator.integers(0, 4, m).astype(np.float64)
    if targets == "labels":
        return X, np.array(["high", "low", "middle"])[np.digitize(y, [-0.7, 0.7])], w
    return X, y if targets == "numbers" else np.stack([y, X[:, 2]], axis=1), w


def ways(targets: str) -> list[dict[str, Any]]:
    return [options for name, options in WAYS.items() if targets != "several" or name != "learned"]


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


# -------------------------------------------------------------------------------------------------------- invariants
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


@pytest.mark.parametrize("way", WAYS)
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


# ----------------------------------------------------------------------------------------------------------- oracles
def seeds_of(table: Any, size: int, seed: int) -> Any:
    return np.sort(np.concatenate([part.draw(part.size, seed).rows for part in groups(table, size)]))


def test_a_subsample_is_random_rows_of_equal_weights() -> None:
    X, y, w = problem()
    found = compress(X, y, size=30, method="subsample")
    assert found.weights.tolist() == [20.0] * 30
    assert np.array_equal(found.X, X[found.rows])
    assert np.array_equal(found.y, y[found.rows])
    weighted = compress(X, y, size=30, method="subsample", sample_weight=w)
    assert (w[weighted.rows] > 0.0).all()


def test_preclusters_are_means_of_the_rows_of_a_class() -> None:
    X, y, w = problem(m=300)
    w = w + 1.0
    table = open_table(X, y, classify=True, weights=w)
    codes, rows = np.unique(y, return_inverse=True)[1], seeds_of(table, 12, 3)
    centre = np.average(X.astype(np.float64), axis=0, weights=w)
    U = ((X - centre) / np.sqrt(np.average((X - centre) ** 2, axis=0, weights=w))).astype(np.float32)
    found = compress(X, y, size=12, method="precluster", sweeps=0, sample_weight=w, random_state=3)
    clusters = naive.class_clusters(U.astype(np.float64), codes, rows, 0)
    np.testing.assert_allclose(found.weights, [w[clusters == j].sum() for j in range(12)])
    np.testing.assert_allclose(found.X, naive.weighted_means(X.astype(float), w, clusters, 12), rtol=1e-6, atol=1e-6)
    assert found.y.tolist() == y[rows].tolist()
    assert (found.rows == -1).all()


@pytest.mark.parametrize("functions", ["kernel", "linear"])
def test_squashed_rows_are_the_seeds_nearest_by_profile(functions: str) -> None:
    """As Pavlov, Chudova & Smyth have it; the kernel's functions are f = G z."""
    X, y, _ = problem(m=300)
    X = X.astype(np.float64)
    options = {"lengthscale": 2.0, "n_components": 15} if functions == "kernel" else {}
    with_functions = {"method": "squash", "functions": functions, "scale": "none", "sweeps": 0, "profiles": 20}
    found = compress(X, y, size=12, representative="seed", random_state=3, **with_functions, **options)
    rows = seeds_of(open_table(X, y, classify=True), 12, 3)
    generator = stream_generator(3, (31,))
    if functions == "kernel":
        basis = np.sort(stream_generator(3, (4,)).choice(300, size=15, replace=False))
        L = np.linalg.cholesky(gaussian(X[basis], X[basis], 2.0))
        f = np.linalg.solve(L, gaussian(X[basis], X, 2.0)).T @ generator.standard_normal((15, 20))
    else:
        f = X @ generator.standard_normal((4, 20)) / 2.0 + generator.standard_normal(20)
    P = naive.likelihood_profiles(f, "logistic")
    clusters = naive.class_clusters(P, np.unique(y, return_inverse=True)[1], rows, 0)
    counts = np.bincount(clusters, minlength=12)
    assert found.rows.tolist() == rows[counts > 0].tolist()
    assert found.weights.tolist() == counts[counts > 0].tolist()
    assert np.array_equal(found.X, X[found.rows])


def test_numbers_are_squashed_to_means_of_rows_that_are_alike_without_their_targets() -> None:
    X, y, _ = problem("numbers")
    noise = y + 50.0 * np.random.default_rng(5).standard_normal(600)
    clusters = [compress(X, t, size=20, method="precluster") for t in (y, noise)]
    assert np.array_equal(clusters[0].X, clusters[1].X)
    squashed = compress(X, y, size=20, lengthscale=1.5)
    assert np.average(squashed.y, weights=squashed.weights) == pytest.approx(y.mean())
    assert (squashed.rows == -1).all()


def test_thinning_and_squashing_bring_means_near_those_of_all_rows() -> None:
    X, y, _ = problem(m=2000)
    random = compress(X, y, size=40, method="subsample", random_state=1)
    for method in ("thinning", "squash"):
        found = compress(X, y, size=40, method=method, random_state=1, lengthscale=2.0)
        assert np.array_equal(found.X, X[found.rows])
        apart = [
            np.linalg.norm(np.average(each.X, axis=0, weights=each.weights) - X.mean(axis=0))
            for each in (found, random)
        ]
        assert apart[0] < 0.5 * apart[1]


@pytest.mark.filterwarnings("ignore:.* columns are constant")
@pytest.mark.parametrize(("name", "ratio"), [("spambase", 0.6)])
def test_a_fit_to_squashed_rows_of_a_real_set_loses_less_than_one_to_random_rows(name: str, ratio: float) -> None:
    stored = data_sets.load(name)
    if stored is None:
        pytest.skip(f"../shared/data/{name}.npz is not there")
    order = np.random.default_rng(0).permutation(len(stored.X))
    X, y = np.asarray(stored.X, np.float64)[order], np.asarray(stored.y).ravel()[order]

    def error(A: Any, b: Any, w: Any) -> float:
        model = KernelRidgeClassifier(min(200, len(A)), kernel="gaussian", metric="none", lengthscale=8.0, alpha=1.0)
        return float(np.mean(model.fit(A, b, sample_weight=w).predict(X[3000:]) != y[3000:]))

    whole = error(X[:3000], y[:3000], None)
    losses = {
        method: np.median(
            [
                error(found.X, found.y, found.weights) - whole
                for found in (
                    compress(X[:3000], y[:3000], size=60, method=method, classify=True, random_state=seed)
                    for seed in range(3)
                )
            ]
        )
        for method in ("subsample", "squash")
    }
    assert losses["squash"] < ratio * losses["subsample"]


# --------------------------------------------------------------------------------------------------------- the table
def write_source(folder: Path, y: Any, weights: bool = True) -> Path:
    X, _, w = problem()
    lines = ["length,width,depth,mass,times,target" if weights else "length,width,depth,mass,target"]
    for row, count, target in zip(X.tolist(), w.astype(int).tolist(), y.tolist(), strict=True):
        lines.append(",".join(map(str, [*row, count, target] if weights else [*row, target])))
    (folder / "source.csv").write_text("\n".join(lines) + "\n")
    store = folder / "source.zarr"
    ingest(folder / "source.csv", store, target="target", weight="times" if weights else None)
    return store


@pytest.mark.parametrize("targets", ["labels", "numbers", "numeric labels"])
def test_a_written_table_is_like_the_one_it_was_made_of(tmp_path: Path, targets: str) -> None:
    _, y, _ = problem("labels" if targets == "labels" else "numbers")
    if targets == "numeric labels":
        y = (y > 0.0).astype(int)
    store, out = write_source(tmp_path, y), tmp_path / "small.zarr"
    classify = targets == "numeric labels" or None
    found = compress(store, size=30, path=out, classify=classify)
    before, after = table_info(store), table_info(out)
    same = ("columns", "target_names", "classes", "dtype", "weight", "features", "targets", "ingested")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert after["weight"] == "times"
    table = open_table(out, classify=bool(classify))
    block = table.read(0, table.n_rows)
    assert np.array_equal(block.X, found.X)
    assert np.array_equal(block.weights, found.weights)
    assert table.named
    if targets == "labels":
        assert table.classes.tolist() == sorted(set(y.tolist()))
        assert (table.classes[block.Y.argmax(axis=1)] == found.y).all()
    fingerprints = table.fingerprint, found.table.fingerprint
    assert targets == "numeric labels" or fingerprints[0] == open_table(out).fingerprint
    with pytest.raises(StoreExistsError, match=r"exists; choose another path or ask for overwrite"):
        compress(store, size=30, path=out, classify=classify)
    compress(store, size=20, path=out, classify=classify, overwrite=True)
    assert open_table(out).n_rows <= 20


def test_names_of_weights(tmp_path: Path) -> None:
    _, y, _ = problem()
    store = write_source(tmp_path, y, weights=False)
    compress(store, size=30, path=tmp_path / "a.zarr")
    assert table_info(tmp_path / "a.zarr")["weight"] == "w"
    table = open_table(store)
    positive = ingest_positive(tmp_path, table)
    weighted = open_table(positive).weighted_by("mass")
    compress(weighted, size=30, path=tmp_path / "b.zarr")
    assert table_info(tmp_path / "b.zarr")["weight"] == "mass"
    assert table_info(tmp_path / "b.zarr")["columns"] == ["length", "width", "depth"]


def ingest_positive(folder: Path, table: Any) -> Path:
    """The same table with a column mass >= 0."""
    block = table.read(0, table.n_rows)
    lines = ["length,width,depth,mass,target"]
    for row, label in zip(np.abs(block.X).tolist(), block.Y.argmax(axis=1).tolist(), strict=True):
        lines.append(",".join(map(str, [*row, f"class {label}"])))
    (folder / "positive.csv").write_text("\n".join(lines) + "\n")
    ingest(folder / "positive.csv", folder / "positive.zarr", target="target")
    return folder / "positive.zarr"


DYING = """
import os, signal, sys
from streamkernel import compress
from streamkernel.table.ingest.writers.writer import ChunkWriter
write = ChunkWriter._write_chunk
def dying(self, name, start, values):
    if name == "y":
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, name, start, values)
ChunkWriter._write_chunk = dying
compress(sys.argv[1], size=30, path=sys.argv[2], overwrite=True)
"""


@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_nothing_half_written(tmp_path: Path) -> None:
    _, y, _ = problem()
    store, out = write_source(tmp_path, y), tmp_path / "small.zarr"
    compress(store, size=20, method="subsample", path=out)
    before = open_table(out).fingerprint
    done = subprocess.run([sys.executable, "-c", DYING, str(store), str(out)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert open_table(out).fingerprint == before
    compress(store, size=30, path=out, overwrite=True)
    assert [path.name for path in tmp_path.iterdir() if "small" in path.name] == ["small.zarr"]


# ---------------------------------------------------------------------------------------------------- plan, bad input
@pytest.mark.parametrize("way", WAYS)
def test_the_plan_knows_every_sweep_and_does_not_grow_with_the_rows(way: str) -> None:
    X, y, _ = problem()
    settings = CompressionSettings(**{"size": 24, **WAYS[way]})
    table = open_table(da.from_array(X, chunks=(97, -1)), y, classify=True)
    n, session = settings.components(table), Session(ThreadExecutor(1))
    plan = plan_of_compression(table, settings, Machine(0, 1), n)
    make_compressed(table, settings, session)
    assert {each.name for each in session.records} <= {step.name for step in plan.steps}
    assert len(session.records) <= plan.sweeps
    few, many = (
        plan_of_compression(
            open_table(da.zeros((m, 20), chunks=(65_536, -1), dtype=np.float32), da.zeros(m, chunks=65_536)),
            CompressionSettings(**{"size": 1000, "n_components": 300 if settings.uses_kernel else None, **WAYS[way]}),
            Machine(0, 2),
            300,
        )
        for m in (250_000, 4_000_000)
    )
    assert many.memory_bytes < 1.1 * few.memory_bytes


def test_a_plan_beyond_the_limit_is_refused_before_rows_are_read() -> None:
    def unread(*_: Any) -> Any:
        raise AssertionError("rows were read")

    X = da.zeros((10_000, 4), chunks=(1000, -1)).map_blocks(unread, dtype=np.float64, meta=np.zeros((0, 0)))
    with pytest.raises(ResourceLimitError, match=r"projected memory .* exceeds allowed memory \(1 MB\)"):
        compress(X, np.zeros(10_000), size=100, memory_limit="1MB")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size must be a whole number > 0, not 0"),
        ({"size": 601}, "size is 601, more than the 600 rows; give at most 600"),
        ({"size": 2}, "size is 2, and the rows have 3 classes; give at least a row for each"),
        ({"method": "distil"}, "method must be one of subsample, precluster, squash, thinning, not 'distil'"),
        ({"functions": "none"}, "functions must be one of fitted, kernel, linear, not 'none'"),
        ({"loss": "squared"}, "loss must be one of logistic, hinge, not 'squared'"),
        ({"sweeps": -1}, "sweeps must be a whole number >= 0, not -1"),
        ({"oversampling": 1}, "oversampling must be a whole number >= 2, not 1"),
        ({"target_weight": -1.0}, "target_weight must be finite and >= 0, not -1.0"),
        (
            {"method": "precluster", "n_components": 9},
            "n_components is 9, and method='precluster' uses no functions of a kernel; leave it out",
        ),
        ({"random_state": -1}, "random_state must be an integer >= 0, not -1"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    X, y, _ = problem()
    with pytest.raises(ParameterError) as caught:
        compress(X, y, **{"size": 20, **options})
    assert str(caught.value) == message


def test_bad_rows_are_refused() -> None:
    X, y, w = problem()
    with pytest.raises(ParameterError, match="squash' compares what rows say about their targets, and the rows have"):
        compress(X, size=20)
    with pytest.raises(ParameterError, match=rf"more than the {(w > 0).sum()} rows of weight > 0"):
        compress(X, y, size=600, sample_weight=w)
    X = X.copy()
    X[7, 2] = np.nan
    with pytest.raises(NonFiniteDataError, match="row 7"):
        compress(X, y, size=20, method="subsample")


def test_one_class_and_constant_columns() -> None:
    X, _, _ = problem()
    X[:, 3] = 2.0
    with pytest.warns(StreamKernelWarning, match="1 of 4 columns are constant"):
        found = compress(X, np.full(600, "only"), size=20)
    assert set(found.y.tolist()) == {"only"}
    assert (found.X[:, 3] == 2.0).all()


def test_the_default_size_is_a_fiftieth_of_the_rows() -> None:
    X, y, w = problem()
    assert len(compress(X, y, method="subsample")) == 12
    assert len(compress(X, y, method="subsample", sample_weight=w)) == -(-(w > 0).sum() // 50)


def test_a_model_of_a_compressed_table_takes_new_rows_of_the_table_that_it_stands_for() -> None:
    """They have a column of weights only where the table had one."""
    X, y, w = problem("numbers")
    named, options = pd.DataFrame(X, columns=list("abcd")), {"metric": "none", "lengthscale": 2.0}
    for weights in (None, w):
        model = KernelRidge(10, **options).fit(compress(named, y, size=60, sample_weight=weights).table)
        assert model.model_.record.weight_column is None
        model.update(named, y)
    weighted = named.assign(times=w)
    small = compress(open_table(weighted, y).weighted_by("times"), size=60)
    one, other = (KernelRidge(10, **options).fit(small.table) for _ in range(2))
    assert one.model_.record.weight_column == "times"
    one.update(open_table(weighted, y))
    other.update(open_table(named, y, weights=w))
    np.testing.assert_allclose(one.predict(named), other.predict(named), rtol=1e-4)


def test_the_rows_that_are_compressed_are_never_replaced(tmp_path: Path) -> None:
    store = write_source(tmp_path, problem()[1])
    (tmp_path / "folder").symlink_to(tmp_path)
    for out in (store, tmp_path / "folder" / "source.zarr"):
        with pytest.raises(StoreExistsError, match="has the rows that are compressed, which would be"):
            compress(store, size=30, path=out, overwrite=True)
    assert open_table(store).n_rows == 600


def test_true_and_false_are_classes() -> None:
    X, y, _ = problem("numbers")
    for targets in (y > 0.0, pd.Series(y > 0.0), (y > 0.0).tolist()):
        found = compress(X, targets, size=20)
        assert found.y.dtype == bool
        assert found.weights[found.y].sum() == pytest.approx((y > 0.0).sum())
