"""Several models on one page: numbers and ranks of each table, and no rank across tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import pytest
from report.conftest import NASTY
from report.rendered import without_figures
from report.test_html import Page

from streamkernel import KernelPCA
from streamkernel.cli import main
from streamkernel.errors import ParameterError, StoreExistsError
from streamkernel.models import RidgeModel
from streamkernel.report import write_models_report
from streamkernel.report.figures import plot
from streamkernel.report.pages import models_page
from streamkernel.report.pages.document import html_of

THREADS = ("--scheduler", "threads")


@pytest.fixture(scope="module")
def models(fitted: Callable[..., RidgeModel]) -> dict[str, Any]:
    """Two models of the same rows, one of others, one of other targets, and one that does not predict."""
    rows = data_sets.friedman(600)
    return {
        "few": fitted(rows.X, rows.y, rows=400, n_components=5),
        "classes": fitted(rows.X, rows.y > 14, rows=400, classify=True),
        "many": fitted(rows.X, rows.y, rows=400, n_components=60),
        "fewer rows": fitted(rows.X, rows.y, rows=300, n_components=60),
        "all rows": fitted(rows.X, rows.y),
        "components": KernelPCA(n_components=5).fit(rows.X).model_,
    }


def _table(page: Any, section: int) -> dict[str, tuple[str, ...]]:
    [table] = page.sections[section].tables
    return {row[0]: row[1:] for row in table.rows}


def test_ranks_are_of_the_same_rows_of_one_table(models: dict[str, Any]) -> None:
    page = models_page(models)
    assert page.lead == "6 models of 5 tables, side by side."
    first, second, other, whole, components = (_table(page, at) for at in range(5))
    assert list(first) == ["many", "few"], "the best first"
    assert [row[2] for row in first.values()] == ["1 of 2", "2 of 2"]
    assert other["fewer rows"][2] == "no other with its rows and measure"
    assert whole["all rows"][1:3] == ("none: no rows were held out", "–")
    assert first["many"][3] == "200"
    assert list(second) == ["classes"]
    assert second["classes"][0] == "Kernel ridge classifier"
    assert second["classes"][1].startswith("Accuracy ")
    assert components["components"][:2] == ("Kernel PCA", "none: it does not predict")
    assert {card.label: card.note for card in page.cards}["Best of table 1"] == "many, RMSE, of 2 on the same rows"
    assert "Best of table 2" not in {card.label for card in page.cards}
    assert any("not ranked against each other" in notice for notice in page.notices)


def test_numbers_are_those_of_the_models(models: dict[str, Any]) -> None:
    row = _table(models_page(models), 0)["many"]
    model = models["many"]
    error = model.arrays["check_true"] - model.arrays["check_predicted"]
    rmse = np.sqrt((error**2).mean())
    se = (error**2).std() / np.sqrt(len(error)) / (2 * rmse)
    assert row[1] == f"RMSE {rmse:.3g} ± {se:.2g}"
    assert row[5] == str(model.record.basis_size)
    assert row[7].endswith("B")


def test_one_table_has_no_number_and_no_notice_of_others(models: dict[str, Any]) -> None:
    page = models_page({name: models[name] for name in ("few", "many")})
    assert page.lead == "2 models of 1 table, side by side."
    assert page.sections[0].title.startswith("10 columns, ") or page.sections[0].title.startswith("5 columns, ")
    assert len(page.notices) == 1


def test_the_figure_has_the_scores_the_best_first(models: dict[str, Any]) -> None:
    [figure] = models_page(models).sections[0].figures
    assert isinstance(figure, plot.Figure)
    bars, points = figure.series
    assert isinstance(bars, plot.Segments)
    assert isinstance(points, plot.Points)
    assert figure.y.names == ("many", "few")
    assert np.all(np.diff(points.x) > 0)
    np.testing.assert_allclose(np.add(bars.low, bars.high) / 2, points.x)
    assert figure.x.limits[0] < np.min(bars.low)


def test_names_are_text_and_figures_have_names_of_their_own(models: dict[str, Any], tmp_path: Path) -> None:
    named = dict(zip(NASTY, (models["few"], models["many"], models["classes"], models["components"]), strict=True))
    named["classes again"] = models["classes"]
    page = html_of(models_page(named))
    assert "<script>alert" not in page
    identifiers = re.findall(r'<article class="panel" id="([^"]*)"', page)
    assert identifiers == ["scores-1-1", "scores-2-1"]
    long = {"x" * 300: models["few"], "y" * 300: models["many"]}
    with without_figures():
        assert "x" * 59 + "…" in " ".join(Page(html_of(models_page(long))).texts)


def test_scores_that_are_not_finite_are_last(models: dict[str, Any], changed: Callable[..., RidgeModel]) -> None:
    predicted = np.full_like(models["few"].arrays["check_predicted"], 1e200)
    broken = changed(models["few"], arrays={"check_predicted": predicted})
    page = models_page({"broken": broken, "many": models["many"]})
    assert list(_table(page, 0)) == ["many", "broken"]
    assert _table(page, 0)["broken"][2] == "2 of 2"
    html_of(page)


def test_bad_input(models: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="2 to 60 models, but there are 1"):
        write_models_report({"few": models["few"]}, tmp_path / "page.html")
    with pytest.raises(ParameterError, match="but there are 61"):
        write_models_report({str(each): models["few"] for each in range(61)}, tmp_path / "page.html")
    (tmp_path / "page.html").write_text("mine")
    with pytest.raises(StoreExistsError):
        write_models_report(models, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "mine"


def test_the_command(models: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = []
    for folder, name in (("a", "few"), ("b", "many"), ("b", "components")):
        (tmp_path / folder).mkdir(exist_ok=True)
        model = "model" if name != "components" else name
        models[name].save(tmp_path / folder / model)
        places.append(str(tmp_path / folder / model))
    page = tmp_path / "page.html"

    def error(*arguments: str) -> str:
        capsys.readouterr()
        assert main(["report", *arguments]) == 1
        return capsys.readouterr().err

    assert "--data is of one model, and there are 3" in error(*places, str(page), "--data", places[0])
    assert "--png is of one model" in error(*places, str(page), "--png", str(tmp_path / "p.png"))
    assert "was named twice" in error(places[0], places[0], str(page))
    assert not page.exists()
    assert main(["report", *places, str(page)]) == 0
    text = " ".join(Page(page.read_text(encoding="utf-8")).texts)
    # Two folders have one name, so that the paths are the names.
    assert "3 models of 2 tables" in text
    assert places[0][-20:] in text or "…" in text
