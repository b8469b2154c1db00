"""One figure of the page with its words, or the reason why it is not there."""

from __future__ import annotations

from dataclasses import dataclass, field

from bokeh.models import Model

__all__ = ["Key", "Panel"]


@dataclass(frozen=True)
class Key:
    """A line of the legend: a colour, how it is drawn ("line", "dash", "dot" or "box"), and what it stands for."""

    colour: str
    shape: str
    text: str


@dataclass(frozen=True)
class Panel:
    """Parameters
    ----------
    name : an identifier, the panel's anchor on the page.
    title, caption : plain text, escaped by the page.
    figure : what Bokeh draws, or None with a `reason`.
    """

    name: str
    title: str
    caption: str = ""
    figure: Model | None = None
    reason: str = ""
    keys: tuple[Key, ...] = field(default=())
