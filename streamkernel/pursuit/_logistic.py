"""Matching pursuit for the logistic loss: each sweep is a step of Newton's method on more functions.

For two classes, with ``p_i`` the probability that f gives the wrong class and t the sign of the right one, ::

    sum_i log(1 + exp(-t_i f_i)) ~ const + 1/2 sum_i w_i (z_i - f_i)^2,    w = p (1 - p),  z = f + t p / w

so that a pursuit of the weighted responses z picks by the decrease of the loss to second order, like LogitBoost
(Friedman, Hastie & Tibshirani 2000), and its least squares fit is the Newton step. A sweep also measures the loss of
the model it began with: if a step has raised it, half of the step is tried. In the end only coefficients are fitted,
until steps gain nothing.

More classes share the rows' weights, by a bound of their Hessian ``diag p - p p^T`` (`DictionarySums`); Boehning (1992)
has one bound for all rows. All classes then share one Gram matrix, and steps are smaller than Newton's, which momentum
compensates in part. Newton's method itself would need a matrix of (n C)^2.
"""

from __future__ import annotations

import numpy as np

from streamkernel.basis import Basis
from streamkernel.kernels import Kernel
from streamkernel.linalg import solve_lower_t
from streamkernel.pursuit._pursuing import Pursued
from streamkernel.pursuit._state import Candidates, PursuitState
from streamkernel.pursuit.path import PursuitSelection
from streamkernel.pursuit.stages import Stages
from streamkernel.records import RoundRecord
from streamkernel.reductions.pools import DictionaryColumns, PoolColumns, Roots
from streamkernel.reductions.scores import StagedScores, StagedSums
from streamkernel.type_aliases import Float, Int, Unchecked

_RIDGE = 1e-9  # share of a column's square: weighted columns may depend on each other
_RISE = 1e-9  # share of the loss that counts as rounding
_GAIN, _LITTLE = 1e-8, 1e-5  # least predicted gain of a step, share of the loss: Newton's, one with common weights
_SEPARATED = 1e-4  # loss per row below which the classes are separated, and coefficients would grow for ever
_MOST_HALVINGS = 12


