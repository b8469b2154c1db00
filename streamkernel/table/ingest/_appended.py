"""The appends of a table, known by their rows: an append that is run again is recognised.

A process may be killed after it has published its rows: nobody hears that they are there. So the attribute `appended`
of a table has an entry for each append::

    times, rows    numbers of appends and of rows that they added
    batches        for each of the last 10,000 appends [first row, rows, digest of its rows]; none of those that earlier
                   releases made
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xxhash

from streamkernel.atomic import text_digest
from streamkernel.errors import ParameterError
from streamkernel.pairs import columns_in, values_in
from streamkernel.table.ingest.readers.reader import Rows
from streamkernel.type_aliases import AnyArray, Fields, FieldsView
from streamkernel.wording import option

# An entry has some 90 bytes, and the attribute is written anew by each append and read with the table: a table with an
# append each minute would have 45 MB of them after a year.
_KNOWN = 10_000

# What becomes of rows that were appended before.
REPEATED_POLICIES = ("refuse", "skip", "append")


class BatchDigest:
    """The digest of rows, (m, p) features with targets, weights and ids, however they are cut into batches.

    Rows are digested as a table stores them, so that a CSV file and a Parquet file of the same rows have one digest. Of
    sparse rows zeros among the entries do not count.

    Parameters
    ----------
    sparse : features are rows in pairs.
    """

    def __init__(self, *, sparse: bool) -> None:
        self._sparse = sparse
        self._parts: dict[str, Any] = {}
        self._rows = 0

    def add(self, rows: Rows) -> None:
        """Add the next rows."""
        X, y, w, ids = rows
        self._rows += len(X)
        if self._sparse:
            there = values_in(X) != 0.0
            self._update("entries", there.sum(axis=1))
            self._update("columns", columns_in(X)[there])
            self._update("values", values_in(X)[there])
        else:
            self._update("X", X)
        for name, part in {"y": y, "w": w, "id": ids}.items():
            if part is not None:
                self._update(name, part)

    def _update(self, name: str, values: AnyArray) -> None:
        if name not in self._parts:
            self._parts[name] = xxhash.xxh3_128()
        # An empty array has no buffer of bytes.
        if values.size:
            self._parts[name].update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)

    @property
    def value(self) -> str:
        """64 hexadecimal digits."""
        parts = sorted((name, part.hexdigest()) for name, part in self._parts.items())
        return text_digest(json.dumps([self._rows, *parts]))


def check_repeated(policy: str) -> None:
    """Raise `ParameterError` unless the policy is one of `REPEATED_POLICIES`."""
    if policy not in REPEATED_POLICIES:
        raise ParameterError(
            f"{option('repeated')} must be one of {', '.join(REPEATED_POLICIES)}, not {policy!r}", value=policy
        )


def place_of(digest: str, appended: FieldsView) -> tuple[int, int] | None:
    """The first and the last row (exclusive) of the latest append with this digest; None where there is none."""
    for first, rows, known in reversed(appended.get("batches", [])):
        if known == digest:
            return int(first), int(first) + int(rows)
    return None


def with_batch(appended: FieldsView, first: int, rows: int, digest: str) -> Fields:
    """The attribute `appended` after one more append."""
    return {
        "times": appended.get("times", 0) + 1,
        "rows": appended.get("rows", 0) + rows,
        "batches": [*appended.get("batches", []), [first, rows, digest]][-_KNOWN:],
    }
