"""Random numbers that belong to rows: the draw does not depend on blocks, workers or order of arrival.

Philox (Salmon et al. 2011) is a counter-based generator: its key is made of (seed, stream), its counter is the row
number, so that row r has the same variates in whichever block it is read.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["row_uniforms", "stream_generator", "stream_word"]

_PER_COUNTER = 4  # one Philox4x64 counter yields four 64-bit words


def _key(seed: int, stream: tuple[int, ...]) -> NDArray[np.uint64]:
    words = np.random.SeedSequence(entropy=seed, spawn_key=stream).generate_state(2, np.uint64)
    return words.astype(np.uint64, copy=False)


def row_uniforms(seed: int, stream: tuple[int, ...], start: int, count: int) -> NDArray[np.float64]:
    """Uniform variates in (0, 1) of rows ``start .. start + count - 1``; (count, 4) float64.

    Parameters
    ----------
    seed : the user's seed.
    stream : which draw this is (a round's number, a purpose); other streams are independent.
    """
    generator = np.random.Philox(key=_key(seed, stream), counter=start)
    raw = generator.random_raw(_PER_COUNTER * count).reshape(count, _PER_COUNTER)
    # 53 bits at the centre of their cells: never 0, never 1, so that logarithms stay finite.
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54


def stream_word(seed: int, stream: tuple[int, ...]) -> np.uint64:
    """A word that belongs to a stream, to key a hash with."""
    return np.uint64(_key(seed, stream)[0])


def stream_generator(seed: int, stream: tuple[int, ...]) -> np.random.Generator:
    """A generator for draws that are made on the driver, independent of those of the rows."""
    return np.random.Generator(np.random.Philox(key=_key(seed, (*stream, 1 << 20))))
