"""The page in a browser: what it shows of models, what its form predicts, what it asks for, what it keeps to itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from service.browser import Browser, missing

from streamkernel import KernelBoostingClassifier, KernelOneClass
from streamkernel.service import Settings

pytestmark = pytest.mark.skipif(missing is not None, reason=missing or "")

TOKEN = "correct-horse-battery"
CARDS = "document.querySelectorAll('article.model')"
DRAWN = "document.querySelectorAll('.chart .curve').length === 5"


@pytest.fixture(scope="module")
def window(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for all tests of a theme; each service has a port, and so an origin, of its own."""
    with Browser(tmp_path_factory.mktemp("browser"), 1280, 1400, dark=request.param) as found:
        yield found


@pytest.fixture
def page(window: Browser) -> Browser:
    window.complaints()
    return window


LIGHT = pytest.mark.parametrize("window", [False], indirect=True)
THEMES = pytest.mark.parametrize(
    ("window", "dark"), [(False, False), pytest.param(True, True, marks=pytest.mark.slow)], indirect=["window"]
)


def card(name: str) -> str:
    return f"[...{CARDS}].find((each) => each.querySelector('.name').textContent === '{name}')"


@THEMES
def test_models_are_shown_and_predict(
    page: Browser, dark: bool, models: Path, estimators: dict[str, Any], live: Any, tmp_path: Path
) -> None:
    running = live(Settings(models))
    page.open(running.url)
    page.wait_for(DRAWN)
    # The ones that serve, and one that cannot, which says why.
    assert page.run(f"return {CARDS}.length") == 6
    assert "not a model that predicts" in page.run(f"return {card('features')}.querySelector('.problem').textContent")
    told = page.run(f"return {card('ridge')}.innerText")
    assert f"{estimators['ridge'].relative_residual_trace_ * 100:.3g} %" in told.replace("\u2009", " ")
    assert "800" in told
    assert page.run(f"return {card('gp')}.querySelector('svg').getAttribute('aria-label')").startswith("With ")
    # The form is filled with a basis row, and its answer is the model's.
    page.run(f"{card('gp')}.querySelector('details').open = true; {card('gp')}.querySelector('form').requestSubmit()")
    answer = page.wait_for(f"{card('gp')}.querySelector('.answer').textContent")
    point = np.array([[float(f"{value:.6g}") for value in estimators["gp"].components_[0]]])
    mean, std = estimators["gp"].predict(point, return_std=True)
    assert answer == f"{mean[0]:.6g} ± {std[0]:.3g} one standard deviation"
    form = f"{card('gp-classifier')}.querySelector('form')"
    page.run(f"{card('gp-classifier')}.querySelector('details').open = true; {form}.requestSubmit()")
    page.wait_for(f"{card('gp-classifier')}.querySelectorAll('.bars .bar').length === 3")
    picture = tmp_path / "page.png"
    page.picture(picture)
    drawn = imread(picture)[:, :, :3]
    # Ink on paper, or the other way round, in the theme that was asked for; nothing beyond the right edge.
    assert (np.median(drawn) < 0.3) == dark
    assert np.ptp(drawn[:, -1].reshape(-1)) < 0.1
    assert page.complaints() == []


@pytest.mark.slow
@LIGHT
def test_what_a_model_has_not_is_not_shown(page: Browser, live: Any, tmp_path: Path) -> None:
    """A vote of machines leaves no trace of a kernel matrix, and one class has no target."""
    X = np.random.default_rng(0).standard_normal((300, 2))
    given: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "random_state": 0}
    KernelBoostingClassifier(members=2, member_rows=50, **given).fit(X, X[:, 0] > 0.0).save(tmp_path / "vote")
    KernelOneClass(10, **given).fit(X).save(tmp_path / "one")
    page.open(live(Settings(tmp_path)).url)
    page.wait_for(f"{CARDS}.length === 2 && [...{CARDS}].every((each) => each.querySelector('.facts').children.length)")
    vote, one = (page.run(f"return {card(name)}.innerText") for name in ("vote", "one"))
    assert "Residual trace" not in vote
    assert "Functions" in vote
    assert "Target" in vote
    assert "Residual trace against basis functions" in one
    assert "Target" not in one
    assert page.complaints() == []


