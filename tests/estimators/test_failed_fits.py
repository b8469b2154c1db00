"""An estimator whose fit fails is as it was before: with the model of an earlier fit, or without one."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from interruptions import Interrupt
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import streamkernel
from streamkernel import (
    BayesianCommitteeMachine,
    GaussianProcessClassifier,
    GaussianProcessPoissonRegressor,
    GaussianProcessRegressor,
    KernelBoostingClassifier,
    KernelCCA,
    KernelLPClassifier,
    KernelLPRegressor,
    KernelMatchingPursuit,
    KernelMatchingPursuitClassifier,
    KernelOneClass,
    KernelPCA,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    KernelSVC,
    KernelSVR,
    Nystroem,
    TableEncoder,
)
from streamkernel.errors import DataError, ParameterError, ResourceLimitError
from streamkernel.estimators import _apart

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.standard_normal((60, 3)), columns=["a", "b", "c"])
y = (X["a"] > 0).to_numpy().astype(int)
WIDER = np.where(np.eye(60, 5, dtype=bool), np.nan, rng.standard_normal((60, 5)))

ESTIMATORS: dict[str, Any] = {
    "BayesianCommitteeMachine": lambda: BayesianCommitteeMachine(5),
    "GaussianProcessClassifier": lambda: GaussianProcessClassifier(5),
    "GaussianProcessPoissonRegressor": lambda: GaussianProcessPoissonRegressor(5),
    "GaussianProcessRegressor": lambda: GaussianProcessRegressor(5),
    "KernelBoostingClassifier": lambda: KernelBoostingClassifier(members=2, member_rows=20),
    "KernelCCA": lambda: KernelCCA(1, basis_size=5),
    "KernelLPClassifier": lambda: KernelLPClassifier(5),
    "KernelLPRegressor": lambda: KernelLPRegressor(5),
    "KernelMatchingPursuit": lambda: KernelMatchingPursuit(5),
    "KernelMatchingPursuitClassifier": lambda: KernelMatchingPursuitClassifier(5),
    "KernelOneClass": lambda: KernelOneClass(5),
    "KernelPCA": lambda: KernelPCA(2, basis_size=5),
    "KernelQuantileRegressor": lambda: KernelQuantileRegressor(5),
    "KernelRidge": lambda: KernelRidge(5),
    "KernelRidgeClassifier": lambda: KernelRidgeClassifier(5),
    "KernelSVC": lambda: KernelSVC(5),
    "KernelSVR": lambda: KernelSVR(5),
    "Nystroem": lambda: Nystroem(5),
    "TableEncoder": lambda: TableEncoder(missing="refuse"),
}


def test_every_estimator_is_here() -> None:
    assert set(ESTIMATORS) == set(streamkernel.estimators.__all__)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")  # five functions are few
def test_rows_of_another_width_with_a_gap(name: str) -> None:
    model = ESTIMATORS[name]()
    # The encoder refuses gaps where it encodes rows.
    fit, targets = ("fit_transform", None) if name == "TableEncoder" else ("fit", y)
    parameters = dict(model.__dict__)
    with pytest.raises(DataError):
        getattr(model, fit)(WIDER, targets)
    assert model.__dict__ == parameters
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    model.fit(X, targets)
    before = dict(model.__dict__)
    with pytest.raises(DataError):
        getattr(model, fit)(WIDER, targets)
    assert model.__dict__.keys() == before.keys()
    assert all(model.__dict__[name] is value for name, value in before.items())
    assert model.n_features_in_ == 3
    for method in ("predict", "transform"):
        if hasattr(model, method):
            assert len(getattr(model, method)(X)) == 60


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"memory_limit": "1MB"}, ResourceLimitError),
        ({"n_components": 20, "rule": "sgma", "rule_options": {"pool": "deep"}}, ParameterError),
        ({"progress": Interrupt(1)}, KeyboardInterrupt),
    ],
    ids=["memory", "parameter", "interrupted"],
)
def test_other_failures(change: dict[str, Any], error: type[BaseException]) -> None:
    model = KernelRidgeClassifier(5).fit(X, y).set_params(**change)
    before = dict(model.__dict__)
    with pytest.raises(error):
        model.fit(rng.standard_normal((60, 2)), np.arange(60) % 3)
    assert model.__dict__ == before
    assert model.predict(X).shape == (60,)


def test_a_failure_after_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attributes are set from a model one after another: what fails in between leaves none of them."""
    model = KernelRidge(5).fit(X, y)
    before = dict(model.__dict__)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelRidge, "_adopt_basis", interrupted)
    for change in (model.fit, model.update, model.partial_fit):
        with pytest.raises(KeyboardInterrupt):
            change(0.5 * X, y)
        assert model.__dict__.keys() == before.keys()
        assert all(model.__dict__[name] is value for name, value in before.items())


def test_at_no_time_there_is_no_model() -> None:
    """Attributes change at once: other threads predict meanwhile."""
    model, seen = KernelRidge(5).fit(X, y), set()
    first = model.model_

    def watched(frame: FrameType, event: str, argument: object) -> Any:
        if Path(frame.f_code.co_filename).parent == Path(_apart.__file__).parent:
            known = model.__dict__
            seen.add((id(known.get("model_")), known.get("n_features_in_"), len(known.get("feature_names_in_", ()))))
            return watched
        return None

    before = sys.gettrace()
    sys.settrace(watched)
    try:
        with pytest.raises(DataError):
            model.fit(WIDER, y)
        assert seen == {(id(first), 3, 3)}
        model.fit(np.nan_to_num(WIDER), y)
    finally:
        sys.settrace(before)
    assert seen <= {(id(first), 3, 3), (id(model.model_), 5, 0)}


def test_two_failing_fits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second began while the first had the names of its own rows in the estimator, and gave these back."""
    model = KernelRidge(5).fit(X, y)
    before, turns = dict(model.__dict__), [threading.Event() for _ in range(4)]

    def waits(rows: np.ndarray, *_: object, **__: object) -> None:
        number = rows.shape[1] - 4
        turns[number].set()
        assert turns[2 + number].wait(60.0)
        raise MemoryError

    monkeypatch.setattr("streamkernel.estimators.base.opened", waits)
    fits = [threading.Thread(target=_fails, args=(model, np.ones((60, 4 + number)))) for number in range(2)]
    for number, thread in enumerate(fits):
        thread.start()
        assert turns[number].wait(60.0)
    for number, thread in enumerate(fits):
        turns[2 + number].set()
        thread.join(60.0)
    assert model.__dict__ == before


def _fails(model: KernelRidge, rows: np.ndarray) -> None:
    with pytest.raises(MemoryError):
        model.fit(rows, y)
