"""Axes of errors show where the least one is, however large the largest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import data_sets
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.models import RidgeModel
from streamkernel.report.facts.fit import Absent, gcv_curve
from streamkernel.report.figures import plot
from streamkernel.report.figures.axes import around_least, wrapped
from streamkernel.report.figures.fit import gcv_figure


def test_a_long_flat_valley_fills_the_axis() -> None:
    errors = np.concatenate([np.full(40, 1.01), [1.0], np.linspace(1.1, 500.0, 20)])
    low, high, cut = around_least(errors)
    assert (low, cut) == (1.0, True)
    assert high == pytest.approx(1.05)


def test_what_is_kept_is_on_the_axis() -> None:
    assert around_least(np.array([1.0, 1.0, 1.0, 9.0]), [3.0, math.nan, math.inf])[1] == 3.0


@pytest.mark.parametrize("values", [[2.0], [0.0, 0.0], [-3.0, -3.0, -1.0]])
def test_few_or_equal_values(values: list[float]) -> None:
    low, high, _ = around_least(np.array(values))
    assert low == min(values)
    assert high >= low


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=40))
def test_half_of_all_values_are_on_the_axis(values: list[float]) -> None:
    low, high, cut = around_least(np.array(values))
    assert low == min(values)
    assert high <= max(values)
    assert cut == (high < max(values))
    assert np.mean(np.array(values) <= high) >= 0.5


def test_the_choice_of_alpha_shows_the_minimum(fitted: Callable[..., RidgeModel]) -> None:
    rows = data_sets.friedman(800)
    curve = gcv_curve(fitted(rows.X, rows.y, rows=600, n_components=40))
    assert not isinstance(curve, Absent)
    figure = gcv_figure(curve)
    assert isinstance(figure, plot.Figure)
    low, high = figure.y.limits
    assert low <= curve.error.min() <= high
    assert curve.error.max() > high
    assert "Larger errors lie above the axis." in figure.caption
    # An error 5 % above the least is at least a tenth of the axis above it.
    assert 0.05 * curve.error.min() / (high - low) > 0.1


def test_a_page_says_why_alpha_is_not_that_of_the_least_error(fitted: Callable[..., RidgeModel]) -> None:
    rows = data_sets.friedman(800)
    curve = gcv_curve(fitted(rows.X, rows.y, rows=600, n_components=40))
    assert not isinstance(curve, Absent)
    least = float(curve.alpha[np.argmin(curve.error)])
    for chosen, said in ((least, False), (3.0 * least, True)):
        figure = gcv_figure(replace(curve, chosen=chosen))
        assert isinstance(figure, plot.Figure)
        assert ("known to choose too small an alpha" in figure.caption) == said


@given(st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12), max_size=12))
def test_a_wrapped_label_keeps_its_words_and_fits(words: list[str]) -> None:
    lines = wrapped(" ".join(words), 20).split("\n")
    assert " ".join(lines).split() == words
    assert all(len(line) <= 20 for line in lines)


def test_lines_of_a_label_are_about_equally_long() -> None:
    assert wrapped("short", 20) == "short"
    assert wrapped("Lengthscale (standard deviations of the features)", 28) == (
        "Lengthscale (standard\ndeviations of the features)"
    )
