"""One check, both ways: what loading would refuse is not saved, whatever kind of model, transformer or factor it is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelCCA,
    KernelMatchingPursuit,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    factorize,
)
from streamkernel.errors import ModelFormatError, StreamKernelError, StreamKernelWarning
from streamkernel.factors import Factor
from streamkernel.factors.saved_basis import SavedBasis
from streamkernel.store import write_bundle

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.sin(X[:, 0])
FIXED: dict[str, Any] = {"lengthscale": 1.0, "signal_variance": 1.0}
NOISE: dict[str, Any] = {**FIXED, "noise_variance": 0.1}
MADE: dict[str, Callable[[], Any]] = {
    "ridge": lambda: KernelRidge(9, rule="sgma").fit(X, Y),
    "classifier": lambda: KernelRidgeClassifier(9).fit(X, Y > 0),
    "gp": lambda: GaussianProcessRegressor(9, **NOISE).fit(X, Y),
    "committee": lambda: BayesianCommitteeMachine(9, block_size=20, **NOISE).fit(X, Y),
    "gp classifier": lambda: GaussianProcessClassifier(9, **FIXED).fit(X, Y > 0),
    "poisson": lambda: GaussianProcessPoissonRegressor(9, **FIXED).fit(X, np.round(Y + 2.0)),
    "pursuit": lambda: KernelMatchingPursuit(9).fit(X, Y),
    "nystroem": lambda: Nystroem(9, rule="sgma").fit(X),
    "pca": lambda: KernelPCA(3, basis_size=9).fit(X),
    "cca": lambda: KernelCCA(2, basis_size=9).fit(X, Y[:, None]),
    "factor": lambda: factorize(X, n_components=9),
}


def one_more(array: Any) -> Any:
    """What a rule that lost count of its functions leaves."""
    return np.concatenate([array, array[-1:]])


# Every array of which each kind has one a function, and fields that all of them have.
BROKEN: dict[str, Callable[[dict[str, Any], dict[str, Any]], tuple[dict[str, Any], dict[str, Any]]]] = {
    "a gain too many": lambda config, arrays: (config, {**arrays, "gains": np.zeros(len(arrays["components"]) + 1)}),
    "a function too many": lambda config, arrays: (
        config,
        {**arrays, "components": one_more(arrays["components"])},
    ),
    "a path too short": lambda config, arrays: (config, {**arrays, "residual_path": arrays["residual_path"][:-1]}),
    "no row numbers": lambda config, arrays: (
        config,
        {name: values for name, values in arrays.items() if name != "component_indices"},
    ),
    "no kernel": lambda config, arrays: ({**config, "kernel": {"name": "nobody's"}}, arrays),
    "parts without names": lambda config, arrays: ({**config, "volatile": [3]}, arrays),
}


def changed(whole: SavedBasis, how: str) -> SavedBasis:
    return type(whole).from_config(*BROKEN[how](whole.config, whole.arrays))


def kept(made: Any) -> SavedBasis:
    return made if isinstance(made, Factor) else made.model_


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamKernelWarning)  # of so few functions
        return {name: make() for name, make in MADE.items()}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("name", MADE)
def test_what_loading_would_refuse_is_not_written(name: str, how: str, made: dict[str, Any], tmp_path: Path) -> None:
    whole = kept(made[name])
    with pytest.raises(ModelFormatError):
        changed(whole, how).write(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", MADE)
def test_both_say_the_same(name: str, made: dict[str, Any], tmp_path: Path) -> None:
    path, whole = tmp_path / "model", kept(made[name])
    broken = changed(whole, "a gain too many")
    with pytest.raises(ModelFormatError, match="the shapes of its arrays disagree") as saving:
        broken.write(path)
    write_bundle(path, broken.bundle())
    with pytest.raises(ModelFormatError) as loading:
        type(whole).read(path)
    assert str(saving.value) == str(loading.value)


@pytest.mark.parametrize("name", [name for name in MADE if name != "factor"])
def test_an_estimator_saves_what_it_loads(name: str, made: dict[str, Any], tmp_path: Path) -> None:
    estimator, path = made[name], tmp_path / "model"
    model = estimator.model_
    for fields in ({"estimator": "nobody's"}, {"sweep_count": None}):
        other = type(estimator)()._adopt(model)
        other.model_ = replace(model, record=model.record.changed(**fields))
        with pytest.raises(ModelFormatError) as saving:
            other.save(path)
        assert list(tmp_path.iterdir()) == []
    write_bundle(path, other.model_.bundle())
    with pytest.raises(ModelFormatError, match="its field sweep_count is None, not a whole number") as loading:
        type(estimator).load(path)
    assert str(saving.value) == str(loading.value)


def test_a_factor_whose_basis_would_be_refused_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a rule had lost count of its functions."""
    record = "streamkernel.fits.factor.factor.basis_arrays"
    arrays = factorize(X, n_components=5).arrays
    monkeypatch.setattr(record, lambda *_: {**arrays, "gains": np.zeros(9)})
    with pytest.raises(ModelFormatError, match="shapes of its arrays disagree"):
        factorize(X, tmp_path / "factor", n_components=5)
    with pytest.raises(StreamKernelError):
        Factor.load(tmp_path / "factor")
