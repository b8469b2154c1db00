"""streamkernel: kernel methods on data that does not fit in memory.

The data path (modules import from earlier stages only)::

    SOURCE --ingest--> table --blocks--> kernels --> basis --> reductions --engine--> sums --> solvers --> model
                                                       ^                        |
                                                       +------- selection <-----+

1. a **basis**: n rows, selected as basis functions;
2. a **sweep**: one pass over all row blocks; each block gives a small state, and a fixed tree combines the states;
3. **small dense algebra** on n x n matrices, on one machine, in float64.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamkernel.estimators import (
        BayesianCommitteeMachine,
        GaussianProcessClassifier,
        GaussianProcessPoissonRegressor,
        GaussianProcessRegressor,
        KernelCCA,
        KernelMatchingPursuit,
        KernelMatchingPursuitClassifier,
        KernelPCA,
        KernelRidge,
        KernelRidgeClassifier,
        Nystroem,
    )
    from streamkernel.factors import Factor
    from streamkernel.fits.factor import factorize
    from streamkernel.following.follow import follow
    from streamkernel.jobs import connect
    from streamkernel.models import GaussianModel, GeneralisedModel, PursuitModel, RidgeModel
    from streamkernel.table import Table, open_table
    from streamkernel.table.ingest.append import append_rows
    from streamkernel.table.ingest.ingest import ingest

__version__ = "0.1.0"

__all__ = [
    "BayesianCommitteeMachine",
    "Factor",
    "GaussianModel",
    "GaussianProcessClassifier",
    "GaussianProcessPoissonRegressor",
    "GaussianProcessRegressor",
    "GeneralisedModel",
    "KernelCCA",
    "KernelMatchingPursuit",
    "KernelMatchingPursuitClassifier",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeClassifier",
    "Nystroem",
    "PursuitModel",
    "RidgeModel",
    "Table",
    "__version__",
    "append_rows",
    "connect",
    "factorize",
    "follow",
    "ingest",
    "open_table",
]

# Names are imported on first access: a worker that only sums blocks does not load scikit-learn, and
# `streamkernel --help` is fast.
_HOMES = {
    "BayesianCommitteeMachine": "streamkernel.estimators",
    "Factor": "streamkernel.factors",
    "GaussianModel": "streamkernel.models",
    "GaussianProcessClassifier": "streamkernel.estimators",
    "GaussianProcessPoissonRegressor": "streamkernel.estimators",
    "GaussianProcessRegressor": "streamkernel.estimators",
    "GeneralisedModel": "streamkernel.models",
    "KernelCCA": "streamkernel.estimators",
    "KernelMatchingPursuit": "streamkernel.estimators",
    "KernelMatchingPursuitClassifier": "streamkernel.estimators",
    "KernelPCA": "streamkernel.estimators",
    "KernelRidge": "streamkernel.estimators",
    "KernelRidgeClassifier": "streamkernel.estimators",
    "Nystroem": "streamkernel.estimators",
    "PursuitModel": "streamkernel.models",
    "RidgeModel": "streamkernel.models",
    "Table": "streamkernel.table",
    "append_rows": "streamkernel.table.ingest",
    "connect": "streamkernel.jobs",
    "factorize": "streamkernel.fits.factor",
    "follow": "streamkernel.following.follow",
    "ingest": "streamkernel.table.ingest",
    "open_table": "streamkernel.table",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'streamkernel' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
