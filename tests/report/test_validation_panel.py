"""The error on held-out folds in the report: its card, its curve, and what is said where GCV differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from report.rendered import render, undrawn

from streamkernel.models import RidgeModel
from streamkernel.report.facts.fit import gcv_curve, held_out_curve, validation_curve
from streamkernel.report.text import significant

Fitted = Callable[..., RidgeModel]


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    return X, 7.0 + 3.0 * np.sin(2 * X[:, 0]) + rng.standard_normal(500)


def test_the_curve_is_in_units_of_the_target(fitted: Fitted, rows: tuple[Any, Any]) -> None:
    model = fitted(*rows, alpha="cv")
    curve, record = validation_curve(model), model.record.validation
    assert curve is not None
    assert record is not None
    assert curve.error[-1] == pytest.approx(record.rmse[0])
    assert np.diff(curve.interval)[0] == pytest.approx(2 * record.rmse_se[0], rel=0.02)
    assert curve.size[-1] == len(model.basis)
    along_alpha = gcv_curve(model)
    assert along_alpha.held_error.min() == pytest.approx(record.rmse[0])  # type: ignore[union-attr]
    assert along_alpha.searched  # type: ignore[union-attr]
    page = render(model)
    assert 'id="validation"' in page
    assert f"{significant(record.rmse[0])}<small> ± {significant(record.rmse_se[0], 2)}</small>" in page
    assert "by held-out folds" in page
    assert "GCV would take" not in page


def test_of_conjugate_gradients_it_is_drawn_along_alpha(fitted: Fitted, rows: tuple[Any, Any]) -> None:
    model = fitted(*rows, alpha="cv", solver="cg")
    curve, record = held_out_curve(model), model.record.validation
    assert curve is not None
    assert record is not None
    assert curve.error.min() == pytest.approx(record.rmse[0])
    assert curve.interval[0] < record.rmse[0] < curve.interval[1]
    assert (np.diff(curve.alpha) > 0).all()
    assert curve.chosen in curve.alpha
    page = undrawn(model)
    assert 'id="gcv"' in page
    assert 'id="validation"' not in page
    assert "Rings are the alphas that were tried" in page
    assert f"{significant(record.rmse[0])}<small> ± {significant(record.rmse_se[0], 2)}</small>" in page
    assert "by held-out folds" in page
    assert held_out_curve(fitted(*rows, alpha="cv")) is None
    assert held_out_curve(fitted(*rows, alpha=1.0, solver="cg")) is None


def test_of_classes_it_is_the_share_of_wrong_ones(fitted: Fitted, rows: tuple[Any, Any]) -> None:
    page = undrawn(fitted(rows[0], (rows[1] > 7).astype(int), classify=True, alpha="cv"))
    assert "Held-out error" in page
    assert "wrong, " in page
    assert 'id="validation"' in page


def test_of_several_targets_it_is_in_their_deviations(fitted: Fitted, rows: tuple[Any, Any]) -> None:
    page = undrawn(fitted(rows[0], np.column_stack([rows[1], 100 * rows[0]]), alpha="cv"))
    assert "Held-out error" in page
    assert "in standard deviations" in page


def test_a_choice_of_gcv_that_differs_is_told(fitted: Fitted, rows: tuple[Any, Any]) -> None:
    X, y = rows
    times = np.repeat(np.arange(200), 20)
    related = y[times] + 0.05 * np.random.default_rng(1).standard_normal(len(times))
    model = fitted(X[times], related, alpha="cv", n_components=120, lengthscale=0.5)
    assert "GCV would take alpha" in undrawn(model)


def test_without_folds_there_is_no_panel(fitted: Fitted, rows: tuple[Any, Any]) -> None:
    model = fitted(*rows)
    assert validation_curve(model) is None
    page = undrawn(model)
    assert 'id="validation"' not in page
    assert "Held-out error" not in page
    # Too few rows to hold some out: GCV chose.
    assert "by GCV" in undrawn(fitted(rows[0][:50], rows[1][:50], alpha="cv", n_components=10))
