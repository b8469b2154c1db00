"""Rows with targets drawn from a Gaussian process."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamkernel.kernels import Kernel
from streamkernel.reductions import Sample

Float = NDArray[np.float64]
ONE = np.ones(1)


def sample_of(X: Any, Y: Any, weights: Any = None) -> Sample:
    Y = np.asarray(Y, np.float64).reshape(len(X), -1)
    return Sample(np.arange(len(X)), X, Y, np.ones(len(X)) if weights is None else weights)


def drawn(kernel: Kernel, m: int, p: int, signal: float, noise: float, d: int = 1) -> tuple[Float, Float]:
    """Rows, and targets of a Gaussian process with this kernel."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((m, p))
    L = np.linalg.cholesky(signal * kernel(X) + noise * np.eye(m))
    return X, L @ rng.standard_normal((m, d))
