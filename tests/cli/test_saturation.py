"""The verdict on the size of a basis: from the degrees of freedom alone, and the same on the page and in print."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import GaussianProcessRegressor, KernelRidge, KernelSVR
from streamkernel.models._saturation import Degrees, degrees_of
from streamkernel.report import write_report

RNG = np.random.default_rng(2)
X = RNG.uniform(-3.0, 3.0, (1200, 2))
TARGETS = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.05 * RNG.standard_normal(1200)


def _degrees(used: Any, outputs: int = 1, size: int = 200, **other: Any) -> Degrees | None:
    return degrees_of(used, outputs, size, **{"rule": "few-sweep trace", "ended": "size", "chosen": True, **other})


def test_the_sentence() -> None:
    found = _degrees(195.2)
    assert found is not None
    assert found.verdict == "195 of 200 degrees used, a larger basis would help"
    assert Degrees(2400.6, 2400).verdict == "2,400 of 2,400 degrees used, a larger basis would help"


def test_an_intercept_is_counted_in_print_alone() -> None:
    """39.85 effective degrees, that of the intercept among them, stood beside "39 of 40"."""
    found = _degrees(38.85, size=40, constants=1)
    assert found is not None
    assert found.verdict == "40 of 41 degrees used, a larger basis would help"
    assert _degrees(37.9, size=40, constants=1).verdict is None, "94.8 % of what the basis offers"
    assert Degrees(40.6, 40, 1).verdict == "41 of 41 degrees used, a larger basis would help"


@pytest.mark.parametrize("used", [189.9, 0.0, float("nan"), float("inf")])
def test_not_saturated(used: float) -> None:
    found = _degrees(used)
    assert found is not None
    assert found.verdict is None


def test_no_basis_has_no_verdict() -> None:
    assert Degrees(0.0, 0).verdict is None


def test_of_several_targets_the_most_count_and_of_several_classes_all() -> None:
    assert _degrees((20.0, 199.0)) == Degrees(199.0, 200)
    assert _degrees(390.0, outputs=2) == Degrees(390.0, 400)


@pytest.mark.parametrize("other", [{"chosen": False}, {"ended": "rank"}, {"rule": "columns"}])
def test_where_they_say_nothing_of_the_size(other: dict[str, Any]) -> None:
    assert _degrees(200.0, **other) is None
    assert _degrees(None) is None


def test_few_functions_are_saturated_and_many_are_not() -> None:
    options = {"lengthscale": 1.0, "metric": "none", "kernel": "gaussian"}
    few, many = (KernelRidge(n, alpha="gcv", **options).fit(X, TARGETS).model_ for n in (20, 50))
    assert few.degrees is not None
    assert few.degrees.saturated
    assert few.degrees.used <= 20.0, "without the intercept"
    assert many.degrees is None or not many.degrees.saturated
    assert many.solution_fields()["saturated"] is None
    assert KernelRidge(20, alpha=1e-9, **options).fit(X, TARGETS).model_.degrees is None
    assert KernelSVR(20, C=1.0, **options).fit(X, TARGETS).model_.degrees is None


def test_a_gaussian_process_is_saturated() -> None:
    plain: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "tune": "none"}
    model = GaussianProcessRegressor(20, **plain).fit(X, TARGETS).model_
    assert model.degrees is not None
    assert model.degrees.saturated
    assert GaussianProcessRegressor(20, **plain, noise_variance=0.01).fit(X, TARGETS).model_.degrees is None


def test_page_and_console_say_the_same(tmp_path: Path, cli: Callable[..., Any]) -> None:
    np.savez(tmp_path / "rows.npz", X=X, y=TARGETS)
    assert cli("ingest", tmp_path / "rows.npz", tmp_path / "rows").status == 0
    options = (
        *["--lengthscale", "1", "--metric", "none", "--kernel", "gaussian", "--scheduler", "threads", "--basis"],
        20,
    )
    printed = cli("fit", tmp_path / "rows", tmp_path / "m", *options).out
    model = KernelRidge.load(tmp_path / "m").model_
    write_report(model, tmp_path / "m.html")
    verdict = model.degrees.verdict
    assert verdict is not None
    assert re.search(rf"saturated +{verdict}", printed)
    assert f"Saturated: {verdict}." in unescape((tmp_path / "m.html").read_text())
    assert (
        cli("fit", tmp_path / "rows", tmp_path / "m", *options, "--overwrite", "--json").result["saturated"] == verdict
    )
    shown = re.search(r"effective df +([\d.]+)", printed)
    assert shown is not None
    assert verdict.startswith(f"{round(float(shown[1]))} of 21 degrees"), "one rounding of one number"
    given = cli("fit", tmp_path / "rows", tmp_path / "s", *options, "--alpha", 1.0).out
    assert "saturated" not in given
