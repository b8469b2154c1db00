"""New rows folded into a model: the fit of its basis to all rows, each of them once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import data_sets
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import zarr_of_chunks

from streamkernel import KernelRidge, KernelRidgeClassifier, append_rows, ingest, open_table
from streamkernel.engine import Session, Silent, ThreadExecutor
from streamkernel.errors import (
    DataError,
    InputChangedError,
    ModelFormatError,
    ParameterError,
    ResourceLimitError,
    ShapeError,
    ShapeMismatchError,
    StreamKernelWarning,
)
from streamkernel.estimators import RidgeModel, RidgeSettings, fit_ridge
from streamkernel.estimators.runs import clipped, count, joined, without
from streamkernel.estimators.updating import Update, update_model
from streamkernel.solvers import RidgeSystem
from streamkernel.store import Checkpoints

M, FITTED, N = 3000, 1500, 24
ROWS = data_sets.friedman(M, 5, seed=1)
X, Y = ROWS.X, ROWS.y
# Of a lengthscale that makes the functions as good as independent: what is compared is not the rounding of pivots.
OPTIONS: dict[str, Any] = {"n_components": N, "lengthscale": 1.0, "seed": 3}


def fit(table: Any, **options: Any) -> RidgeModel:
    return fit_ridge(table, RidgeSettings(**{**OPTIONS, **options}), Session(ThreadExecutor(1)))


def update(model: RidgeModel, table: Any, session: Session | None = None, **options: Any) -> Update[RidgeModel]:
    return update_model(model, table, session or Session(ThreadExecutor(1)), **options)


@pytest.fixture(scope="module")
def fitted() -> RidgeModel:
    """On the first rows, in memory."""
    return fit(open_table(X[:FITTED], Y[:FITTED]))


def plain_sums(model: RidgeModel, rows: Any, targets: Any, weights: Any = None) -> dict[str, Any]:
    """The sums over these rows, as their definitions say."""
    scaler = model.scaler
    scaled = rows.astype(np.float64)
    if scaler is not None:
        scaled = ((scaled - scaler.mean) / scaler.scale).astype(rows.dtype).astype(np.float64)
    G = model.basis.features(scaled)
    Yc = targets.reshape(len(rows), -1) - model.arrays["centre"]
    w = np.ones(len(rows)) if weights is None else weights
    return {"H": (G.T * w) @ G, "g": (G.T * w) @ Yc, "YY": (Yc.T * w) @ Yc, "G1": w @ G, "Y1": w @ Yc}


def check_is_refit(model: RidgeModel, rows: Any, targets: Any, weights: Any = None, *, rtol: float = 1e-12) -> None:
    """A model has the sums, coefficients and certificate of a fit of its basis to exactly these rows."""
    expected = plain_sums(model, rows, targets, weights)
    for name, values in expected.items():
        found = model.arrays[f"sum_{name}"]
        assert np.abs(found - values).max() <= rtol * max(np.abs(values).max(), np.sqrt(len(rows))), name
    assert model.config["totals"]["rows"] == len(rows)
    sums = replace(model.sums, **expected)
    classes = model.classes is not None
    scale = None if classes else np.asarray(model.config["target_scale"]) ** 2
    system = RidgeSystem(model.basis, sums, intercept=model.config["settings"]["fit_intercept"], scale=scale)
    assert model.config["alpha"] == pytest.approx(system.choose_alpha(), rel=1e-6)
    solution = system.solve(model.config["alpha"])
    largest = np.abs(solution.coefficients).max()
    np.testing.assert_allclose(model.arrays["dual_coef"], solution.coefficients, rtol=0, atol=1e4 * rtol * largest)
    np.testing.assert_allclose(model.arrays["intercept"], solution.intercept, rtol=1e-9, atol=1e-11)
    left = sums.trace - np.trace(expected["H"])
    assert model.config["certificate"]["residual_trace"] == pytest.approx(left, rel=1e-9)
    assert len(model.arrays["residual_path"]) == len(model.basis) + 1
    assert model.arrays["check_predicted"].shape == model.arrays["check_true"].shape


# --- exact --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": False}, {"scale": "none", "lengthscale": 0.3}, {"kernel": "matern32"}]
)
def test_new_rows_give_the_fit_to_all_rows(options: dict[str, Any]) -> None:
    model = fit(open_table(X[:FITTED], Y[:FITTED]), **options)
    new = update(model, open_table(X[FITTED:], Y[FITTED:]))
    assert (new.rows_folded, new.rows_seen_before, new.rows, new.sweeps) == (M - FITTED, 0, M, 1)
    check_is_refit(new.model, X, Y)
    for name in ("components", "component_indices", "gains", "centre"):
        np.testing.assert_array_equal(new.model.arrays[name], model.arrays[name])
    for name in ("scaler", "lengthscale", "rows", "settings"):
        assert new.model.config[name] == model.config[name]
    assert new.model.digest != model.digest


def test_several_targets_and_float32() -> None:
    targets = np.column_stack([Y, 3.0 * np.sin(X[:, 0]) - 100.0])
    rows = X.astype(np.float32)
    model = fit(open_table(rows[:FITTED], targets[:FITTED]))
    check_is_refit(update(model, open_table(rows[FITTED:], targets[FITTED:])).model, rows, targets)


def test_weights() -> None:
    weights = np.random.default_rng(0).uniform(0.0, 2.0, M)
    model = fit(open_table(X[:FITTED], Y[:FITTED], weights=weights[:FITTED]))
    table = open_table(X, Y, weights=weights)
    new = update(model, table)
    assert new.rows_folded == M - FITTED
    check_is_refit(new.model, X, Y, weights)


def test_classes() -> None:
    labels = np.array(["low", "mid", "high"])[np.digitize(Y, [10.0, 18.0])]
    estimator = KernelRidgeClassifier(N, lengthscale=1.0).fit(X[:FITTED], labels[:FITTED])
    # Fewer rows may lack a class.
    some = np.flatnonzero(labels[FITTED:] != "mid") + FITTED
    estimator.update(X[some], labels[some])
    seen = np.concatenate([np.arange(FITTED), some])
    indicators = (labels[:, None] == estimator.classes_).astype(float)
    check_is_refit(estimator.model_, X[seen], indicators[seen])
    with pytest.raises(DataError, match=r"'huge' in row 0, which is none of the 3 classes"):
        estimator.update(X[:5] + 1.0, np.array(["huge"] * 5))


def test_coded_classes_of_a_store_that_lacks_one(tmp_path: Path) -> None:
    labels = np.array(["low", "mid", "high"])[np.digitize(Y, [10.0, 18.0])]
    some = np.flatnonzero(labels != "high")
    ingest(open_table(X, labels, classify=True), tmp_path / "all", dtype="float64", chunk_rows=512)
    ingest(open_table(X[some] + 1.0, labels[some], classify=True), tmp_path / "some", dtype="float64", chunk_rows=512)
    model = KernelRidgeClassifier(N, lengthscale=1.0).fit(open_table(tmp_path / "all")).model_
    new = update(model, open_table(tmp_path / "some"), stale=1e9).model
    indicators = (labels[:, None] == model.classes).astype(float)
    check_is_refit(new, np.concatenate([X, X[some] + 1.0]), np.concatenate([indicators, indicators[some]]))
    ingest(open_table(X[:20], np.array(["odd"] * 20), classify=True), tmp_path / "odd")
    with pytest.raises(DataError, match="class 'odd' is none of the model's"):
        update(model, open_table(tmp_path / "odd"))


@given(st.lists(st.integers(1, M - FITTED - 1), max_size=5, unique=True), st.booleans())
@settings(max_examples=10)
def test_any_split_of_the_rows_in_order(fitted: RidgeModel, cuts: list[int], whole: bool) -> None:
    """Batches, or the rows so far with each batch behind them."""
    model, ends = fitted, [FITTED + cut for cut in sorted(cuts)] + [M]
    for start, stop in zip([FITTED, *ends], ends, strict=False):
        first = 0 if whole else start
        new = update(model, open_table(X[first:stop], Y[first:stop]))
        assert new.rows_folded == stop - start
        model = new.model
    check_is_refit(model, X, Y)
    assert model.config["updates"]["times"] == len(ends)
    assert model.config["updates"]["rows"] == M - FITTED


def test_equal_work_has_equal_digests(fitted: RidgeModel) -> None:
    table = open_table(X, Y)
    once, threads = update(fitted, table), update(fitted, table, Session(ThreadExecutor(2)))
    assert once.model.digest == threads.model.digest
    assert once.model.digest == update(fitted, table).model.digest


def test_sums_of_other_features_cannot_be_added(fitted: RidgeModel) -> None:
    sums = fitted.sums
    for other in (replace(sums, H=sums.H[:5, :5]), replace(sums, centre=sums.centre + 1.0)):
        with pytest.raises(ParameterError, match="cannot be added"):
            sums.merge(other)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8), st.integers(0, 30), st.integers(0, 30))
def test_runs_are_sets_of_rows(pairs: list[tuple[int, int]], start: int, stop: int) -> None:
    rows = {row for first, last in pairs for row in range(first, last)}
    found = joined(pairs)
    assert [row for run in found for row in range(*run)] == sorted(rows)
    assert all(one[1] < two[0] for one, two in pairwise(found))
    assert count(found) == len(rows)
    for part, expected in ((clipped(found, start, stop), rows & {*range(start, stop)}),
                           (without(found, start, stop), {*range(start, stop)} - rows)):  # fmt: skip
        assert [row for run in part for row in range(*run)] == sorted(expected)


# --- exactly once -------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Half of the rows, in float64, the last chunk not full."""
    ingest(open_table(X[:FITTED], Y[:FITTED]), tmp_path / "store", dtype="float64", chunk_rows=200)
    return tmp_path / "store"


