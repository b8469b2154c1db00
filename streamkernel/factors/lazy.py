"""K~ and its ridge inverse on vectors larger than memory: Dask arrays in, Dask arrays out (see `operators`)."""

from __future__ import annotations

import numpy as np

from streamkernel.engine.lazy_features import as_columns, lazy_times, lazy_transposed
from streamkernel.factors.features import FeatureRows
from streamkernel.factors.operators import RidgeFactor
from streamkernel.reductions.sums import FeatureSums
from streamkernel.type_aliases import ArrayOrDask, Unchecked


def lazy_product(rows: FeatureRows, V: Unchecked) -> ArrayOrDask:
    """``K~ V = G (G^T V)``, computed lazily.

    Parameters
    ----------
    rows : the factor.
    V : Dask array (m,) or (m, q), in any chunks.

    Returns
    -------
    Dask array of V's shape, in chunks of the table's spans.
    """
    columns = as_columns(V, rows.shape[0])
    product = lazy_times(rows.features, rows.table, lazy_transposed(rows.features, rows.table, columns))
    return product[:, 0] if V.ndim == 1 else product


def lazy_solve(
    rows: FeatureRows, V: Unchecked, rho: float, sums: FeatureSums, *, again: Unchecked = None
) -> ArrayOrDask:
    """``(K~ + rho I)^-1 V = (V - G (rho I + H)^-1 G^T V) / rho``, computed lazily.

    Parameters
    ----------
    rows : the factor.
    V : Dask array (m,) or (m, q), in any chunks.
    rho : ridge > 0.
    sums : result of `FeatureRows.gram`.
    again : the values of V from tasks of their own, such as ``da.from_zarr(path, name="again")``. The formula uses V
        twice, one sweep apart: without `again` Dask holds (or spills) all of V in between.

    Returns
    -------
    Dask array of V's shape.
    """
    columns, second = (as_columns(values, rows.shape[0]) for values in (V, V if again is None else again))
    factor = RidgeFactor(sums.H, rho)
    inner = lazy_transposed(rows.features, rows.table, columns).map_blocks(factor.solve, dtype=np.float64)
    solution = (second - lazy_times(rows.features, rows.table, inner)) / factor.rho
    return solution[:, 0] if V.ndim == 1 else solution
