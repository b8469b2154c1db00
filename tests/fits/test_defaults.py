"""What a ridge model chooses for its table where kernel, metric and alpha are left open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamkernel import KernelRidge, KernelRidgeClassifier
from streamkernel.errors import ParameterError
from streamkernel.jobs.specification import JobSpecification
from streamkernel.kernels import Gaussian
from streamkernel.settings import RidgeSettings
from streamkernel.table import Table, open_table

PLAIN = ("gaussian", "none", "gcv")
SEARCHED = ("auto", "learned", "cv")


def table(rows: int, features: int = 4) -> Table:
    X = np.random.default_rng(0).standard_normal((rows, features))
    return open_table(X, X[:, 0] ** 2)


def chosen(rows: Table, **options: Any) -> tuple[Any, Any, Any]:
    settings = RidgeSettings(**options).for_table(rows)
    assert settings.for_table(rows) is settings
    return settings.kernel, settings.metric, settings.alpha


@pytest.mark.parametrize(("rows", "expected"), [(1, PLAIN), (1999, PLAIN), (2000, SEARCHED), (50_000, SEARCHED)])
def test_rows_decide(rows: int, expected: tuple[str, str, str]) -> None:
    assert chosen(table(rows)) == expected
    # What is given stays.
    assert chosen(table(rows), kernel="laplacian", metric="none", alpha=0.5) == ("laplacian", "none", 0.5)
    assert chosen(table(rows), kernel="auto", metric="diagonal", alpha="gcv") == ("auto", "diagonal", "gcv")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"lengthscale": 2.0}, ("gaussian", "none", "cv")),
        ({"lengthscale": [1.0, 2.0, 1.0, 1.0]}, ("gaussian", "none", "cv")),
        ({"lengthscale": np.ones(4)}, ("gaussian", "none", "cv")),
        ({"lengthscale": "auto"}, ("gaussian", "none", "cv")),
        ({"gamma": 0.1}, ("gaussian", "none", "cv")),
        ({"kernel": "matern52"}, ("matern52", "learned", "cv")),
        ({"kernel": "linear"}, ("linear", "none", "cv")),
        ({"kernel": "polynomial", "degree": 2}, ("polynomial", "none", "cv")),
        ({"kernel": Gaussian(1.5)}, (Gaussian(1.5), "none", "cv")),
        ({"metric": "none"}, ("auto", "none", "cv")),
        ({"metric_rank": 2}, ("auto", "learned", "cv")),
        ({"solver": "cg"}, SEARCHED),
        ({"n_components": 1500}, SEARCHED),
    ],
    ids=str,
)
def test_what_is_given_decides(options: dict[str, Any], expected: tuple[Any, Any, Any]) -> None:
    assert chosen(table(2000), **options) == expected


def test_a_given_metric_leaves_the_gaussian_kernel() -> None:
    kernel, metric, alpha = chosen(table(2000), metric=np.eye(4)[:, :2])
    assert (kernel, len(metric), alpha) == ("gaussian", 4, "cv")


def test_few_rows_are_searched_only_if_asked() -> None:
    assert chosen(table(100), metric_rank=2) == ("gaussian", "learned", "gcv")
    assert chosen(table(100), solver="cg") == ("gaussian", "none", "cv")


def test_wide_tables_have_no_metric() -> None:
    assert chosen(table(2000, 1000))[1] == "learned"
    assert chosen(table(2000, 1001)) == ("auto", "none", "cv")


@pytest.mark.parametrize("options", [{"kernel": "linear"}, {"lengthscale": 1.0}, {"metric": "none"}], ids=str)
def test_a_rank_without_a_metric(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="rank"):
        RidgeSettings(metric_rank=2, **options)


@pytest.mark.parametrize("make", [KernelRidge, pytest.param(KernelRidgeClassifier, marks=pytest.mark.slow)])
def test_the_default_is_the_fit_of_its_choices(make: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2000, 3))
    y = np.sin(2.0 * X[:, 0] + X[:, 1]) + 0.1 * rng.standard_normal(2000)
    target = y if make is KernelRidge else y > 0.3
    default = make(60).fit(X, target)
    asked = make(60, kernel="auto", metric="learned", alpha="cv").fit(X, target)
    assert default.model_.digest == asked.model_.digest
    assert default.model_.record.settings == asked.model_.record.settings
    assert default.get_params()["metric"] is None
    few = make(60).fit(X[:500], target[:500])
    plain = make(60, kernel="gaussian", metric="none", alpha="gcv").fit(X[:500], target[:500])
    assert few.model_.digest == plain.model_.digest


def test_jobs_written_down_without_a_metric_have_none() -> None:
    """By an earlier release, which stored all other settings with their defaults."""
    stored = {"n_components": 10, "kernel": "gaussian", "lengthscale": "median", "alpha": "gcv"}
    settings = JobSpecification("ridge", stored, "table", "model", lease_seconds=2.0).opened_settings()
    assert settings.for_table(table(3000)).metric == "none"
