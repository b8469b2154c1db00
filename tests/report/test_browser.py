"""The page in a browser without a network: every figure is there, and the console has no complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from streamkernel.models import RidgeModel
from streamkernel.models.predicting import PredictingModel
from streamkernel.report import write_report

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDTH, HEIGHT = 1280, 2600

browser = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(browser is None, reason=f"no browser to look with (none of {', '.join(NAMES)})")


def look(page: Path, folder: Path) -> tuple[np.ndarray, list[str]]:
    """A picture of the page and what was written to the console."""
    assert browser is not None
    picture = folder / "page.png"
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars", "--enable-logging=stderr",
        f"--user-data-dir={folder / 'profile'}", f"--window-size={WIDTH},{HEIGHT}", "--virtual-time-budget=8000",
        f"--screenshot={picture}", page.as_uri(),
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    said = re.findall(r'CONSOLE[:(]\d+\)?\] "(.*?)", source', run.stderr, flags=re.DOTALL)
    return imread(picture)[:, :, :3], said


OTHERS = ("committee", "pursuit", "gaussian", "classifier", "several", "labels", "counts", "svc", "svr")


@pytest.mark.parametrize("name", ["regression", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_figures_are_drawn_and_nothing_goes_wrong(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    model: PredictingModel = request.getfixturevalue(name)
    page = tmp_path / "report.html"
    write_report(model, page)
    picture, said = look(page, tmp_path)
    # Bokeh greets once; an error of a script, a refused request or a typesetter that is missed would be more.
    assert said
    assert [line for line in said if "setting log level" not in line] == []
    # Curves, bars and points in blue, left and right, each far wider than the samples in a legend: not empty frames.
    blue = (picture[:, :, 2] - picture[:, :, 0] > 0.2) & (picture[:, :, 2] > 0.4)
    for side in np.split(blue, 2, axis=1):
        widths = [int(band.any(axis=0).sum()) for band in np.array_split(side[300:], 20)]
        assert sum(width > 100 for width in widths) >= 3, widths
    # Nothing reaches beyond the right edge of the window.
    assert np.ptp(picture[:, -1].reshape(-1)) < 0.1


@pytest.mark.slow
def test_the_test_would_see_a_broken_page(regression: RidgeModel, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_report(regression, page)
    broken = page.read_text().replace("'sha256-", "'sha256-x")
    page.write_text(broken)
    picture, said = look(page, tmp_path)
    blue = (picture[:, :, 2] - picture[:, :, 0] > 0.2) & (picture[:, :, 2] > 0.4)
    assert max(int(band.any(axis=0).sum()) for band in np.array_split(blue[300:], 20)) < 100
    assert any("Content Security Policy" in line for line in said)
