"""Both renderers draw every figure that is described, with the numbers of its description."""

from __future__ import annotations

import base64
import gzip
import json
import re
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from streamkernel.models.predicting import PredictingModel
from streamkernel.report import bokeh_renderer, matplotlib_renderer
from streamkernel.report.figures import plot
from streamkernel.report.pages.kinds import page_of

T = np.linspace(0.0, 1.0, 7)
TWO = np.array([T, T**2])
HOVER = [("x", T, "0.0"), ("name", list("abcdefg")), ("error", T**3, "%.2g")]
ALL: dict[str, plot.Series] = {
    "area": plot.Area(T, T - 0.1, T + 0.1, "#aaccee"),
    "columns": plot.Boxes(T, T + 0.1, 0.0, T, hover=HOVER),
    "cells": plot.Boxes(T, T + 0.1, T, T + 0.1, ["#2a5c8f"] * 7, on_right=True, below=True),
    "line": plot.Line(T, T**2, dash=(5, 4), rings=5.0, hover=HOVER),
    "steps": plot.Line(T, T**2, stepped=True, on_right=True),
    "lines": plot.Lines(T, TWO, ["a", "b"], "#8d4a9e"),
    "note": plot.Note(0.5, 0.5, "$$\\frac{1}{2}$$ <b>", offset=(3, -3), align="center", baseline="middle"),
    "points": plot.Points(T, T, ["#2a5c8f"] * 7, None, hover=HOVER),
    "dashes": plot.Points(T, T, edge="#2a5c8f", marker="dash"),
    "triangles": plot.Points(T, T, "#2a5c8f", None, marker="triangle"),
    "dot": plot.dot(0.5, 0.5),
    "rings": plot.rings(T, T),
    "rule": plot.Rule("y", 0.5),
    "segments": plot.Segments(T, T - 0.1, T + 0.1, along="x", hover=HOVER),
    "texts": plot.Texts(T, T, [f"text {k}" for k in range(7)], ["#2a5c8f"] * 7, align="center"),
    "zone": plot.Zone("x", 0.2, None, "#aaccee"),
}
AXES: dict[str, plot.Axis] = {
    "numbers": plot.Axis("Numbers", (-0.2, 1.2)),
    "reversed": plot.Axis("Reversed", (1.2, -0.2), ticks=(0.0, 0.5, 1.0)),
    "logarithmic": plot.Axis("Decades", (1e-3, 1.2), log=True),
    "percent": plot.Axis("Percent", (1e-2, 100.0), log=True, percent=True),
    "short": plot.Axis("Short", (0.3, 1.3), log=True),
    "names": plot.Axis("Names", (-0.5, 6.5), names=("$x$", "</script>", "a", "a", "b", "c", "a long name of a class")),
    "list": plot.Axis("", (6.5, -0.5), names=tuple("abcdefg")),
    "labels": plot.Axis("Labels", (-0.2, 1.2), ticks=(0.0, 0.5, 1.0), labels=("\u22121", "0", "$1$")),
    "bare": plot.Axis("Rows", (-0.2, 1.2), numbered=False),
}


def one(
    *series: plot.Series, x: plot.Axis = AXES["numbers"], y: plot.Axis = AXES["numbers"], **parts: Any
) -> plot.Figure:
    keys = [("#2a5c8f", shape, shape) for shape in ("line", "dash", "dot", "ring", "box")]
    right = plot.Axis("Right", (0.0, 2.0), colour="#94a0ae")
    return plot.Figure("A caption.", x, y, series, keys, "one", "One", **{"right": right, "summary": "Short", **parts})


def picture(*figures: plot.Figure | plot.Missing) -> Any:
    return imread(BytesIO(matplotlib_renderer.png_of(figures, 3.0, "Lead")))[:, :, :3]


def document(figure: plot.Figure) -> str:
    return bokeh_renderer.scripts_and_elements([figure])[0][1]


def test_every_series_of_the_vocabulary_is_tried() -> None:
    assert {type(series) for series in ALL.values()} == set(plot.Series.__subclasses__())


@pytest.fixture(scope="module")
def empty() -> tuple[Any, str]:
    """A figure without any series, by both."""
    return picture(one()), document(one())


@pytest.mark.parametrize("name", ALL)
def test_a_series_leaves_its_mark_in_both(name: str, empty: tuple[Any, str]) -> None:
    drawn = one(ALL[name])
    assert np.abs(picture(drawn) - empty[0]).max() > 0.2
    assert len(document(drawn)) > len(empty[1]) + 80


@pytest.mark.parametrize(
    ("x", "y"), [*((x, "numbers") for x in AXES), *(("numbers", y) for y in ("list", "names", "logarithmic"))]
)
def test_axes(x: str, y: str) -> None:
    figure = one(ALL["line"], x=AXES[x], y=AXES[y], legend=True, right=None)
    assert picture(figure).std() > 0.01
    text = document(figure)
    for label in (AXES[x].label, AXES[y].label):
        assert f'"text":"{label}"' in text or not label


