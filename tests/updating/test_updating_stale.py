"""New rows where the basis has no functions: it is said, and the basis grows if it may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report.rendered import undrawn
from updates import FITTED, M, N, X, Y, check_is_refit, fit, update

from streamkernel import append_rows, ingest, open_table
from streamkernel.engine import Session, Silent, ThreadExecutor
from streamkernel.errors import (
    ParameterError,
    StreamKernelWarning,
)
from streamkernel.models import RidgeModel
from streamkernel.updating._grow import growth_steps

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
    # Nor is there room to be made for more functions than rows.
    assert update(model, open_table(store), grow=10**6).model.digest == new.model.digest


def test_growth_needs_all_rows(store: Path, fitted: RidgeModel) -> None:
    model = fit(open_table(store))
    with pytest.raises(ParameterError, match=r"0 of the 1 inputs that the model has seen; update without growth"):
        update(model, open_table(X[FITTED:], Y[FITTED:]), grow=5)
    both = update(model, open_table(X[FITTED:], Y[FITTED:])).model
    with pytest.raises(ParameterError, match="1 of the 2 inputs"):
        update(both, open_table(store), grow=5)
    with pytest.raises(ParameterError, match="has seen rows up to 1500 and the table ends at 1100"):
        update(fitted, open_table(X[:1100], Y[:1100]).slice(0, 1024), grow=5)


@pytest.mark.parametrize(
    ("options", "reads_points"),
    [({}, False), ({"scale": "robust"}, True), ({"scale": "rank"}, True), ({"metric": np.eye(5)[:, :3]}, True)],
    ids=["standard", "robust", "rank", "metric"],
)
def test_every_sweep_of_a_growth_is_planned(options: dict[str, Any], reads_points: bool) -> None:
    """Points that their scaler cannot give back are read once more."""
    model = fit(open_table(X[:FITTED], Y[:FITTED]), **options)
    with pytest.warns(StreamKernelWarning, match="10 functions were added"):
        done = update(model, open_table(X, Y), stale=0.0, grow=10)
    steps = growth_steps(model, model.prepare(open_table(X[FITTED:], Y[FITTED:])), M, 10)
    assert [step.name for step in steps].count("rows of the basis") == reads_points
    assert sum(step.where == "sweep" for step in steps) == done.sweeps - 1  # that of the new rows
    held = [step.kept_bytes for step in steps if step.name == "rows of the basis"]
    assert all(each >= 10 * 8 * (5 + (3 if "metric" in options else 5)) for each in held)


class Notes(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


@pytest.mark.filterwarnings("ignore:the basis is stale")
def test_growth_drops_the_held_out_errors_of_the_smaller_basis(drifting: tuple[Any, Any], tmp_path: Path) -> None:
    rows, targets = drifting
    model = fit(open_table(rows[:FITTED], targets[:FITTED]), lengthscale=WIDE, alpha="cv")
    assert model.record.validation is not None
    notes = Notes()
    new = update(model, open_table(rows, targets), Session(ThreadExecutor(1), progress=notes), grow=10)
    assert new.grown == 10
    record = new.model.record
    assert record.validation is None
    assert record.alpha == model.record.alpha
    (told,) = [line for line in notes.lines if line.startswith("alpha ")]
    assert told.endswith("; its validation was that of the smaller basis, and is left out")
    assert not any(name.startswith("validation") for name in new.model.solution_fields())
    new.model.save(tmp_path / "model")
    loaded = RidgeModel.load(tmp_path / "model")
    assert (loaded.digest, loaded.record.validation) == (new.model.digest, None)
    page = undrawn(loaded)
    assert 'id="validation"' not in page
    assert "Held-out error" not in page
    assert "as of the last update" in page
    # Without growth the basis is that of the errors, and so is alpha.
    kept = update(model, open_table(rows, targets), Session(ThreadExecutor(1), progress=notes)).model
    assert kept.record.validation == model.record.validation
    assert notes.lines[-1].endswith("its validation is that of the fit")
    assert "by held-out folds" in undrawn(kept)


def test_without_held_out_errors_none_are_told_of(drifting: tuple[Any, Any]) -> None:
    """Of rows that were too few for folds."""
    rows, targets = drifting
    model = fit(open_table(rows[:50], targets[:50]), lengthscale=WIDE, alpha="cv")
    assert model.record.validation is None
    notes = Notes()
    update(model, open_table(rows[:80], targets[:80]), Session(ThreadExecutor(1), progress=notes), stale=1e9)
    (told,) = [line for line in notes.lines if line.startswith("alpha ")]
    assert "validation" not in told
