"""Rows with weights that are folded into a model: the model is that of the repeated rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from weighted_rows import CASES, Case, WeightedRows, assert_same, marked, weighted_rows

from streamkernel.engine import Session
from streamkernel.kinds import PREDICTORS
from streamkernel.table import Table, open_table
from streamkernel.updating.update import update_model

pytestmark = pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")

# Conjugate gradients keep no sums; cells of members come from the rows of the fit, which are other ones for copies.
UPDATED = [
    case
    for case in CASES
    if any(kind.updates and kind.estimator is case.estimator for kind in PREDICTORS.values())
    and "cg" not in case.title
    and case.options.get("tune") != "full"
    and case.tolerance == 1e-10
]


def more(rows: WeightedRows, targets: str) -> WeightedRows:
    """Other rows, of the same classes."""
    return weighted_rows(targets, m=30, seed=9)


@pytest.mark.parametrize("case", marked(UPDATED))
def test_an_update_by_weighted_rows_is_one_by_repeated_rows(case: Case) -> None:
    rows = case.rows()
    fitted, _ = case.fitted(rows)
    others = more(rows, case.targets)
    found = [updated(fitted.model_, table) for table in others.both]
    _assert_models(*found, case.tolerance)


@pytest.mark.parametrize("case", marked(UPDATED))
def test_updates_of_both_fits_agree(case: Case) -> None:
    """Fit and update with weights, or with copies in both."""
    rows, others = case.rows(), more(weighted_rows(), case.targets)
    models = [updated(fitted.model_, table) for fitted, table in zip(case.fitted(rows), others.both, strict=True)]
    _assert_models(*models, case.tolerance)


def test_a_saved_process_of_weighted_rows_is_updated_alike(tmp_path: Any) -> None:
    """The sum of the weights is stored, where it is not the number of rows."""
    case = next(case for case in UPDATED if case.title == "gp, dtc")
    weighted, _ = case.fitted(weighted_rows())
    weighted.save(tmp_path / "model")
    loaded = type(weighted).load(tmp_path / "model").model_
    assert loaded.sums.weight == weighted_rows().w.sum()
    table = more(weighted_rows(), "numbers").weighted
    _assert_models(updated(loaded, table), updated(weighted.model_, table), 0.0)


def updated(model: Any, table: Table) -> Any:
    return update_model(model, table, Session()).model


def _assert_models(one: Any, other: Any, tolerance: float) -> None:
    X = np.random.default_rng(1).standard_normal((40, 3))
    values = [each.checking().check_values(each.prepare(open_table(X)).read(0, 40).X) for each in (one, other)]
    for name, value in values[0].items():
        assert_same(value, values[1][name], name, tolerance)
    assert_same(one.arrays["residual_path"], other.arrays["residual_path"], "residual trace", tolerance)
    assert_same(one.record.totals.trace, other.record.totals.trace, "trace", tolerance)