def foreign(path: Path, last: int, **changed: Any) -> str:
    return zarr_of_chunks(path, changed.get("X", X)[:last], changed.get("y", Y)[:last], 200)


def test_a_store_that_was_seen_folds_in_nothing(store: Path) -> None:
    model = fit(open_table(store))
    again = update(model, open_table(store))
    assert (again.changed, again.rows_folded, again.rows_seen_before, again.sweeps) == (False, 0, FITTED, 0)
    assert again.model is model
    # Elsewhere, and in other chunks: what counts is the content.
    ingest(open_table(store), store.with_name("copy"), dtype="float64", chunk_rows=333)
    assert update(model, open_table(store.with_name("copy"))).rows_folded == 0
    assert update(model, open_table(X[:FITTED], Y[:FITTED])).rows_folded == 0


def test_of_a_store_that_has_grown_only_the_new_rows(store: Path) -> None:
    model = fit(open_table(store))
    for start, stop in ((FITTED, 1510), (1510, 2200), (2200, M)):
        append_rows(open_table(X[start:stop], Y[start:stop]), store)
        new = update(model, open_table(store))
        assert (new.rows_folded, new.rows_seen_before) == (stop - start, start)
        model = new.model
        assert not update(model, open_table(store)).changed
    check_is_refit(model, X, Y)
    [entry] = model.config["seen"]
    assert entry["rows"] == [[0, M]]
    assert [mark[:2] for mark in entry["marks"]] == [[first, min(200, M - first)] for first in range(0, M, 200)]


