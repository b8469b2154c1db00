"""Values of Arrow's columns: numbers with NaN for what is missing, and text as codes of labels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamkernel.type_aliases import AnyArray, Int, Untyped


def floats(column: Untyped) -> AnyArray:
    """Numbers of a column; a missing value becomes NaN, which the finite check then names."""
    if pa.types.is_boolean(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    return values.astype(np.float64) if values.dtype.kind != "f" else values


def text_labels(column: Untyped) -> tuple[Int, list[str]]:
    """Codes (b,) of a column of text (-1: no text), and their labels."""
    encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    labels = encoded.dictionary.to_pylist()
    empty = [code for code, label in enumerate(labels) if label is None or label == ""]
    return np.where(np.isin(codes, empty), -1, codes) if empty else codes, [str(label) for label in labels]
