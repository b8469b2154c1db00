"""The pages of support vector machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from report.rendered import undrawn
from report.test_html import Page

from streamkernel import KernelSVC, KernelSVR
from streamkernel.models.margins import MarginClassifierModel, MarginModel, MarginRecord, MarginRegressorModel
from streamkernel.report import draw_png
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.margins import (
    DecisionMap,
    cost_path,
    decision_map,
    function_names,
    gap_curves,
    tube_errors,
    value_histograms,
)
from streamkernel.report.facts.pairs import check_pairs
from streamkernel.report.figures import plot
from streamkernel.report.figures.decision_maps import _cells, _contour, map_figures
from streamkernel.report.figures.margins import cost_figure, gap_figure, tube_figure, value_figures
from streamkernel.report.pages.kinds import has_page, page_of, picture_of
from streamkernel.report.text import percent

RNG = np.random.default_rng(4)
X = RNG.standard_normal((2100, 5))
Y = 10.0 + np.column_stack([np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2, 100.0 * X[:, 2]])
Y += 0.1 * RNG.standard_normal(Y.shape)
TWO = np.where(Y[:, 0] > 10.8, "<b>many", "few")
TEN = np.clip((2.0 * X[:, 0] + 5.0).astype(int), 0, 9)
PLAIN: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "random_state": 0}

MODELS: dict[str, Any] = {
    "two": lambda: KernelSVC(25, C=[0.1, 1.0, 10.0], **PLAIN).fit(X, TWO),
    "hinge": lambda: KernelSVC(15, C=2.0, loss="hinge", calibration="isotonic", **PLAIN).fit(X[:, :2], TWO),
    "uncalibrated": lambda: KernelSVC(15, C=[1.0, 5.0], calibration="none", **PLAIN).fit(X[:, :2], TWO),
    "few": lambda: KernelSVC(10, C="cv", **PLAIN).fit(X[:50], TWO[:50]),
    "many": lambda: KernelSVC(15, C=1.0, **PLAIN).fit(X[:400, :2], TEN[:400]),
    "several": lambda: KernelSVR(15, C=[1.0, 10.0], **PLAIN).fit(X[:, :2], Y),
    "huber": lambda: KernelSVR(15, C=1.0, loss="huber", **PLAIN).fit(X[:300, :1], Y[:300, 0]),
}
END = ["time", "memory"]
PANELS = {
    "two": ["costs", "gap", "values-1", "trace", "confusion", "margins", "reliability"],
    "hinge": ["gap", "values-1", "map-1", "trace", "confusion", "margins", "reliability"],
    "uncalibrated": ["costs", "gap", "values-1", "map-1", "trace", "confusion", "margins"],
    "few": ["gap", "trace", "confusion", "margins"],
    "many": ["gap", "map-1", "trace", "confusion", "margins"],
    "several": ["costs", "gap", "tube", "map-1", "map-2", "trace", "predictions-1", "predictions-2"],
    "huber": ["gap", "tube", "trace", "predictions-1", "residuals"],
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    return {name: make() for name, make in MODELS.items()}


@pytest.fixture(scope="module")
def models(fitted: dict[str, Any]) -> dict[str, Any]:
    return {name: each.model_ for name, each in fitted.items()}


def figure_of(drawing: plot.Drawing) -> plot.Figure:
    assert isinstance(drawing, plot.Figure)
    return drawing


@pytest.mark.parametrize("name", MODELS)
def test_every_panel_is_there_or_says_why_not(name: str, models: dict[str, Any]) -> None:
    # `test_renderers.py` draws them.
    page = Page(undrawn(models[name]))
    assert page.panels() == [*PANELS[name], *END]
    assert ("Choice of C: C was given" in page.text) == (name in ("hinge", "many", "huber"))
    assert ("there were too few rows to hold some out for a search" in page.text) == (name == "few")
    assert ("Values on held-out rows: no rows were held out" in page.text) == (name in ("few", "many"))
    assert ("Each function" in page.texts) == (name in ("many", "several"))
    assert not any(tag == "b" for tag, _ in page.elements)
    for label in ("Rows", "Basis functions", "Sweeps", "Residual trace", "Lengthscale", "C", "Duality gap"):
        assert label in page.texts
    scores = {"several": ("RMSE", "R²"), "huber": ("RMSE", "R²")}.get(name, ("Accuracy",))
    assert set(scores) <= set(page.texts)
    assert ("Log loss" in page.texts) == (name in ("two", "hinge"))
    assert sum(len(card.label) > 0 for card in page_of(models[name]).cards) == 12


def test_a_page_of_several_classes_is_drawn(svc: MarginClassifierModel, svr: MarginRegressorModel) -> None:
    page = Page(undrawn(svc, but=["values-1", "values-2", "values-3"]))
    assert [name for name in page.panels() if name.startswith("values")] == ["values-1", "values-2", "values-3"]
    assert sum(tag == "script" for tag, _ in page.elements) == 2
    assert "by held-out rows, of 3 values" in page.texts
    assert "Map of predictions" in Page(undrawn(svr, but=["map-1"])).texts


def test_the_path_is_that_of_the_record(models: dict[str, Any]) -> None:
    model = models["two"]
    curve, record = cost_path(model), model.record
    np.testing.assert_array_equal(curve.C, [0.1, 1.0, 10.0])
    np.testing.assert_array_equal(curve.error, record.path.errors)
    assert curve.C[curve.at] == record.solution.C == curve.C[int(np.argmin(curve.error))]
    figure = figure_of(cost_figure(curve))
    [bars] = [each for each in figure.series if isinstance(each, plot.Segments)]
    np.testing.assert_allclose(np.asarray(bars.high) - bars.low, 200.0 * curve.error_se)
    assert figure.x.log
    at_an_end = curve.at in (0, 2)
    assert ("It lies at the end of what was tried" in figure.caption) == at_an_end
    assert percent(curve.error[curve.at]) in Page(undrawn(model)).text


def test_gaps_are_drawn_down_to_a_part_of_the_tolerance(models: dict[str, Any]) -> None:
    model = models["many"]
    curves = gap_curves(model)
    assert not isinstance(curves, Absent)
    assert curves.names == tuple(str(label) for label in range(10))
    for gaps, problem in zip(curves.gaps, model.record.solution.problems, strict=True):
        np.testing.assert_array_equal(gaps, np.maximum(problem.gaps, 1e-8))
    assert len(curves.largest) == max(map(len, curves.gaps))
    assert curves.largest[-1] <= curves.tolerance == 1e-4
    assert any(isinstance(each, plot.Lines) for each in figure_of(gap_figure(curves)).series)
    several = figure_of(gap_figure(gap_curves(models["several"])))
    assert [text for _, form, text in several.keys if form == "line"] == ["y0", "y1"]


@pytest.mark.parametrize("name", ["two", "hinge"])
def test_the_histogram_counts_the_rows_that_chose_c(name: str, models: dict[str, Any]) -> None:
    model = models[name]
    [found] = value_histograms(model)
    path = model.record.path
    assert found.name == "few"
    assert found.weight.sum() == path.rows == found.rows
    # An end of a bin is at 0.
    assert found.wrong == pytest.approx(path.errors[path.C.index(model.record.solution.C)])
    assert found.wrong <= found.inside <= 1.0
    np.testing.assert_allclose(found.share.sum(axis=1), 1.0)
    t, probability = found.curve
    f = t / (1.0 - np.abs(t))
    np.testing.assert_array_equal(probability, model.curves.probabilities(f[:, None])[:, 0])
    assert (np.diff(probability) >= 0.0).all()
    [figure] = value_figures([found], hinge=True)
    assert figure_of(figure).right is not None
    assert "are the support vectors" in figure_of(figure).caption
    assert -0.5 in figure_of(figure).x.ticks


def test_without_a_curve_there_is_one_axis(models: dict[str, Any]) -> None:
    [found] = value_histograms(models["uncalibrated"])
    assert found.curve is None
    [figure] = value_figures([found], hinge=False)
    assert figure_of(figure).right is None
    assert "support vectors" not in figure_of(figure).caption


def test_several_classes_have_a_histogram_each(svc: MarginClassifierModel) -> None:
    found = value_histograms(svc)
    assert isinstance(found, list)
    assert [each.name for each in found] == function_names(svc)
    for each in found:
        assert each.weight.sum() == each.rows
    assert np.sum([each.weight[1].sum() for each in found]) == found[0].rows


def test_errors_beside_the_tube(models: dict[str, Any]) -> None:
    model = models["several"]
    found = tube_errors(model, check_pairs(model))
    assert found is not None
    true, predicted = (np.asarray(model.arrays[f"check_{name}"]) for name in ("true", "predicted"))
    errors = (predicted - true) / model.record.target_scale
    assert found.outside == pytest.approx(float((np.abs(errors) > 0.1).mean()))
    caption = figure_of(tube_figure(found)).caption
    assert "Errors of 2 targets together" in caption
    assert "support vectors" in caption
    huber = figure_of(tube_figure(tube_errors(models["huber"], check_pairs(models["huber"]))))
    assert "from which their loss is linear" in huber.caption


def test_a_map_has_the_values_of_the_model(
    fitted: dict[str, Any], svc: MarginClassifierModel, svr: MarginRegressorModel
) -> None:
    found = decision_map(fitted["hinge"].model_)
    assert isinstance(found, DecisionMap)
    grid = np.stack(np.meshgrid(found.x, found.y), axis=2).reshape(-1, 2)
    np.testing.assert_allclose(found.values.ravel(), fitted["hinge"].decision_function(grid), rtol=1e-10, atol=1e-10)
    several = decision_map(fitted["several"].model_)
    assert isinstance(several, DecisionMap)
    grid = np.stack(np.meshgrid(several.x, several.y), axis=2).reshape(-1, 2)
    np.testing.assert_allclose(several.values.reshape(-1, 2), fitted["several"].predict(grid), rtol=1e-10)
    for model in (svc, svr):
        drawn = decision_map(model)
        assert isinstance(drawn, DecisionMap)
        for column, middles in zip(drawn.points.T, (drawn.x, drawn.y), strict=True):
            assert middles[0] < column.min() <= column.max() < middles[-1]
    assert decision_map(fitted["two"].model_) is None


def test_a_map_of_columns_reaches_over_their_rows() -> None:
    # The basis is unit vectors: rows lie far outside them.
    X = np.random.default_rng(0).normal([50.0, -3.0], [10.0, 0.1], (200, 2))
    model = KernelSVC(kernel="linear", C=1.0).fit(X, X[:, 0] > 50.0).model_
    found = decision_map(model)
    assert isinstance(found, DecisionMap)
    for column, middles in zip(X.T, (found.x, found.y), strict=True):
        assert abs(middles.mean() - column.mean()) < 1e-8 * abs(column.mean())
        assert 2.5 * column.std() < middles[-1] - column.mean() < 3.1 * column.std()
    [figure] = map_figures(found)
    assert not any(text == "basis points" for *_, text in figure_of(figure).keys)


def test_names_and_colours_of_a_map_with_many_classes(models: dict[str, Any]) -> None:
    [figure] = map_figures(decision_map(models["many"]))
    assert "Colours repeat after 8 classes" in figure_of(figure).caption
    names = [text for _, form, text in figure_of(figure).keys if form == "box"]
    assert set(names) <= set(map(str, range(10)))


def grid_of(values: np.ndarray) -> DecisionMap:
    rows, columns = values.shape
    x, y = np.arange(columns) + 0.5, 0.1 * np.arange(rows) + 0.05
    return DecisionMap(("a", "b"), x, y, values[:, :, None], np.zeros((1, 2)), ("t",), False)


@given(arrays(np.int64, st.tuples(st.integers(2, 6), st.integers(2, 6)), elements=st.integers(0, 2)))
def test_each_cell_has_the_colour_of_its_shade(shade: np.ndarray) -> None:
    found = grid_of(shade.astype(float))
    colours = ["#000000", "#111111", "#222222"]
    boxes = _cells(found, shade, colours, [("kind", ["0", "1", "2"])])
    left, right, bottom, top = (np.asarray(each) for each in (boxes.left, boxes.right, boxes.bottom, boxes.top))
    assert (left.min(), bottom.min()) == pytest.approx((0.0, 0.0))
    assert (right.max(), top.max()) == pytest.approx((shade.shape[1], 0.1 * shade.shape[0]))
    for row, column in np.ndindex(shade.shape):
        x, y = found.x[column], found.y[row]
        above = np.flatnonzero((left < x) & (x < right) & (bottom < y) & (y < top))
        assert boxes.fill[above[-1]] == colours[shade[row, column]]
        assert boxes.hover[0][1][above[-1]] == str(shade[row, column])


@given(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0), st.floats(-3.0, 3.0))
def test_a_contour_of_a_plane_is_its_line(a: float, b: float, c: float) -> None:
    flat = grid_of(np.zeros((7, 9)))
    X, Y = np.meshgrid(flat.x, flat.y)
    values = a * X + b * Y + c
    drawn = _contour(flat, values, "#000000", 1.0)
    assert bool(drawn) == bool((values > 0.0).any() and not (values > 0.0).all())
    for line in drawn:
        assert isinstance(line, plot.Line)
        x, y = (np.asarray(each).reshape(-1, 3) for each in (line.x, line.y))
        assert np.isnan(x[:, 2]).all()
        np.testing.assert_allclose(a * x[:, :2] + b * y[:, :2] + c, 0.0, atol=1e-12)


def test_a_contour_leaves_out_what_is_not_a_number() -> None:
    values = np.tile(np.linspace(-1.0, 1.2, 6), (4, 1))
    values[2:] = np.nan
    [line] = _contour(grid_of(values), values, "#000000", 1.0)
    assert isinstance(line, plot.Line)
    assert np.nanmax(np.asarray(line.y)) <= 0.15 + 1e-12


def test_a_solution_that_did_not_end_is_told(models: dict[str, Any], changed: Any) -> None:
    model = models["few"]
    config = model.config["solution"]
    bad = changed(model, {"solution": {**config, "gap": 0.02, "converged": False}})
    assert page_of(model).notices == []
    [notice] = page_of(bad).notices
    assert notice.startswith("The objective is within 0.0200 of its least value, not 0.0001")
    end = figure_of(gap_figure(gap_curves(bad))).keys[-1][2]
    assert end == "at the end: 0.0200, not within the tolerance"


def test_parts_that_are_missing_or_broken(models: dict[str, Any], changed: Any) -> None:
    model, solution = models["hinge"], models["hinge"].config["solution"]
    bare = changed(model, {"solution": {**solution, "problems": []}}, without=("margin_weights", "check_true"))
    text = Page(undrawn(bare)).text
    assert "Duality gap: the model keeps no gaps" in text
    assert "Values on held-out rows: no rows were held out" in text
    assert "the model keeps no rows to compare predictions with" in text
    flat = changed(model, arrays={"margin_weights": np.zeros_like(model.arrays["margin_weights"])})
    assert isinstance(value_histograms(flat), Absent)
    infinite = changed(model, arrays={"dual_coef": np.full_like(model.arrays["dual_coef"], np.inf)})
    assert "Decision map: its values around the basis points are not finite" in undrawn(infinite)
    constant = changed(models["several"], arrays={"dual_coef": np.zeros_like(models["several"].arrays["dual_coef"])})
    assert [figure_of(each).name for each in map_figures(decision_map(constant))] == ["map-1", "map-2"]


class Other(MarginModel):
    """A kind whose record has none of the settings of the two that there are."""

    KIND = "other"

    def outputs(self, *, std: bool = False) -> Any:
        raise NotImplementedError

    def scores(self) -> Any:
        raise NotImplementedError


def test_a_kind_that_is_yet_to_come(models: dict[str, Any], tmp_path: Path) -> None:
    model = models["several"]
    config = {**model.config, "path": None}
    arrays = {name: each for name, each in model.arrays.items() if not name.startswith("check")}
    other = Other(MarginRecord.from_config(config), arrays)
    assert has_page(Other)
    page = Page(undrawn(other))
    assert page.panels() == ["gap", "map-1", "map-2", "trace", *END]
    assert cost_path(other) is None
    lead, figures = picture_of(other)
    assert "loss" not in lead
    assert [figure_of(each).name for each in figures[:2]] == ["trace", "gap"]
    draw_png(other, tmp_path / "fit.png")


def test_the_middle_of_the_picture(models: dict[str, Any]) -> None:
    middles = {name: figure_of(picture_of(model)[1][1]).name for name, model in models.items()}
    assert middles == {
        "two": "costs", "hinge": "values-1", "uncalibrated": "costs", "few": "gap", "many": "gap", "several": "costs",
        "huber": "tube",
    }  # fmt: skip
