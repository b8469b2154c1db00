"""A page follows the theme of its reader: its own colours, those of legends, and those in figures."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from report.rendered import undrawn

from streamkernel.models import RidgeModel
from streamkernel.report.bokeh_renderer import scripts_and_elements
from streamkernel.report.figures import palette, plot
from streamkernel.report.figures.palette import INK, MUTED, ORANGE, PAPER, blend, dark, line_style

node = shutil.which("node")
COLOUR = re.compile("#[0-9a-f]{6}")


def _luminance(colour: str) -> float:
    """Relative luminance, as in WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_texts_and_lines_can_be_told_from_dark_paper() -> None:
    paper = dark(PAPER)
    assert _luminance(paper) < 0.02
    assert _contrast(dark(INK), paper) > 10.0
    assert _contrast(dark(MUTED), paper) > 4.5
    for index in range(8):
        colour = line_style(index)[0]
        assert _contrast(dark(colour), paper) > min(3.0, _contrast(colour, PAPER)), colour


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_shades_keep_their_order(share: float) -> None:
    """What was darker than paper by more is now lighter by more; hardly tinted paper gets no colour."""
    assert COLOUR.fullmatch(dark(blend(share)))
    assert _luminance(dark(blend(share))) <= _luminance(dark(blend(min(share + 0.1, 1.0))))
    near = dark("#feffff")
    assert max(int(near[at : at + 2], 16) for at in (1, 3, 5)) - min(int(near[at : at + 2], 16) for at in (1, 3, 5)) < 4


def test_every_colour_of_the_palette_has_a_dark_one() -> None:
    for name, value in vars(palette).items():
        if isinstance(value, str) and COLOUR.fullmatch(value):
            assert COLOUR.fullmatch(dark(value)), name


def test_the_page_says_that_it_has_both_themes(regression: RidgeModel) -> None:
    page = undrawn(regression, but=["trace"])
    assert '<meta name="color-scheme" content="light dark">' in page
    assert "@media screen and (prefers-color-scheme: dark)" in page
    assert f"color: {ORANGE}; color: light-dark({ORANGE}, {dark(ORANGE)})" in page
    style = page[page.index("<style>") : page.index("</style>")]
    # Outside the two lists of variables, all colours are variables.
    assert COLOUR.findall(re.sub(r":root \{.*?\}", "", style, flags=re.DOTALL)) == []


def test_no_part_of_a_figure_keeps_the_white_of_the_library() -> None:
    """A colour that is the library's own choice is not in the JSON, and no script can make it dark."""
    axis = plot.Axis("x", (0.0, 1.0))
    (_, script), _ = scripts_and_elements([plot.Figure("", axis, axis, [plot.dot(0.5, 0.5)], name="one")])
    for part in ("background_fill_color", "border_fill_color", "outline_line_color"):
        assert f'"{part}":null' in script


@pytest.mark.skipif(node is None, reason="no node to run the page's script with")
@pytest.mark.parametrize("is_dark", [False, True])
def test_figures_are_drawn_in_the_colours_of_the_theme(is_dark: bool, tmp_path: Path) -> None:
    """The script with a window and a library that only note what they are asked for."""
    assert node is not None
    labels = ["#ffffff", "</script>"]
    points = plot.Points([0.0, 1.0], [0.0, 1.0], [ORANGE, MUTED], hover=[("label", labels)])
    axis = plot.Axis("#1f2a37", (0.0, 1.0))
    figure = plot.Figure("", axis, axis, [points, plot.Line([0.0, 1.0], [1.0, 0.0], ORANGE)], name="one")
    (_, script), elements = scripts_and_elements([figure])
    assert elements == {"one": '<div class="drawing" id="one-figure"></div>'}
    assert "</script" not in script
    fakes = f"""
        const drawn = [], changes = [], shades = [];
        const widths = [];
        const listen = (kind, then) => changes.push([kind, then]);
        const theme = {{ matches: {json.dumps(is_dark)}, addEventListener: listen }};
        const page = {{ matches: false }}, printing = [];
        const matchMedia = (query) => query === "print" ? page : theme;
        globalThis.window = {{ matchMedia, addEventListener: (kind, then) => printing.push([kind, then]) }};
        const element = (id) => ({{
            replaceChildren: () => drawn.push(["cleared", id]),
            classList: {{ toggle: (name, on) => shades.push([name, on]) }},
            style: {{ setProperty: (name, value) => widths.push([name, value]) }},
            offsetWidth: 806,
        }});
        globalThis.document = {{ getElementById: element }};
        globalThis.Bokeh = {{ embed: {{ embed_item: (item, id) => drawn.push([item, id]) }} }};
    """
    # The theme changes; then it changes for the printer alone.
    last = """
        theme.matches = !theme.matches; changes[0][1]();
        page.matches = true; theme.matches = !theme.matches; changes[0][1]();
        printing[0][1]();
        console.log(JSON.stringify({ kind: changes[0][0], drawn, shades, before: printing[0][0], widths }));
    """
    (tmp_path / "page.js").write_text(f"{fakes}\n{script}\n{last}", encoding="utf-8")
    run = subprocess.run([node, str(tmp_path / "page.js")], capture_output=True, text=True, check=True, timeout=60)
    found = json.loads(run.stdout)
    assert (found["kind"], found["before"]) == ("change", "beforeprint")
    assert found["shades"] == [["dark", is_dark], ["dark", not is_dark]]
    assert found["widths"] == [["--width", 806]]
    assert [each[0] for each in found["drawn"]][::2] == ["cleared", "cleared"]
    first, second = (each for each in found["drawn"] if each[0] != "cleared")
    assert first[1] == second[1] == "one-figure"
    light, turned = (second[0], first[0]) if is_dark else (first[0], second[0])
    texts = _strings(light), _strings(turned)
    assert len(texts[0]) == len(texts[1])
    for before, after in zip(*texts, strict=True):
        assert after in (before, dark(before) if COLOUR.fullmatch(before) else before)
    # Labels of the user and of axes are no colours, whatever they look like.
    for text in ("#ffffff", "#1f2a37"):
        assert text in texts[1]
    assert dark(ORANGE) in texts[1]
    assert ORANGE not in texts[1]
    assert "</script>" in texts[1]


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for each in inner for text in _strings(each)]
