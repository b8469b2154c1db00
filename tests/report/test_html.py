"""The page: everything on it, nothing fetched, nothing executed that is not ours, there whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report.rendered import render, undrawn, without_figures

from streamkernel.errors import ParameterError, StoreExistsError, StoreNotFoundError
from streamkernel.models import RidgeModel
from streamkernel.report import draw_png, write_report
from streamkernel.report.figures import plot
from streamkernel.report.pages.document import html_of
from streamkernel.report.pages.kinds import page_of
from streamkernel.report.pages.parts import Section
from streamkernel.report.publish import PAGE, checked_output


class Page(HTMLParser):
    """Elements and text of a page, as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._inside:
            if self._inside[-1] == "script":
                self.scripts.append(data)
        elif data.strip():
            self.texts.append(data.strip())

    @property
    def text(self) -> str:
        return " ".join(self.texts)

    def panels(self) -> list[str]:
        return [found["id"] for tag, found in self.elements if tag == "article" and "id" in found]


def test_all_panels_of_a_regression(regression: RidgeModel) -> None:
    page = Page(undrawn(regression))
    assert page.panels() == ["trace", "gcv", "lengthscale", "predictions-1", "residuals", "time", "memory"]
    assert "Not drawn" not in page.text
    assert f"{len(regression.arrays['check_true'])} held-out rows: RMSE" in page.text
    for label in (
        "Rows",
        "Basis functions",
        "Residual trace",
        "Alpha",
        "GCV error",
        "Peak memory",
        "Fingerprint of the table",
    ):
        assert label in page.texts


def test_all_panels_of_a_classifier(classifier: RidgeModel) -> None:
    page = Page(undrawn(classifier))
    assert page.panels() == ["trace", "gcv", "confusion", "margins", "time", "memory"]
    assert "Choice of the lengthscale: the lengthscale is the median distance" in page.text


def test_the_first_of_several_targets_and_a_table_of_all(several: RidgeModel) -> None:
    page = Page(undrawn(several))
    assert [name for name in page.panels() if name.startswith("predictions")] == [
        f"predictions-{k}" for k in (1, 2, 3, 4)
    ]
    assert "The first 4 of 6 targets are drawn." in page.text
    assert "y5" in page.texts


def test_training_rows_are_called_so(fitted: Callable[..., RidgeModel]) -> None:
    X = np.random.default_rng(0).standard_normal((60, 2))
    text = Page(undrawn(fitted(X, X[:, 0]))).text
    assert re.search(r"\d+ training rows, as none were held out", text)
    assert "held-out rows" not in text


def test_names_of_the_users_are_text_and_never_markup(
    classifier: RidgeModel, changed: Any, nasty: tuple[str, ...]
) -> None:
    columns = [*nasty[:3]]
    page = undrawn(changed(classifier, {"columns": columns}), title=nasty[1], but=["confusion", "margins"])
    parsed = Page(page)
    assert not any(tag == "img" for tag, _ in parsed.elements)
    assert sum(tag == "script" for tag, _ in parsed.elements) == 2
    assert nasty[0] in parsed.text
    assert nasty[1] in parsed.texts
    assert "\x00" not in page
    assert "\u202e" not in page
    # In the figures they are inside a JavaScript string, in which Bokeh wants them escaped too.
    assert "<script>alert" not in parsed.scripts[-1]


def test_names_that_look_like_tex_are_plain_text(classifier: RidgeModel) -> None:
    found = re.findall(
        r'"type":"object","name":"(\w+)","id":"\w+","attributes":\{"text":"[^"]*frac',
        undrawn(classifier, but=["confusion", "margins"]),
    )
    assert found
    assert set(found) == {"PlainText"}


def test_nothing_is_fetched(regression: RidgeModel) -> None:
    page = undrawn(regression, but=["trace", "gcv"])
    parsed = Page(page)
    for tag, attributes in parsed.elements:
        assert "src" not in attributes, tag
        assert attributes.get("href", "data:").startswith("data:"), tag
        assert not any(name.startswith("on") for name in attributes), tag
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    policy = next(found["content"] for tag, found in parsed.elements if "http-equiv" in found)
    assert "default-src 'none'" in policy
    assert "http" not in policy.replace("http-equiv", "")
    # The policy lets these scripts run, and no other.
    allowed = re.findall(r"'sha256-([^']+)'", policy)
    assert allowed == [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in parsed.scripts]
    assert "unsafe-inline" not in policy.split("style-src")[0]


def test_other_pairs_take_the_place_of_the_check_rows(regression: RidgeModel) -> None:
    pairs = {"kind": "rows 0:3 of <b>store</b>", "true": np.zeros((3, 1)), "predicted": np.ones((3, 1))}
    page = Page(undrawn(regression, pairs=pairs))
    assert "3 rows (rows 0:3 of <b>store</b>): RMSE 1.00" in page.text
    assert "R² undefined, as the target is constant" in page.text