@LIGHT
def test_wrong_values_are_marked(page: Browser, models: Path, live: Any) -> None:
    page.open(live(Settings(models)).url)
    page.wait_for(DRAWN)
    first = f"{card('ridge')}.querySelector('input')"
    page.run(f"{card('ridge')}.querySelector('details').open = true; {first}.value = 'x1'")
    page.run(f"{card('ridge')}.querySelector('form').requestSubmit()")
    assert page.wait_for(f"{card('ridge')}.querySelector('.answer.failed').textContent") == "x0 is not a number"
    assert page.run(f"return document.activeElement === {first} && {first}.getAttribute('aria-invalid')") == "true"
    # The page shows the service's own words for what it refuses.
    page.run(f"{first}.value = '1e300'; {card('ridge')}.querySelector('form').requestSubmit()")
    page.wait_for(f"{card('ridge')}.querySelector('.answer.failed').textContent.includes('overflows')")


@LIGHT
def test_changes_show_without_a_reload(page: Browser, models: Path, estimators: dict[str, Any], live: Any) -> None:
    page.open(live(Settings(models)).url)
    page.wait_for(DRAWN)
    page.run(f"{card('ridge')}.querySelector('details').open = true; {card('ridge')}.querySelector('input').focus()")
    page.run("document.activeElement.value = '0.125'")
    estimators["gp"].save(models / "ridge", overwrite=True)
    estimators["two"].save(models / "added")
    page.wait_for(f"{card('ridge')}.querySelector('.generation').textContent.startsWith('generation 2')")
    page.wait_for(card("added"))
    assert "Gaussian process" in page.run(f"return {card('ridge')}.querySelector('.kind').textContent")
    # Who is typing is not disturbed.
    assert page.run(f"return document.activeElement === {card('ridge')}.querySelector('input')")
    assert page.run("return document.activeElement.value") == "0.125"
    assert page.run("return document.getElementById('n-reloads').textContent") == "1"


@pytest.mark.slow
@LIGHT
def test_a_place_that_cannot_be_seen_is_told(page: Browser, models: Path, live: Any) -> None:
    page.open(live(Settings(models)).url)
    page.wait_for(DRAWN)
    assert page.run("return document.getElementById('stale').hidden")
    models.rename(models.with_name("away"))
    told = page.wait_for("!document.getElementById('stale').hidden && document.getElementById('stale').textContent")
    assert "the folder of models cannot be read" in told
    assert page.run("return document.getElementById('status-text').textContent") == "stale"
    assert page.run(f"return {CARDS}.length") == 6
    models.with_name("away").rename(models)
    page.wait_for("document.getElementById('stale').hidden")


@LIGHT
def test_the_token_is_asked_for_and_kept_in_the_tab(page: Browser, models: Path, live: Any) -> None:
    page.open(live(Settings(models, token=TOKEN)).url)
    page.wait_for("!document.getElementById('token-form').hidden")
    assert page.run(f"return {CARDS}.length") == 0
    page.keys("#token", "not the token\n")
    page.wait_for("!document.getElementById('token-wrong').hidden")
    page.keys("#token", f"{TOKEN}\n")
    page.wait_for(DRAWN)
    assert page.run("return [sessionStorage.length, localStorage.length, document.cookie]") == [1, 0, ""]
    assert TOKEN not in page.run("return document.documentElement.outerHTML + location.href")


@LIGHT
def test_the_keyboard_reaches_everything(page: Browser, models: Path, live: Any) -> None:
    page.open(live(Settings(models / "ridge")).url)
    page.wait_for("document.querySelectorAll('.chart .curve').length === 1")
    page.keys("summary", "\ue007")  # Enter
    page.wait_for("document.querySelector('details').open")
    page.keys("article form input:first-of-type", "\ue007")
    page.wait_for("document.querySelector('.answer').textContent")
    assert page.run("return [...document.querySelectorAll('input')].every((each) => each.labels.length === 1)")


@LIGHT
def test_nothing_of_elsewhere_is_asked_for(page: Browser, models: Path, live: Any) -> None:
    running = live(Settings(models))
    page.open(running.url)
    page.wait_for(DRAWN)
    asked = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert len(asked) > 5
    assert all(name.startswith(running.url) for name in asked)
    # What a script of another's would do is not done.
    page.run(
        "const script = document.createElement('script'); script.textContent = 'window.broken = true';"
        "document.body.append(script)"
    )
    assert page.run("return window.broken === undefined")
    assert any("Content Security Policy" in line for line in page.complaints())
