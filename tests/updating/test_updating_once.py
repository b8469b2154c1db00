"""Each row counts once: what a model has seen is known by its content, also where an earlier release wrote it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import zarr_of_chunks
from updates import FITTED, OPTIONS, M, X, Y, check_is_refit, fit, update

from streamkernel import append_rows, ingest, open_table
from streamkernel.engine import Session, Silent, ThreadExecutor
from streamkernel.errors import (
    InputChangedError,
    ParameterError,
)
from streamkernel.fits import fit_ridge
from streamkernel.models import RidgeModel
from streamkernel.settings import RidgeSettings


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
    with pytest.raises(InputChangedError, match=r"rows 0:200 of the table are not what they were .*as_new=True"):
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
            append_rows(open_table(X[FITTED : FITTED + 10], Y[FITTED : FITTED + 10]), store, repeated="append")

    settings = RidgeSettings(**OPTIONS, objective="trace")
    model = fit_ridge(open_table(store), settings, Session(ThreadExecutor(2), progress=Appending()))
    assert model.config["sweep_count"] > 2
    assert model.digest == alone.digest
    assert open_table(store).n_rows == FITTED + 10 * model.config["sweep_count"]
    assert update(model, open_table(store)).rows_folded == 10 * model.config["sweep_count"]


# --- models without the record ------------------------------------------------------------------------------------


def as_before(model: RidgeModel) -> RidgeModel:
    """As an earlier release would have written it."""
    return RidgeModel.from_config({k: v for k, v in model.config.items() if k not in ("seen", "updates")}, model.arrays)


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
