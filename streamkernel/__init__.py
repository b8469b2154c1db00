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
    from streamkernel.comparison import Comparison, cross_validate
    from streamkernel.compression import CompressedTable
    from streamkernel.estimators import (
        BayesianCommitteeMachine,
        GaussianProcessClassifier,
        GaussianProcessPoissonRegressor,
        GaussianProcessRegressor,
        KernelBoostingClassifier,
        KernelCCA,
        KernelLPClassifier,
        KernelLPRegressor,
        KernelMatchingPursuit,
        KernelMatchingPursuitClassifier,
        KernelOneClass,
        KernelPCA,
        KernelQuantileRegressor,
        KernelRidge,
        KernelRidgeClassifier,
        KernelSVC,
        KernelSVR,
        Nystroem,
        TableEncoder,
    )
    from streamkernel.factors import Factor
    from streamkernel.fits.compression.compress import compress
    from streamkernel.fits.factor.factor import factorize
    from streamkernel.following.follow import follow
    from streamkernel.jobs import connect
    from streamkernel.models import GaussianModel, GeneralisedModel, PursuitModel, RidgeModel
    from streamkernel.planning import plan
    from streamkernel.table import Table, open_table
    from streamkernel.table.ingest.append import append_rows
    from streamkernel.table.ingest.ingest import ingest, suggest_schema
    from streamkernel.table.schema import Column, Schema

__version__ = "0.1.0"

__all__ = [
    "BayesianCommitteeMachine",
    "Column",
    "Comparison",
    "CompressedTable",
    "Factor",
    "GaussianModel",
    "GaussianProcessClassifier",
    "GaussianProcessPoissonRegressor",
    "GaussianProcessRegressor",
    "GeneralisedModel",
    "KernelBoostingClassifier",
    "KernelCCA",
    "KernelLPClassifier",
    "KernelLPRegressor",
    "KernelMatchingPursuit",
    "KernelMatchingPursuitClassifier",
    "KernelOneClass",
    "KernelPCA",
    "KernelQuantileRegressor",
    "KernelRidge",
    "KernelRidgeClassifier",
    "KernelSVC",
    "KernelSVR",
    "Nystroem",
    "PursuitModel",
    "RidgeModel",
    "Schema",
    "Table",
    "TableEncoder",
    "__version__",
    "append_rows",
    "compress",
    "connect",
    "cross_validate",
    "factorize",
    "follow",
    "ingest",
    "open_table",
    "plan",
    "suggest_schema",
]

# Names are imported on first access: a worker that only sums blocks does not load scikit-learn, and
# `streamkernel --help` is fast. Those that are not here are estimators.
_HOMES = {
    "Column": "table.schema",
    "Comparison": "comparison",
    "CompressedTable": "compression",
    "Factor": "factors",
    "GaussianModel": "models",
    "GeneralisedModel": "models",
    "PursuitModel": "models",
    "RidgeModel": "models",
    "Schema": "table.schema",
    "Table": "table",
    "append_rows": "table.ingest",
    "compress": "fits.compression.compress",
    "connect": "jobs",
    "cross_validate": "comparison",
    "factorize": "fits.factor.factor",
    "follow": "following.follow",
    "ingest": "table.ingest",
    "open_table": "table",
    "plan": "planning",
    "suggest_schema": "table.ingest",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'streamkernel' has no attribute {name!r}")
    return getattr(import_module(f"streamkernel.{_HOMES.get(name, 'estimators')}"), name)
