"""Pages as text, without a file; with no more drawings than the test is about, as each takes up to half a second."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from streamkernel import Factor
from streamkernel.report.bokeh_renderer import scripts_and_elements
from streamkernel.report.figures import plot
from streamkernel.report.pages import document
from streamkernel.report.pages.document import html_of
from streamkernel.report.pages.factors import factors_page
from streamkernel.report.pages.kinds import page_of

__all__ = ["render", "render_factors", "undrawn", "without_figures"]


def render(model: Any, title: str | None = None, pairs: Mapping[str, Any] | None = None) -> str:
    return html_of(page_of(model, pairs), title)


def undrawn(
    model: Any, title: str | None = None, pairs: Mapping[str, Any] | None = None, but: Collection[str] = ()
) -> str:
    """The same, with nothing in the places of its figures, `but` those of these names."""
    with without_figures(but):
        return render(model, title, pairs)


def without_figures(but: Collection[str] = ()) -> AbstractContextManager[Any]:
    """Pages have nothing in the places of their figures, `but` those of these names, which each page has."""

    def some(figures: Sequence[plot.Figure]) -> tuple[list[str], dict[str, str]]:
        chosen = [each for each in figures if each.name in but]
        assert {each.name for each in chosen} == set(but)
        scripts, elements = scripts_and_elements(chosen)
        return scripts, {**{each.name: "" for each in figures}, **elements}

    return patch.object(document, "scripts_and_elements", some)


def render_factors(
    factors: Sequence[Factor], title: str | None = None, optimum: Any = None, but: Collection[str] = ()
) -> str:
    """The page of factors, with figures of these names alone."""
    with without_figures(but):
        return html_of(factors_page(factors, optimum), title)
