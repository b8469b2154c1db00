"""The page of quantiles: what is drawn of them, and pairs that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from report.rendered import render
from report.test_html import Page

from streamkernel.errors import ShapeMismatchError
from streamkernel.models.margins import MarginRegressorModel, QuantileModel
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.margins import DecisionMap, decision_map, function_names
from streamkernel.report.facts.quantiles import QuantileCheck, quantile_check


def test_shares_are_those_of_the_check_rows(quantiles: QuantileModel, svr: MarginRegressorModel) -> None:
    found = quantile_check(quantiles)
    assert isinstance(found, QuantileCheck)
    arrays = quantiles.arrays
    below = arrays["check_true"] <= arrays["check_quantiles"]
    expected = np.average(below, axis=0, weights=arrays["check_weight"])
    np.testing.assert_allclose(found.calibration.coverage, expected, rtol=1e-12)
    assert found.count < len(below)  # weighted rows tell less
    assert (np.diff(found.quantiles[:, 1]) >= 0.0).all()
    assert quantile_check(svr) is None


def test_the_page_tells_levels_and_shares(quantiles: QuantileModel) -> None:
    texts = " ".join(Page(render(quantiles)).texts)
    for words in ("Shares below the quantiles", "Quantiles of some rows", "Between 0.1 and 0.9", "80 % should"):
        assert words in texts
    assert "0.1, 0.5, 0.9" in texts
    assert "fitted, and not penalised" in texts


def test_functions_are_named_by_their_levels_and_drawn_sorted(quantiles: QuantileModel) -> None:
    assert function_names(quantiles) == ["quantile 0.1", "quantile 0.5", "quantile 0.9"]
    found = decision_map(quantiles)
    assert isinstance(found, DecisionMap)
    assert found.outputs == ("quantile 0.1", "quantile 0.5", "quantile 0.9")
    assert (np.diff(found.values, axis=2) >= 0.0).all()


def test_pairs_of_other_rows(quantiles: QuantileModel) -> None:
    true = np.linspace(25.0, 35.0, 30)[:, None]
    pairs: dict[str, Any] = {"kind": "new rows", "true": true, "predicted": true}
    assert isinstance(quantile_check(quantiles, pairs), Absent)
    found = quantile_check(quantiles, {**pairs, "quantiles": np.add(true, [-1.0, 0.5, 1.0])})
    assert isinstance(found, QuantileCheck)
    assert found.calibration.scalars["coverage80"] == 1.0
    with pytest.raises(ShapeMismatchError, match=r"shape \(30, 2\), for 30 rows and 3 levels"):
        quantile_check(quantiles, {**pairs, "quantiles": np.zeros((30, 2))})
