"""Rows of the tests of Gaussian process regression, and hyper-parameters that are given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

APPROXIMATIONS = ["dtc", "fitc", "pitc"]
SIGNAL, NOISE, LENGTH = 2.0, 0.05, 1.3
GIVEN: dict[str, Any] = {"lengthscale": LENGTH, "signal_variance": SIGNAL, "noise_variance": NOISE, "tune": "none"}
PLAIN: dict[str, Any] = {"rule": "uniform", "scale": "none", "fit_intercept": False}


def rows(m: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(m)


X, Y = rows(400)
FEW, FEW_Y = X[:80], Y[:80]
ASKED = np.random.default_rng(1).normal(scale=1.5, size=(40, 3))
