"""The section about a metric: weights, directions and the search, on the pages of all kinds; nothing without one."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report.rendered import render_factors, undrawn

from streamkernel import GaussianProcessRegressor, KernelMatchingPursuit, KernelPCA, factorize
from streamkernel.models import RidgeModel
from streamkernel.report import bokeh_renderer, matplotlib_renderer
from streamkernel.report.facts.fit import Absent, length_unit
from streamkernel.report.facts.metric import Directions, FeatureWeights, directions, feature_weights, metric_trials
from streamkernel.report.facts.tuning import lengthscales
from streamkernel.report.figures import plot
from streamkernel.report.figures.metric import directions_figure, trials_figure, weights_figure
from streamkernel.report.pages.parts import metric_section

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 6))
Y = np.sin(2.0 * X[:, 0] + X[:, 1]) + 0.5 * X[:, 2] ** 2
T = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])


@pytest.fixture(scope="module")
def learned(fitted: Callable[..., RidgeModel]) -> RidgeModel:
    return fitted(X, Y, metric="learned")


@pytest.fixture(scope="module")
def given(fitted: Callable[..., RidgeModel]) -> RidgeModel:
    return fitted(X, Y, metric=T)


@pytest.fixture(scope="module")
def none(fitted: Callable[..., RidgeModel]) -> RidgeModel:
    """A search that found nothing better than the plain kernel."""
    return fitted(X, np.random.default_rng(1).normal(size=len(X)), metric="diagonal")


def _drawn(model: Any) -> list[str]:
    return [
        f"not {each.title}" if isinstance(each, plot.Missing) else each.name
        for each in metric_section(model).figures
        if each is not None
    ]


def _caption(figure: plot.Drawing) -> str:
    assert isinstance(figure, plot.Figure)
    return figure.caption


def test_figures_of_each_case(
    learned: RidgeModel, given: RidgeModel, none: RidgeModel, fitted: Callable[..., RidgeModel]
) -> None:
    assert _drawn(given) == ["weights", "directions"]
    assert _drawn(none) == ["not Weights of the features", "metric-search"]
    assert _drawn(fitted(X, Y)) == []
    assert _drawn(fitted(X, Y, metric=np.diag([3.0, 2, 1, 1, 0, 1]))) == ["weights"]
    assert _drawn(fitted(X[:, :1], Y, metric=[[2.0]])) == ["weights"]
    assert _drawn(learned)[0] == "weights"
    assert _drawn(learned)[-1] == "metric-search"


def test_weights_are_the_norms_of_the_rows_of_the_metric(given: RidgeModel) -> None:
    found = feature_weights(given)
    assert isinstance(found, FeatureWeights)
    assert found.names == ("x0", "x1", "x2", "x3", "x4", "x5")
    np.testing.assert_allclose(found.value, [2.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(found.share, [4 / 9, 4 / 9, 1 / 9, 0.0, 0.0, 0.0])
    text = _caption(weights_figure(found))
    assert "The metric was given. x0, x1 and x2 matter most: they have more than 99.9 %" in text
    assert "x3, x4 and x5 hardly matter" in text


def test_the_largest_weights_come_first(learned: RidgeModel) -> None:
    found = feature_weights(learned)
    assert isinstance(found, FeatureWeights)
    assert set(found.names[:3]) == {"x0", "x1", "x2"}
    assert (np.diff(found.value) <= 0.0).all()
    assert "The fit found the metric." in _caption(weights_figure(found))


def test_directions_are_unit_columns_with_their_shares(given: RidgeModel) -> None:
    found = directions(given)
    assert isinstance(found, Directions)
    assert found.names == ("x0", "x1", "x2")
    root = np.sqrt(0.5)
    np.testing.assert_allclose(found.value, [[root, 0.0], [root, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(found.share, [8 / 9, 1 / 9])
    assert (found.count, found.left) == (2, 3)
    assert "Not drawn: 3 features with smaller components." in _caption(directions_figure(found))


def test_wide_metrics_are_cut_and_say_so(fitted: Callable[..., RidgeModel]) -> None:
    rng = np.random.default_rng(2)
    wide = rng.normal(size=(80, 300))
    model = fitted(wide, wide[:, 0], metric=rng.normal(size=(300, 40)), n_components=10)
    weights, found = feature_weights(model), directions(model)
    assert isinstance(weights, FeatureWeights)
    assert isinstance(found, Directions)
    assert found.value.shape == (12, 5)
    text = _caption(weights_figure(weights))
    assert re.search(r"Not drawn: 280 features with weights of at most [\d.]+, [\d.]+ % of the sum of squares", text)
    assert re.search(r"Not drawn: 35 directions .*, and 288 features", _caption(directions_figure(found)))


def test_the_search_has_an_error_for_each_regression(learned: RidgeModel, none: RidgeModel) -> None:
    choice = learned.record.metric_choice
    assert choice is not None
    found = metric_trials(learned)
    assert found is not None
    assert not isinstance(found, Absent)
    np.testing.assert_allclose(found.error**2, [each.error for each in choice.rounds])
    assert found.error[found.best] < found.plain
    assert f"Taken: {choice.chosen.form}, round {choice.chosen.round}" in _caption(trials_figure(found))
    assert "The plain kernel was kept" in _caption(trials_figure(metric_trials(none)))


def test_the_page_says_it_in_words(learned: RidgeModel, given: RidgeModel, none: RidgeModel) -> None:
    page = undrawn(learned)
    assert "<h2>Metric</h2>" in page
    assert "by the error on held-out rows" in page
    assert "Choice of the lengthscale: it was found with the metric" in page
    assert re.search(r'<th scope="row">Metric</th><td>\d directions \(learned: ', page)
    assert "2 directions (as given)" in undrawn(given)
    page = undrawn(none)
    assert "none: the plain kernel did as well" in page
    assert "Weights of the features: no metric lowered" in page


def test_other_kinds_have_the_section(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models: list[Any] = [
            GaussianProcessRegressor(20, metric=T, ard=True).fit(X[:300], Y[:300]).model_,
            KernelMatchingPursuit(10, metric=T).fit(X[:300], Y[:300]).model_,
            KernelPCA(2, basis_size=20, metric=T).fit(X[:300]).model_,
        ]
        factors = [factorize(X[:300], tmp_path / name, n_components=10, metric=metric)
                   for name, metric in (("one", T), ("other", "none"))]  # fmt: skip
    for model in models:
        assert "<h2>Metric</h2>" in undrawn(model)
    # One lengthscale belongs to each column of the metric, and so does its name.
    found = lengthscales(models[0])
    assert found is not None
    assert set(found.names) == {"direction 1", "x2"}
    assert models[0].record.tuning.parameters[:2] == ("lengthscale of direction 1", "lengthscale of x2")
    assert length_unit(models[0]) == "distances in the metric"
    assert "<h2>Metric</h2>" in render_factors(factors[:1])
    assert re.search("These factors differ in .*metric", render_factors(factors))


def test_both_draw_the_figures(learned: RidgeModel, given: RidgeModel) -> None:
    drawn = [figure for model in (learned, given) for figure in metric_section(model).figures]
    figures = {each.name: each for each in drawn if isinstance(each, plot.Figure)}
    assert set(figures) == {"weights", "directions", "metric-search"}
    assert matplotlib_renderer.png_of([*figures.values()], 3.0)
    scripts, elements = bokeh_renderer.scripts_and_elements([*figures.values()])
    assert elements.keys() == figures.keys()
    assert "x2" in scripts[1]
