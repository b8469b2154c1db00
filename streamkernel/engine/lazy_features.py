"""Products with a factor G as Dask arrays, for vectors that do not fit in memory.

Same spans, blocks, order and tree as the sweeps of a session: same bits. G is recomputed, or read, for each product: a
graph that used one G twice would hold all of it in memory.
"""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from streamkernel.basis import unfilled
from streamkernel.engine._tasks import map_span
from streamkernel.engine._tree import PairingTree
from streamkernel.engine.session import layout_of
from streamkernel.errors import DTypeError, ParameterError, ShapeMismatchError
from streamkernel.linalg import single_threaded_blas
from streamkernel.reductions import State
from streamkernel.reductions.sums import Features, FeatureTimes, FeatureTransposed
from streamkernel.table import Table
from streamkernel.type_aliases import AnyArray, ArrayOrDask, Float, Unchecked

Span = tuple[int, int]


def as_columns(V: Unchecked, rows: int) -> ArrayOrDask:
    """A Dask array of m rows as columns (m, q) of float64.

    Raises
    ------
    ParameterError, DTypeError, ShapeMismatchError
    """
    if not isinstance(V, da.Array):
        raise ParameterError(f"V must be a Dask array, not {type(V).__name__}; for arrays in memory use the operators")
    if V.dtype.kind not in "biuf":
        raise DTypeError(f"V holds {V.dtype}; give real numbers (float, integer or bool)")
    if V.ndim not in (1, 2) or V.shape[0] != rows:
        raise ShapeMismatchError(f"V has shape {V.shape}, the factor {rows} rows; give one row of V for each")
    return (V[:, None] if V.ndim == 1 else V).astype(np.float64)


def _transposed(V: AnyArray, span: Span, features: Features, table: Table, block_rows: int) -> State:
    return map_span(table, FeatureTransposed(features, V, span[0]), span, block_rows)


def _combine(features: Features, left: State, right: State) -> State:
    return FeatureTransposed(features, np.zeros((0, 0)), 0).combine(left, right)


def _finalize(features: Features, state: State) -> Float:
    return FeatureTransposed(features, np.zeros((0, 0)), 0).finalize(state)


def _times(A: AnyArray, span: Span, features: Features, table: Table, block_rows: int) -> AnyArray:
    with single_threaded_blas():
        return np.concatenate([features.raw(block.X) @ A for block in table.blocks(*span, block_rows)])


def _coefficients(features: Features, A: AnyArray) -> Float:
    return FeatureTimes.of(features, A).coefficients


def lazy_transposed(features: Features, table: Table, V: Unchecked) -> ArrayOrDask:
    """``G^T V`` (n, q) as a Dask array of one chunk.

    Parameters
    ----------
    features : Features of n functions.
    table : m rows.
    V : Dask array (m, q) of float64, in any chunks.
    """
    q = V.shape[1]
    layout = layout_of(FeatureTransposed(features, unfilled(table.n_rows, q), table.start), table)
    lengths = tuple(stop - start for start, stop in layout.spans)
    pieces = V.rechunk((lengths, (q,))).to_delayed()[:, 0]
    held_table, held_features = delayed(table, pure=False), delayed(features, pure=False)
    leaf, join, finish = (delayed(task, pure=False) for task in (_transposed, _combine, _finalize))
    tree: PairingTree[Any] = PairingTree(len(pieces), lambda left, right: join(held_features, left, right))
    for number, (piece, span) in enumerate(zip(pieces, layout.spans, strict=True)):
        tree.add(number, leaf(piece, span, held_features, held_table, layout.block_rows))
    return da.from_delayed(finish(held_features, tree.root()), (features.width, q), np.float64)


def lazy_times(features: Features, table: Table, A: Unchecked) -> ArrayOrDask:
    """``G A`` (m, q) as a Dask array in chunks of the table's spans.

    Parameters
    ----------
    features : Features of n functions.
    table : m rows.
    A : Dask array (n, q) of float64.
    """
    q = A.shape[1]
    layout = layout_of(FeatureTimes(features, unfilled(features.width, q), np.zeros(q)), table)
    whole = A.rechunk((features.width, q)).to_delayed()[0, 0]
    held_table, held_features = delayed(table, pure=False), delayed(features, pure=False)
    coefficients = delayed(_coefficients, pure=False)(held_features, whole)
    task = delayed(_times, pure=False)
    parts = [
        da.from_delayed(
            task(coefficients, span, held_features, held_table, layout.block_rows), (span[1] - span[0], q), np.float64
        )
        for span in layout.spans
    ]
    return da.concatenate(parts, axis=0)