class LogisticState(PursuitState):
    """A pursuit with the logistic loss; its arguments are those of `PursuitState`.

    `parameters` are the coefficients that the next sweep measures, `stages` those of the last weighted fit.
    """

    logistic = True

    def __init__(self, *arguments: Unchecked) -> None:
        super().__init__(*arguments)
        d = len(self.centre)
        self.parameters: Float = np.zeros((int(self.constant), d))  # of the constant, then of the functions
        self._before: Float | None = None
        self._loss = self._loss_before = np.inf
        self._halvings = 0
        self._of_sizes: list[Float] = []
        self._tried: tuple[Int, Float] | None = None
        self._gain = _GAIN if d == 1 else _LITTLE
        self._reached: Float | None = None  # parameters after the last step, without its momentum
        self._least, self._steps = np.inf, 0

    def beta(self, columns: PoolColumns | DictionaryColumns) -> Float:
        c = int(self.constant)
        return self._in_columns(columns, self.parameters[c:], self.parameters[:c])

    def accepts(self, roots: Roots) -> bool:
        loss = float(roots.loss[0])
        if loss > self._loss_before * (1.0 + _RISE) and self._before is not None and self._halvings < _MOST_HALVINGS:
            self.parameters = 0.5 * (self.parameters + self._before)
            self._halvings += 1
            return False
        self._loss, self._halvings = loss, 0
        if not self.sizes or self.sizes[-1] < self.terms:
            self._of_sizes.append(self.parameters)
            super().accepts(roots)
        return True

    def _least_squares(self, D: Float, Y: Float) -> Stages:
        return Stages.least_squares(D, Y, self.constant, _RIDGE)

    def take(self, roots: Roots, pool: Basis, candidates: Candidates, found: Pursued) -> set[int]:
        refused = super().take(roots, pool, candidates, found)
        more = self.terms + int(self.constant) - len(self.parameters)
        self._step(np.concatenate([self.parameters, np.zeros((more, len(self.centre)))]))
        return refused

    def _step(self, before: Float) -> None:
        self._before, self._loss_before = before, self._loss
        self.parameters = self.stages.directions @ self.stages.amounts

    @property
    def best(self) -> int:
        """The best of the sizes that sweeps have measured; all terms before the first measurement."""
        losses = np.array([values[1] for values in (self.wrong if self.by_error else self.losses)[1:]])
        if not self.watched or len(losses) == 0:
            return self.terms
        return self.sizes[1 + int(np.argmin(losses))]

    @property
    def settled(self) -> Stages:
        # After a half step the parameters are not those of the weighted fit: same directions, other amounts.
        V = self.stages.directions
        return Stages(V, solve_lower_t(V.T, self.parameters), self.constant)

    def scores_of_other_rows(self, coding: Float | None, gamma: float | None) -> StagedScores:
        """Scores of the sizes that sweeps have measured, each with its own coefficients; a step is their difference."""
        width, d = len(self.basis) + int(self.constant), len(self.centre)
        each = [np.pad(parameters, ((0, width - len(parameters)), (0, 0))) for parameters in self._of_sizes]
        # One step per class, one after the other.
        V = np.diff(np.stack(each, axis=1), axis=1, prepend=0.0).reshape(width, -1)
        none, amounts = np.zeros(0, np.int64), np.tile(np.eye(d), (len(each), 1))
        return StagedScores(self.basis, V, amounts, self.centre, self.constant, none, coding, logistic=True)

    def store_scores(self, sums: StagedSums) -> None:
        self.watched, self.check_rows = True, float(sums.rows[0])
        d = len(self.centre)
        for kept, found in ((self.losses, sums.losses), (self.wrong, sums.wrong)):
            kept[:] = [np.array([own[0], other]) for own, other in zip(kept, found[0, d - 1 :: d], strict=True)]

    def cut_to_best(self) -> bool:
        """Drop the terms beyond the size with the smallest held-out error; return whether there were any."""
        self._tried = self.basis.rows[self.functions], self.weakness
        size = self.best
        if size == self.terms:
            return False
        self.parameters = self._of_sizes[self.sizes.index(size)]
        self.basis, self.functions = self.basis.take(np.arange(size)), self.functions[:size]
        self._before, self._loss_before = None, np.inf
        return True

    def refit(self, roots: Roots) -> bool:
        """Take a step for the coefficients alone; return True where no step gains enough."""
        D, Y = self._ordered(roots.U, np.zeros(0, np.int64)), roots.U[:, -len(self.centre) :]
        self.stages = self._least_squares(D, Y)
        self._last = roots, D
        before = self.parameters
        self._step(before)
        promised = 0.5 * float(((D @ (self.parameters - before)) ** 2).sum())
        if promised <= self._gain * self._loss or self._loss <= _SEPARATED * roots.rows:
            return True
        if len(self.centre) > 1:
            # One weight for all classes makes small steps, so add Nesterov's momentum; it restarts when the loss rises.
            reached, last = self.parameters, self._reached
            self._steps = self._steps + 1 if last is not None and self._loss <= self._least else 0
            self._least = min(self._loss, self._least)
            if self._steps and last is not None:
                self.parameters = reached + self._steps / (self._steps + 3.0) * (reached - last)
            self._reached = reached
        return False

    def rest(self) -> None:
        """Return to the point after the last step, without its momentum: no sweep has measured the point beyond."""
        if self._reached is not None:
            self.parameters = self._reached

    def selection(self, kernel: Kernel, rounds: tuple[RoundRecord, ...], ended: str) -> PursuitSelection:
        self.stages = self.settled
        return super().selection(kernel, rounds, ended)

    def _path_rows(self) -> tuple[Int, Float]:
        return super()._path_rows() if self._tried is None else self._tried

    def _squares(self, kernel: Kernel, basis: Basis) -> Float | None:
        assert self._last is not None
        return self._last[0].squares
