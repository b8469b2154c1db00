"""Kernels of a user's own: fitted, saved by the place that they come from, loaded where they are handed over."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import (
    GaussianProcessRegressor,
    KernelCCA,
    KernelMatchingPursuit,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    factorize,
    ingest,
    open_table,
)
from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.factors import Factor
from streamkernel.jobs.requests import requested
from streamkernel.kernels import Gaussian, Kernel, Linear
from streamkernel.store import write_bundle


@dataclass(frozen=True)
class Wide(Kernel):
    """A Gaussian on its own feet, with a parameter of another name, for each feature or for all."""

    width: float | tuple[float, ...] = 2.0

    @property
    def ours(self) -> Gaussian:
        return Gaussian(self.width)

    def prepare(self, Z: Any) -> Any:
        return self.ours.prepare(Z)

    def diagonal(self, X: Any) -> Any:
        return self.ours.diagonal(X)

    def with_lengthscale(self, lengthscale: Any) -> Kernel:
        return self

    def check_features(self, n_features: int) -> None:
        self.ours.check_features(n_features)


@dataclass(frozen=True)
class Narrow(Gaussian):
    """Has the name of another one, and is not it."""

    def formula(self, n_features: int) -> Any:
        return Gaussian(self.lengthscale / 3).formula(n_features)


class NoDataclass(Wide.__base__):  # type: ignore[name-defined,misc]
    def __init__(self, width: float) -> None:
        self.width = width

    prepare, diagonal, with_lengthscale, check_features = (
        Wide.prepare, Wide.diagonal, Wide.with_lengthscale, Wide.check_features
    )  # fmt: skip


@dataclass(frozen=True)
class Unsavable(Narrow):
    function: Any = np.sin


RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
PATH = f"{__name__}:Wide"

FITS: dict[str, Callable[[Any], Any]] = {
    "ridge": lambda kernel: KernelRidge(15, kernel=kernel).fit(X, Y),
    "classifier": lambda kernel: KernelRidgeClassifier(15, kernel=kernel).fit(X, Y > 0),
    "gp": lambda kernel: GaussianProcessRegressor(
        15, kernel=kernel, tune="none", signal_variance=1.0, noise_variance=0.1
    ).fit(X, Y),
    "kmp": lambda kernel: KernelMatchingPursuit(10, kernel=kernel).fit(X, Y),
    "nystroem": lambda kernel: Nystroem(15, kernel=kernel).fit(X),
    "kpca": lambda kernel: KernelPCA(2, basis_size=15, kernel=kernel).fit(X),
    "kcca": lambda kernel: KernelCCA(2, basis_size=15, kernel=(Gaussian(1.0), kernel)).fit(X, X[:, ::-1] ** 2),
}


def values(estimator: Any) -> np.ndarray:
    if hasattr(estimator, "canonical_variates"):
        return np.hstack(estimator.canonical_variates(X, X[:, ::-1] ** 2))
    return np.asarray(estimator.predict(X) if hasattr(estimator, "predict") else estimator.transform(X))


# What is written of a kernel does not depend on the model around it.
@pytest.mark.parametrize(
    ("kind", "kernel"),
    [*((kind, Wide(2.0)) for kind in FITS), ("ridge", Narrow(2.0)), ("ridge", Wide((1.0, 2.0, 3.0)) + Linear())],
    ids=str,
)
def test_fitted_saved_and_loaded_where_it_is_handed_over(kind: str, kernel: Any, tmp_path: Path) -> None:
    estimator = FITS[kind](kernel)
    expected = values(estimator)
    estimator.save(tmp_path / "model")
    load, own = type(estimator).load, Narrow if isinstance(kernel, Narrow) else Wide
    np.testing.assert_array_equal(values(load(tmp_path / "model", kernels=[Narrow, Wide])), expected)
    for others in ([], [Gaussian], [Wide if own is Narrow else Narrow]):
        with pytest.raises(ModelFormatError, match=rf"{__name__}:{own.__name__}.*kernels=\[{own.__name__}\]"):
            load(tmp_path / "model", kernels=others)
    with pytest.raises(ParameterError, match="kernels must be classes"):
        load(tmp_path / "model", kernels=[kernel])


def test_one_class_alone_is_taken_for_the_list_of_it(tmp_path: Path) -> None:
    estimator = FITS["ridge"](Wide(2.0))
    estimator.save(tmp_path / "model")
    alone: Any = Wide
    np.testing.assert_array_equal(values(KernelRidge.load(tmp_path / "model", kernels=alone)), values(estimator))
    instead: Any = 3
    with pytest.raises(ParameterError, match="kernels must be classes"):
        KernelRidge.load(tmp_path / "model", kernels=instead)


def test_a_class_is_no_kernel() -> None:
    with pytest.raises(ParameterError, match=r"kernel = Wide is a class; give a kernel of it, such as Wide\(\)"):
        FITS["ridge"](Wide)


def test_a_name_in_a_file_is_never_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trap_of_a_file.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    model = KernelRidge(15).fit(X, Y).model_
    bad = {"kernel": "trap_of_a_file:Trap", "lengthscale": 1.0}
    write_bundle(tmp_path / "model", replace(model.bundle(), config={**model.config, "kernel": bad}))
    for kernels in ([], [Wide]):
        with pytest.raises(ModelFormatError, match="trap_of_a_file:Trap"):
            KernelRidge.load(tmp_path / "model", kernels=kernels)
    assert "trap_of_a_file" not in sys.modules


@pytest.mark.parametrize(
    ("kernel", "words"),
    [(NoDataclass(1.0), "no dataclass"), (Unsavable(1.0), "cannot be saved")],
    ids=["class", "field"],
)
def test_what_cannot_be_saved_is_refused_before_any_sweep(kernel: Any, words: str) -> None:
    class Watched:
        def begin(self, *told: Any) -> None:
            raise AssertionError("a sweep began")

    with pytest.raises(ParameterError, match=words):
        KernelRidge(15, kernel=kernel, progress=Watched()).fit(X, Y)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=words):
        GaussianProcessRegressor(15, kernel=kernel, progress=Watched()).fit(X, Y)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="the slope of the kernel Wide"):
        GaussianProcessRegressor(15, kernel=Wide(1.0), progress=Watched()).fit(X, Y)  # type: ignore[arg-type]


def test_factors_updates_and_jobs(tmp_path: Path) -> None:
    ingest(open_table(X), tmp_path / "rows")
    factorize(str(tmp_path / "rows"), tmp_path / "factor", n_components=10, kernel=Wide(2.0))
    with pytest.raises(ModelFormatError, match=PATH):
        Factor.load(tmp_path / "factor")
    assert Factor.load(tmp_path / "factor", kernels=[Wide]).basis.kernel == Wide(2.0)
    KernelRidge(15, kernel=Wide(2.0)).fit(X[:150], Y[:150]).save(tmp_path / "model")
    loaded = KernelRidge.load(tmp_path / "model", kernels=[Wide])
    loaded.update(X[150:], Y[150:]).save(tmp_path / "updated")
    again = KernelRidge.load(tmp_path / "updated", kernels=[Wide])
    np.testing.assert_array_equal(values(again), values(loaded))
    with pytest.raises(ParameterError, match="a job cannot fit with the kernel Wide"):
        requested(KernelRidge(15, kernel=Wide(2.0)))


def test_commands_and_the_service_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from streamkernel.cli import main
    from streamkernel.service.loaded_model import load

    KernelRidge(15, kernel=Wide(2.0)).fit(X, Y).save(tmp_path / "model")
    ingest(open_table(X), tmp_path / "rows")
    for command in (["info", "model"], ["predict", "model", "rows", "out"]):
        paths = [str(tmp_path / part) if part in ("model", "rows", "out") else part for part in command]
        assert main(paths) == 1
        told = capsys.readouterr().err
        assert f"its kernel is {PATH}, which is none of this package" in told
        assert "commands and the service cannot" in told
    with pytest.raises(ModelFormatError, match="commands and the service cannot"):
        load(tmp_path / "model", "model", 1)
