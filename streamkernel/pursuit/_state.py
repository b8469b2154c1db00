"""A pursuit between two sweeps: the picks so far, and the results of the last sums."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamkernel.basis import Basis
from streamkernel.kernels import Kernel
from streamkernel.linalg import solve_lower
from streamkernel.pursuit._pursuing import Pursued
from streamkernel.pursuit.path import PursuitPath, PursuitSelection
from streamkernel.pursuit.stages import Stages, ridge_stages
from streamkernel.records import RoundRecord
from streamkernel.reductions.pools import DictionaryColumns, Gram, HeldOut, PoolColumns, Roots
from streamkernel.reductions.scores import StagedScores, StagedSums
from streamkernel.type_aliases import Fields, Float, Int


@dataclass(frozen=True)
class Candidates:
    """The input of `pursue`: columns D (r, N) and residuals of the targets Y (r, d).

    `functions` (N,) are the positions of the columns among the functions of the basis, then of the pool.
    """

    D: Float
    Y: Float
    norms: Float | None
    groups: Int | None
    functions: Int


class PursuitState:
    """The model of a pursuit, which grows by the picks of each sweep.

    Parameters
    ----------
    basis : functions, each once.
    variant : variant of the pursuit.
    constant : whether the model has a constant.
    centre, scale : (d,) centre subtracted from the targets, and units in which their squares are added.
    patience, by_error : see `MatchingPursuit`.
    """

    logistic = False

    def __init__(
        self,
        basis: Basis,
        variant: str,
        constant: bool,
        centre: Float,
        scale: Float,
        patience: int | None,
        by_error: bool = False,
    ) -> None:
        self.basis = basis
        self.variant = variant
        self.constant = constant
        self.centre, self.scale = centre, scale
        self.patience = patience
        self.by_error = by_error
        self.functions: Int = np.zeros(0, np.int64)  # position in the basis of each term's function
        self.steps: Float = np.zeros((0, len(centre)))
        self.weakness: Float = np.zeros(0)
        self.stages = Stages(np.zeros((0, 0)), np.zeros((0, len(centre))), False)
        self.rss: Float = np.zeros((1, len(centre)))
        self.check: Float | None = None
        self.check_rows = 0.0
        self.check_wrong: Float | None = None  # wrong held-out rows of every size
        self.counted: StagedSums | None = None
        self._last: tuple[Roots, Float] | None = None
        self._check: tuple[Float, Float] | None = None  # held-out rows' columns, in the model's order, and targets
        self._lowered: Float | None = None  # fall of the squared error by each term, under least squares
        self.ridge = 0.0
        self.known: Gram | None = None  # inner products that the next sweep need not sum again
        self.watched = False  # True if rows are held out
        # For the model at the start of each sweep: number of terms, losses and wrong classes (fitted, held-out rows).
        self.sizes: list[int] = []
        self.losses: list[Float] = []
        self.wrong: list[Float] = []

    def accepts(self, roots: Roots) -> bool:
        """Record the loss and errors of the model that the sums began with; return whether it may grow from there."""
        if roots.check is not None:
            self.watched, self.check_rows = True, roots.check_rows
        self.sizes.append(self.terms)
        self.losses.append(roots.loss)
        self.wrong.append(roots.wrong)
        return True

    @property
    def terms(self) -> int:
        return len(self.functions)

    @property
    def _basic(self) -> bool:
        return self.variant == "basic"

    def beta(self, columns: PoolColumns | DictionaryColumns) -> Float:
        """Coefficients of the model in the first columns, (n + c, d)."""
        if self._last is None:
            return np.zeros((columns.projected, len(self.centre)))
        return self._in_columns(columns, self.stages.coefficients, self.stages.intercept[None][: int(self.constant)])

    def _in_columns(self, columns: PoolColumns | DictionaryColumns, coefficients: Float, constant: Float) -> Float:
        return np.concatenate([columns.coordinates(coefficients), constant])

    def first_square(self, roots: Roots) -> float:
        """Residual square of the targets after the constant, in units of their spread."""
        n, Y = len(self.basis), roots.U[:, -len(self.centre) :]
        one = roots.U[:, n : n + int(self.constant)]
        stages = Stages.least_squares(one, Y, self.constant)
        return float((stages.errors(one, Y)[0] / self.scale**2).sum())

    def candidates(self, roots: Roots, pool: Basis, groups: Int | None) -> Candidates:
        """Columns that may be picked, and the model's residuals of the targets."""
        n, k, d = len(self.basis), len(pool), len(self.centre)
        U, p = roots.U, len(self.basis) + int(self.constant)
        everything = np.arange(n, n + k)
        if not self._basic:
            below = U[roots.below :]
            columns = U[:, p : p + k]
            norms: Float = np.einsum("ij,ij->j", columns, columns)
            return Candidates(below[:, p : p + k], below[:, -d:], norms, groups, everything)
        # Basic may pick chosen functions again: always where all compete, else only if their row was drawn again.
        again = np.isin(pool.rows, self.basis.rows)
        fresh = np.flatnonzero(~again)
        known = np.arange(n)
        if groups is not None:
            at = {int(row): int(group) for row, group in zip(pool.rows[again], groups[again], strict=True)}
            known = np.array([i for i, row in enumerate(self.basis.rows) if int(row) in at], dtype=np.int64)
            of_known = np.array([at[int(self.basis.rows[i])] for i in known], dtype=np.int64)
            groups = np.concatenate([of_known, groups[fresh]])
        functions = np.concatenate([known, n + fresh])
        D = np.concatenate([U[:, known], U[:, p + fresh]], axis=1)
        ordered, Y = self._ordered(U, np.zeros(0, np.int64)), U[:, -d:]
        stages = self._stages(ordered, Y, self.functions, self.steps)
        left = Y - ordered @ (stages.directions @ stages.amounts)
        return Candidates(D, left, None, groups, functions)

    def _ordered(self, U: Float, picked: Int) -> Float:
        """Columns of the constant, of the functions and of the picked candidates, in the order of the model."""
        n, c = len(self.basis), int(self.constant)
        return U[:, np.concatenate([np.arange(n, n + c), np.arange(n), n + c + picked])]

    def _stages(self, D: Float, Y: Float, functions: Int, steps: Float) -> Stages:
        if self._basic:
            return Stages.of_steps(D, Y, functions, steps, self.constant)
        return self._least_squares(D, Y)

    def _least_squares(self, D: Float, Y: Float) -> Stages:
        return Stages.least_squares(D, Y, self.constant)

    def take(self, roots: Roots, pool: Basis, candidates: Candidates, found: Pursued) -> set[int]:
        """Add the picks; return row numbers of functions refused because they depend on others in the kernel matrix."""
        n, d = len(self.basis), len(self.centre)
        chosen = candidates.functions[found.order]
        new = np.array(list(dict.fromkeys(chosen[chosen >= n].tolist())), dtype=np.int64) - n
        refused: set[int] = set()
        grown = self.basis
        if len(new):
            grown, kept = self._appended(pool, new)
            while len(kept) < len(new):
                # Drop the first function that depends on those before it, and all picks after it.
                first = next(i for i in range(len(new)) if i not in kept)
                refused.add(int(pool.rows[new[first]]))
                cut = int(np.flatnonzero(chosen == n + new[first])[0])
                chosen, new = chosen[:cut], new[:first]
                grown, kept = self._appended(pool, new)
        place = {int(n + position): n + i for i, position in enumerate(new)}
        functions = np.array([place.get(int(i), int(i)) for i in chosen], dtype=np.int64)
        U, Y = roots.U, roots.U[:, -d:]
        D = self._ordered(U, new)
        self.functions = np.concatenate([self.functions, functions])
        self.steps = np.concatenate([self.steps, found.steps[: len(chosen)] * self.scale])
        self.weakness = np.concatenate([self.weakness, found.weakness[: len(chosen)]])
        self.stages = self._stages(D, Y, self.functions, self.steps)
        self.rss = self.stages.errors(D, Y)
        if roots.check is not None:
            self._check = self._ordered(roots.check, new), roots.check[:, -d:]
            self.check = self.stages.errors(*self._check)
        self._last = replace(roots, gram=None), D
        self.basis = grown
        self.known = None
        if roots.gram is not None:
            self.known = roots.gram.grown(n, n + int(self.constant), len(pool), new, grown.L[n:, n:])
        return refused

    def shrink(self) -> None:
        """Fit a ridge on the functions, chosen by held-out rows; not for basic and the logistic loss."""
        if self._basic or self.logistic or self._last is None or self._check is None or not self.terms:
            return
        if not self.basis.kernel.positive_definite:
            return
        roots, D = self._last
        Y = roots.U[:, -len(self.centre) :]
        self._lowered = self._gains()
        self.stages, self.ridge = ridge_stages(D, Y, self.basis.L, self.constant, self._check, self.scale)
        self.rss, self.check = self.stages.errors(D, Y), self.stages.errors(*self._check)

    def _gains(self) -> Float:
        return np.asarray(-np.diff((self.rss / self.scale**2).sum(axis=1)))

    def _appended(self, pool: Basis, new: Int) -> tuple[Basis, Int]:
        points, rows = pool.points[new], pool.rows[new]
        if self.basis.kernel.positive_definite:
            return self.basis.append(points, rows)
        both = np.concatenate([self.basis.points, points]), np.concatenate([self.basis.rows, rows])
        return Basis(self.basis.kernel, *both), np.arange(len(new))

    @property
    def settled(self) -> Stages:
        """The stages of the model."""
        return self.stages

    def scores(self, coding: Float | None, held_out: HeldOut | None, gamma: float | None) -> StagedScores:
        """The reduction that sums the errors of every size over the rows of the fit."""
        V, Z = self.settled.of_sizes()
        chosen = self.basis.rows[self.functions]
        return StagedScores(
            self.basis, V, Z, self.centre, self.constant, chosen, coding, held_out, gamma, self.logistic
        )

    def scores_of_other_rows(self, coding: Float | None, gamma: float | None) -> StagedScores:
        """The reduction that sums the errors of every size over a table of other rows."""
        return replace(self.scores(coding, None, gamma), chosen=np.zeros(0, np.int64))

    def store_scores(self, sums: StagedSums) -> None:
        """Store the result of `scores_of_other_rows`."""
        self.watched, self.check_rows = True, float(sums.rows[0])
        self.check, self.check_wrong = sums.squares[0], sums.wrong[0]

    def count(self, fitted: StagedSums) -> None:
        """Store the result of `scores`, which includes held-out rows of the same table."""
        self.counted = fitted
        if fitted.rows[1] > 0.0:
            self.check_wrong = fitted.wrong[1]

    @property
    def best(self) -> int:
        """Number of terms with the smallest held-out error; all terms without held-out rows."""
        if self.terms == 0:
            return 0
        if self.by_error and self.check_wrong is not None:
            return max(1, int(np.argmin(self.check_wrong)))
        if self.check is None:
            return self.terms
        return max(1, int(np.argmin((self.check / self.scale**2).sum(axis=1))))

    def out_of_patience(self) -> bool:
        return self.patience is not None and self.terms - self.best >= self.patience

    def selection(self, kernel: Kernel, rounds: tuple[RoundRecord, ...], ended: str) -> PursuitSelection:
        """The selection with the best size, and the whole path."""
        assert self._last is not None
        roots, _ = self._last
        gains = self._gains() if self._lowered is None else self._lowered
        rows, weakness = self._path_rows()
        path = PursuitPath(
            rows=rows,
            rss=self.rss,
            gains=gains,
            weakness=weakness,
            validation=self.check,
            fitted_rows=roots.rows,
            validation_rows=self.check_rows,
            sizes=np.asarray(self.sizes, dtype=np.int64),
            losses=np.asarray(self.losses),
            wrong=np.asarray(self.wrong),
            **self._counts(),
        )
        terms = self.best
        n = int(self.functions[:terms].max(initial=-1)) + 1
        basis = self.basis.take(np.arange(n))
        own_gains = gains[:terms] if terms == n else np.zeros(0)
        return PursuitSelection(
            basis,
            own_gains,
            rounds,
            ended,
            stages=self.stages.first(terms, n),
            path=path,
            offset=self.centre,
            trace=roots.trace,
            squares=self._squares(kernel, basis),
            ridge=self.ridge,
        )

    def _counts(self) -> Fields:
        """The counts of wrong rows for every size, from one sweep."""
        if self.counted is None:
            return {}
        own, held = self.counted.wrong[0], self.check_wrong
        errors = np.stack([own, np.zeros(len(own)) if held is None else held], axis=1)
        return {"errors": errors, "outside": self.counted.outside, "counted": self.counted.counted}

    def _path_rows(self) -> tuple[Int, Float]:
        """Row number and weakness of every term that was picked."""
        return self.basis.rows[self.functions], self.weakness

    def _squares(self, kernel: Kernel, basis: Basis) -> Float | None:
        """(n,) sums of squares of the whitened features over the rows of the fit."""
        if not kernel.positive_definite:
            return None
        assert self._last is not None
        c = int(self.constant)
        G = solve_lower(basis.L, self._last[1][:, c : c + len(basis)].T)
        squares: Float = np.einsum("ij,ij->i", G, G)
        return squares
