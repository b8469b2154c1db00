"""xRFM (Beaglehole et al. 2025), called as an estimator of scikit-learn; needs its wheel and PyTorch."""

from __future__ import annotations

import importlib.util
import os
from typing import Any, Self

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

INSTALLED = importlib.util.find_spec("xrfm") is not None
VALIDATION = 0.2  # share of the rows that its rounds are judged with, as in its README


class XRFM:
    """xRFM with its defaults, on standardised columns and targets.

    Parameters
    ----------
    classes : whether y holds labels.
    seed : random seed, of the held-out rows too.
    """

    def __init__(self, classes: bool, seed: int) -> None:
        self.classes, self.seed = classes, seed

    def fit(self, X: Any, y: Any) -> Self:
        # A peer of the benchmark only: no environment of ours installs it.
        from xrfm import xRFM  # type: ignore[import-not-found]  # installed apart

        self._scaler = StandardScaler().fit(X)
        if self.classes:
            self._labels, targets = np.unique(y, return_inverse=True)
        else:
            self._centre, self._scale = float(y.mean()), float(y.std())
            targets = ((y - self._centre) / self._scale).astype(np.float32)[:, None]
        data = train_test_split(
            self._scaler.transform(X).astype(np.float32),
            targets,
            test_size=VALIDATION,
            random_state=self.seed,
            stratify=targets if self.classes else None,
        )
        trained, held_out, trained_targets, held_out_targets = data
        self._model = xRFM(
            device="cpu",
            tuning_metric="brier" if self.classes else "mse",
            random_state=self.seed,
            n_threads=os.cpu_count(),
            verbose=False,
        )
        self._model.fit(trained, trained_targets, held_out, held_out_targets)
        return self

    def predict(self, X: Any) -> Any:
        found = self._model.predict(self._scaler.transform(X).astype(np.float32))
        if self.classes:
            return self._labels[np.asarray(found).ravel().astype(int)]
        return np.asarray(found).ravel() * self._scale + self._centre
