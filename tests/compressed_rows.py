"""Rows to compress, and the ways to do it."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamkernel.settings.compression import METHODS

WAYS: dict[str, dict[str, Any]] = {
    **{method: {"method": method} for method in METHODS},
    "squash, kernel": {"method": "squash", "functions": "kernel"},
    "squash, linear": {"method": "squash", "functions": "linear", "loss": "hinge"},
    "seeds": {"method": "squash", "functions": "linear", "representative": "seed", "sweeps": 0},
    "joint": {"method": "precluster", "target_weight": 0.3},
    "learned": {"method": "precluster", "metric": "diagonal", "scale": "robust"},
}
TARGETS = ("numbers", "labels", "several")


def problem(targets: str = "labels", m: int = 600, seed: int = 0) -> tuple[Any, Any, Any]:
    """Rows, targets, and whole weights, some 0."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((m, 4)).astype(np.float32)
    f = np.sin(2.0 * X[:, 0]) + X[:, 1].astype(np.float64)
    y = f + 0.1 * generator.standard_normal(m)
    w = generator.integers(0, 4, m).astype(np.float64)
    if targets == "labels":
        return X, np.array(["high", "low", "middle"])[np.digitize(y, [-0.7, 0.7])], w
    return X, y if targets == "numbers" else np.stack([y, X[:, 2]], axis=1), w


def ways(targets: str) -> list[dict[str, Any]]:
    return [options for name, options in WAYS.items() if targets != "several" or name != "learned"]
