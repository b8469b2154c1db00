"""The small picture."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.image import imread
from matplotlib.text import Text
from slow_cases import slow_but

from streamkernel.errors import ParameterError, StoreNotFoundError
from streamkernel.models import RidgeModel
from streamkernel.report import draw_png
from streamkernel.report.matplotlib_renderer import png_of
from streamkernel.report.pages import picture_of


@pytest.mark.parametrize("name", slow_but(["regression", "svc"], ["regression", "classifier", "svc", "svr"]))
def test_three_figures_with_something_in_each(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    draw_png(request.getfixturevalue(name), tmp_path / "fit.png")
    picture = imread(tmp_path / "fit.png")[:, :, :3]
    height, width = picture.shape[:2]
    assert width == 720
    for third in np.split(picture[height % 3 :], 3):
        bluish = (third[:, :, 2] - third[:, :, 0] > 0.1).mean()
        assert 0.001 < bluish < 0.9
    assert os.listdir(tmp_path) == ["fit.png"]


def test_the_callers_matplotlib_is_left_as_it_was(regression: RidgeModel, tmp_path: Path) -> None:
    before = dict(rcParams)
    draw_png(regression, tmp_path / "fit.png")
    assert dict(rcParams) == before


def many_classes() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((200, 2)), rng.integers(0, 30, 200).astype(str)


ZERO = {"trace": 0.0, "residual_trace": 0.0, "relative_residual_trace": 0.0}
FLAT = np.zeros((500, 1))
HARD: dict[str, Callable[..., RidgeModel]] = {
    "many classes": lambda regression, changed, fitted: fitted(*many_classes(), classify=True),
    "zero": lambda regression, changed, fitted: changed(
        regression, {"certificate": ZERO}, without=("gcv_scores", "check_true")
    ),
    "alpha of 0": lambda regression, changed, fitted: changed(regression, {"alpha": 0.0}),
    "flat": lambda regression, changed, fitted: changed(
        regression, arrays={"check_true": FLAT, "check_predicted": FLAT}
    ),
    "no TeX": lambda regression, changed, fitted: changed(regression, {"target_names": ["$\\nonsense{ 漢字"]}),
}


@pytest.mark.parametrize("case", slow_but(HARD.keys() - {"alpha of 0", "many classes"}, HARD))
def test_what_is_hard_to_draw(
    case: str, regression: RidgeModel, changed: Any, fitted: Callable[..., RidgeModel], tmp_path: Path
) -> None:
    draw_png(HARD[case](regression, changed, fitted), tmp_path / "fit.png")


@pytest.mark.slow
def test_several_targets_are_drawn(several: RidgeModel, tmp_path: Path) -> None:
    draw_png(several, tmp_path / "fit.png")


def test_errors(regression: RidgeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreNotFoundError):
        draw_png(regression, tmp_path / "none" / "fit.png")
    monkeypatch.setattr("streamkernel.report.find_spec", lambda name: None)
    with pytest.raises(ParameterError, match=r"matplotlib is not installed.*pip install streamkernel\[png\]"):
        draw_png(regression, tmp_path / "fit.png")


def test_letters_can_be_read_on_a_phone(regression: RidgeModel, svc: Any, pursuit: Any) -> None:
    """A picture of 720 pixels is shown on 380, where letters have 11 pixels at least."""
    for model in (regression, svc, pursuit):
        lead, figures = picture_of(model)
        with patch.object(Text, "draw", autospec=True) as draw:
            png_of(figures, 2.9, lead)
        sizes = [call.args[0].get_fontsize() for call in draw.call_args_list]
        assert min(sizes) / 72 * 144 * 380 / 720 > 11.0
