"""One figure of the page with its text, or the reason why it is absent."""

from __future__ import annotations

from dataclasses import dataclass, field

from bokeh.models import Model

__all__ = ["Key", "Panel"]


@dataclass(frozen=True)
class Key:
    """An entry of the legend: a colour, its form ("line", "dash", "dot", "ring" or "box"), and its meaning."""

    colour: str
    shape: str
    text: str


@dataclass(frozen=True)
class Panel:
    """A figure with its caption, or the reason why there is none.

    Parameters
    ----------
    name : identifier, the panel's anchor on the page.
    title, caption : plain text, escaped by the page.
    figure : figure that Bokeh draws, or None with a `reason`.
    """

    name: str
    title: str
    caption: str = ""
    figure: Model | None = None
    reason: str = ""
    keys: tuple[Key, ...] = field(default=())
