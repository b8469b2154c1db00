"""Models of kernels that are expressions: fitted, tuned, saved, loaded, planned and sent as jobs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from streamkernel import GaussianProcessRegressor, KernelCCA, KernelRidge
from streamkernel.errors import ParameterError
from streamkernel.jobs.requests import requested
from streamkernel.kernels import Fixed, Gaussian, Laplacian, Linear, Matern
from streamkernel.settings.ridge import RidgeSettings

pytestmark = pytest.mark.usefixtures("few_points")

RNG = np.random.default_rng(20261126)
X = RNG.standard_normal((300, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(300)


def ridge(kernel: object, **options: object) -> KernelRidge:
    return KernelRidge(40, kernel=kernel, scale="none", alpha=0.1, **options).fit(X, Y)  # type: ignore[arg-type]


def test_one_that_states_its_lengthscales_is_the_object() -> None:
    told = ridge("2*gaussian(lengthscale=1.5) + linear")
    same = ridge(2 * Gaussian(1.5) + Linear())
    np.testing.assert_array_equal(told.predict(X), same.predict(X))
    assert told.model_.record.kernel == same.model_.record.kernel
    assert ridge("gaussian(lengthscale=1.5)").lengthscale_ == 1.5


def test_the_median_of_each_part_is_that_of_its_metric(tmp_path: Path) -> None:
    model = ridge("2*gaussian + laplacian + matern52(lengthscale=3)")
    kernel = 2 * Gaussian(float(np.median(pdist(X)))) + Laplacian(float(np.median(pdist(X, "cityblock"))))
    found = model.model_.basis.kernel
    assert found.left.left.part.lengthscale == pytest.approx(kernel.left.part.lengthscale)  # type: ignore[attr-defined]
    assert found.left.right.lengthscale == pytest.approx(kernel.right.lengthscale)  # type: ignore[attr-defined]
    assert found.right == Fixed(Matern(3.0, 2.5))
    assert model.model_.record.lengthscale_choice.value == found.left.left.part.lengthscale
    model.save(tmp_path / "m")
    again = KernelRidge.load(tmp_path / "m")
    assert again.model_.basis.kernel == found
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_search_moves_all_parts_by_one_step() -> None:
    model = ridge("gaussian + 0.5*matern(lengthscale=7) * laplacian", lengthscale="auto")
    choice, kernel = model.model_.record.lengthscale_choice, model.model_.basis.kernel
    assert len(choice.grid) == 15
    gaussian, laplacian = kernel.left.lengthscale, kernel.right.right.lengthscale
    medians = [np.median(pdist(X, metric)) for metric in ("euclidean", "cityblock")]
    assert gaussian / medians[0] == pytest.approx(laplacian / medians[1])
    assert gaussian == pytest.approx(choice.value)
    assert kernel.right.left.part == Fixed(Matern(7.0))


@pytest.mark.parametrize("ard", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_evidence_moves_each_lengthscale_that_is_not_stated(ard: bool) -> None:
    process = GaussianProcessRegressor(30, kernel="gaussian * matern52(lengthscale=9) + 2*laplacian", ard=ard).fit(X, Y)
    kernel, tuning = process.model_.basis.kernel, process.model_.record.tuning
    assert kernel.left.right == Fixed(Matern(9.0, 2.5))
    lengths = [kernel.left.left.lengthscale, kernel.right.part.lengthscale]
    assert [isinstance(each, tuple) for each in lengths] == [ard, ard]
    names = [name for name in tuning.parameters if name.startswith("lengthscale")]
    assert len(names) == len(set(names)) == (6 if ard else 2)
    assert names[0] == ("lengthscale of x0 of gaussian 1" if ard else "lengthscale of gaussian 1")
    assert process.score(X, Y) > 0.9


def test_plain_names_have_the_names_of_columns_that_they_had() -> None:
    process = GaussianProcessRegressor(8, ard=True).fit(X, Y)
    assert process.model_.record.tuning.parameters[:3] == tuple(f"lengthscale of x{j}" for j in range(3))


def test_two_views_with_expressions() -> None:
    views = KernelCCA(1, kernel=("2*gaussian + linear", "gaussian(lengthscale=2)"), basis_size=10).fit(
        X, np.c_[Y, Y**2]
    )
    assert views.kernels_[1] == Gaussian(2.0)
    assert views.kernels_[0].left.part.lengthscale != 1.0


def test_a_job_is_described_by_the_text() -> None:
    asked = requested(KernelRidge(40, kernel="2*gaussian + linear", alpha=0.1))
    assert asked.plain["kernel"] == "2*gaussian + linear"
    assert asked.settings.kernel_template == 2 * Gaussian() + Linear()


def test_what_cannot_be_is_refused_before_any_work() -> None:
    with pytest.raises(ParameterError, match="is wrong at character 3"):
        ridge("2*gausian")
    with pytest.raises(ParameterError, match="not positive definite"):
        ridge("gaussian + sigmoid")
    with pytest.raises(ParameterError, match=r"not a function of a distance"):
        ridge("gaussian + linear", metric="learned")
    with pytest.raises(ParameterError, match="a lengthscale is given"):
        ridge("gaussian(lengthscale=2)", metric="learned")
    with pytest.raises(ParameterError, match="2 entries for 3 features"):
        ridge("linear + gaussian(lengthscale=[1, 2])")


def test_no_search_where_the_lengthscale_is_stated() -> None:
    assert not RidgeSettings(kernel="gaussian(lengthscale=2)").searches_lengthscale
    assert RidgeSettings(kernel="rational_quadratic(shape=2)").searches_lengthscale
    assert not RidgeSettings(kernel="rational_quadratic(shape=2)", lengthscale=3.0).searches_lengthscale


def test_an_additive_model_finds_a_lengthscale_for_each_group_of_columns() -> None:
    kernel = "gaussian(columns=[0]) + 4*matern52(columns=[1, 2])"
    process = GaussianProcessRegressor(40, kernel=kernel, ard=True).fit(X, Y)
    first, second = process.model_.basis.kernel.left.part, process.model_.basis.kernel.right.part.part
    assert [len(each.lengthscale) for each in (first, second)] == [1, 2]
    names = [name for name in process.model_.record.tuning.parameters if name.startswith("lengthscale")]
    assert names == ["lengthscale of gaussian 1", "lengthscale of x1 of matern 2", "lengthscale of x2 of matern 2"]
    assert process.score(X, Y) > 0.95


def test_a_period_and_a_category(tmp_path: Path) -> None:
    hours, kinds = RNG.uniform(0, 240, 400), RNG.integers(0, 3, 400)
    rows = np.c_[hours, kinds]
    target = np.sin(2 * np.pi * hours / 24) * np.array([1.0, -1.0, 0.2])[kinds] + kinds
    kernel = "periodic(period=24, columns=[0]) * hamming(columns=[1])"
    process = GaussianProcessRegressor(12, kernel=kernel, scale="none").fit(rows[:300], target[:300])
    assert process.score(rows[300:], target[300:]) > 0.95
    process.save(tmp_path / "m")
    again = GaussianProcessRegressor.load(tmp_path / "m")
    assert again.model_.basis.kernel == process.model_.basis.kernel
    np.testing.assert_array_equal(again.predict(rows), process.predict(rows))


@pytest.mark.parametrize("options", [{}, {"scale": "robust"}, {"scale": "none", "metric": np.eye(3)}])
def test_a_period_needs_the_units_of_its_columns(options: dict) -> None:
    with pytest.raises(
        ParameterError, match=r"the period of the kernel is in the units of the columns, and .*give scale='none'"
    ):
        KernelRidge(40, kernel="gaussian + periodic(period=24)", **options).fit(X, Y)
