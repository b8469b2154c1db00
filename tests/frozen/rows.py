"""The rows of the archives, and what an archive is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

_RNG = np.random.default_rng(20261122)
X = _RNG.standard_normal((160, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.1 * _RNG.standard_normal(160), X[:, 1] ** 2 + X[:, 2]])
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y[:, 0], [-0.4, 0.4])]
COUNTS = _RNG.poisson(np.exp(Y[:, 0])).astype(np.float64)
QUERIES = _RNG.standard_normal((12, 3))
SPARSE = scipy.sparse.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
OLD, NEW = slice(0, 120), slice(120, 160)  # rows of the fit, rows of the update after it
GRAM = (X[OLD] @ X[OLD].T + 1.0) ** 2
NAMES = ("age", "income", "rooms")


@dataclass(frozen=True)
class Frozen:
    """Something that is written.

    Attributes
    ----------
    make : writes it in an empty folder.
    read : what a reader gets from that folder, by name. Nothing in the folder is changed.
    """

    make: Callable[[Path], object]
    read: Callable[[Path], Mapping[str, Any]]
