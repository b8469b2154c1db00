"""Predictions that wait to be sent: in memory while they are few, then in an unnamed file.

The answer begins when all rows have been predicted, for two reasons. A row that cannot be used gives an error, not a
broken answer. And there is no deadlock with a client that sends its whole body before it reads.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence

import numpy as np

from streamkernel.type_aliases import AnyArray, Float, Untyped

_IN_MEMORY = 1 << 20
_PIECE_ROWS = 1 << 16


class Spool:
    """Rows of float64 values.

    Parameters
    ----------
    rows : number of rows in all.
    outputs : name and number of columns of each output.
    """

    def __init__(self, rows: int, outputs: Sequence[tuple[str, int]]) -> None:
        self.rows = rows
        self.outputs = list(outputs)
        self.columns = sum(columns for _, columns in outputs)
        self._file: Untyped = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return 8 * self.rows * self.columns

    @property
    def in_memory(self) -> bool:
        """Whether the rows fit in memory, without a file."""
        return self.nbytes <= _IN_MEMORY

    def append(self, values: dict[str, AnyArray]) -> None:
        """Append the outputs of the next rows."""
        parts = [np.asarray(values[name], np.float64).reshape(-1, columns) for name, columns in self.outputs]
        block = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        self._file.write(np.ascontiguousarray(block).data)

    def pieces(self) -> Iterator[Float]:
        """All rows from the first, in pieces (b, columns). Can be called again."""
        row = 8 * self.columns
        for first in range(0, self.rows, _PIECE_ROWS):
            count = min(_PIECE_ROWS, self.rows - first)
            self._file.seek(first * row)
            yield np.frombuffer(self._file.read(count * row), np.float64).reshape(count, self.columns)

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