def test_another_store_is_folded_in_whole_and_once(store: Path, tmp_path: Path) -> None:
    model = fit(open_table(store))
    ingest(open_table(X[FITTED:], Y[FITTED:]), tmp_path / "other", dtype="float64", chunk_rows=200)
    new = update(model, open_table(tmp_path / "other"))
    assert (new.rows_folded, new.rows_seen_before) == (M - FITTED, 0)
    check_is_refit(new.model, X, Y)
    for path in ("store", "other"):
        assert update(new.model, open_table(tmp_path / path)).rows_folded == 0
    assert len(new.model.config["seen"]) == 2


@given(st.lists(st.tuples(st.integers(0, M - 1), st.integers(1, 900)), min_size=1, max_size=6))
@settings(max_examples=10)
def test_overlapping_ranges_of_a_store(fitted_store: tuple[Path, RidgeModel], pieces: list[tuple[int, int]]) -> None:
    path, model = fitted_store
    rows = set(range(1000, 1400))
    for start, length in pieces:
        piece = range(start, min(start + length, M))
        new = update(model, open_table(path).slice(piece.start, piece.stop))
        assert new.rows_folded == len(set(piece) - rows)
        assert new.rows_seen_before == len(set(piece) & rows)
        rows |= set(piece)
        model = new.model
    order = sorted(rows)
    check_is_refit(model, X[order], Y[order])


