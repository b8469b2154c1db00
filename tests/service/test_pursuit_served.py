"""Matching pursuits are served like every model that predicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from streamkernel import KernelMatchingPursuit, KernelMatchingPursuitClassifier
from streamkernel.service.loaded_model import load


def test_numbers_and_probabilities(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((200, 3)), rng.standard_normal(200)
    numbers = KernelMatchingPursuit(8).fit(X, X[:, 0])
    labels = KernelMatchingPursuitClassifier(8, loss="logistic").fit(
        X, np.where(X.sum(axis=1) + noise > 0, "yes", "no")
    )
    for name, model in (("numbers", numbers), ("labels", labels)):
        model.save(tmp_path / name)
        served = load(tmp_path / name, name, 0)
        assert served.has_probabilities == (name == "labels")
        direct = served.outputs(probabilities=served.has_probabilities).direct
        answer = direct.each_alone(direct.prepared(X[:5]))
        if name == "labels":
            np.testing.assert_allclose(answer["probability"], labels.predict_proba(X[:5]), rtol=1e-9)
            np.testing.assert_array_equal(labels.classes_[answer["prediction"]], labels.predict(X[:5]))
        else:
            np.testing.assert_allclose(answer["prediction"], numbers.predict(X[:5]), rtol=1e-9)
