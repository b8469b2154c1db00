"""Rows and labels for boosting, and small settings."""

from __future__ import annotations

from typing import Any

import numpy as np

RNG = np.random.default_rng(3)
X = RNG.uniform(-2.0, 2.0, (600, 3))
Y = (np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(600) > 0.0).astype(int)
THREE = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.standard_normal(600), [0.0, 2.0])
GIVEN: dict[str, Any] = {"kernel": "gaussian", "metric": "none", "lengthscale": 0.7, "scale": "none"}
SMALL: dict[str, Any] = {**GIVEN, "member_rows": 40, "members": 6}


def solution(model: Any) -> Any:
    return model.model_.record.solution