@pytest.fixture(scope="module")
def fitted_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RidgeModel]:
    path = tmp_path_factory.mktemp("updating") / "all"
    ingest(open_table(X, Y), path, dtype="float64", chunk_rows=256)
    return path, fit(open_table(path).slice(1000, 1400))


def changed_in(row: int) -> Any:
    values = Y.copy()
    values[row] += 1.0
    return values


def stored(path: Path, values: Any, last: int = M) -> Any:
    ingest(open_table(X[:last], values[:last]), path, dtype="float64", chunk_rows=200, overwrite=True)
    return open_table(path)


@pytest.mark.parametrize(
    "offered",
    [
        lambda path, values: stored(path / "store", values),
        lambda path, values: open_table(X, values),
        lambda path, values: open_table(foreign(path / "foreign", M, y=values)),
    ],
    ids=["store", "memory", "foreign"],
)
def test_rows_that_changed_since_are_refused(store: Path, offered: Callable[..., Any]) -> None:
    model = fit(open_table(store))
    table = offered(store.parent, changed_in(0))
    with pytest.raises(InputChangedError, match=r"rows 0:200 of the table are not what they were .*--as-new"):
        update(model, table)
    new = update(model, table, as_new=True)
    assert new.rows_folded == M
    assert update(new.model, table, as_new=True).rows_folded == 0
    assert update(new.model, table).rows_folded == 0
    assert update(new.model, open_table(X[:FITTED], Y[:FITTED])).rows_folded == 0


def test_a_change_in_the_chunk_that_was_not_full(store: Path) -> None:
    model = fit(open_table(store))
    with pytest.raises(InputChangedError, match="rows 1400:1500"):
        update(model, stored(store, changed_in(FITTED - 1)))
    # What is behind the rows that were seen is no matter.
    assert update(model, stored(store, changed_in(FITTED))).rows_folded == M - FITTED


def test_a_foreign_store_that_grows(tmp_path: Path) -> None:
    model = fit(open_table(foreign(tmp_path / "foreign", FITTED)))
    assert len(model.config["seen"][0]["marks"]) == 8
    assert not update(model, open_table(tmp_path / "foreign")).changed
    group = zarr.open_group(str(tmp_path / "foreign"), mode="r+")
    for name, values in (("X", X), ("y", Y)):
        array: Any = group[name]
        array.append(values[FITTED:])
    new = update(model, open_table(tmp_path / "foreign"))
    assert (new.rows_folded, new.rows_seen_before) == (M - FITTED, FITTED)
    check_is_refit(new.model, X, Y)
    array[0] += 1.0
    with pytest.raises(InputChangedError, match="rows 0:200"):
        update(new.model, open_table(tmp_path / "foreign"))


def test_lazy_rows(fitted: RidgeModel) -> None:
    lazy = open_table(da.from_array(X, chunks=(700, 5)), da.from_array(Y, chunks=450))
    new = update(fitted, lazy)
    assert (new.rows_folded, new.rows_seen_before) == (M - FITTED, FITTED)
    assert update(new.model, lazy).rows_folded == 0
    check_is_refit(new.model, X, Y)


def test_a_part_of_what_was_seen(store: Path) -> None:
    model = fit(open_table(store))
    assert update(model, open_table(X[:600], Y[:600])).rows_folded == 0
    assert update(model, open_table(store).slice(3, 77)).rows_seen_before == 74
    # Of a chunk that the table has only a part of there is no telling.
    with pytest.raises(ParameterError, match="rows 600:650 cannot be told"):
        update(model, open_table(X[:650], Y[:650]))
    assert update(model, open_table(X[:650], Y[:650]).slice(10, 600)).rows_folded == 0
    assert update(model, open_table(X[:650], Y[:650]), as_new=True).rows_folded == 50


