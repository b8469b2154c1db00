"""What notebooks show of an object: its names and values as a small HTML table, without scripts or styles of a page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

_LONGEST = 120  # characters of a value: a class may have thousands of labels
_MOST = 8  # items of a list


def html_table(title: str, fields: Mapping[str, object]) -> str:
    """HTML of a title and of names with their values, all of which are escaped; fields that are None are left out.

    Names are shown as they are spelled: they may be those of a user's columns.
    """
    rows = "".join(
        f'<tr><td style="text-align:left">{_escaped(name)}</td>'
        f'<td style="text-align:left">{_escaped(_text(value))}</td></tr>'
        for name, value in fields.items()
        if value is not None
    )
    head = f'<tr><th colspan="2" style="text-align:left">{_escaped(title)}</th></tr>'
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _escaped(text: str) -> str:
    # Names of columns may hold lone surrogates, which no page can.
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return escape(shown.encode("utf-8", "replace").decode("utf-8"))


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(item)}" for name, item in value.items() if item is not None)
    if isinstance(value, (list, tuple)):
        shown = [_text(item) for item in value[:_MOST]]
        return ", ".join(shown) + (f", … ({len(value):,} in all)" if len(value) > _MOST else "")
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
