"""Pages as text, without a file; where the words are what is tested, without drawings, which take half a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from streamkernel import Factor
from streamkernel.report.pages import document
from streamkernel.report.pages.document import html_of
from streamkernel.report.pages.factors import factors_page
from streamkernel.report.pages.kinds import page_of

__all__ = ["render", "render_factors", "undrawn", "without_figures"]


def render(model: Any, title: str | None = None, pairs: Mapping[str, Any] | None = None) -> str:
    return html_of(page_of(model, pairs), title)


def undrawn(model: Any, title: str | None = None, pairs: Mapping[str, Any] | None = None) -> str:
    """The same, with nothing in the places of its figures."""
    with without_figures():
        return render(model, title, pairs)


def without_figures() -> AbstractContextManager[Any]:
    """Pages have nothing in the places of their figures."""
    return patch.object(document, "scripts_and_elements", lambda figures: ([], {each.name: "" for each in figures}))


def render_factors(factors: Sequence[Factor], title: str | None = None, optimum: Any = None) -> str:
    return html_of(factors_page(factors, optimum), title)