def test_a_fit_goes_on_while_rows_are_appended(store: Path) -> None:
    """The rows that were there when it began are those that it sees, to the last sweep."""
    alone = fit(open_table(store), objective="trace")

    class Appending(Silent):
        def end(self, seconds: float) -> None:
            append_rows(open_table(X[FITTED : FITTED + 10], Y[FITTED : FITTED + 10]), store)

    settings = RidgeSettings(**OPTIONS, objective="trace")
    model = fit_ridge(open_table(store), settings, Session(ThreadExecutor(2), progress=Appending()))
    assert model.config["sweep_count"] > 2
    assert model.digest == alone.digest
    assert open_table(store).n_rows == FITTED + 10 * model.config["sweep_count"]
    assert update(model, open_table(store)).rows_folded == 10 * model.config["sweep_count"]


# --- models without the record ------------------------------------------------------------------------------------


def as_before(model: RidgeModel) -> RidgeModel:
    """As an earlier release would have written it."""
    return RidgeModel({k: v for k, v in model.config.items() if k not in ("seen", "updates")}, model.arrays)


def test_an_old_model_knows_its_table_by_its_basis(store: Path, tmp_path: Path) -> None:
    model = as_before(fit(open_table(store)))
    assert update(model, open_table(store)).rows_folded == 0
    assert update(model, open_table(store).slice(0, 100)).rows_seen_before == 100
    append_rows(open_table(X[FITTED:], Y[FITTED:]), store)
    new = update(model, open_table(store))
    assert (new.rows_folded, new.rows_seen_before) == (M - FITTED, FITTED)
    check_is_refit(new.model, X, Y)
    assert len(new.model.config["seen"][0]["marks"]) == M // 200
    assert update(new.model, open_table(store)).rows_folded == 0
    # Rows elsewhere are others, and the table of the fit is known still.
    other = update(model, open_table(X + 1.0, Y)).model
    assert other.config["totals"]["rows"] == M + FITTED
    assert update(other, open_table(store)).rows_folded == M - FITTED
    some = X.copy()
    some[model.arrays["component_indices"][0]] += 1.0
    with pytest.raises(InputChangedError, match="not what they were"):
        update(model, open_table(some, Y))


def test_an_old_model_without_rows_in_its_basis(store: Path) -> None:
    model = as_before(fit(open_table(store), rule="kmeans", rule_options={"nearest": False}))
    assert (model.arrays["component_indices"] == -1).all()
    assert update(model, open_table(store)).rows_folded == 0
    with pytest.raises(ParameterError, match="cannot tell whether it has seen"):
        update(model, open_table(X, Y))
    assert update(model, open_table(X[FITTED:], Y[FITTED:]), as_new=True).rows_folded == M - FITTED


# --- a basis that has gone stale ----------------------------------------------------------------------------------


WIDE = 2.5


@pytest.fixture(scope="module")
def drifting() -> tuple[Any, Any]:
    """The second half lies elsewhere."""
    rows = X.copy()
    rows[FITTED:] += 1.5
    return rows, Y


def grow_store(path: Path, rows: Any, targets: Any) -> RidgeModel:
    ingest(open_table(rows[:FITTED], targets[:FITTED]), path, dtype="float64", chunk_rows=200)
    model = fit(open_table(path), lengthscale=WIDE)
    append_rows(open_table(rows[FITTED:], targets[FITTED:]), path)
    return model


def test_a_stale_basis_is_warned_of(drifting: tuple[Any, Any]) -> None:
    rows, targets = drifting
    model = fit(open_table(rows[:FITTED], targets[:FITTED]), lengthscale=WIDE)
    with pytest.warns(StreamKernelWarning, match=r"the basis is stale: it leaves .* more than 2 times"):
        new = update(model, open_table(rows, targets))
    assert new.stale
    scaled = (rows[FITTED:] - model.scaler.mean) / model.scaler.scale
    assert new.staleness.of_new == pytest.approx(model.basis.residual(scaled).mean(), rel=1e-9)
    assert new.staleness.of_fit == model.config["certificate"]["relative_residual_trace"]
    assert new.model.config["updates"]["stale"]
    # It stays so until the basis has grown, whatever comes next; the warning is of the rows that are new.
    assert update(new.model, open_table(X[:200] + 1e-9, Y[:200])).stale
    assert not update(model, open_table(rows, targets), stale=1e6).stale


