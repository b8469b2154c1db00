"""Types of arrays by their numbers, and aliases of types that leave a part of themselves open, each with its reason.

Errors, wording and the first lines of the command line do without this module, because it loads NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Float: TypeAlias = NDArray[np.float64]
Int: TypeAlias = NDArray[np.int64]
Bool: TypeAlias = NDArray[np.bool_]

AnyArray: TypeAlias = NDArray[Any]
"""An array of any dtype."""

AnyDType: TypeAlias = np.dtype[Any]
"""Any dtype."""

Fields: TypeAlias = dict[str, Any]
"""Values of several types by name: JSON objects, parameters, states."""

FieldsView: TypeAlias = Mapping[str, Any]
"""The same, to read only."""

Unchecked: TypeAlias = Any
"""A value as a caller gave it: its type is checked when it is used, with an error that names it."""

ArrayOrDask: TypeAlias = Any
"""Values of rows, a NumPy array for rows in memory, else a lazy Dask array."""

Untyped: TypeAlias = Any
"""An object of a library without types: llvmlite, distributed, matplotlib, Bokeh, obstore."""
