"""Pages of models that predict distributions: what is read out of them, and that all of it is drawn."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gaussian_models import Drawn, committee_of, counts_of, gaussian_of, labels_of, with_parts, with_tuning
from matplotlib.image import imread
from report.rendered import render, undrawn, without_figures
from scipy import stats

from streamkernel.errors import ShapeMismatchError
from streamkernel.models import RidgeModel
from streamkernel.report import draw_png, write_report
from streamkernel.report.facts.calibration import (
    CountCheck,
    GaussianCheck,
    ProbabilityCheck,
    binomial_band,
    distribution_check,
    row_intervals,
)
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.tuning import freedom_curve, lengthscales, member_weights, tuning_path
from streamkernel.report.pages.gaussian import calibration_notice


def panels(page: str) -> list[str]:
    return re.findall(r'<article class="panel" id="([^"]+)"', page)


def cards(page: str) -> dict[str, str]:
    """Labels and values, whose standard errors are in smaller type."""
    plain = re.sub("</?small>", "", page)
    return dict(re.findall(r'<dt>([^<]*)</dt><dd class="value">([^<]*)</dd>', plain))


def words(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page[: page.rindex("</footer>")]))


# ----------------------------------------------------------------------------------------------------- what is read out
def test_distributions_of_a_gaussian_process(gaussian: Drawn) -> None:
    check = distribution_check(gaussian)
    assert isinstance(check, GaussianCheck)
    true, mean, std = (gaussian.arrays[f"check_{name}"] for name in ("true", "predicted", "std"))
    assert (check.count, check.where) == (1000, "held-out rows")
    assert check.calibration.scalars["nlpd"] == pytest.approx(-stats.norm(mean, std).logpdf(true).mean())
    assert check.calibration.scalars["coverage95"] == pytest.approx((np.abs(true - mean) <= 1.959964 * std).mean())
    # Friedman's rows are not drawn from a Gaussian process; with the noise they do have, its intervals nearly hold.
    assert 0.92 < check.calibration.scalars["coverage95"] < 0.98
    assert check.transform.sum() == 1000


def test_rows_with_bars_go_from_the_least_prediction_to_the_largest(gaussian: Drawn) -> None:
    found = row_intervals(gaussian)
    assert found is not None
    assert len(found.true) == 80
    assert (np.diff(found.predicted) >= 0).all()
    predicted = gaussian.arrays["check_predicted"][:, 0]
    assert (found.predicted[0], found.predicted[-1]) == (predicted.min(), predicted.max())
    for target, mean, std in zip(found.true, found.predicted, found.std, strict=True):
        (row,) = np.flatnonzero(predicted == mean)
        assert (target, std) == (gaussian.arrays["check_true"][row, 0], gaussian.arrays["check_std"][row, 0])


def test_the_band_holds_nineteen_of_twenty_samples() -> None:
    shares = np.array([0.0, 0.05, 0.5, 0.95, 1.0])
    low, high = binomial_band(shares, 400)
    drawn = np.random.default_rng(0).binomial(400, shares, size=(20_000, 5)) / 400
    inside = ((low <= drawn) & (drawn <= high)).mean(axis=0)
    assert (inside >= 0.94).all()
    assert (inside[1:4] < 0.98).all()
    assert (low[0], high[0], low[-1], high[-1]) == (0.0, 0.0, 1.0, 1.0)


def test_degrees_of_freedom_of_the_first_functions(gaussian: Drawn) -> None:
    curve = freedom_curve(gaussian)
    assert not isinstance(curve, Absent)
    assert curve is not None
    V, shares = gaussian.arrays["rotation"], gaussian.arrays["shares"][:, 0]
    H = (V * (shares / (1.0 - shares))) @ V.T
    n = len(H)
    assert curve[-1] == pytest.approx(shares.sum())
    for t in (0, 1, 7, n - 1, n):
        part = H[:t, :t]
        assert curve[t] == pytest.approx(np.trace(np.linalg.solve(np.eye(t) + part, part)))
    assert (np.diff(curve) >= 0).all()


def test_the_search_as_it_was(gaussian: Drawn) -> None:
    path = tuning_path(gaussian)
    assert path is not None
    assert not isinstance(path, Absent)
    assert path.best == gaussian.config["tuning"]["best"]
    # The search is of targets of deviation 1, the page of targets in their units: one unit for a quantity.
    scale = gaussian.record.target_scale[0]
    variances = np.array([name in ("signal", "noise") for name in path.names])
    found = np.exp(gaussian.arrays["tuning_parameters"])
    np.testing.assert_allclose(path.parameters, np.where(variances, np.sqrt(found) * scale, found))
    np.testing.assert_allclose(path.value, gaussian.arrays["tuning_values"] - np.log(scale))
    assert path.unit == "nats a row"
    assert (path.objective, path.sample_rows) == ("variational bound", 5000)
    # Without a record of which, it is the largest of the last stage, whatever the sample had found before.
    tuning = {name: value for name, value in gaussian.config["tuning"].items() if name != "best"}
    guessed = tuning_path(with_parts(gaussian, {"tuning": tuning}))
    assert guessed is not None
    assert not isinstance(guessed, Absent)
    assert guessed.best == path.best
    assert path.value[path.best] < np.nanmax(path.value)


def test_lengthscales_are_sorted_with_their_names(gaussian: Drawn) -> None:
    value = [3.0, 1.0, 2.0, *range(4, 11)]
    found = lengthscales(with_parts(gaussian, {"lengthscale": value}))
    assert found is not None
    assert found.names[:3] == tuple(gaussian.column_names[index] for index in (1, 2, 0))
    np.testing.assert_array_equal(found.value, sorted(value))
    assert lengthscales(with_parts(gaussian, {"lengthscale": 1.0})) is None


def test_members_share_the_precision(committee: Drawn) -> None:
    found = member_weights(with_parts(committee, member_weights=np.array([1.0, 3.0])))
    assert found is not None
    np.testing.assert_allclose(found.share, [0.25, 0.75])


def test_probabilities_and_counts(labels: Drawn, counts: Drawn, classifier: RidgeModel, nasty: tuple[str, ...]) -> None:
    check = distribution_check(labels)
    assert isinstance(check, ProbabilityCheck)
    true, P = labels.arrays["check_true"].argmax(axis=1), labels.arrays["check_probability"]
    assert check.calibration.scalars["accuracy"] == (P.argmax(axis=1) == true).mean()
    assert check.label == ""
    poisson = distribution_check(counts)
    assert isinstance(poisson, CountCheck)
    expected = -stats.poisson(counts.arrays["check_predicted"]).logpmf(counts.arrays["check_true"]).mean()
    assert poisson.calibration.scalars["nlpd"] == pytest.approx(expected)
    # Counts that spread more than their rates say come where little was expected, at both ends.
    assert poisson.transform[[0, -1]].min() > 1.2 * poisson.transform.mean()
    assert distribution_check(classifier) is None


# ------------------------------------------------------------------------------------------------------------ the page
GAUSSIAN = [
    "tuning", "parameters", "lengthscales", "trace", "freedom", "predictions-1", "residuals", "intervals",
    "calibration", "transform", "time", "memory",
]  # fmt: skip


@pytest.fixture(scope="module")
def pages(gaussian: Drawn, committee: Drawn, labels: Drawn, counts: Drawn) -> dict[str, str]:
    """One of each kind."""
    # `test_renderers.py` draws all of them.
    models = {"gaussian": gaussian, "committee": committee, "labels": labels, "counts": counts}
    return {name: undrawn(model, but=["calibration"] * (name == "gaussian")) for name, model in models.items()}


def test_all_panels(pages: dict[str, str]) -> None:
    assert panels(pages["gaussian"]) == GAUSSIAN
    assert panels(pages["committee"]) == [*GAUSSIAN[:5], "members", *GAUSSIAN[5:]]
    assert panels(pages["labels"]) == ["trace", "confusion", "margins", "reliability", "time", "memory"]
    assert panels(pages["counts"]) == ["trace", "predictions-1", "residuals", "transform", "time", "memory"]
    for page in pages.values():
        assert len(cards(page)) == 12
        assert not {"Alpha", "GCV error"} & cards(page).keys()
    titles = [re.findall("<h1>(.*)</h1>", page)[0] for page in pages.values()]
    assert titles == [
        "Gaussian process regression",
        "Bayesian committee machine",
        "Gaussian process classifier",
        "Poisson regression by a Gaussian process",
    ]
    assert "they were given, or follow from the final sums" in pages["labels"]
    assert "A committee of 40 members that meets at 120 query points" in pages["committee"]


def test_the_numbers_of_the_page(pages: dict[str, str], gaussian: Drawn) -> None:
    check = distribution_check(gaussian)
    assert isinstance(check, GaussianCheck)
    scalars = check.calibration.scalars
    held = f"{100 * scalars['coverage95']:.1f} % ± {100 * scalars['coverage95_se']:.2g} %"
    page = pages["gaussian"]
    assert cards(page)["Coverage"] == held
    assert cards(page)["NLPD"] == f"{scalars['nlpd']:.2f} ± {scalars['nlpd_se']:.2g}"
    assert cards(page)["Noise"] == "1.22"
    assert cards(page)["Lengthscale"] == "1.00 to 54.6"
    text = words(page)
    assert f"95 % hold {held.split(' ± ')[0]}" in page  # inside the figure
    assert "evaluated 40 times on 5,000 sampled rows and 8 times over all rows" in text
    assert "Values on the sample and over all rows are not to be compared" in text
    assert "80 of 1,000 held-out rows" in text
    assert "1 point without a finite value left out" in text
    assert "Signal, standard deviation14.1 (by evidence)" in text
    assert "Noise, standard deviation1.22 (given as the variance 1.500)" in text
    for name in ("Log loss", "Brier score", "Accuracy"):
        assert name in cards(pages["labels"])
    assert "of the deviance is explained" in words(pages["counts"])


def test_panels_only_where_the_arrays_are(gaussian: Drawn, committee: Drawn, regression: RidgeModel) -> None:
    bare = with_parts(
        committee, {"tuning": None, "lengthscale": 1.0}, check_std=None, rotation=None, member_weights=None,
        tuning_values=None,
    )  # fmt: skip
    assert panels(undrawn(bare)) == ["trace", "predictions-1", "residuals", "time", "memory"]
    assert cards(undrawn(bare))["NLPD"] == "–"
    unchecked = with_parts(gaussian, check_true=None, check_predicted=None)
    page = undrawn(unchecked)
    assert not {"intervals", "calibration", "predictions-1"} & set(panels(page))
    assert "the model keeps no rows to compare predictions with" in words(page)
    ridge = panels(undrawn(regression))
    assert ridge == ["trace", "gcv", "lengthscale", "predictions-1", "residuals", "time", "memory"]


def test_narrow_intervals_are_noticed_and_right_ones_are_not(pages: dict[str, str], gaussian: Drawn) -> None:
    assert "The 95 % intervals hold" not in words(pages["gaussian"])
    narrow = with_parts(gaussian, check_std=0.5 * gaussian.arrays["check_std"])
    assert re.search(r"The 95 % intervals hold \d\d\.\d % .* too narrow", words(undrawn(narrow)))
    wide = with_parts(gaussian, check_std=3.0 * gaussian.arrays["check_std"])
    assert "too wide. A larger basis" in calibration_notice(distribution_check(wide))[0]
    few = with_parts(
        narrow, **{name: narrow.arrays[name][:50] for name in ("check_true", "check_predicted", "check_std")}
    )
    assert calibration_notice(distribution_check(few)) == []


def test_other_rows_take_the_place_of_the_check_rows(gaussian: Drawn, labels: Drawn) -> None:
    rng = np.random.default_rng(0)
    true = rng.standard_normal((30, 1))
    pairs = {"kind": "rows 0:30 of store", "true": true, "predicted": 0.0 * true, "std": np.ones_like(true)}
    page = undrawn(gaussian, pairs=pairs)
    assert "30 of 30 rows (rows 0:30 of store)" in words(page)
    assert "calibration" in panels(page)
    del pairs["std"]
    assert "calibration" not in panels(undrawn(gaussian, pairs=pairs))
    with pytest.raises(ShapeMismatchError, match="std ones"):
        undrawn(gaussian, pairs={**pairs, "std": np.ones((29, 1))})
    P = rng.dirichlet(np.ones(4), 30)
    page = undrawn(labels, pairs={"kind": "held-out", "true": np.eye(4)[[0, 1, 2] * 10], "probability": P})
    assert {"confusion", "reliability"} <= set(panels(page))


def test_labels_are_text_and_never_markup(fitted: Callable[..., RidgeModel], nasty: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    two = fitted(X, np.array(nasty[1:3])[(X[:, 0] > 0).astype(int)], rows=100, classify=True)
    page = undrawn(labels_of(two), but=["confusion", "margins", "reliability"])
    assert "the class $$" in words(page) or "the class &lt;/script&gt;" in words(page)
    assert "<img" not in page
    assert len(re.findall("<script", page)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("members", [1, 2, 299, 301, 5000])
def test_few_and_many_members(gaussian: Drawn, members: int) -> None:
    page = render(committee_of(gaussian, members=members))
    assert "members" in panels(page)
    assert len(page) < 3_000_000


def test_hundreds_of_features(gaussian: Drawn) -> None:
    wide = with_parts(gaussian, {"columns": [f"column {i}" for i in range(300)]})
    wide = with_tuning(wide, lengthscales=300)
    page = undrawn(wide, but=["parameters", "lengthscales"])
    assert "276 features with lengthscales from" in words(page)
    assert len(page) < 3_000_000


@pytest.mark.parametrize(
    "value",
    [np.zeros(48), np.where(np.arange(48) % 2, -1e300, 0.0), np.linspace(-1e-12, 0.0, 48)],
    ids=["flat", "far down", "rounding"],
)
def test_searches_that_are_hard_to_draw(gaussian: Drawn, value: Any) -> None:
    drawn = undrawn(with_parts(gaussian, tuning_values=value), but=["tuning", "parameters"])
    assert "tuning" in panels(drawn)


def test_a_search_without_a_finite_value(gaussian: Drawn) -> None:
    page = undrawn(with_parts(gaussian, tuning_values=np.full(48, np.nan)))
    assert "fewer than two points have a finite evidence" in page
    assert not {"tuning", "parameters"} & set(panels(page))


@pytest.mark.parametrize(("sample", "full"), [(2, 0), (0, 7)])
def test_searches_of_one_stage(gaussian: Drawn, sample: int, full: int) -> None:
    page = undrawn(with_tuning(gaussian, sample=sample, full=full))
    assert panels(page)[:2] == ["tuning", "parameters"]
    assert "not to be compared" not in words(page)


def _gaussian_rows(model: Drawn, change: Callable[[Any, Any, Any], tuple[Any, Any, Any]]) -> Drawn:
    names = ("check_true", "check_predicted", "check_std")
    return with_parts(model, **dict(zip(names, change(*(model.arrays[name] for name in names)), strict=True)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda true, mean, std: (true, mean, 0.0 * std),
        lambda true, mean, std: (true, mean, 1e150 + std),
        lambda true, mean, std: (true, np.where(mean > mean[0], np.inf, mean), std),
        lambda true, mean, std: (true, np.full_like(mean, np.inf), std),
        lambda true, mean, std: (0.0 * true, 0.0 * mean, std),
        lambda true, mean, std: (true[:1], mean[:1], std[:1]),
    ],
    ids=["certain", "vague", "some infinite", "all infinite", "constant", "one row"],
)
def test_distributions_that_are_hard_to_draw(gaussian: Drawn, change: Any, tmp_path: Path) -> None:
    model = _gaussian_rows(gaussian, change)
    write_report(model, tmp_path / "page.html")
    draw_png(model, tmp_path / "page.png")


def test_probabilities_and_counts_that_are_hard_to_draw(labels: Drawn, counts: Drawn, tmp_path: Path) -> None:
    P = labels.arrays["check_probability"]
    for model, about in (
        (with_parts(labels, check_probability=np.full_like(P, np.nan)), []),
        (with_parts(labels, check_probability=np.eye(4)[P.argmax(axis=1)]), ["confusion", "margins", "reliability"]),
        (with_parts(counts, check_true=np.zeros_like(counts.arrays["check_true"])), ["predictions-1", "transform"]),
    ):
        with without_figures(but=about):
            write_report(model, tmp_path / "page.html", overwrite=True)
        draw_png(model, tmp_path / "page.png")


def test_several_targets(fitted: Callable[..., RidgeModel]) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 2))
    for d, drawn in ((3, "y2"), (8, "The mean over targets is drawn")):
        Y = np.stack([np.sin(k * X[:, 0]) for k in range(1, d + 1)], axis=1) + 0.1 * rng.standard_normal((600, d))
        model = gaussian_of(fitted(X, Y, rows=400), X[:400], Y[:400], X[400:], signal=1.0, noise=0.01)
        page = undrawn(model, but=["intervals", "calibration", "transform"] * (d == 3))
        assert drawn in words(page)
        assert f"Mean over {d} targets; the band is that of one" in words(page)
        # Targets may have different units.
        assert "in standard deviations, R²" in words(page)
        assert panels(page)[-5:] == ["intervals", "calibration", "transform", "time", "memory"]


# --------------------------------------------------------------------------------------------------------- the picture
def test_the_middle_of_the_picture_is_about_distributions(
    gaussian: Drawn, labels: Drawn, counts: Drawn, regression: RidgeModel, tmp_path: Path
) -> None:
    middles: list[Any] = []
    for model in (gaussian, labels, counts, counts_of(regression)):
        draw_png(model, tmp_path / "fit.png")
        picture = imread(tmp_path / "fit.png")[:, :, :3]
        assert picture.shape[1] == 720
        middle = picture[:, 480:960]
        blue = middle[:, :, 2] - middle[:, :, 0] > 0.1
        orange = middle[:, :, 0] - middle[:, :, 2] > 0.3
        assert 0.001 < blue.mean() < 0.9
        assert orange.mean() > 0.0005
        middles.append(middle)
    assert not any(np.array_equal(a, b) for i, a in enumerate(middles) for b in middles[:i])
