"""Rows on the pages of kernel PCA and CCA: components and variates as points, and correlations on other rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report.rendered import render, undrawn
from report.test_html import Page

from streamkernel import KernelCCA, KernelPCA, open_table
from streamkernel.cli import main
from streamkernel.errors import ParameterError, ShapeMismatchError
from streamkernel.report.facts.subspace import held_correlations, projected
from streamkernel.report.figures import plot
from streamkernel.report.figures.subspace import components_figure, correlations_figure, variates_figure
from streamkernel.report.pages import page_of

RNG = np.random.default_rng(4)
X = RNG.standard_normal((500, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2]) + 0.3 * RNG.standard_normal((500, 2))


@pytest.fixture(scope="module")
def cca() -> Any:
    return KernelCCA(2, basis_size=20, lengthscale=1.0).fit(X[:300], Y[:300])


@pytest.fixture(scope="module")
def pca() -> Any:
    return KernelPCA(n_components=4).fit(X[:300])


def _drawn(figure: Any) -> plot.Figure:
    assert isinstance(figure, plot.Figure)
    return figure


def _variates(cca: Any) -> dict[str, Any]:
    u, v = cca.transform(X[300:], Y[300:])
    return {"kind": "rows 300:500", "variates": u, "variates_y": v}


def test_correlations_are_those_of_the_rows(cca: Any) -> None:
    pairs = _variates(cca)
    found = held_correlations(projected(pairs, ("variates", "variates_y")))
    assert found is not None
    u, v = pairs["variates"], pairs["variates_y"]
    expected = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(u.T, v.T, strict=True)])
    np.testing.assert_allclose(found.correlation, expected, rtol=1e-10)
    np.testing.assert_allclose(found.standard_error, (1 - expected**2) / np.sqrt(197), rtol=1e-10)
    page = Page(render(cca.model_, pairs=pairs))
    text = " ".join(page.texts)
    assert f"{expected[0]:.3f} ± {found.standard_error[0]:.2g}" in text
    assert "200 rows (rows 300:500)" in text


def test_the_standard_error_is_the_spread_over_samples() -> None:
    found = []
    for _ in range(500):
        u = RNG.standard_normal((100, 1))
        v = 0.8 * u + 0.6 * RNG.standard_normal((100, 1))
        one = held_correlations(projected({"kind": "", "a": u, "b": v}, ("a", "b")))
        assert one is not None
        found.append((one.correlation[0], one.standard_error[0]))
    r, se = np.transpose(found)
    assert se.mean() == pytest.approx(r.std(), rel=0.12)


def test_few_or_constant_rows_have_no_correlation() -> None:
    few = projected({"kind": "", "a": np.ones((3, 1)), "b": np.ones((3, 1))}, ("a", "b"))
    assert held_correlations(few) is None
    constant = held_correlations(projected({"kind": "", "a": np.ones((9, 1)), "b": np.ones((9, 1))}, ("a", "b")))
    assert constant is not None
    assert constant.correlation.tolist() == [0.0]


def test_negative_correlations_stay_on_the_axis() -> None:
    u = RNG.standard_normal((50, 1))
    held = held_correlations(projected({"kind": "", "a": u, "b": -u}, ("a", "b")))
    figure = _drawn(correlations_figure(np.array([0.9]), np.array([0.8]), held))
    assert figure.y.limits[0] <= -1.0


def test_components_are_drawn_in_the_colours_of_labels_and_targets(pca: Any) -> None:
    scores = np.asarray(pca.transform(X[300:]))
    pairs = {"kind": "new rows", "scores": scores}
    figure = _drawn(components_figure(projected(pairs, ("scores",))))
    [points] = figure.series
    assert isinstance(points, plot.Points)
    np.testing.assert_array_equal(points.x, scores[:, 0])
    np.testing.assert_array_equal(points.y, scores[:, 1])
    labels = np.array([f"label {each % 12}" for each in range(200)])
    figure = _drawn(components_figure(projected({**pairs, "label": labels}, ("scores",))))
    assert len(figure.keys) == 8
    assert figure.keys[-1][2] == "5 others"
    figure = _drawn(components_figure(projected({**pairs, "target": X[300:, 0], "target_name": "<b>"}, ("scores",))))
    assert "rank of <b>" in figure.caption
    assert "&lt;b&gt;" in undrawn(pca.model_, pairs={**pairs, "target": X[300:, 0], "target_name": "<b>"})
    one = _drawn(components_figure(projected({"kind": "", "scores": scores[:, :1]}, ("scores",))))
    assert one.x.label == "Row"


def test_without_rows_there_is_no_scatter_and_no_word_of_it(pca: Any, cca: Any) -> None:
    for model in (pca.model_, cca.model_):
        names = [each.name for section in page_of(model).sections for each in section.figures if hasattr(each, "name")]
        assert not {"scatter", "variates"} & set(names)
    assert _drawn(correlations_figure(np.array([0.9]), np.array([0.8]))).y.limits[0] == 0.0


def test_rows_that_are_not_finite_are_left_out() -> None:
    scores = np.array([[1.0, 2.0], [np.nan, 0.0], [3.0, 4.0]])
    found = projected({"kind": "", "scores": scores, "label": ["a", "b", "c"]}, ("scores",))
    assert found.first.shape == (2, 2)
    assert found.labels == ("a", "c")
    empty = projected({"kind": "", "scores": np.full((2, 2), np.nan)}, ("scores",))
    assert isinstance(components_figure(empty), plot.Missing)
    assert isinstance(variates_figure(empty), plot.Missing)


def test_bad_input(pca: Any, cca: Any) -> None:
    with pytest.raises(ParameterError, match="pairs lacks scores; give kind, scores"):
        render(pca.model_, pairs={"kind": "x", "true": X[:, 0], "predicted": X[:, 0]})
    with pytest.raises(ParameterError, match="pairs lacks kind, variates_y; give kind, variates and variates_y"):
        render(cca.model_, pairs={"variates": X})
    with pytest.raises(ShapeMismatchError, match="variates_y has shape"):
        render(cca.model_, pairs={"kind": "x", "variates": X[:, :2], "variates_y": X})
    with pytest.raises(ShapeMismatchError, match="pairs have 3 variates of a view, the model 2"):
        render(cca.model_, pairs={"kind": "x", "variates": X, "variates_y": X})
    with pytest.raises(ShapeMismatchError, match="label has shape"):
        render(pca.model_, pairs={"kind": "x", "scores": X, "label": ["a"]})


def test_the_command_draws_rows_of_a_table(pca: Any, cca: Any, tmp_path: Path, capsys: Any) -> None:
    np.savez(tmp_path / "rows.npz", X=X, y=Y)
    np.savez(tmp_path / "alone.npz", X=X)
    for name in ("rows", "alone"):
        assert main(["ingest", str(tmp_path / f"{name}.npz"), str(tmp_path / name)]) == 0
    for name, model in (("pca", pca), ("cca", cca)):
        model.save(tmp_path / name)
        page = tmp_path / f"{name}.html"
        assert (
            main(["report", str(tmp_path / name), str(page), "--data", str(tmp_path / "rows"), "--rows", "300:"]) == 0
        )
        text = " ".join(Page(page.read_text(encoding="utf-8")).texts)
        assert "200 rows (rows 300:500 of rows)" in text
    capsys.readouterr()
    alone = ["report", str(tmp_path / "cca"), str(tmp_path / "no.html"), "--data", str(tmp_path / "alone")]
    assert main(alone) == 1
    assert "has no second view: give a table whose targets are that view" in capsys.readouterr().err
    assert open_table(tmp_path / "alone").n_targets == 0