def test_numbers_on_an_axis_never_run_into_each_other_and_names_all_stay() -> None:
    """On a phone a figure has a third of the width: numbers that have no room are left out there."""
    numbers, names = document(one(ALL["line"], right=None)), document(one(ALL["line"], x=AXES["names"], right=None))
    assert numbers.count('"name":"NoOverlap"') == 2
    assert (names.count('"name":"NoOverlap"'), names.count('"name":"AllLabels"')) == (1, 1)
    assert '"major_label_orientation":0.8' in names  # seven names are too long to stand side by side


def test_counts_have_no_ticks_between_whole_numbers() -> None:
    whole = document(one(ALL["line"], x=plot.Axis("Sweep", (0.9, 2.1), whole=True), right=None))
    assert whole.count('"min_interval":1') == 1
    assert '"min_interval":1' not in document(one(ALL["line"], x=plot.Axis("Error", (0.9, 2.1)), right=None))


def test_texts_in_figures_have_the_type_of_the_page() -> None:
    text = document(one(ALL["note"], ALL["texts"], right=None))
    for name in ("axis_label_text_font", "major_label_text_font"):
        assert text.count(f'"{name}":"\\"Helvetica Neue\\"') == 2
    fonts = re.findall(r'"text_font":(.{60})', text)
    assert fonts
    assert all("Helvetica Neue" in font for font in fonts)


def test_a_long_label_takes_several_lines() -> None:
    label = "Lengthscale (standard deviations of the features)"
    text = document(one(ALL["line"], x=plot.Axis(label, (0.0, 1.0)), y=AXES["list"], right=None))
    assert '"text":"Lengthscale (standard\\ndeviations of the features)"' in text


def arrays(text: str) -> list[Any]:
    """The numbers in the sources of a document."""
    found: list[Any] = []
    for data, dtype in re.findall(r'"type":"bytes","data":"([^"]*)"\},"shape":\[\d+\],"dtype":"(\w+)"', text):
        raw = base64.b64decode(data)
        found.append(np.frombuffer(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw, dtype))
    return found


def test_numbers_reach_the_page_once_and_the_pointer_finds_them() -> None:
    text = document(one(ALL["line"]))
    found = arrays(text)
    for values in (T, T**2, T**3):
        assert sum(np.array_equal(each, values) for each in found) == 1
    assert '[["x","@x{0.0}"],["name","@field1"],["error","@field2{%.2g}"]]' in text
    assert json.dumps(list("abcdefg")).replace(" ", "") in text


def test_series_with_the_same_fields_share_a_tool() -> None:
    same = [plot.Line(T, T ** (k + 2), hover=[("x", T), ("y", T ** (k + 2))]) for k in range(5)]
    assert document(one(*same)).count('"name":"HoverTool"') == 1
    assert document(one(ALL["line"], ALL["lines"])).count('"name":"HoverTool"') == 2


def test_texts_of_the_user_are_plain_text() -> None:
    text = document(one(ALL["note"], x=AXES["names"]))
    assert "</script>" not in text
    assert re.findall(r'"name":"(\w+)","id":"\w+","attributes":\{"text":"\$\$', text) == ["PlainText"]


def test_a_reason_stands_in_the_place_of_a_figure() -> None:
    assert np.abs(picture(plot.Missing("One", "there is nothing")) - 1.0).max() > 0.2


PAGES = (
    "regression", "classifier", "several", "gaussian", "committee", "labels", "counts", "pursuit", "svc", "svr",
    "one_class", "quantiles", "boosting",
)  # fmt: skip


@pytest.mark.parametrize(
    "names", [("classifier", "gaussian", "svc"), pytest.param(PAGES, marks=pytest.mark.slow)], ids=["some", "every"]
)
def test_both_draw_every_figure_of_every_page(names: tuple[str, ...], request: pytest.FixtureRequest) -> None:
    drawn: set[str] = set()
    for name in names:
        model: PredictingModel = request.getfixturevalue(name)
        every = [each for section in page_of(model).sections for each in section.figures]
        figures = [each for each in every if isinstance(each, plot.Figure)]
        assert len({figure.name for figure in figures}) == len(figures), name
        for figure in figures:
            if figure.name not in drawn:
                drawn.add(figure.name)
                assert picture(figure).std() > 0.01, figure.name
                assert len(document(figure)) > 1000, figure.name
    assert {"freedom", "intervals", "transform", "confusion", "margins", "reliability"} <= drawn
    assert {"costs", "gap", "values-1", "map-1"} <= drawn
    if names is PAGES:
        assert {"members", "rates", "loss", "decisions", "tube", "shares", "quantiles"} <= drawn
        assert {"votes", "member-weights", "vote-margins"} <= drawn
