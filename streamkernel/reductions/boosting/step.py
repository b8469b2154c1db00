"""One sweep of boosting: what the newest member gets wrong, and the rows that the next member is fitted to.

Row i has the mass of AdaBoost after members 1 .. r (Freund & Schapire 1997; Tresp 2001, section 3.1.3)::

    D_i = w_i u prod_t exp(a_t s_it) / Z_t        s_it = 1 where member t gives row i a wrong class, else -1

with row weights w, and a power of two u so that all masses sum to at most 1. Bounded masses are those of MadaBoost
(Domingo & Watanabe 2000) after the vote V of members 1 .. v::

    D_i = w_i u min(1, exp(-margin_i))            margin_i = V_y - max_{c != y} V_c

The mass follows from the class that each member gives the row, and how confidently. These codes are kept for the sweeps
that follow (`store.RowCodes`), a byte or two a row and member; where they are not, they are computed again.

The sweep that measures the error of a new member under D draws the sample of the next one, too. After the member is
weighted, the rows that it gets wrong have together the mass ``(C - 1) / C`` (one half for two classes), each of them in
proportion to D as before. So two reservoirs under the old D, of wrong and of right rows, are the next sample. With
bounded masses there is no such share. There the weight of the new member is known before the sweep, from rows that the
driver holds and the first sweep draws. The error is taken under D without the member, and one reservoir is drawn under
D with it.

A reservoir holds the rows with the smallest keys ``E_i / D_i``, E_i exponential and a function of (seed, draw, row):
the first new row at every step has a probability in proportion to D (Efraimidis & Spirakis 2006). Given the key that
follows, the probability of row i was ``1 - exp(-D_i key)``; the rows of a member count by ``D_i`` over it, which sums
to the size of their part of the sample. Where a reservoir holds all its rows, they count by D.

Masses are summed as whole numbers of 2^-61: the sums, and with them all that follows, are the same for any chunking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from streamkernel.reductions.boosting.found import BINS, MARGIN_BINS, Boosted, Drawn
from streamkernel.reductions.boosting.members import Members, bounded_masses, columns_of, vote_margins
from streamkernel.reductions.contract import Reduction, SentAsFields, State
from streamkernel.reductions.row_random import row_uniforms
from streamkernel.store import RowCodes
from streamkernel.table import Folds, RowBlock
from streamkernel.type_aliases import AnyArray, AnyDType, Bool, Float, Int

_MASS_BITS = 61
_STREAM = 31
_ROW_FLOPS = 150.0  # time of random numbers, masses and counts, in operations

Draw = Literal["none", "all", "errors", "disagreement", "vote"]


@dataclass(frozen=True)
class BoostingStep(SentAsFields, Reduction[Boosted]):
    """Accumulate `Boosted`.

    Parameters
    ----------
    members : Members so far, T of them; the last is new where more than `factors` has.
    factors, shifts : (r,) a_t and log Z_t of exponential masses.
    votes : (v,) weights of the first members in the vote whose errors are counted.
    unit : u of the masses.
    draw : "all" for independent reservoirs of all rows; "vote" for one by bounded masses; "errors" for rows
        that the newest member gets wrong, and right ones;
        "disagreement" for rows to which the first two members give different classes, by w; "none".
    sizes : rows of each reservoir.
    number : number of the draw.
    dtype : dtype of the table.
    bounded : whether masses are bounded; they follow from `votes` then.
    folds : folds, whose validation rows are not trained on; None for none.
    counted : sizes of the votes whose margins are counted.
    valued : whether their values on held-out rows are, too.
    kept : codes that earlier sweeps have written; None to compute those of all members.
    names : (T,) names of the members' codes there.
    first : number of the first row that has codes there.
    """

    members: Members
    factors: Float
    shifts: Float
    votes: Float
    unit: float
    draw: Draw
    sizes: tuple[int, ...]
    seed: int
    number: int
    dtype: AnyDType
    bounded: bool = False
    folds: Folds | None = None
    counted: tuple[int, ...] = ()
    valued: bool = False
    kept: RowCodes | None = None
    names: tuple[str, ...] = ()
    first: int = 0

    @property
    def row_multiple(self) -> int:
        return 1 if self.kept is None else self.kept.chunk_rows

    def map_block(self, block: RowBlock) -> State:
        assert block.Y is not None
        y, w, held = block.Y.argmax(axis=1), block.row_weights * self.unit, self._held(block)
        codes = self.codes(block)
        classes = self.members.classes_of(codes)
        trained = np.where(held, 0.0, w)
        # With bounded masses, the vote without the newest member too: one pass over the codes for both.
        old = max(len(self.members) - 1, 0)
        before = self.members.votes(codes, self.votes[:old])
        voted = self.members.with_votes(before, codes, self.votes, old)
        if self.bounded:
            mass, after = (trained * bounded_masses(vote_margins(V, y)) for V in (before, voted))
        else:
            mass = after = self._mass(classes, y, trained)
        draws, groups = self._groups(classes, y, after, trained)
        if self.draw == "disagreement" and len(self.members) == 3:
            mass = draws  # of the third machine, which is fitted to these rows
        wrong = classes[:, -1] != y if self._is_new else np.zeros(len(y), dtype=bool)
        outvoted = voted.argmax(axis=1) != y
        own, sides = _whole(w), (~held, held)
        counts = [
            [own[side].sum(), own[side & outvoted].sum(), own[side & wrong].sum(), (side & (w > 0.0)).sum()]
            for side in sides
        ]
        masses = _whole(mass)
        found = self._smallest(block, draws, groups, y)
        return {
            "masses": np.array([masses.sum(), masses[wrong].sum()], dtype=np.int64),
            "counts": np.array(counts, dtype=np.int64),
            "trace": np.array([block.row_weights @ self.members.kernel.diagonal(block.X)]),
            **self._histograms(codes, y, own, held),
            **found,
        }

    @property
    def _is_new(self) -> bool:
        """Whether the error of the newest member is counted."""
        return len(self.members) > (0 if self.bounded else len(self.factors))

    def codes(self, block: RowBlock) -> AnyArray:
        """The code (b, T) that each member gives each row of the block."""
        T = len(self.members)
        if self.kept is None or not T:
            return self.members.codes(block.X)
        start = block.start - self.first
        read = [self.kept.read(name, start, len(block)) for name in self.names]
        missing = [t for t, values in enumerate(read) if values is None]
        if missing:
            # Only the newest member, unless a run goes on without the codes of the one before.
            some = range(missing[0], missing[-1] + 1)
            found = self._part(some.start, some.stop).codes(block.X)
            for t, values in zip(some, found.T, strict=True):
                self.kept.write(self.names[t], start, values)
                read[t] = np.ascontiguousarray(values)
        return np.stack([values for values in read if values is not None], axis=1)

    def _part(self, start: int, stop: int) -> Members:
        """Some members, whose points are packed once."""
        parts: dict[tuple[int, int], Members] = self.__dict__.setdefault("_parts", {})
        if (start, stop) not in parts:
            parts[start, stop] = self.members.part(start, stop)
        return parts[start, stop]

    def _held(self, block: RowBlock) -> Bool:
        if self.folds is None:
            return np.zeros(len(block), dtype=bool)
        assert block.keys is not None, "folds need a table with keys"
        return self.folds.held_out(block.keys)

    def _mass(self, classes: Int, y: Int, w: Float) -> Float:
        log = np.zeros(len(y))
        for t, (factor, shift) in enumerate(zip(self.factors, self.shifts, strict=True)):
            log += np.where(classes[:, t] != y, factor, -factor) - shift
        return np.asarray(w * np.exp(log))

    def _groups(self, classes: Int, y: Int, mass: Float, w: Float) -> tuple[Float, Int]:
        """Masses (b,) by which rows are drawn, and the number (b,) of their reservoir."""
        none = np.zeros(len(y), dtype=np.int64)
        if self.draw == "errors":
            return mass, np.where(classes[:, -1] != y, 0, 1)
        if self.draw == "disagreement":
            return np.where(classes[:, 0] != classes[:, 1], w, 0.0), none
        return mass, none

    def _smallest(self, block: RowBlock, mass: Float, groups: Int, y: Int) -> State:
        """The rows of the smallest keys of each reservoir; a row whose mass is rounding counts nowhere."""
        alive = np.flatnonzero(_whole(mass)) if self.sizes else np.zeros(0, np.int64)
        u = row_uniforms(self.seed, (_STREAM, self.number), block.start, len(block))[alive]
        if self.draw == "all":
            # Reservoirs that know nothing of each other: of each row a random number for each of them.
            group, u = np.repeat(np.arange(len(self.sizes)), len(alive)), u[:, : len(self.sizes)].T.ravel()
            alive = np.tile(alive, len(self.sizes))
        else:
            group, u = groups[alive], u[:, 0]
        state: State = {
            "keys": -np.log(u) / mass[alive],
            "rows": block.start + alive,
            "mass": mass[alive],
            "group": group,
            "label": y[alive],
        }
        kept = self._kept(state)
        return {name: values[kept] for name, values in state.items()} | {"X": block.X[alive[kept]]}

    def _kept(self, state: State) -> Int:
        """Positions of the smallest keys of each reservoir; the one beyond its size tells the probabilities."""
        order = np.lexsort((state["rows"], state["keys"]))
        group = state["group"][order]
        kept = [order[group == g][: size + 1] for g, size in enumerate(self.sizes)]
        return np.concatenate([np.zeros(0, np.int64), *kept])

    def _histograms(self, codes: AnyArray, y: Int, own: Int, held: Bool) -> State:
        if not self.counted:
            return {}
        margins = np.zeros((len(self.counted), 2, MARGIN_BINS), dtype=np.int64)
        K = columns_of(self.members.classes) * self.valued
        values = np.zeros((len(self.counted), K, 2, BINS), dtype=np.int64)
        for h, size in enumerate(self.counted):
            V = self.members.votes(codes, self.votes[:size]) / self.votes[:size].sum()
            f = V[:, 1:] - V[:, :1] if self.members.classes == 2 else 2.0 * V - 1.0
            margin = vote_margins(V, y)
            bins = np.clip((0.5 * MARGIN_BINS * (1.0 + margin)).astype(np.int64), 0, MARGIN_BINS - 1)
            np.add.at(margins[h], (held.astype(np.int64), bins), own)
            place = np.clip((0.5 * BINS * (1.0 + f / (1.0 + np.abs(f)))).astype(np.int64), 0, BINS - 1)
            for k in range(K):
                inside = (y == (1 if self.members.classes == 2 else k)).astype(np.int64)
                np.add.at(values[h, k], (inside[held], place[held, k]), own[held])
        return {"margins": margins, "values": values}

    def combine(self, left: State, right: State) -> State:
        sums = {
            name: left[name] + right[name]
            for name in ("masses", "counts", "trace", "margins", "values")
            if name in left
        }
        names = ("keys", "rows", "mass", "group", "label", "X")
        both = {name: np.concatenate([left[name], right[name]]) for name in names}
        kept = self._kept(both)
        return sums | {name: values[kept] for name, values in both.items()}

    def finalize(self, state: State) -> Boosted:
        (whole, wrong), counts = state["masses"].tolist(), state["counts"].tolist()
        new, shares = self._is_new, [each[0] for each in counts]
        scale = math.ldexp(1.0, -_MASS_BITS) / self.unit

        def share(column: int, known: bool) -> tuple[float, float]:
            first, second = (
                each[column] / each[0] if known and each[0] else math.nan for each in counts
            )  # quotients of whole numbers are rounded once
            return first, second

        empty = np.zeros((0, 2, MARGIN_BINS))
        return Boosted(
            error=wrong / whole if new and whole else math.nan,
            weight=(shares[0] * scale, shares[1] * scale),
            rows=(int(counts[0][3]), int(counts[1][3])),
            trace=float(state["trace"][0]),
            vote_errors=share(1, bool(len(self.votes))),
            member_errors=share(2, new),
            parts=tuple(self._drawn(state, g, size) for g, size in enumerate(self.sizes)),
            margins=state["margins"] / np.maximum(np.array(shares), 1)[:, None] if self.counted else empty,
            values=state["values"] * scale if self.counted else np.zeros((0, 1, 2, BINS)),
        )

    @staticmethod
    def _drawn(state: State, group: int, size: int) -> Drawn:
        own = np.flatnonzero(state["group"] == group)
        following = state["keys"][own[size]] if len(own) > size else np.inf
        kept = own[:size][np.argsort(state["rows"][own[:size]])]
        mass = state["mass"][kept]
        importance = mass / -np.expm1(-mass * following)
        return Drawn(state["rows"][kept], state["X"][kept], state["label"][kept], importance)

    def state_bytes(self) -> int:
        K, p = columns_of(self.members.classes) * self.valued, self.members.points.shape[1]
        rows = sum(self.sizes) + len(self.sizes)
        return int(88 + rows * (40 + p * self.dtype.itemsize) + 16 * len(self.counted) * (MARGIN_BINS + K * BINS))

    def scratch_bytes(self, rows: int) -> int:
        classes = self.members.classes
        wide = (
            20 + len(self.members) + (6 if self.bounded else 4) * classes + 2 * columns_of(classes) * bool(self.counted)
        )
        return self.members.scratch_bytes(rows) + 8 * rows * wide

    def flops_per_row(self) -> float:
        return self.members.flops_per_row() + _ROW_FLOPS + 10.0 * len(self.members) * (1 + len(self.counted))


def _whole(mass: Float) -> Int:
    """Masses (b,) of at most 1 as whole numbers of 2^-61."""
    return np.rint(np.ldexp(mass, _MASS_BITS)).astype(np.int64)