# --- what is hard to draw ---------------------------------------------------------------------------------------------


def test_a_model_with_nothing_to_draw_says_why(regression: RidgeModel, changed: Any) -> None:
    bare = changed(
        regression,
        {
            "certificate": {"trace": 0.0, "residual_trace": 0.0, "relative_residual_trace": 0.0},
            "lengthscale_choice": None,
        },
        without=("check_true", "check_predicted", "gcv_scores", "run", "software"),
    )
    page = Page(undrawn(bare))
    assert page.panels() == []
    assert page.scripts == []
    reasons = [tag for tag, attributes in page.elements if attributes.get("class") == "reason"]
    assert len(reasons) == 6 + 1, "and one that stands where there are no scripts"
    assert "Not drawn" not in page.text
    assert "Software" not in page.texts


def test_no_heading_stands_over_reasons_alone(regression: RidgeModel) -> None:
    """The page gives the reason for a missing figure at its end, once, without a heading that promises a picture."""
    whole = page_of(regression)
    alone = Section("Alone", [None, plot.Missing("One", "it is not")])
    with without_figures():
        page = html_of(replace(whole, sections=[alone, *whole.sections]))
        assert "<h2>Notes</h2>" not in html_of(whole)
    assert "<h2>Alone</h2>" not in page
    assert page.count("One: it is not.") == page.count("<h2>Notes</h2>") == 1
    assert page.index("<h2>Cost</h2>") < page.index("One: it is not.") < page.index("<h2>Settings and software</h2>")


def test_zero_residual(regression: RidgeModel, changed: Any) -> None:
    path = np.zeros_like(regression.arrays["residual_path"])
    path[0] = regression.arrays["residual_path"][0]
    exact = {"trace": path[0], "residual_trace": 0.0, "relative_residual_trace": 0.0}
    page = undrawn(changed(regression, {"certificate": exact}, {"residual_path": path}), but=["trace"])
    assert "zero to rounding" in page


@pytest.mark.parametrize("alpha", [0.0, 1e30])
def test_alpha_that_was_given(regression: RidgeModel, changed: Any, alpha: float) -> None:
    settings = {**regression.config["settings"], "alpha": alpha}
    page = Page(undrawn(changed(regression, {"alpha": alpha, "settings": settings})))
    assert "Alpha was given, not searched for." in page.text
    assert ("a logarithmic axis cannot show" in page.text) == (alpha == 0.0)


def test_equal_predictions_and_infinite_ones(regression: RidgeModel, changed: Any) -> None:
    true = regression.arrays["check_true"]
    for value in (0.0, 1e300):
        equal = changed(regression, arrays={"check_predicted": np.full_like(true, value)})
        assert "predictions-1" in Page(undrawn(equal, but=["predictions-1", "residuals"])).panels()
    page = Page(undrawn(changed(regression, arrays={"check_predicted": np.full_like(true, np.inf)})))
    assert "no prediction of y is finite" in page.text


def test_many_rows_are_drawn_as_a_density_of_bounded_size(regression: RidgeModel) -> None:
    true = np.random.default_rng(0).standard_normal((200_000, 1))
    pairs = {"kind": "held-out", "true": true, "predicted": true + 0.1}
    page = undrawn(regression, pairs=pairs, but=["predictions-1", "residuals"])
    assert "darker where there are more" in page
    assert len(page) < 2_500_000


def test_many_sweeps_and_resumed_ones(regression: RidgeModel, changed: Any) -> None:
    sweep = {"name": "look", "seconds": 0.5, "rows": 10, "tasks": 1, "resumed": True}
    for number, drawn in ((1, ()), (500, ("trace", "time", "memory"))):
        run = {**regression.config["run"], "seconds": 1.0, "sweeps": [sweep] * number}
        rounds = [
            {"start": k, "stop": k + 1, "residual_trace": None, "candidates": 9, "scoring_rows": 9}
            for k in range(number)
        ]
        page = Page(undrawn(changed(regression, {"run": run, "rounds": rounds}), but=drawn))
        assert "taken from a checkpoint" in page.texts
        assert "time" in page.panels()


def test_one_row_one_function_and_thousands_of_columns(fitted: Callable[..., RidgeModel]) -> None:
    rng = np.random.default_rng(0)
    one = fitted(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 2.0]), n_components=1, lengthscale=1.0)
    assert "1 basis function, fitted to 2 rows" in Page(undrawn(one)).text
    single = fitted(np.array([[1.0, 2.0]]), np.array([1.0]), n_components=1, lengthscale=1.0)
    assert "fitted to 1 row of 2 features" in Page(render(single)).text
    X = rng.standard_normal((30, 3000))
    wide = undrawn(fitted(X, X[:, 0], n_components=5))
    assert "and 2,988 more" in wide
    assert len(wide) < 2_000_000


