"""streamkernel: kernel methods on data that does not fit in memory.

The data path, from top to bottom (imports go down it only)::

    SOURCE --ingest--> table --blocks--> kernels --> basis --> reductions --engine--> sums --> solvers --> model
                                                       ^                        |
                                                       +------- selection <-----+

1. a **basis**: n rows chosen as basis functions;
2. a **sweep**: one pass over all row blocks, each block a small state, states combined in a fixed tree;
3. **small dense algebra** on n x n matrices, on one machine, in float64.
"""

from streamkernel.estimators import KernelRidge, KernelRidgeClassifier, RidgeModel
from streamkernel.table import Table, open_table
from streamkernel.table.ingest import ingest

__version__ = "0.1.0"

__all__ = ["KernelRidge", "KernelRidgeClassifier", "RidgeModel", "Table", "__version__", "ingest", "open_table"]
