"""Rows that are made when they are read. Row i is the same in every block that has it."""

from __future__ import annotations

import numpy as np

from streamkernel.atomic import canonical_json, text_digest
from streamkernel.table.rows import RowArray
from streamkernel.table.synthetic._generators import NOISE_STREAM, SyntheticTable
from streamkernel.table.synthetic._numbers import Stream, Words, uniforms
from streamkernel.type_aliases import AnyArray, AnyDType, Float

# Rows: the numbers on the way stay in the second-level cache. With a quarter of them, threads that make rows wait for
# each other: every operation of NumPy takes the interpreter's lock once, and two threads were as slow as one.
_AT_ONCE = 32_768

# Single precision holds so many digits of a number in [0, 1).
_DIGITS = {"float32": 24, "float64": 53}


class SyntheticRows(RowArray):
    """The features X (m, p) of a synthetic table: column j is stream j, uniform in [0, 1)."""

    proved = True  # no read can give other values

    def __init__(self, table: SyntheticTable, url: str) -> None:
        self.table, self._url = table, url
        self.chunk_rows = table.chunk
        self.name, self.shape, self.dtype = self._described()

    def _described(self) -> tuple[str, tuple[int, ...], AnyDType]:
        return "X", (self.table.rows, self.table.features), np.dtype(self.table.dtype)

    @property
    def fingerprint(self) -> str:
        return text_digest(canonical_json({**self.table.identity, "array": self.name}))

    def where(self, row: int) -> str:
        return f"{self.name} of {self._url}"

    def load(self, first: int, last: int) -> AnyArray:
        """Make rows [first, last), which may be any."""
        out = np.empty((last - first, *self.shape[1:]), dtype=self.dtype)
        self._fill(out, first)
        return out

    def _fill(self, out: AnyArray, first: int) -> None:
        for column in range(self.table.features):
            stream = Stream(self.table.seed, column, first)
            for start in range(0, len(out), _AT_ONCE):
                part = out[start : start + _AT_ONCE, column]
                part[:] = self._numbers(stream.take(len(part)))

    def _numbers(self, words: Words) -> Float:
        return uniforms(words, _DIGITS[self.table.dtype])


class SyntheticTargets(SyntheticRows):
    """The targets y (m,) of a synthetic table: numbers in float64, or positions of classes."""

    def _described(self) -> tuple[str, tuple[int, ...], AnyDType]:
        coded = self.table.maker.classes(self.table.options) is not None
        return "y", (self.table.rows,), np.dtype(np.int64 if coded else np.float64)

    def _fill(self, out: AnyArray, first: int) -> None:
        table, maker = self.table, self.table.maker
        columns = [Stream(table.seed, column, first) for column in range(maker.informative)]
        noise = [Stream(table.seed, NOISE_STREAM + k, first) for k in range(2)]
        for start in range(0, len(out), _AT_ONCE):
            part = out[start : start + _AT_ONCE]
            X = np.stack([self._numbers(column.take(len(part))) for column in columns])
            words = [stream.take(len(part)) for stream in noise] if table.noise else []
            part[:] = maker.targets(X, table.noise, words.__getitem__, table.options)
