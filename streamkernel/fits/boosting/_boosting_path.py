"""Boosting over sweeps: a member is fitted to drawn rows, and one sweep measures it and draws the rows of the next."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from streamkernel.engine import Session
from streamkernel.errors import ParameterError, warn_user
from streamkernel.fits.boosting._boosting_members import learn
from streamkernel.fits.boosting._boosting_weights import MemberWeights, sample_rows
from streamkernel.fits.steps.choose_basis import Chosen
from streamkernel.reductions.boosting import Boosted, BoostingStep, DrawnMember, Members, mass_unit
from streamkernel.settings.boosting import BoostingSettings
from streamkernel.solvers.boosting import mass_change, member_factor
from streamkernel.store import RowCodes
from streamkernel.table import Folds, Table
from streamkernel.type_aliases import Float, Int
from streamkernel.wording import option

_CODES_ROWS, _CODES_BYTES = (1 << 10, 1 << 16), 32 << 20  # of a chunk of codes, and of the rows of a block with it


def codes_chunk(table: Table) -> int:
    """Rows of a chunk of codes: a power of two, so that there are enough chunks for all threads and few files."""
    width = max(table.width, table.stored_width) * 8
    rows, most = _CODES_ROWS
    while rows < most and 2 * rows * width <= _CODES_BYTES and 512 * rows <= table.n_rows:
        rows *= 2
    return rows


@dataclass
class _Tried:
    """What is known of one member."""

    error: float
    factor: float
    errors: tuple[float, float]
    vote_errors: tuple[float, float] = (math.nan, math.nan)
    rows: int = 0


@dataclass
class BoostingFound:
    """The result.

    Attributes
    ----------
    members : all members of the vote, best first ones only.
    rows : (n,) row number of each of its points.
    weights : (T,) a of the vote.
    tried : (members tried) errors under the masses, factors, errors on rows, errors of the votes, rows.
    ended : why there are no more members.
    last : the last sweep; `place` is the position of the vote in its histograms.
    """

    members: Members
    rows: Int
    weights: Float
    tried: list[_Tried]
    ended: str
    last: Boosted
    place: int


@dataclass
class BoostingPath:
    """The members so far."""

    chosen: Chosen
    settings: BoostingSettings
    session: Session
    folds: Folds | None
    size: int  # rows of a member
    functions: int
    place: Path | None = None  # of codes
    members: Members = field(init=False)
    tried: list[_Tried] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)
    shifts: list[float] = field(default_factory=list)
    votes: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        table = self.chosen.table
        assert table.classes is not None
        self.classes = len(table.classes)
        soft = self.settings.soft
        self.members = Members.none(self.chosen.kernel, table.width, table.dtype, self.classes, soft=soft)
        self._rows = np.zeros(0, np.int64)
        self._names: list[str] = []
        searched = self.settings.search_rows
        self.searched = table
        if searched is not None and searched < table.n_rows:
            self.searched = table.slice(table.start, table.start + searched)
        # Searched rows alone, as the masses of others are 0 while they are searched.
        self.unit = mass_unit(table.weight)
        self.kept = None
        if self.place is not None:
            self.kept = RowCodes(self.place, codes_chunk(table), self.members.code_dtype)

    # --- sweeps ------------------------------------------------------------------------------------------------------

    def _sweep(
        self, name: str, table: Table, *, draw: str, sizes: tuple[int, ...], counted: tuple[int, ...] = ()
    ) -> Boosted:
        step = BoostingStep(
            self.members,
            np.array(self.factors),
            np.array(self.shifts),
            np.array(self.votes),
            self.unit,
            draw,  # type: ignore[arg-type]  # one of the words of `Draw`
            sizes,
            self.settings.seed,
            len(self.tried),
            np.dtype(table.dtype),
            self.settings.bounded,
            self.folds,
            counted,
            self.settings.calibration != "none",
            # Codes of a part of the rows would end within a chunk.
            self.kept if table.n_rows == self.chosen.table.n_rows else None,
            tuple(self._names),
            table.start,
        )
        return self.session.sweep(step, table, name)

    def _first_sample(self) -> DrawnMember:
        # Of bounded masses with the rows, on which the weights of members are found.
        sizes = (self.size, sample_rows(self.chosen.table)) if self.settings.bounded else (self.size,)
        drawn = self._sweep("first sample", self.searched, draw="all", sizes=sizes)
        if not len(drawn.parts[0].rows):
            raise ParameterError(
                f"all rows of weight > 0 are held out, or none is among the rows that are searched; give "
                f"{option('validation')} 0, or more rows"
            )
        self.trained = drawn
        return self._sample(drawn, (self.size,))

    def _sample(self, drawn: Boosted, sizes: tuple[int, ...]) -> DrawnMember:
        # As many as would be drawn if row i stood w_i times.
        share = min(self.size, self.trained.weight[0]) / sum(sizes)
        return DrawnMember.of(drawn.parts[: len(sizes)], tuple(size * share for size in sizes))

    def _add(self, sample: DrawnMember) -> None:
        """Fit a member to a sample, and let it join the others."""
        found = learn(sample, self.classes, self.chosen.kernel, self.settings, self.functions, len(self.members))
        rows, X = sample.rows[found.positions], sample.X[found.positions]
        union = np.union1d(self._rows, rows)
        points = np.zeros((len(union), X.shape[1]), X.dtype)
        before, own = np.searchsorted(union, self._rows), np.searchsorted(union, rows)
        points[before], points[own] = self.members.points, X
        old = self.members
        self.members = replace(
            old,
            points=points,
            positions=np.concatenate([before[old.positions], own]).astype(np.int64),
            ends=np.append(old.ends, len(old.positions) + len(own)).astype(np.int64),
            coefficients=np.concatenate([old.coefficients, found.coefficients]),
            constants=np.concatenate([old.constants, found.constants[None]]),
        )
        self._rows = union
        self._names.append(self.members.digest(len(self.members) - 1))
        self.tried.append(_Tried(math.nan, 0.0, (math.nan, math.nan), rows=len(sample.rows)))

    def _measured(self, swept: Boosted) -> float:
        """Note what a sweep has measured of the newest member, and of the vote before it."""
        new = self.tried[-1]
        new.error, new.errors = swept.error, swept.member_errors
        if self.votes:
            self.tried[len(self.votes) - 1].vote_errors = swept.vote_errors
        self.session.progress.note(f"member {len(self.tried)}: error {swept.error:.4g} of its masses")
        return swept.error

    def _accept(self, factor: float, vote: float, shift: float) -> None:
        self.tried[-1].factor = factor
        self.factors.append(factor)
        self.shifts.append(shift)
        self.votes.append(vote)

    # --- the two methods ---------------------------------------------------------------------------------------------

    def resample(self) -> BoostingFound:
        """Members whose samples are drawn by the masses of the vote before them."""
        sample = self._first_sample()
        return self._bounded(sample) if self.settings.bounded else self._exponential(sample)

    def _bounded(self, sample: DrawnMember) -> BoostingFound:
        """MadaBoost (Domingo & Watanabe 2000), whose factors have the least loss of the vote."""
        most, ended = self.settings.most_members, "members"
        weights = MemberWeights(self.trained.parts[1], self.classes)
        for t in range(1, most + 1):
            self._add(sample)
            factor = weights.factor(self.members)
            draws = factor is not None and t < most
            if factor is not None:
                self._accept(factor, factor, 0.0)
            swept = self._sweep(
                f"member {t}",
                self.chosen.table,
                draw="vote" if draws else "none",
                sizes=(self.size,) if draws else (),
            )
            e = self._measured(swept)
            if factor is None or e >= 1.0 - 1.0 / self.classes:
                # The weight is found on rows of which some are those of the member: the sweep knows better.
                del self.factors[t - 1 :], self.shifts[t - 1 :], self.votes[t - 1 :]
                self.tried[-1].factor = 0.0
                ended = self._of_chance()
                break
            if e == 0.0:
                ended = "no errors"
                break
            if self._stalls():
                ended = "patience"
                break
            if draws:
                sample = self._sample(swept, (self.size,))
        return self._found(ended, draw="none")

    def _exponential(self, sample: DrawnMember) -> BoostingFound:
        """AdaBoost; of more than two classes SAMME (Zhu et al. 2009)."""
        most, ended = self.settings.most_members, "members"
        # An error of 0, as of half a row: of as many as the weights say, where these are numbers of rows.
        half_row = 0.5 / max(self.trained.rows[0], self.trained.weight[0])
        wrong = min(max(round(self.size * (1.0 - 1.0 / self.classes)), 1), self.size - 1)
        sizes = (wrong, self.size - wrong)
        for t in range(1, most + 1):
            self._add(sample)
            last = t == most
            swept = self._sweep(
                f"member {t}", self.chosen.table, draw="none" if last else "errors", sizes=() if last else sizes
            )
            e = self._measured(swept)
            if e >= 1.0 - 1.0 / self.classes:
                ended = self._of_chance()
                break
            factor = member_factor(e or half_row, self.classes)
            self._accept(factor, factor, math.log(mass_change(e, factor)))
            if not len(swept.parts) or not len(swept.parts[0].rows):
                ended = "no errors" if e == 0.0 else ended
                break
            if self._stalls():
                ended = "patience"
                break
            sample = self._sample(swept, sizes)
        return self._found(ended, draw="none")

    def filter(self) -> BoostingFound:
        """Three machines (Schapire 1990): of all rows, half of errors of the first, of disagreement of both."""
        half = self.size // 2
        sizes = (half, self.size - half)
        self._add(self._first_sample())
        swept = self._sweep("machine 1", self.searched, draw="errors", sizes=sizes)
        e = self._measured(swept)
        if not len(swept.parts[0].rows) or e >= 0.5:
            ended = "no errors" if e < 0.5 else self._of_chance()
            if e < 0.5:
                self._accept(0.0, 1.0, 0.0)
            return self._found(ended, draw="none")
        factor = member_factor(e, 2)
        self._accept(factor, 1.0, math.log(mass_change(e, factor)))
        self._add(self._sample(swept, sizes))
        swept = self._sweep("machine 2", self.searched, draw="disagreement", sizes=(self.size,))
        self._measured(swept)
        if not len(swept.parts[0].rows):
            # The second one adds nothing to the first.
            self._keep(1)
            return self._found("no disagreement", draw="none")
        self.votes.append(1.0)
        self._add(self._sample(swept, (self.size,)))
        self.votes.append(1.0)
        for each in self.tried:
            each.factor = 1.0
        return self._found("members", draw="disagreement")

    def _of_chance(self) -> str:
        """Leave out a member that is no better than chance, unless it is the first."""
        if len(self.members) > 1:
            self._keep(len(self.members) - 1)
        else:
            warn_user(
                f"the first member gives {self.tried[0].error:.3g} of the rows a wrong class, which is no better than "
                "chance: the model is that member alone; give more rows a member "
                f"({option('member_rows')}), or another kernel"
            )
            self._accept(1.0, 1.0, 0.0)
        return "chance"

    def _keep(self, count: int) -> None:
        used = np.unique(self.members.positions[: int(self.members.ends[count - 1])])
        self.members, self._rows = self.members.part(0, count), self._rows[used]
        del self._names[count:]

    def _held_errors(self) -> Float:
        """Of the votes that are measured: with exponential masses not of the last one."""
        measured = len(self.votes) - (not self.settings.bounded)
        return np.array([each.vote_errors[1] for each in self.tried[: max(measured, 0)]])

    def _stalls(self) -> bool:
        patience, errors = self.settings.patience, self._held_errors()
        if patience is None or not len(errors) or np.isnan(errors).any():
            return False
        return len(errors) - 1 - int(errors.argmin()) >= patience

    def _found(self, ended: str, *, draw: str) -> BoostingFound:
        """The vote, after a last sweep that measures it."""
        T = len(self.votes)
        errors = self._held_errors()
        chooses = not self.settings.filters and len(errors) > 0 and not np.isnan(errors).any()
        best = int(errors.argmin()) + 1 if chooses else T
        counted = (T, best) if chooses and best < T else (T,)
        last = self._sweep("vote", self.chosen.table, draw=draw, sizes=(), counted=counted)
        self.tried[T - 1].vote_errors = last.vote_errors
        if draw == "disagreement":
            self.tried[-1].error, self.tried[-1].errors = last.error, last.member_errors
        place = 0
        if len(counted) > 1 and last.vote_errors[1] >= errors.min():
            place, T = 1, best
            self._keep(T)
        return BoostingFound(self.members, self._rows, np.array(self.votes[:T]), self.tried, ended, last, place)
