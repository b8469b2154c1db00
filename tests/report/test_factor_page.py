"""The page of factors: the numbers of the factors, on a page that keeps the promises of the model's."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from report.rendered import render_factors, without_figures

from streamkernel import Factor, KernelPCA, factorize, open_table
from streamkernel.bounds import compression_bound
from streamkernel.errors import ParameterError, ShapeError, StoreExistsError, StoreNotFoundError
from streamkernel.report import draw_factor_png, pca_optimum, write_factor_report
from streamkernel.report.facts.factors import (
    BoundCurve,
    FactorCurve,
    PcaCurve,
    bound_curve,
    differences,
    factor_curve,
    factor_labels,
)
from streamkernel.report.facts.fit import Absent, fitted_to_rows
from streamkernel.report.figures.palette import MOST_LINES, line_style

Made = Callable[..., Factor]

ROWS = np.random.default_rng(0).standard_normal((400, 3))
GIVEN = {"lengthscale": 2.0, "scale": "none"}


class Page(HTMLParser):
    """Texts, anchors of panels and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.panels: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self._code = 0
        self.feed(text)
        self.text = " ".join(self.words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.attributes += found.items()
        self._code += tag in ("script", "style")
        if tag == "article" and "id" in found:
            self.panels.append(found["id"])

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._code and data.strip():
            self.words.append(data.strip())

    def after(self, label: str) -> str:
        """What a table says of a fact."""
        return self.words[self.words.index(label) + 1]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """``made("name", **options)``: a factor of `ROWS` on disk."""
    folder = tmp_path_factory.mktemp("factors")

    def make(name: str, **options: Any) -> Factor:
        if not (folder / name).exists():
            factorize(ROWS, folder / name, **{"n_components": 20, **options})
        return Factor.load(folder / name)

    return make


def test_one_factor(made: Made) -> None:
    factor = made("greedy")
    page = Page(render_factors([factor], but=["residual", "bound", "time", "memory"]))
    assert page.panels == ["residual", "bound", "time", "memory"]
    assert "Not drawn" not in page.text
    assert "400 rows of 3 features, as G Gᵀ with 20 columns" in page.text
    assert page.after("Digest") == factor.digest
    assert page.after("Certificate") == f"{100 * factor.relative_residual_trace:.4g} % of the trace"
    assert page.after("Columns on disk") == "float32, 32 kB"
    assert "Here the lengthscale and the scaling were taken from the rows" in page.text
    for label in ("Rank", "Kernel", "Trace", "Memory promised", "Memory measured", "Fingerprint of the table"):
        assert label in page.words


def test_several_factors_side_by_side(made: Made) -> None:
    factors = [made("given", **GIVEN), made("uniform", rule="uniform", **GIVEN)]
    page = Page(render_factors(factors, optimum=pca_optimum(factors, open_table(ROWS)), but=["residual", "sweeps"]))
    assert page.panels == ["residual", "bound", "sweeps"]
    for factor in factors:
        assert factor.digest in page.words
    at = page.words.index("Residual trace")
    assert page.words[at + 1 : at + 3] == [f"{factor.residual_trace:.4g}" for factor in factors]
    assert "taken from the rows" not in page.text
    assert "These factors differ" not in page.text
    eigenvalues = np.linalg.eigvalsh(factors[0].basis.kernel(ROWS))[::-1]
    optimum = 1.0 - eigenvalues[:20].sum() / 400
    at = page.words.index("Times the PCA optimum")
    for word, factor in zip(page.words[at + 1 : at + 3], factors, strict=True):
        assert float(word) == pytest.approx(factor.relative_residual_trace / optimum, rel=0.01)
        assert float(word) > 1.0


def test_many_factors_are_told_apart(made: Made) -> None:
    page = render_factors([made("given", **GIVEN)] * 12, but=["residual"])
    assert Page(page).words.count("Side by side") == 3
    styles = {(colour, tuple(dash)) for colour, dash in map(line_style, range(MOST_LINES))}
    assert len(styles) == MOST_LINES
    for number in (0, MOST_LINES + 1):
        with pytest.raises(ParameterError, match=f"^{number} factors: give from 1 to {MOST_LINES}"):
            render_factors([made("given", **GIVEN)] * number)


# --- what is drawn ----------------------------------------------------------------------------------------------------


def test_the_curve_is_the_residual_path_and_marks_rounds(made: Made) -> None:
    factor = made("double", dtype="float64")
    curve = factor_curve(factor, "double")
    assert isinstance(curve, FactorCurve)
    np.testing.assert_array_equal(curve.relative, factor.residual_path / factor.residual_path[0])
    assert len(curve.ends) > 1
    assert [*curve.ends, curve.rank] == [record["stop"] for record in factor.config["rounds"]]


def test_what_is_rounding_is_called_so(made: Made) -> None:
    factor = made("greedy")
    path = factor.residual_path.copy()
    path[-2:] = 1e-9 * path[0]
    gone = replace(factor, arrays={**factor.arrays, "residual_path": path})
    curve = factor_curve(gone, "gone")
    assert isinstance(curve, FactorCurve)
    assert curve.vanished
    assert (curve.relative[-2:] == 2.0**-23).all()
    text = Page(render_factors([gone], but=["residual"])).text
    assert "only rounding errors left at rank 20" in text
    assert "are rounding errors, and are drawn there" in text


def test_the_bound_is_that_of_bounds(made: Made) -> None:
    factor = made("greedy")
    curve = bound_curve(factor, "greedy")
    assert isinstance(curve, BoundCurve)
    expected = compression_bound(factor.residual_path, 400, sizes=np.arange(21))
    np.testing.assert_array_equal(curve.bound, expected.values)
    assert (curve.best_size, curve.best) == (expected.best_size, expected.minimum)
    assert f"least at rank {curve.best_size}" in Page(render_factors([factor])).text
    assert not curve.vacuous


def test_the_bound_of_a_transformer_counts_rows_as_often_as_their_weights_say() -> None:
    weights = np.repeat([0.0, 1.0, 3.0], [150, 50, 200])
    model = KernelPCA(2, basis_size=20, lengthscale=1.5).fit(ROWS, sample_weight=weights).model_
    curve = bound_curve(model, "weighted")
    assert isinstance(curve, BoundCurve)
    expected = compression_bound(model.residual_path, 650, sizes=np.arange(21))
    np.testing.assert_array_equal(curve.bound, expected.values)


def test_a_bound_that_says_nothing_is_called_vacuous() -> None:
    few = factorize(ROWS[:3], n_components=3, **GIVEN)
    curve = bound_curve(few, "few")
    assert isinstance(curve, BoundCurve)
    assert curve.vacuous
    assert curve.size.tolist() == [0, 1, 2], "at rank m no row is left outside"
    assert "vacuous along the whole path" in Page(render_factors([few], but=["bound"])).text


def test_bounds_that_do_not_hold_are_not_drawn() -> None:
    unbounded = factorize(ROWS, n_components=5, kernel="polynomial")
    centres = factorize(ROWS, n_components=5, rule="kmeans", rule_options={"nearest": False})
    for factor, reason in ((unbounded, "kernel is not bounded"), (centres, "are no rows of the table")):
        found = bound_curve(factor, "")
        assert isinstance(found, Absent)
        assert reason in found.reason
        page = Page(render_factors([factor]))
        assert f"Compression bound: {found.reason}" in page.text
    mixed = Page(render_factors([factorize(ROWS, n_components=5), unbounded]))
    assert "1 factor is left out: k(x, x) has no largest value" in mixed.text
    assert "These factors differ in kernel or lengthscale" in mixed.text


def test_labels_tell_factors_apart(made: Made, tmp_path: Path) -> None:
    uniform, again = made("uniform", rule="uniform", **GIVEN), made("again", rule="uniform", random_state=1)
    assert factor_labels([uniform, made("greedy")]) == ["uniform", "few-sweep trace"]
    assert factor_labels([uniform, again]) == ["uniform (uniform)", "uniform (again)"]
    elsewhere = replace(again, path=tmp_path / "uniform")
    assert len(set(factor_labels([uniform, elsewhere, again, again]))) == 4


def test_what_differs_and_what_was_fitted(made: Made) -> None:
    given, median = made("given", **GIVEN), made("greedy")
    assert fitted_to_rows(given.record) == []
    assert fitted_to_rows(median.record) == ["the lengthscale", "the scaling"]
    assert differences([given, made("uniform", rule="uniform", **GIVEN)]) == []
    assert differences([given, median]) == ["kernel or lengthscale", "scaling"]
    assert differences([given, factorize(ROWS[:300], n_components=5, **GIVEN)]) == ["rows"]
    assert differences([given, factorize(ROWS + 1.0, n_components=5, **GIVEN)]) == ["table"]


# --- the PCA optimum --------------------------------------------------------------------------------------------------


def test_no_factor_is_below_the_optimum(made: Made) -> None:
    factor = made("greedy")
    found = pca_optimum([factor], open_table(ROWS.astype(np.float32)))
    curve = factor_curve(factor, "greedy")
    assert isinstance(found, PcaCurve)
    assert isinstance(curve, FactorCurve)
    assert found.relative[0] == pytest.approx(1.0)
    assert len(found.relative) == 21
    assert (curve.relative >= found.relative * (1.0 - 1e-6)).all()


def test_an_optimum_of_other_rows_is_refused(made: Made) -> None:
    factor = made("greedy")
    with pytest.raises(ParameterError, match="rows 0:399, the factor was made from rows 0:400"):
        pca_optimum([factor], open_table(ROWS[:399]))
    with pytest.raises(ParameterError, match=r"row \d+ of the table is not the one"):
        pca_optimum([factor], open_table(ROWS[::-1].copy()))
    with pytest.raises(ShapeError, match="was made from 3"):
        pca_optimum([factor], open_table(ROWS[:, :2].copy()))


def test_an_optimum_of_too_many_rows_is_left_out(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamkernel.report.facts.factors.PCA_ROWS", 399)
    factor = made("greedy")
    found = pca_optimum([factor], open_table(ROWS))
    assert isinstance(found, Absent)
    assert "there are 400 rows" in found.reason
    assert f"The PCA optimum is not drawn: {found.reason}." in Page(render_factors([factor], optimum=found)).text


# --- the files --------------------------------------------------------------------------------------------------------


def test_nothing_is_fetched_and_names_are_text(made: Made) -> None:
    nasty = "<script>alert(1)</script>$$\\frac{1}{2}$$"
    factor = made("greedy")
    evil = replace(factor, record=factor.record.changed(rule=nasty))
    text = render_factors([evil, factor], title=nasty, but=["residual", "sweeps"])
    page = Page(text)
    assert nasty in page.words
    assert "<script>alert" not in text
    assert not any(name == "src" or name.startswith("on") for name, _ in page.attributes)
    assert all(value.startswith("data:") for name, value in page.attributes if name == "href")
    found = re.findall(r'"type":"object","name":"(\w+)","id":"\w+","attributes":\{"text":"[^"]*frac', text)
    assert set(found) == {"PlainText"}


def test_a_factor_without_a_trace_or_a_record_has_a_page(made: Made) -> None:
    factor = made("greedy")
    path = np.zeros(21)
    config = {name: value for name, value in factor.config.items() if name not in ("run", "software", "rounds")}
    bare = Factor.from_config(config, {**factor.arrays, "residual_path": path})
    page = Page(render_factors([bare]))
    assert "Residual trace against rank: the trace of the kernel matrix is 0" in page.text
    assert "Time: no record of the sweeps was kept" in page.text
    assert Page(render_factors([bare, factor], but=["residual"])).panels == ["residual", "bound", "sweeps"]
    assert Page(render_factors([bare, bare])).panels == ["bound"]
    with pytest.raises(ParameterError, match="no factor has a residual trace"):
        draw_factor_png([bare], "never.png")


def test_the_file_is_whole_or_not_there(made: Made, tmp_path: Path) -> None:
    path = tmp_path / "factors.html"
    path.write_text("mine")
    with pytest.raises(StoreExistsError, match="ask for overwrite"):
        write_factor_report([made("greedy")], path)
    with pytest.raises(StoreNotFoundError, match="there is no folder"):
        write_factor_report([made("greedy")], tmp_path / "none" / "factors.html")
    with pytest.raises(StoreExistsError, match="is not a report of streamkernel"):
        write_factor_report([made("greedy")], path, overwrite=True)
    assert path.read_text() == "mine"
    path.unlink()
    with without_figures():
        write_factor_report([made("greedy")], path)
        write_factor_report([made("greedy")], path, overwrite=True, title="Mine")
    assert "<title>Mine</title>" in path.read_text()
    assert os.listdir(tmp_path) == ["factors.html"]


def test_the_picture_has_a_line_for_each(made: Made, tmp_path: Path) -> None:
    factors = [made("given", **GIVEN), made("uniform", rule="uniform", **GIVEN)]
    draw_factor_png(factors, tmp_path / "f.png", optimum=pca_optimum(factors, open_table(ROWS)))
    picture = imread(tmp_path / "f.png")[:, :, :3]
    assert picture.shape[1] == 720
    plot = picture[:, 100:]
    assert (plot[:, :, 2] - plot[:, :, 0] > 0.3).sum() > 500, "blue"
    assert (plot[:, :, 0] - plot[:, :, 2] > 0.5).sum() > 500, "orange"
