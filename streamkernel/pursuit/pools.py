"""The candidates of a sweep: how they are drawn, and how many are picked before the next sweep."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from streamkernel.errors import ParameterError
from streamkernel.kernels.parameters import checked_integer, checked_probability
from streamkernel.pursuit.choices import DRAWS, POOLS
from streamkernel.reductions import counted_rows, draw_at_once, stream_generator, uniform_rows
from streamkernel.selection.candidates import candidates_needed
from streamkernel.table import Table
from streamkernel.type_aliases import Int
from streamkernel.wording import option

# Streams of the counter-based generator, different from those of `selection.draws`.
_POOL, _ORDER = 21, 22

_SWEEPS = 40  # sweeps for all terms; fewer where each would pick less than the next number
_LEAST_PICKS = 5  # picks per sweep: with fewer, a small model would read the table for every term
_SHARED = 16  # candidates per pick where all compete
_LEAST_SHARED = 240  # candidates per sweep: a few good functions must be among them


@dataclass(frozen=True)
class Pools:
    """The draw of candidates.

    Parameters
    ----------
    kind : "split": a fresh sub-pool for each pick (stochastic matching pursuit, Popovici et al. 2005). "shared": all
        candidates of a sweep compete at each of its picks. "full": every row is a candidate, in one sweep.
    draw : "uniform", or "residual": with probability ~ the residual of a row's targets one sweep ago.
    candidates : number per pick; None for as many as `eps` and `quantile` require (split), or for 16, more in small
        sweeps (shared).
    picks : number per sweep; None for a 40th of the terms, at least 5.
    eps, quantile : a sub-pool lacks a candidate among the best 1 - quantile of all rows with probability eps.
    """

    kind: str = "shared"
    draw: str = "uniform"
    candidates: int | None = None
    picks: int | None = None
    eps: float = 0.05
    quantile: float = 0.95

    def __post_init__(self) -> None:
        for name, value, choices in (("pool", self.kind, POOLS), ("draw", self.draw, DRAWS)):
            if value not in choices:
                raise ParameterError(f"{option(name)} must be one of {', '.join(choices)}, not {value!r}", value=value)
        for name in ("candidates", "picks"):
            if getattr(self, name) is not None:
                checked_integer(name, getattr(self, name))
        checked_probability("eps", self.eps)
        checked_probability("quantile", self.quantile)
        if self.kind != "split" and (self.eps, self.quantile) != (Pools.eps, Pools.quantile):
            raise ParameterError(
                f"{option('eps')} and {option('quantile')} mean nothing to the pool {self.kind!r}: they size the "
                "sub-pools of 'split'; give that pool, or leave them out"
            )
        if self.kind == "full" and (self.candidates or self.picks or self.draw != "uniform"):
            raise ParameterError(
                f"the pool 'full' holds every row at every pick; leave {option('draw')}, {option('candidates')} and "
                f"{option('picks')} out"
            )

    def each(self, terms: int, rows: int) -> int:
        """Number of candidates per pick."""
        if self.candidates is not None:
            return min(self.candidates, rows)
        if self.kind == "split":
            return candidates_needed(self.eps, self.quantile, rows)
        return min(max(_SHARED, math.ceil(_LEAST_SHARED / self._wanted(terms))), rows)

    def _wanted(self, terms: int) -> int:
        return min(self.picks or max(math.ceil(terms / _SWEEPS), _LEAST_PICKS), terms)

    def in_sweep(self, terms: int, rows: int) -> int:
        """Number of picks of one sweep; disjoint sub-pools cannot need more candidates than there are rows."""
        if self.kind == "full":
            return terms
        wanted = self._wanted(terms)
        return wanted if self.kind == "shared" else max(1, min(wanted, rows // self.each(terms, rows)))

    def size(self, terms: int, rows: int) -> int:
        """Number of candidates of one sweep."""
        if self.kind == "full":
            return rows
        return min(self.each(terms, rows) * self.in_sweep(terms, rows), rows)

    def drawn(self, terms: int, rows: int, held_out: float) -> int:
        """Number of rows drawn for a sweep: more than needed, because held-out and chosen rows are then left out."""
        if self.kind == "full":
            return rows
        size = self.size(terms, rows)
        return min(size + 8 + size // 8 + math.ceil(1.3 * size * held_out / (1.0 - held_out)), rows)

    def rows(self, table: Table, seed: int, round_: int, terms: int, held_out: float) -> Int:
        """Row numbers of a round's candidates, drawn uniformly, in random order; all rows in order for "full".

        `held_out` is the share of held-out rows, which are not candidates; the features of a row decide.
        """
        if self.kind == "full":
            return counted_rows(table)
        return uniform_rows(table, self.drawn(terms, table.counted, held_out), seed, (_POOL, round_))

    def draw_at_once(self, table: Table, seed: int, rounds: int, terms: int, held_out: float) -> None:
        """Draw the candidates of all rounds in one pass over row weights."""
        if self.kind != "full":
            size = self.drawn(terms, table.counted, held_out)
            draw_at_once(table, seed, [(size, (_POOL, round_)) for round_ in range(rounds)])

    def shuffled(self, seed: int, round_: int, count: int) -> Int:
        """A random order of candidates that were drawn by their residuals, so that sub-pools are alike."""
        order: Int = stream_generator(seed, (_ORDER, round_)).permutation(count).astype(np.int64)
        return order

    def groups(self, count: int, picks: int) -> Int | None:
        """(count,) sub-pool of each candidate; None where all compete."""
        if self.kind != "split":
            return None
        return np.arange(count) * min(picks, count) // max(count, 1)
