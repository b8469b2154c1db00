"""Random numbers keyed by row: a draw does not depend on blocks, workers or order of arrival.

Philox (Salmon et al. 2011) is a counter-based generator. Its key is a hash of (seed, stream) and its counter is the
row number. Row r therefore has the same variates in every block that contains it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamkernel.table import Table
from streamkernel.type_aliases import Bool, Float, Int

_PER_COUNTER = 4  # one Philox4x64 counter yields four 64-bit words


def _key(seed: int, stream: tuple[int, ...]) -> NDArray[np.uint64]:
    words = np.random.SeedSequence(entropy=seed, spawn_key=stream).generate_state(2, np.uint64)
    return words.astype(np.uint64, copy=False)


def row_uniforms(seed: int, stream: tuple[int, ...], start: int, count: int) -> Float:
    """Uniform variates in (0, 1) for rows ``start .. start + count - 1``; (count, 4) float64.

    Parameters
    ----------
    seed : the user's seed.
    stream : identifier of the draw (the number of a round, a purpose); different streams are independent.
    """
    generator = np.random.Philox(key=_key(seed, stream), counter=start)
    raw = generator.random_raw(_PER_COUNTER * count).reshape(count, _PER_COUNTER)
    # 53 bits, at the centres of cells of width 2^-53: never 0 and never 1, so that logarithms stay finite.
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54


def stream_word(seed: int, stream: tuple[int, ...]) -> np.uint64:
    """A 64-bit word of a stream, the key of a hash."""
    return np.uint64(_key(seed, stream)[0])


def stream_generator(seed: int, stream: tuple[int, ...]) -> np.random.Generator:
    """A generator for draws on the driver, independent of the variates of the rows."""
    return np.random.Generator(np.random.Philox(key=_key(seed, (*stream, 1 << 20))))


def counted_rows(table: Table) -> Int:
    """Numbers of the rows of weight > 0, ascending: all rows where each counts once."""
    if table.weights is None:
        return np.arange(table.start, table.stop, dtype=np.int64)
    found = [start + np.flatnonzero(w).astype(np.int64) for start, w in table.weight_runs()]
    return np.concatenate([np.zeros(0, np.int64), *found])


@dataclass(frozen=True)
class DrawnRows:
    """Rows drawn in proportion to their weights, in random order: every prefix is such a draw.

    Of rows with weights, those with the smallest keys ``E_i / w_i`` are drawn, E_i exponential (Efraimidis & Spirakis
    2006): the first new row at every step has probability ~ w_i, as if copies were drawn uniformly. Given the key that
    follows, the probability of each row was ``1 - exp(-w_i key)`` (Cohen & Kaplan 2007, rank conditioning).

    Attributes
    ----------
    rows : (s,) int64 numbers, each once.
    total : sum of the weights of all rows.
    weights, keys : (s,) of these rows; None where every row counts once.
    following : key of the next row that was not drawn; infinite where all rows of weight > 0 are.
    """

    rows: Int
    total: float
    weights: Float | None = None
    keys: Float | None = None
    following: float = np.inf

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def complete(self) -> bool:
        """Whether the rows have weights, and all rows of weight > 0 are drawn."""
        return self.keys is not None and not np.isfinite(self.following)

    def first(self, count: int) -> DrawnRows:
        """The first rows of the draw."""
        if self.keys is None or self.weights is None:
            return DrawnRows(self.rows[:count], self.total)
        following = float(self.keys[count]) if count < len(self.keys) else self.following
        return DrawnRows(self.rows[:count], self.total, self.weights[:count], self.keys[:count], following)

    def where(self, kept: Bool) -> DrawnRows:
        """Those of the rows that a mask (s,) keeps."""
        weights, keys = (None if each is None else each[kept] for each in (self.weights, self.keys))
        return DrawnRows(self.rows[kept], self.total, weights, keys, self.following)

    def ascending(self) -> DrawnRows:
        """The rows in the order of their numbers; prefixes are then no draws."""
        order = np.argsort(self.rows)
        weights, keys = (None if each is None else each[order] for each in (self.weights, self.keys))
        return DrawnRows(self.rows[order], self.total, weights, keys, self.following)

    @property
    def importance(self) -> Float:
        """(s,) weights with which sums over these rows estimate those over all rows: ``w_i / p_i``, in sum `total`."""
        if self.weights is None:
            return np.full(len(self.rows), self.total / max(len(self.rows), 1))
        found = self.weights / -np.expm1(-self.weights * self.following)
        return found if self.complete or not len(found) else found * (self.total / found.sum())


def draw_rows(table: Table, size: int, seed: int, stream: tuple[int, ...]) -> DrawnRows:
    """Up to `size` rows of a table; their weights, if there are any, are read for it, and nothing else.

    Weights that are all 1 draw the rows that no weights draw.
    """
    if all((w == 1.0).all() for _, w in table.weight_runs()):
        m = table.n_rows
        drawn = stream_generator(seed, stream).choice(m, size=min(size, m), replace=False)
        return DrawnRows(table.start + drawn.astype(np.int64), float(m))
    keys, rows, weights, total = np.zeros(0), np.zeros(0, np.int64), np.zeros(0), 0.0
    for start, w in table.weight_runs():
        alive = np.flatnonzero(w)
        total += float(w.sum())
        fresh = -np.log(row_uniforms(seed, stream, start, len(w))[alive, 0]) / w[alive]
        keys, rows = np.concatenate([keys, fresh]), np.concatenate([rows, start + alive.astype(np.int64)])
        weights = np.concatenate([weights, w[alive]])
        # The one beyond the draw tells its probabilities.
        kept = np.lexsort((rows, keys))[: size + 1]
        keys, rows, weights = keys[kept], rows[kept], weights[kept]
    return DrawnRows(rows, total, weights, keys).first(size)


def uniform_rows(table: Table, size: int, seed: int, stream: tuple[int, ...]) -> Int:
    """Up to `size` distinct row numbers of a table, drawn in proportion to the row weights; see `DrawnRows`."""
    return draw_rows(table, size, seed, stream).rows