def test_a_stale_basis_grows_on_a_store_with_all_rows(drifting: tuple[Any, Any], tmp_path: Path) -> None:
    rows, targets = drifting
    model = grow_store(tmp_path / "store", rows, targets)
    with pytest.warns(StreamKernelWarning, match="10 functions were added"):
        new = update(model, open_table(tmp_path / "store"), grow=10)
    assert (new.grown, new.stale, new.rows_folded, new.sweeps) == (10, False, M - FITTED, 3)
    check_is_refit(new.model, rows, targets)
    np.testing.assert_array_equal(new.model.arrays["components"][:N], model.arrays["components"])
    picked = new.model.arrays["component_indices"][N:]
    assert (picked >= FITTED).all()
    points = open_table(tmp_path / "store").with_scaler(model.scaler)
    np.testing.assert_array_equal(
        new.model.arrays["components"][N:], np.concatenate([points.read(row, row + 1).X for row in picked])
    )
    with pytest.warns(StreamKernelWarning, match="let it grow"):
        without = update(model, open_table(tmp_path / "store")).model
    left = [one.config["certificate"]["residual_trace"] for one in (new.model, without)]
    assert left[0] < 0.8 * left[1]
    # Again: nothing is new, nothing is stale.
    assert not update(new.model, open_table(tmp_path / "store"), grow=10).changed
    new.model.save(tmp_path / "model")
    assert RidgeModel.load(tmp_path / "model").digest == new.model.digest


def test_a_basis_that_was_found_stale_grows_later(drifting: tuple[Any, Any], tmp_path: Path) -> None:
    rows, targets = drifting
    model = grow_store(tmp_path / "store", rows, targets)
    with pytest.warns(StreamKernelWarning, match="stale"):
        stale = update(model, open_table(tmp_path / "store")).model
    new = update(stale, open_table(tmp_path / "store"), grow=8)
    assert (new.grown, new.rows_folded, new.changed, new.stale) == (8, 0, True, False)
    check_is_refit(new.model, rows, targets)
    assert not update(new.model, open_table(tmp_path / "store"), grow=8).changed


def test_a_good_basis_does_not_grow(store: Path) -> None:
    model = fit(open_table(store))
    append_rows(open_table(X[FITTED:], Y[FITTED:]), store)
    new = update(model, open_table(store), grow=10)
    assert (new.grown, new.stale, len(new.model.basis), new.sweeps) == (0, False, N, 1)


def test_growth_needs_all_rows(store: Path, fitted: RidgeModel) -> None:
    model = fit(open_table(store))
    with pytest.raises(ParameterError, match=r"0 of the 1 inputs that the model has seen; update without growth"):
        update(model, open_table(X[FITTED:], Y[FITTED:]), grow=5)
    both = update(model, open_table(X[FITTED:], Y[FITTED:])).model
    with pytest.raises(ParameterError, match="1 of the 2 inputs"):
        update(both, open_table(store), grow=5)
    with pytest.raises(ParameterError, match=r"has seen rows up to 1500, the table ends at 1100"):
        update(fitted, open_table(X[:1100], Y[:1100]).slice(0, 1024), grow=5)


# --- choices, errors, runs ----------------------------------------------------------------------------------------


