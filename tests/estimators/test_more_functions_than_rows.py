"""More basis functions than rows: all rows are taken, with one warning, as scikit-learn's Nystroem does."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, learning_curve

from streamkernel import (
    KernelBoostingClassifier,
    KernelCCA,
    KernelMatchingPursuit,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    Nystroem,
    compress,
    factorize,
    open_table,
    plan,
)
from streamkernel.errors import StreamKernelWarning
from streamkernel.kinds import KINDS, Kind
from streamkernel.models.saved import SavedModel

M, MORE = 60, 100
RNG = np.random.default_rng(5)
X = RNG.standard_normal((M, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(M)
COUNTS = RNG.poisson(np.exp(0.5 * X[:, 0])).astype(float)
TWO_VIEWS = np.column_stack([Y, X[:, 1] + RNG.standard_normal(M), RNG.standard_normal(M)])


def size_name(kind: Kind) -> str:
    return "basis_size" if kind.name in ("kernel-pca", "kernel-cca") else "n_components"


def asked_of(model: SavedModel) -> int | None:
    """The basis size that the settings of a saved model hold."""
    config = model.record.settings.to_config()
    return config["basis_size"] if "basis_size" in config else config["n_components"]


def targets_of(kind: Kind) -> Any:
    if kind.name == "kernel-cca":
        return TWO_VIEWS
    return (Y > 0).astype(int) if kind.classify else COUNTS if kind.name == "poisson" else Y


def warnings_of(work: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = work()
    assert all(issubclass(each.category, (StreamKernelWarning, UserWarning)) for each in caught)
    return found, [str(each.message) for each in caught if "more than the" in str(each.message)]


GIVEN: dict[str, Any] = {"lengthscale": 0.7, "tune": "none", "signal_variance": 1.0}
# A search by evidence takes a hundred fits.
OPTIONS: dict[str, dict[str, Any]] = {
    "kernel-cca": {"lengthscale": 0.7},
    "gp": {**GIVEN, "noise_variance": 0.1},
    "committee": {**GIVEN, "noise_variance": 0.1},
    "gp-classifier": GIVEN,
    "poisson": GIVEN,
    "boosting": {"members": 5},
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_estimator_takes_all_rows_and_says_so_once(kind: Kind, tmp_path: Path) -> None:
    name, y = size_name(kind), targets_of(kind)
    options = OPTIONS.get(kind.name, {})
    whole, none = warnings_of(lambda: kind.estimator(**{name: M}, **options).fit(X, y))
    model, said = warnings_of(lambda: kind.estimator(**{name: MORE}, **options).fit(X, y))
    assert none == []
    assert said == [f"{name} is {MORE}, more than the {M} rows; the fit goes on with {M}"]
    assert model.get_params()[name] == MORE
    # The same model, which knows what was asked for and what was taken.
    for array, values in whole.model_.arrays.items():
        np.testing.assert_array_equal(model.model_.arrays[array], values)
    record = model.model_.record
    assert asked_of(model.model_) == MORE
    assert (record.requested_basis, record.basis_size) == (
        whole.model_.record.requested_basis,
        whole.model_.record.basis_size,
    )
    assert record.requested_basis <= M
    model.save(tmp_path / "m")
    assert asked_of(kind.estimator.load(tmp_path / "m").model_) == MORE
    _, said = warnings_of(lambda: plan(kind.estimator(**{name: MORE}, **options), X, y))
    assert len(said) == 1


def test_a_learning_curve_goes_to_its_end() -> None:
    ridge, sizes = KernelRidge(40, alpha=1e-2, metric="none"), [0.1, 1.0]
    with pytest.warns(StreamKernelWarning, match="more than the"):
        _, _, scores = learning_curve(ridge, X, Y, cv=3, train_sizes=sizes, error_score="raise")
    assert np.isfinite(scores).all()


def test_a_search_may_try_more_functions_than_a_fold_has() -> None:
    with pytest.warns(StreamKernelWarning, match="more than the 40 rows"):
        search = GridSearchCV(KernelRidge(alpha=1e-2), {"n_components": [10, M]}, cv=3, error_score="raise").fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_rows_of_weight_0_are_no_rows() -> None:
    w = np.ones(M)
    w[::3] = 0.0
    kept = w > 0.0
    options: dict[str, Any] = {"alpha": 0.1, "lengthscale": 1.0, "kernel": "gaussian"}
    with pytest.warns(StreamKernelWarning, match="50, more than the 40 rows of weight > 0; the fit goes on with 40"):
        weighted = KernelRidge(50, **options).fit(X, Y, sample_weight=w)
    with pytest.warns(StreamKernelWarning, match="n_components is 50, more than the 40 rows; the fit goes on with 40"):
        without = KernelRidge(50, **options).fit(X[kept], Y[kept])
    assert kept[weighted.component_indices_].all()
    assert weighted.model_.record.requested_basis == without.model_.record.requested_basis == 40
    np.testing.assert_allclose(weighted.predict(X), without.predict(X), rtol=1e-8)


@pytest.mark.parametrize(
    "estimator",
    [
        KernelSVC(MORE, machine="full", loss="hinge", lengthscale=1.0, C=1.0),
        KernelSVC(MORE, multi_class="one-vs-one", C=1.0),
        KernelMatchingPursuit(MORE, variant="back-fitting", validation=None),
        KernelBoostingClassifier(MORE, learner="ridge", members=2),
        Nystroem(MORE, rule="rpcholesky"),
        Nystroem(MORE, rule="kmeans"),
        Nystroem(MORE, rule="csi"),
        KernelPCA(3, sparse=MORE),
        KernelCCA(MORE, basis_size=MORE, lengthscale=0.5),
        KernelPCA(MORE, basis_size=MORE),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_other_ways_to_the_functions(estimator: Any) -> None:
    y = TWO_VIEWS if isinstance(estimator, KernelCCA) else (Y > 0).astype(int)
    model, said = warnings_of(lambda: estimator.fit(X, y))
    name = "sparse" if getattr(estimator, "sparse", None) else "basis_size"
    name = name if hasattr(estimator, "basis_size") else "n_components"
    assert said == [f"{name} is {MORE}, more than the {M} rows; the fit goes on with {M}"]
    assert len(model.component_indices_) <= M


def test_columns_may_be_more_than_rows() -> None:
    wide = RNG.standard_normal((20, 30))
    model, said = warnings_of(lambda: KernelRidge(30, kernel="linear", rule="columns", alpha=1.0).fit(wide, wide[:, 0]))
    assert said == []
    assert len(model.dual_coef_) == 30


def test_factors_and_compressed_tables(tmp_path: Path) -> None:
    with pytest.warns(StreamKernelWarning, match=f"n_components is {MORE}, more than the {M} rows; .* with {M}"):
        factor = factorize(X, tmp_path / "F", n_components=MORE)
    assert factor.record.requested_basis == M
    whole = factorize(X, tmp_path / "G", n_components=M)
    np.testing.assert_array_equal(factor.basis.rows, whole.basis.rows)
    with pytest.warns(StreamKernelWarning, match=f"n_components is {MORE}, more than the {M} rows"):
        compress(open_table(X, Y), size=20, method="thinning", n_components=MORE)
