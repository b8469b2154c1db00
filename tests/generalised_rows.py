"""Rows, classes and counts of the tests of generalised Gaussian processes, and hyper-parameters that are given."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np

SIGNAL, LENGTH = 3.0, 1.2
GIVEN: dict[str, Any] = {"lengthscale": LENGTH, "signal_variance": SIGNAL, "tune": "none"}
PLAIN: dict[str, Any] = {"rule": "uniform", "scale": "none", "newton_tol": 1e-12}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 2))
F = 2.0 * np.sin(1.5 * X[:, 0]) + X[:, 1]
TWO = np.where(RNG.uniform(size=300) < 1 / (1 + np.exp(-F)), "yes", "no")
THREE = np.array(["low", "mid", "top"])[np.digitize(F + 0.3 * RNG.standard_normal(300), [-1.0, 1.0])]
RATE = np.exp(1.0 + np.sin(1.5 * X[:, 0]))
COUNTS = RNG.poisson(RATE)
FEW = slice(0, 70)
ASKED = np.random.default_rng(1).normal(scale=1.5, size=(25, 2))
# By NumPy: each process imports this to find its tests, and would compile the loops of the kernel for it.
K, K_QM = (SIGNAL * naive.gaussian(rows, X[FEW], LENGTH) for rows in (X[FEW], ASKED))
