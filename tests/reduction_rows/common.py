"""What rows of several kinds are made of: a kernel, features and views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from problems import Float, basis_of

from streamkernel.kernels import Gaussian, Kernel
from streamkernel.reductions import Reduction, View
from streamkernel.reductions.sums import Features

X64 = np.ndarray[Any, Any]
Make = Callable[[X64, Float, list[int]], Reduction[Any]]


def kernel_of(X: X64) -> Kernel:
    spread = float(np.abs(X).max()) or 1.0
    return Gaussian(spread)


def features_of(X: X64, chosen: list[int]) -> Features:
    return Features.of_basis(basis_of(X, chosen, kernel_of(X)))


VIEWS = View(), View(of_targets=True)
