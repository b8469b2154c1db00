"""Pages as text, without a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamkernel import Factor
from streamkernel.report.pages.document import html_of
from streamkernel.report.pages.factors import factors_page
from streamkernel.report.pages.kinds import page_of

__all__ = ["render", "render_factors"]


def render(model: Any, title: str | None = None, pairs: Mapping[str, Any] | None = None) -> str:
    return html_of(page_of(model, pairs), title)


def render_factors(factors: Sequence[Factor], title: str | None = None, optimum: Any = None) -> str:
    return html_of(factors_page(factors, optimum), title)
