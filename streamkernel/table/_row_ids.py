"""Ids of rows as stored: UTF-8 in rows of 64 bytes, filled with zeros, which compress to nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamkernel.type_aliases import AnyArray

ID_BYTES = 64


def as_rows(ids: Sequence[bytes]) -> AnyArray:
    """Rows (b, 64) uint8 of ids of at most 64 bytes."""
    return np.array(ids, dtype=f"S{ID_BYTES}").view(np.uint8).reshape(len(ids), ID_BYTES)


def as_texts(rows: AnyArray) -> list[str]:
    """The ids of rows (b, 64) uint8."""
    return [each.decode("utf-8", "replace") for each in np.ascontiguousarray(rows).view(f"S{ID_BYTES}")[:, 0].tolist()]
