"""A stored table with other targets than its own: the stored statistics are not of these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import KernelMatchingPursuit, KernelRidge, KernelRidgeClassifier, ingest, open_table
from streamkernel.errors import NumericRangeError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 2))
OWN, OTHER = X[:, 0], 1e6 + 1e3 * np.sin(2.0 * X[:, 1])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    ingest(open_table(X, OWN), tmp_path / "store", dtype="float64")
    return tmp_path / "store"


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("estimator", [KernelRidge(20), KernelMatchingPursuit(6)])
def test_a_fit_centres_and_scales_the_targets_that_are_given(store: Path, estimator: Any, reopened: bool) -> None:
    source: Any = open_table(store) if reopened else store
    model = estimator.fit(source, OTHER).model_
    assert model.record.target_scale == pytest.approx([OTHER.std()], rel=1e-9)
    predicted = np.asarray(estimator.predict(X))
    expected = np.asarray(estimator.fit(X, OTHER).predict(X))
    np.testing.assert_allclose(predicted, expected, rtol=1e-9)


def test_which_statistics_stay(store: Path) -> None:
    own, other = open_table(store), open_table(store, OTHER)
    assert own.statistics is not None
    assert other.statistics is None
    assert open_table(own, OTHER).statistics is None
    labels = open_table(store, np.where(X[:, 0] > 0.0, "a", "b"), classify=True)
    assert labels.statistics is not None
    assert labels.statistics.X is not None
    assert labels.statistics.y is None
    assert open_table(own, rows=(3, 9)).statistics is own.statistics


def test_labels_beside_a_store_need_no_sweep_for_the_features(store: Path) -> None:
    labels = np.where(X[:, 0] + X[:, 1] > 0.0, "a", "b")
    found = KernelRidgeClassifier(10).fit(store, labels)
    assert found.model_.record.scaler.mean == pytest.approx(tuple(X.mean(axis=0).tolist()), abs=1e-12)
    assert "column statistics" not in [sweep.name for sweep in found.model_.record.run.sweeps]


def test_a_check_of_the_spread_is_one_of_the_targets_that_are_given(tmp_path: Path) -> None:
    ingest(open_table(X, 1e-150 * OWN), tmp_path / "tiny", dtype="float64")
    KernelRidge(5).fit(tmp_path / "tiny", OWN)
    with pytest.raises(NumericRangeError):
        KernelRidge(5).fit(tmp_path / "tiny")
