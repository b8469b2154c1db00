"""Random numbers keyed by row: a draw does not depend on blocks, workers or order of arrival.

Philox (Salmon et al. 2011) is a counter-based generator. Its key is a hash of (seed, stream) and its counter is the
row number. Row r therefore has the same variates in every block that contains it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamkernel.table import Table
from streamkernel.type_aliases import Float, Int

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


def uniform_rows(table: Table, size: int, seed: int, stream: tuple[int, ...]) -> Int:
    """Up to `size` distinct row numbers of a table, drawn uniformly, in random order: every prefix is such a draw."""
    m = table.n_rows
    drawn = stream_generator(seed, stream).choice(m, size=min(size, m), replace=False)
    return table.start + drawn.astype(np.int64)
