"""The page around the figures: HTML from text, all of which is escaped here."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape
from importlib.metadata import version as version_of
from importlib.resources import files

from streamkernel.report.bokeh_renderer import scripts_and_elements
from streamkernel.report.figures import plot
from streamkernel.report.figures.palette import dark
from streamkernel.report.pages.parts import Card, Page, Section, Table
from streamkernel.report.text import plain

_POWER = re.compile("(?<=10)[⁻⁰¹²³⁴-⁹]+")
_PLAIN_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "−0123456789")


def html_of(page: Page, title: str | None = None) -> str:
    """The whole page as text; `title` stands in place of its own.

    Its content security policy forbids every request, and every script but its own, known by their digests. So nothing
    in the page can send a network request, whatever the model's names and labels contain.
    """
    title = page.title if title is None else plain(title, 200)
    drawings = [each for section in page.sections for each in section.figures]
    figures = [each for each in drawings if isinstance(each, plot.Figure)]
    # Each figure is drawn into the element of its name: a second one of that name would leave its own place empty.
    assert len({each.name for each in figures}) == len(figures), sorted(each.name for each in figures)
    scripts, elements = scripts_and_elements(figures)
    digests = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
    style = files("streamkernel.report.pages").joinpath("page.css").read_text(encoding="utf-8")
    shown = [each for each in page.sections if each.tables or any(isinstance(one, plot.Figure) for one in each.figures)]
    body = "\n".join(_section(each, elements) for each in shown)
    # A heading over nothing but the reason why there is nothing would promise a picture.
    left_out = [each for section in page.sections if section not in shown for each in section.figures]
    # A model keeps the version that fitted it.
    software = {"streamkernel": version_of("streamkernel")} if page.record is None else page.record.software or {}
    version = plain(software.get("streamkernel", ""))
    code = "\n".join(f"<script>{script}</script>" for script in scripts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="streamkernel">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p class="lead">{_text(page.lead)}</p>
{_cards(page.cards)}
{_notices(page.notices)}<noscript><p class="reason">The figures need JavaScript, which is off.</p></noscript>
</header>
<main>
{body}
{_reasons(left_out)}<section>
<h2>Settings and software</h2>
<div class="tables">
{"".join(_table(table) for table in page.settings)}</div>
</section>
</main>
<footer>{_text(f"Made by streamkernel {version}.")} This page is complete in itself and sends no request.</footer>
{code}
</body>
</html>
"""


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _text(text: str) -> str:
    """Escaped text; exponents become HTML superscripts, because few fonts have all raised digits in one size."""
    return _POWER.sub(lambda found: f"<sup>{found.group().translate(_PLAIN_DIGITS)}</sup>", escape(text))


def _cards(cards: Sequence[Card]) -> str:
    shown = "\n".join(
        f'<div><dt>{_text(card.label)}</dt><dd class="value">{_value(card.value)}</dd>'
        f'<dd class="note">{_text(card.note)}</dd></div>'
        for card in cards
    )
    return f'<dl class="cards">\n{shown}\n</dl>'


def _value(value: str) -> str:
    """A number, and in smaller type its standard error."""
    number, mark, error = value.partition(" ± ")
    return f"{_text(number)}<small>{_text(mark + error)}</small>" if mark else _text(value)


def _notices(notices: Sequence[str]) -> str:
    if not notices:
        return ""
    return '<ul class="notices">\n' + "".join(f"<li>{_text(notice)}</li>\n" for notice in notices) + "</ul>\n"


def _section(section: Section, elements: dict[str, str]) -> str:
    drawn = [_figure(each, elements[each.name]) for each in section.figures if isinstance(each, plot.Figure)]
    reasons = "".join(_reason(each) for each in section.figures if isinstance(each, plot.Missing))
    odd = " odd" if len(drawn) % 2 else ""
    figures = "\n".join(drawn)
    grid = f'<div class="panels{odd}">\n{figures}\n</div>\n' if drawn else ""
    tables = "".join(_table(table) for table in section.tables)
    return f"<section>\n<h2>{_text(section.title)}</h2>\n{grid}{reasons}{tables}</section>"


def _reasons(drawings: Sequence[plot.Drawing]) -> str:
    """The section Notes: why some figures are not drawn, where their own section would have no other figure."""
    reasons = "".join(_reason(each) for each in drawings if isinstance(each, plot.Missing))
    return f"<section>\n<h2>Notes</h2>\n{reasons}</section>\n" if reasons else ""


def _reason(missing: plot.Missing) -> str:
    return f'<p class="reason">{_text(missing.title)}: {_text(missing.reason)}.</p>\n'


def _figure(figure: plot.Figure, element: str) -> str:
    keys = "".join(f"<li>{_swatch(colour, form)}<span>{_text(text)}</span></li>" for colour, form, text in figure.keys)
    legend = f'<ul class="keys">{keys}</ul>\n' if keys else ""
    return (
        f'<article class="panel" id="{escape(figure.name)}">\n<h3>{_text(figure.title)}</h3>\n'
        f'<p class="caption">{_text(figure.caption)}</p>\n{legend}{element}\n</article>'
    )


def _swatch(colour: str, form: str) -> str:
    shapes = {
        "line": '<path class="stroke" d="M0 6h20" stroke-width="2"/>',
        "dash": '<path class="stroke" d="M0 6h20" stroke-width="2" stroke-dasharray="5 3"/>',
        "dot": '<circle class="fill" cx="10" cy="6" r="4"/>',
        "ring": '<circle class="stroke paper" cx="10" cy="6" r="3.5" stroke-width="1.5"/>',
        "box": '<rect class="fill" x="4" width="12" height="12"/>',
    }
    # The first is for browsers that do not know the second.
    style = f"color: {colour}; color: light-dark({colour}, {dark(colour)})"
    return f'<svg width="20" height="12" viewBox="0 0 20 12" style="{style}" aria-hidden="true">{shapes[form]}</svg>'


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in table.columns)
    rows = []
    for first, *rest in table.rows:
        cells = "".join(f"<td>{_text(cell)}</td>" for cell in rest)
        opening = f"<td>{_text(first)}</td>" if table.columns else f'<th scope="row">{_text(first)}</th>'
        rows.append(f"<tr>{opening}{cells}</tr>")
    kind = ("wide" if table.wide else "columns") if table.columns else "pairs"
    header = f"<thead><tr>{head}</tr></thead>" if head else ""
    return (
        f'<article class="panel">\n<h3>{_text(table.title)}</h3>\n<table class="{kind}">{header}<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table>\n</article>\n"
    )
