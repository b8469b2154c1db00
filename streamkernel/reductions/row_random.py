"""Random numbers keyed by row: a draw does not depend on blocks, workers or order of arrival.

Philox (Salmon et al. 2011) is a counter-based generator. Its key is a hash of (seed, stream) and its counter is the
row number. Row r therefore has the same variates in every block that contains it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from streamkernel.table import Table, WeightSums
from streamkernel.type_aliases import Bool, Float, Int

_PER_COUNTER = 4  # one Philox4x64 counter yields four 64-bit words
_VARIATES = 1 << 15  # rows whose variates are made at once
# Of the draws that are kept: a fit makes each of its draws twice, to fetch their rows in one sweep, and to use them.
_KEPT_ROWS = 1 << 19
_DRAWN: WeakKeyDictionary[WeightSums, dict[tuple[int, tuple[int, ...]], DrawnRows]] = WeakKeyDictionary()


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
    return _uniform(_row_words(seed, stream, start, count))


def _row_words(seed: int, stream: tuple[int, ...], start: int, count: int) -> NDArray[np.uint64]:
    """The 64-bit words (count, 4) of these rows."""
    generator = np.random.Philox(key=_key(seed, stream), counter=start)
    return generator.random_raw(_PER_COUNTER * count).reshape(count, _PER_COUNTER)


def _uniform(words: NDArray[np.uint64]) -> Float:
    # 53 bits, at the centres of cells of width 2^-53: never 0 and never 1, so that logarithms stay finite.
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54


def stream_word(seed: int, stream: tuple[int, ...]) -> np.uint64:
    """A 64-bit word of a stream, the key of a hash."""
    return np.uint64(_key(seed, stream)[0])


def stream_generator(seed: int, stream: tuple[int, ...]) -> np.random.Generator:
    """A generator for draws on the driver, independent of the variates of the rows."""
    return np.random.Generator(np.random.Philox(key=_key(seed, (*stream, 1 << 20))))


def counted_rows(table: Table) -> Int:
    """Numbers of the rows of weight > 0, ascending: all rows where each counts once."""
    sums = table.weight_sums
    if sums is None or sums.counted == table.n_rows:
        return np.arange(table.start, table.stop, dtype=np.int64)
    runs = np.flatnonzero(sums.counts).tolist()
    found = [start + np.flatnonzero(w).astype(np.int64) for start, w in table.weight_runs(runs)]
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
    """Up to `size` rows of a table. Of rows with weights those runs are read that may hold one of the drawn rows.

    Weights that are all 1 draw the rows that no weights draw.
    """
    sums = table.weight_sums
    if sums is None or sums.ones:
        m = table.n_rows
        drawn = stream_generator(seed, stream).choice(m, size=min(size, m), replace=False)
        return DrawnRows(table.start + drawn.astype(np.int64), float(m))
    return _drawn(table, sums, [_Wanted(size, seed, stream)])[0]


def draw_at_once(table: Table, seed: int, wanted: Sequence[tuple[int, tuple[int, ...]]]) -> None:
    """Make draws of some sizes and streams in one pass over row weights; `draw_rows` then reads nothing for them."""
    sums = table.weight_sums
    if sums is not None and not sums.ones:
        _drawn(table, sums, [_Wanted(size, seed, stream) for size, stream in wanted])


def _drawn(table: Table, sums: WeightSums, wanted: list[_Wanted]) -> list[DrawnRows]:
    """These draws; those that are not known are made, and the latest are kept."""
    kept = _DRAWN.setdefault(sums, {})
    found = {each: kept.pop(each.name, None) for each in wanted}
    missing = [
        each for each, drawn in found.items() if drawn is None or (len(drawn) < each.size and not drawn.complete)
    ]
    found.update(zip(missing, _draw(table, sums, missing), strict=True))
    draws = []
    for each in wanted:
        drawn = found[each]
        assert drawn is not None
        kept[each.name] = drawn
        draws.append(drawn.first(each.size))
    while len(kept) > len(wanted) and sum(map(len, kept.values())) > _KEPT_ROWS:
        kept.pop(next(iter(kept)))
    return draws


@dataclass(frozen=True)
class _Wanted:
    """A draw to make."""

    size: int
    seed: int
    stream: tuple[int, ...]

    @property
    def name(self) -> tuple[int, tuple[int, ...]]:
        return self.seed, self.stream


class _Smallest:
    """The rows of the smallest keys so far, of a draw whose keys are all below a limit."""

    def __init__(self, wanted: _Wanted, limit: float) -> None:
        self._wanted, self._limit = wanted, limit
        self.keys, self.rows, self.weights = np.zeros(0), np.zeros(0, np.int64), np.zeros(0)

    def add(self, start: int, w: Float, some: _Variates | None) -> None:
        """Add a run with weights w (b,); `some` are the rows whose keys may be below the limit, None for all."""
        at, u = (np.arange(len(w)), row_uniforms(*self._wanted.name, start, len(w))[:, 0]) if some is None else some
        alive = at[w[at] > 0.0]
        with np.errstate(over="ignore"):  # weights next to 0, whose rows are drawn after all others
            fresh = np.minimum(-np.log(u[w[at] > 0.0]) / w[alive], np.finfo(np.float64).max)
        below = fresh <= self._limit
        alive, fresh = alive[below], fresh[below]
        keys, rows = np.concatenate([self.keys, fresh]), np.concatenate([self.rows, start + alive.astype(np.int64)])
        weights = np.concatenate([self.weights, w[alive]])
        # The one beyond the draw tells its probabilities.
        kept = np.lexsort((rows, keys))[: self._wanted.size + 1]
        self.keys, self.rows, self.weights = keys[kept], rows[kept], weights[kept]

    @property
    def whole(self) -> bool:
        """Whether no row beyond the limit can belong to the draw."""
        return len(self.keys) > self._wanted.size or self._limit == np.inf

    def drawn(self, total: float) -> DrawnRows:
        return DrawnRows(self.rows, total, self.weights, self.keys).first(self._wanted.size)


def _draw(table: Table, sums: WeightSums, wanted: Sequence[_Wanted]) -> list[DrawnRows]:
    """The rows of the smallest keys. Their limits are guessed; where a guess is too low, all runs are read."""
    found: dict[_Wanted, _Smallest] = {}
    while missing := [each for each in wanted if each not in found or not found[each].whole]:
        runs: dict[int, list[tuple[_Smallest, _Variates | None]]] = {}
        for each in missing:
            limit = np.inf if each in found else sums.key_reaching(each.size + 1)
            found[each] = _Smallest(each, limit)
            for run, some in _runs_below(sums, limit, *each.name):
                runs.setdefault(run, []).append((found[each], some))
        numbers = sorted(runs)
        for run, (start, w) in zip(numbers, table.weight_runs(numbers), strict=True):
            for smallest, some in runs[run]:
                smallest.add(start, w, some)
    return [found[each].drawn(sums.total) for each in wanted]


_Variates = tuple[Int, Float]
"""Positions of some rows in a run, ascending, and their variates."""


def _runs_below(
    sums: WeightSums, limit: float, seed: int, stream: tuple[int, ...]
) -> Iterator[tuple[int, _Variates | None]]:
    """The runs with rows whose keys may be below a limit by the run's largest weight, and these rows; None for all."""
    for run in np.flatnonzero(sums.counts).tolist():
        if limit == np.inf:
            yield run, None
            continue
        start, stop = int(sums.cuts[run]), int(sums.cuts[run + 1])
        # With a margin for the rounding of logarithm and quotient.
        least = np.exp(-sums.largest[run] * limit * (1.0 + 1e-9)) * (1.0 - 1e-9)
        # A variate of this size has a word of at least this one.
        word = np.uint64(max(0, int(least * 2.0**53) - 2)) << np.uint64(11)
        rows, variates = [np.zeros(0, np.int64)], [np.zeros(0)]
        for first in range(start, stop, _VARIATES):
            words = _row_words(seed, stream, first, min(_VARIATES, stop - first))[:, 0]
            some = np.flatnonzero(words >= word)
            rows.append(some + (first - start))
            variates.append(_uniform(words[some]))
        at = np.concatenate(rows)
        if len(at):
            yield run, (at, np.concatenate(variates))


def uniform_rows(table: Table, size: int, seed: int, stream: tuple[int, ...]) -> Int:
    """Up to `size` distinct row numbers of a table, drawn in proportion to the row weights; see `DrawnRows`."""
    return draw_rows(table, size, seed, stream).rows