def test_alpha_is_chosen_as_by_the_fit_or_as_asked(fitted: RidgeModel) -> None:
    table = open_table(X, Y)
    assert update(fitted, table, choices={"alpha": "keep"}).model.config["alpha"] == fitted.config["alpha"]
    assert update(fitted, table, choices={"alpha": 2.5}).model.config["alpha"] == 2.5
    given = fit(open_table(X[:FITTED], Y[:FITTED]), alpha=0.25)
    assert update(given, table).model.config["alpha"] == 0.25
    chosen = update(given, table, choices={"alpha": "gcv"}).model.config["alpha"]
    assert chosen == update(fitted, table, choices={"alpha": None}).model.config["alpha"] != 0.25


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"choices": {"alpha": -1.0}}, "alpha"),
        ({"choices": {"alpha": "best"}}, "alpha"),
        ({"choices": {"noise": 1.0}}, "has no 'noise'"),
        ({"stale": -1.0}, "stale"),
        ({"stale": float("nan")}, "stale"),
        ({"grow": 1.5}, "grow"),
        ({"grow": -1}, "grow"),
    ],
)
def test_options_are_checked_before_any_work(fitted: RidgeModel, options: dict[str, Any], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        update(fitted, None, **options)  # type: ignore[arg-type]


def test_rows_that_do_not_fit_the_model(fitted: RidgeModel) -> None:
    for table, error, match in (
        (open_table(X), ParameterError, "no targets"),
        (open_table(X[:, :4], Y), ShapeError, "4 features, the model was fitted on 5"),
        (open_table(X, np.column_stack([Y, Y])), ShapeMismatchError, "2 targets, the model 1"),
        (open_table(X[FITTED:], np.where(np.arange(M) == M - 1, np.nan, Y)[FITTED:]), DataError, "y contains NaN"),
    ):
        with pytest.raises(error, match=match):
            update(fitted, table)
    with pytest.raises(ResourceLimitError, match="projected memory"):
        update(fitted, open_table(X, Y), memory_limit=10**6)


def test_columns_of_other_names_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = fit(open_table(frame[:FITTED], Y[:FITTED]))
    with pytest.raises(ShapeError, match="column 0 of the table is 'b', that of the model 'a'"):
        update(model, open_table(frame[["b", "a", "c", "d", "e"]], Y))
    assert update(model, open_table(X, Y)).rows_folded == M - FITTED, "arrays have no names to compare"


def test_a_damaged_record_is_refused(fitted: RidgeModel) -> None:
    for record in ([{"rows": [[0, 5]]}], [{"rows": "0:5", "marks": []}], [3]):
        with pytest.raises(ModelFormatError, match="record of the rows"):
            update(RidgeModel({**fitted.config, "seen": record}, fitted.arrays), open_table(X, Y))


def test_finished_sweeps_are_not_swept_again(fitted: RidgeModel, tmp_path: Path) -> None:
    with Checkpoints(tmp_path / "run", {"of": "this test"}) as checkpoints:
        whole = update(fitted, open_table(X, Y), Session(ThreadExecutor(1), checkpoints=checkpoints))
    with Checkpoints(tmp_path / "run", {"of": "this test"}) as checkpoints:
        again = update(fitted, open_table(X, Y), Session(ThreadExecutor(1), checkpoints=checkpoints))
    assert (whole.resumed_sweeps, again.resumed_sweeps) == (0, 1)
    assert again.model.digest == whole.model.digest


def test_a_session_is_asked_for_only_when_there_is_work(fitted: RidgeModel) -> None:
    def refuse() -> Session:
        raise AssertionError("there is nothing to do")

    assert not update_model(fitted, open_table(X[:FITTED], Y[:FITTED]), refuse).changed


# --- estimators ---------------------------------------------------------------------------------------------------


def test_an_estimator_is_updated_in_place() -> None:
    estimator = KernelRidge(N, lengthscale=1.0, random_state=3).fit(X[:FITTED], Y[:FITTED])
    before = estimator.predict(X[:5])
    assert estimator.update(X, Y) is estimator
    assert estimator.last_update_.rows_folded == M - FITTED
    check_is_refit(estimator.model_, X, Y)
    assert estimator.residual_trace_ == estimator.model_.config["certificate"]["residual_trace"]
    assert estimator.alpha_ == estimator.model_.config["alpha"]
    assert not np.array_equal(estimator.predict(X[:5]), before)
    alpha = estimator.alpha_
    estimator.update(X + 1.0, Y, alpha="keep", stale=1e9)
    assert estimator.alpha_ == alpha
    with pytest.raises(ValueError, match="features"):
        estimator.update(X[:, :3], Y)
    assert estimator.n_features_in_ == 5


def test_a_loaded_estimator_and_a_store(store: Path, tmp_path: Path) -> None:
    KernelRidge(N, lengthscale=1.0).fit(str(store)).save(tmp_path / "model")
    append_rows(open_table(X[FITTED:], Y[FITTED:]), store)
    estimator = KernelRidge.load(tmp_path / "model").update(store)
    assert estimator.last_update_.rows_folded == M - FITTED
    check_is_refit(estimator.model_, X, Y)
    estimator.save(tmp_path / "model", overwrite=True)
    assert KernelRidge.load(tmp_path / "model").update(store).last_update_.rows_folded == 0
