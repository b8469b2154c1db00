"""What notebooks show: small tables of names and values, escaped, without scripts, and without reading a row."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from streamkernel import Column, KernelRidge, Schema, factorize, open_table
from streamkernel.comparison import Compared, Comparison
from streamkernel.kinds import KINDS, Kind
from streamkernel.notebook import html_table

RNG = np.random.default_rng(4)
X = RNG.standard_normal((80, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(80)
EVIL = "<script>alert('&')</script>"


class Cells(HTMLParser):
    """Tags and texts of a page; tags must be closed in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert {name for name, _ in attrs} <= {"style", "colspan"}
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def cells(html: str) -> list[str]:
    found = Cells()
    found.feed(html)
    found.close()
    assert found.open == []
    assert found.tags <= {"table", "thead", "tbody", "tr", "th", "td"}
    return found.texts


def value(html: str, name: str) -> str:
    texts = cells(html)
    return texts[texts.index(name) + 1]


def test_a_comparison_shows_errors_and_differences() -> None:
    two = (
        Compared("few", "ridge", (0.5, 0.7, 0.6), 1.0, (5, 5, 5), (80, 80, 80)),
        Compared(EVIL, "ridge", (0.1, 0.2, 0.3), 1.0, (9, 9, 9), (99, 99, 99)),
    )
    texts = cells(Comparison("rmse", "content", (80, 80, 80), (40, 40, 40), two)._repr_html_())
    assert texts[:3] == ["rmse, 3 folds by content", "few", f"0.6 ± 0.058, 0.4 ± 0.058 more than {EVIL}"]
    assert texts[3:] == [EVIL, "0.2 ± 0.058, the least"]
    alone = Comparison("rmse", "content", (80, 80, 80), (40, 40, 40), two[:1])
    assert value(alone._repr_html_(), "few") == "0.6 ± 0.058"


def test_names_and_values() -> None:
    html = html_table("T", {"a_b": 1234567, "c": None, "d": 0.123456789, "e": [1, 2.5], "f": True, "g": {"x": 1}})
    assert cells(html) == ["T", "a_b", "1,234,567", "d", "0.123457", "e", "1, 2.5", "f", "True", "g", "x 1"]


@pytest.mark.parametrize("text", [EVIL, "\ud800", "\"'<>&", "x" * 10_000, "\x00\n"])
def test_any_text_may_be_a_name_or_a_value(text: str) -> None:
    html = html_table(text, {text: text, "list": [text] * 10_000})
    html.encode("utf-8")
    assert "<script" not in html
    assert len(html) < 2000
    cells(html)


def test_a_table_reads_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame(X, columns=[EVIL, "b", "c"])
    table = open_table(frame, np.where(Y > 0, "<up>", "down"), classify=True, weights=np.ones(80)).slice(10, 60)
    monkeypatch.setattr(type(table.features), "load", None)
    html = table._repr_html_()
    assert "<script" not in html
    assert value(html, "rows") == "50 (10:60)"
    assert value(html, "classes") == "<up>, down"
    assert value(html, "row weights") == "stored with the rows"
    assert EVIL[:10] in value(html, "columns")
    assert "classes" not in cells(open_table(X)._repr_html_())


def test_columns_and_estimators_are_spelled_as_the_user_spells_them() -> None:
    schema = Schema((Column("hours_a_week", "number"), Column("_id_", "category", categories=("a_b",))))
    assert value(schema._repr_html_(), "hours_a_week") == "feature, number"
    assert "_id_" in cells(schema._repr_html_())
    two = tuple(Compared(name, "ridge", (0.5, 0.7), 1.0, (5, 5), (80, 80)) for name in ("few_functions", "many_"))
    assert {"few_functions", "many_"} <= set(cells(Comparison("rmse", "content", (80,), (40,), two)._repr_html_()))


@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_models_of_every_kind(kind: Kind, tmp_path: Path) -> None:
    y: Any = (Y > 0).astype(int) if kind.classify else RNG.poisson(1.0, 80) if kind.name == "poisson" else Y
    y = np.column_stack([Y, RNG.standard_normal(80)]) if kind.name == "kernel-cca" else y
    estimator = kind.estimator(2).fit(pd.DataFrame(X, columns=[EVIL, "b", "c"]), y)
    estimator.save(tmp_path / "m")
    for one in (estimator, kind.estimator.load(tmp_path / "m")):
        html = one.model_._repr_html_()
        assert "<script" not in html
        assert "array(" not in html
        assert value(html, "estimator") == kind.name
        assert value(html, "rows of the fit") == "80"
        assert value(html, "kernel").endswith(")")
        # Estimators have scikit-learn's table, with its style and its script; no text of ours is in it.
        assert EVIL not in one._repr_html_()


def test_factors() -> None:
    html = factorize(X, n_components=5)._repr_html_()
    assert value(html, "basis functions") == "5"
    assert float(value(html, "relative residual trace")) < 1.0


def test_the_numbers_are_those_of_the_model() -> None:
    model = KernelRidge(20, alpha=0.5, lengthscale=1.5, kernel="gaussian").fit(X, Y)
    html = model.model_._repr_html_()
    assert value(html, "alpha") == "0.5"
    assert value(html, "kernel") == "Gaussian(lengthscale=1.5)"
    assert value(html, "basis functions") == "20"
    assert re.fullmatch(r"[\d.e-]+", value(html, "relative residual trace"))
