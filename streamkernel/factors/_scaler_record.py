"""The scaler of a record and its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from streamkernel.errors import ModelFormatError
from streamkernel.metric import MetricScaler
from streamkernel.records import ScalerRecord
from streamkernel.table import ClippedScaler, RankScaler, RowScaler, Scaler, SparseScaler
from streamkernel.type_aliases import AnyArray


def scaler_of(
    stored: ScalerRecord | None, arrays: Mapping[str, AnyArray] = MappingProxyType({}), suffix: str = ""
) -> RowScaler | None:
    """The scaler with these numbers.

    Parameters
    ----------
    arrays : arrays by name, which hold the metric and the knots, if it has them; names end in `suffix`.

    Raises
    ------
    ModelFormatError
        There is no such scaler, or its arrays are missing.
    ParameterError
        The numbers do not fit together.
    """
    if stored is None:
        return None
    mean, scale = np.array(stored.mean, float), np.array(stored.scale, float)
    columns: RowScaler
    if stored.kind == "standard":
        columns = Scaler(mean, scale)
    elif stored.kind == "robust":
        columns = ClippedScaler(mean, scale, np.array(stored.lower, float), np.array(stored.upper, float))
    elif stored.kind == "rank":
        names = [f"scaler_{name}{suffix}" for name in ("knots", "values", "counts")]
        missing = [name for name in names if name not in arrays]
        if missing:
            raise ModelFormatError(f"its scaler is of the kind rank, and it lacks the array {missing[0]}")
        columns = RankScaler(mean, *(arrays[name] for name in names))
    elif stored.kind == "sparse":
        columns = SparseScaler(scale)
    else:
        raise ModelFormatError(
            f"its scaler is of the kind {stored.kind!r}, and those known are standard, robust, rank and sparse"
        )
    metric = arrays.get(f"metric{suffix}")
    return columns if metric is None else MetricScaler(columns, metric)
