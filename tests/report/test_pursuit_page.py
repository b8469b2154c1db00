"""The pages of matching pursuits, of sparse kernel PCA and of kernel CCA."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from report.rendered import undrawn, without_figures
from report.test_html import Page

from streamkernel import KernelCCA, KernelMatchingPursuit, KernelMatchingPursuitClassifier, KernelPCA
from streamkernel.bounds import matching_pursuit_bound
from streamkernel.errors import ParameterError
from streamkernel.report import draw_png, write_report
from streamkernel.report.facts.factors import bound_curve
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.pursuit import (
    error_rates,
    loss_curve,
    pursuit_bound,
    squared_errors,
    variates_bound,
    weakness,
)
from streamkernel.report.figures import plot
from streamkernel.report.figures.pursuit import error_bound_figure

RNG = np.random.default_rng(6)
X = RNG.standard_normal((700, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], 3 + X[:, 2] ** 2]) + 0.1 * RNG.standard_normal((700, 2))
TWO = np.where(Y[:, 0] > 0.3, "<b>yes</b>", "no")

MODELS: dict[str, Any] = {
    "plain": lambda: KernelMatchingPursuit(15, validation=None).fit(X, Y[:, 0]),
    "gamma": lambda: KernelMatchingPursuit(15, validation=0.3, bound_gamma=0.5, pool="split").fit(X, Y[:, 0]),
    "several": lambda: KernelMatchingPursuit(12, variant="basic", validation=0.3, kernel="sigmoid", gamma=0.2).fit(
        X, Y
    ),
    "two": lambda: KernelMatchingPursuitClassifier(15, validation=(X[:200], TWO[:200])).fit(X[200:], TWO[200:]),
    "logistic": lambda: KernelMatchingPursuitClassifier(10, loss="logistic", validation=0.3).fit(X, TWO),
    "three": lambda: KernelMatchingPursuitClassifier(10, validation=None).fit(X, np.digitize(Y[:, 0], [-0.5, 0.5])),
}
PANELS = {
    "plain": ["path", "trace", "predictions-1", "residuals", "time", "memory"],
    "gamma": ["path", "rates", "bound", "weakness", "trace", "predictions-1", "residuals", "time", "memory"],
    "several": ["path", "predictions-1", "predictions-2", "time", "memory"],
    "two": ["path", "rates", "bound", "trace", "confusion", "margins", "time", "memory"],
    "logistic": ["loss", "rates", "bound", "trace", "confusion", "margins", "reliability", "time", "memory"],
    "three": ["path", "rates", "trace", "confusion", "margins", "time", "memory"],
}


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {name: make().model_ for name, make in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_every_panel_is_there_or_says_why_not(name: str, models: dict[str, Any]) -> None:
    # `test_renderers.py` draws one of them.
    page = Page(undrawn(models[name]))
    assert page.panels() == PANELS[name]
    reasons = {
        "plain": "a bound_gamma, the error from which a row counts as wrong, chosen before the fit",
        "several": "Theorem 3 is about one target, and there are 2",
        "three": "Theorem 3 is about two classes, and there are 3",
    }
    assert ("Bound on the error: " in page.text) == (name in reasons)
    assert reasons.get(name, "") in page.text
    assert ("it is 1 throughout" in page.text) == (name != "gamma")
    assert ("kernel is not positive definite" in page.text) == (name == "several")
    assert ("It is vacuous: 1 or more at every size" in page.text) == ("bound" in PANELS[name])
    assert ("held-out rows: RMSE" in page.text) == (name in ("gamma", "several"))
    assert not any(tag == "b" for tag, _ in page.elements)


def test_curves_are_those_of_the_path(models: dict[str, Any]) -> None:
    model = models["gamma"]
    curve, path = squared_errors(model), model.path
    np.testing.assert_allclose(curve.training, np.sqrt(path.rss[:, 0] / path.fitted_rows))
    np.testing.assert_allclose(curve.held_out, np.sqrt(path.validation[:, 0] / path.validation_rows))
    assert curve.at_chosen(True) == pytest.approx(model.config["solution"]["validation_rmse"][0])
    rates = error_rates(model)
    assert rates.at_chosen(True) == model.config["solution"]["validation_error"]
    np.testing.assert_array_equal(weakness(model), path.weakness)
    assert isinstance(squared_errors(models["logistic"]), Absent)
    assert loss_curve(models["gamma"]) is None
    losses = loss_curve(models["logistic"])
    # The models of sweeps' beginnings, the first of which knows nothing.
    np.testing.assert_allclose([losses.training[0], losses.held_out[0]], np.log(2.0))
    several = squared_errors(models["several"])
    assert several.training[0] == pytest.approx(1.0, abs=0.1)


def test_the_bound_stands_beside_the_shares_that_it_bounds(models: dict[str, Any]) -> None:
    model = models["two"]
    found = pursuit_bound(model)
    assert found.bound.rows == 500
    np.testing.assert_array_equal(found.held_out, model.path.errors[1:, 1] / 200)
    assert found.fitted == ["the lengthscale", "the scaling"]
    lines = [each for each in error_bound_figure(found, "a theorem").series if isinstance(each, plot.Line)]
    np.testing.assert_array_equal(lines[0].y, found.bound.values)
    np.testing.assert_array_equal(np.nan_to_num(lines[1].y), found.bound.observed)


def test_it_says_where_the_bound_is_not_vacuous(models: dict[str, Any]) -> None:
    found = pursuit_bound(models["two"])
    large = matching_pursuit_bound(10**6, np.arange(1, 16), np.linspace(10**6 // 2, 10**3, 15).astype(np.int64))
    assert large.vacuous.any()
    assert not large.says_nothing
    caption = error_bound_figure(replace(found, bound=large), "a theorem").caption
    first = int(np.flatnonzero(~large.vacuous)[0]) + 1
    assert f"below 1 from {first} to 15 terms, and vacuous elsewhere" in caption
    few = matching_pursuit_bound(20, np.arange(10, 25 - 10 + 1), np.full(6, 4))
    assert "infinite at every size" in error_bound_figure(replace(found, bound=few, at=few.functions), "").reason


@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
def test_what_is_hard_to_draw() -> None:
    """Nothing is left, and nothing is to be explained."""
    exact = KernelMatchingPursuit(30, pool="full", lengthscale=1.0).fit(X[:30], Y[:30, 0]).model_
    assert "path" in Page(undrawn(exact, but=["path", "predictions-1", "residuals"])).panels()
    flat = KernelMatchingPursuitClassifier(3, pool="full", lengthscale=1.0).fit(X[:9] * 0.0, TWO[:9]).model_
    assert "Matching pursuit classifier" in undrawn(flat, but=["confusion", "margins"])


def test_the_small_picture(models: dict[str, Any], tmp_path: Path) -> None:
    for name in ("plain", "logistic", "several"):
        draw_png(models[name], tmp_path / "fit.png")
        picture = imread(tmp_path / "fit.png")[:, :, :3]
        middle = np.split(picture, 3, axis=1)[1]
        assert (middle[:, :, 2] - middle[:, :, 0] > 0.1).mean() > 0.001


def test_sparse_kernel_pca(tmp_path: Path) -> None:
    model = KernelPCA(4, sparse=25).fit(X).model_
    page = Page(undrawn(model))
    assert page.panels() == ["trace", "bound", "eigenvalues", "time", "memory"]
    found = bound_curve(model, "sgma")
    assert found.best == pytest.approx(model.bound.minimum)
    assert f"least at rank {found.best_size}" in page.text
    small = KernelPCA(2, sparse=5, lengthscale=0.05).fit(X[:30]).model_
    assert "vacuous along the whole path" in Page(undrawn(small)).text
    assert "not bounded" in undrawn(KernelPCA(2, sparse=3, kernel="linear").fit(X).model_)
    with without_figures():
        write_report(model, tmp_path / "page.html", title="A title")
    assert re.search("<title>A title</title>", (tmp_path / "page.html").read_text())
    with pytest.raises(ParameterError, match="pairs lacks kind, scores"):
        write_report(model, tmp_path / "other.html", pairs={})


def test_kernel_cca() -> None:
    model = KernelCCA(2, basis_size=20, bound_gamma=1.0).fit(X, Y).model_
    page = Page(undrawn(model, "Two views"))
    assert page.panels() == ["correlations", "residual", "quotients", "bound", "time", "memory"]
    assert "Theorem 4" in page.text
    assert "and vacuous elsewhere" in page.text
    assert "Two views" in page.texts
    assert "Lengthscales" in page.texts
    assert variates_bound(model).bound.minimum == model.bound.minimum
    plain = KernelCCA(1, basis_size=10).fit(X, Y).model_
    assert "Bound on the error: it needs a bound_gamma" in Page(undrawn(plain)).text


@pytest.mark.parametrize("kind", [KernelMatchingPursuit, KernelMatchingPursuitClassifier])
def test_weighted_rows_are_counted_once(kind: type[Any], tmp_path: Path) -> None:
    """The sums of a pursuit are sums of weights; a page had these for numbers of rows."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((300, 2)), rng.integers(1, 9, 300)
    y = X[:, 0] + X[:, 1] ** 2
    y = y > 0.0 if kind is KernelMatchingPursuitClassifier else y
    plain, weighted = (kind(8, lengthscale=2.0).fit(X, y, sample_weight=each).model_ for each in (None, w))
    rows = plain.record.row_count
    assert rows + plain.record.totals.validation_rows == 300
    assert weighted.record.totals.rows > 300
    # Without classes the rows of the fit are not counted beside their weights: all of the table are told.
    told = rows if kind is KernelMatchingPursuitClassifier else 300
    assert weighted.record.row_count == told
    with without_figures():
        write_report(weighted, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"{told} rows of 2 features" in page
    assert "of the validation rows" in page
    assert not re.search(rf"\b{round(weighted.record.totals.rows):,} rows", page)