def test_constant_target_and_kernels_without_a_lengthscale(fitted: Callable[..., RidgeModel]) -> None:
    X = np.random.default_rng(0).standard_normal((50, 3))
    assert "as the target is constant" in Page(undrawn(fitted(X, np.full(50, 7.0), n_components=5))).text
    linear = Page(undrawn(fitted(X, X[:, 0], kernel="linear", n_components=3)))
    assert "Linear kernel on 3 basis functions" in linear.text
    assert "the kernel has no lengthscale" in linear.text
    each = Page(undrawn(fitted(X, X[:, 0], lengthscale=[1.0, 2.0, 3.0], n_components=3)))
    assert "1.00 to 3.00" in each.text


def test_a_single_class_on_the_check_rows(classifier: RidgeModel, changed: Any) -> None:
    true = np.zeros_like(classifier.arrays["check_true"])
    true[:, 0] = 1.0
    one = changed(classifier, arrays={"check_true": true, "check_predicted": true})
    page = Page(undrawn(one, but=["confusion", "margins"]))
    assert "are right" in page.text


# --- the file ---------------------------------------------------------------------------------------------------------


def test_an_existing_file_is_replaced_only_when_asked(regression: RidgeModel, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(StoreExistsError, match="exists; choose another path or ask for overwrite"):
        write_report(regression, path)
    with pytest.raises(StoreExistsError, match="is not a report of streamkernel"):
        write_report(regression, path, overwrite=True)
    assert path.read_text() == "mine"
    path.write_bytes(PAGE)
    with without_figures():
        write_report(regression, path, overwrite=True, title="A title")
    assert "<title>A title</title>" in path.read_text()
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_missing_folder_and_a_folder_are_refused_before_any_work(
    regression: RidgeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamkernel.report.pages.document.html_of", lambda *_, **__: pytest.fail("work was done"))
    with pytest.raises(StoreNotFoundError, match="there is no folder"):
        write_report(regression, tmp_path / "none" / "report.html")
    with pytest.raises(StoreExistsError, match="is a folder"):
        write_report(regression, tmp_path, overwrite=True)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["r.txt", "r.pdf", "r.png", "r.html.gz", "model.zarr"])
def test_the_suffix_of_another_kind_of_file_is_refused_before_any_work(
    regression: RidgeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("streamkernel.report.pages.document.html_of", lambda *_, **__: pytest.fail("work was done"))
    for place in (tmp_path / name, f"s3://bucket/pages/{name}"):
        with pytest.raises(ParameterError, match=r"choose a name that ends in \.html or \.htm .*draw_png") as refused:
            write_report(regression, place)
        assert str(refused.value).startswith(f"{name}: ")
    with pytest.raises(ParameterError, match=r"m\.svg: a picture is written as PNG; choose a name that ends in \.png"):
        draw_png(regression, tmp_path / "m.svg")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["page", "page.HTM", ".html", "v1.2.html"])
def test_other_names_are_taken(name: str, tmp_path: Path) -> None:
    assert checked_output(tmp_path / name, overwrite=False) == tmp_path / name


def test_a_failure_leaves_the_old_file_and_nothing_else(
    regression: RidgeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(PAGE)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with without_figures(), pytest.raises(OSError, match="No space left"):
        write_report(regression, path, overwrite=True)
    assert path.read_bytes() == PAGE
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_file_made_meanwhile_is_not_replaced(
    regression: RidgeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"

    def slow(*_: Any, **__: Any) -> str:
        path.write_text("theirs")
        return "ours"

    monkeypatch.setattr("streamkernel.report.pages.document.html_of", slow)
    with pytest.raises(StoreExistsError):
        write_report(regression, path)
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["report.html"]


def test_without_bokeh_the_extra_is_named(
    regression: RidgeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamkernel.report.find_spec", lambda name: None)
    with pytest.raises(ParameterError, match=r"bokeh is not installed.*pip install streamkernel\[report\]"):
        write_report(regression, tmp_path / "report.html")
    assert importlib.util.find_spec("bokeh") is not None


def test_a_full_disk_replaces_no_file_made_meanwhile(
    regression: RidgeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a file system without hard links is written by a rename."""
    path = tmp_path / "report.html"

    def full(_: int) -> None:
        path.write_text("theirs")
        monkeypatch.undo()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with without_figures(), pytest.raises(OSError, match="No space left"):
        write_report(regression, path)
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["report.html"]
