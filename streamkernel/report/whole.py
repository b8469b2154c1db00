"""One page from groups of panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bokeh.embed import components
from bokeh.resources import Resources

from streamkernel.records import BasisRecord
from streamkernel.report.figures.figure import Panel
from streamkernel.report.pages.document import Section, assemble
from streamkernel.report.pages.tables import Card, Table
from streamkernel.report.text import plain

__all__ = ["Group", "whole_page"]


@dataclass(frozen=True)
class Group:
    """Panels under one heading, and tables below them."""

    title: str
    panels: Sequence[Panel]
    tables: Sequence[Table] = ()


def whole_page(
    title: str,
    lead: str,
    numbers: Sequence[Card],
    warnings: Sequence[str],
    groups: Sequence[Group],
    settings: Sequence[Table],
    record: BasisRecord,
) -> str:
    """Draw the panels of all groups and put them on one page; `record` holds the version that did the work."""
    figures = {panel.name: panel.figure for group in groups for panel in group.panels if panel.figure is not None}
    script, drawn = components(figures, wrap_script=False) if figures else ("", {})
    # Only the core library: no widgets, no WebGL, and no typesetter, which would be fetched from the network.
    library = Resources(mode="inline", components=["bokeh"], log_level="warn").js_raw
    return assemble(
        title,
        lead,
        numbers,
        warnings,
        [Section(group.title, group.panels, drawn, group.tables) for group in groups],
        settings,
        ["\n".join(library), script] if figures else [],
        f"Made by streamkernel {plain((record.software or {}).get('streamkernel', ''))}. "
        "This page is complete in itself and sends nothing anywhere.",
    )
