"""Large margin problems that share their features, their sweeps and their memory: K functions for each value of C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from streamkernel.reductions import Predictions
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.margins import (
    InteriorPath,
    InteriorPointStep,
    Line,
    Loss,
    PiecewiseLinear,
    Smooth,
    SmoothStep,
    Target,
    largest_band,
)
from streamkernel.reductions.scores import HeldOutErrors
from streamkernel.reductions.sums import Features
from streamkernel.settings.gap import GapSettings
from streamkernel.solvers import MarginSolution, MarginStart, solve_margins, solve_smooth_margins
from streamkernel.solvers.generalised.latent_coordinates import STEPS
from streamkernel.table import Folds

_SAMPLE_ROWS, _FEWER_ROWS, _MANY_FUNCTIONS = 8000, 4000, 4
_ROWS_PER_SAMPLED, _LARGER_SAMPLE = 40, 4  # of large tables: the sample is a share of them, up to so many times
_WORTH_A_SAMPLE = 4  # times the rows of the sample, from which a start saves more sweeps than reading it costs
_STATE_BYTES = 512 << 20  # of the sums of one sweep: more problems are solved one group after another

Sweep = Callable[[AnyReduction, str], Any]
Solutions = tuple[MarginSolution, ...]


@dataclass(frozen=True)
class MarginProblems:
    """The problems of a fit: K functions for each value of C.

    Parameters
    ----------
    features : Features of n functions.
    settings : losses and tolerances.
    targets : targets, each with one function for each of its losses; None where rows have none.
    classes : whether targets are indicators of classes.
    """

    features: Features
    settings: GapSettings
    targets: tuple[Target | None, ...]
    classes: bool

    def losses(self, costs: Sequence[float]) -> tuple[Loss, ...]:
        """Losses of all functions for the first value of C, then for the next."""
        return tuple(loss for C in costs for _ in self.targets for loss in self.settings.losses(C))

    @property
    def function_targets(self) -> tuple[Target | None, ...]:
        """The target of each of the K functions."""
        return tuple(target for target in self.targets for _ in self.settings.losses(1.0))

    @property
    def method(self) -> str:
        """Name of the solver: "interior-point" for losses with kinks, else "newton"."""
        return "interior-point" if isinstance(self.settings.losses(1.0)[0], PiecewiseLinear) else "newton"

    def solve(
        self,
        sweep: Sweep,
        costs: Sequence[float],
        starts: Sequence[MarginStart] | None,
        *,
        tolerance: float,
        most_sweeps: int,
        weight: float,
        in_memory: bool = False,
        certificate: bool = False,
    ) -> list[Solutions]:
        """Solutions of the K functions for each value of C; all problems share their sweeps, a group at a time.

        Parameters
        ----------
        starts : a start for each function of each C, in this order; None to start from 0.
        weight : sum of the row weights.
        in_memory : True where a sweep over the rows costs no more than work on some of them.
        certificate : True for the sums of the certificate, of one sweep at least.
        """
        losses, targets = self.losses(costs), self.function_targets * len(costs)
        n, found = self.features.width, list[MarginSolution]()
        group = self._group(len(losses))
        options: dict[str, Any] = {"tolerance": tolerance, "most_sweeps": most_sweeps}
        options["intercept"] = self.settings.fit_intercept
        for first in range(0, len(losses), group):
            part = slice(first, first + group)
            given = None if starts is None else [start.widened(n) for start in starts[part]]
            if self.method == "newton":
                smooth, of = cast("tuple[Smooth, ...]", losses[part]), cast("tuple[Target, ...]", targets[part])
                found += solve_smooth_margins(
                    sweep,
                    self.features,
                    smooth,
                    of,
                    starts=given,
                    band=not in_memory,
                    certificate=certificate,
                    **options,
                )
            else:
                kinked = cast("tuple[PiecewiseLinear, ...]", losses[part])
                own: dict[str, Any] = {"penalised_constant": self.settings.penalised_constant, "weight": weight}
                found += solve_margins(sweep, self.features, kinked, targets[part], starts=given, **own, **options)
        K = len(self.function_targets)
        return [tuple(found[K * i : K * (i + 1)]) for i in range(len(costs))]

    def _group(self, problems: int) -> int:
        """Number of problems whose sums are in memory at once."""
        return min(problems, max(1, _STATE_BYTES // (8 * (self.features.width + 1) ** 2)))

    def largest_step(self, costs: Sequence[float], iterations: int) -> tuple[AnyReduction, int]:
        """The reduction of a sweep for the plan, after so many iterations, and the number of groups of problems."""
        losses = self.losses(costs)
        group = self._group(len(losses))
        targets, groups = (self.function_targets * len(costs))[:group], -(-len(losses) // group)
        nothing = np.zeros(self.features.width + 1)
        if self.method == "newton":
            smooth, of = cast("tuple[Smooth, ...]", losses[:group]), cast("tuple[Target, ...]", targets)
            lines = (Line(nothing, nothing),) * group
            return SmoothStep(self.features, smooth, of, lines, STEPS, largest_band(self.features, group)), groups
        path = InteriorPath.begin(nothing, 1.0)
        for _ in range(iterations):
            path = path.further(nothing, 1.0)
        kinked = cast("tuple[PiecewiseLinear, ...]", losses[:group])
        return InteriorPointStep(self.features, kinked, targets, (path,) * group), groups

    def errors(self, costs: Sequence[float], solutions: Sequence[Solutions], folds: Folds | None) -> HeldOutErrors:
        """The reduction of the errors of solutions for several C."""
        basis = self.features.basis
        assert basis is not None
        b = np.array([each.coefficients for one in solutions for each in one])
        values = Predictions(basis, basis.coefficients(np.ascontiguousarray(b[:, :-1].T)), b[:, -1].copy())
        targets = cast("tuple[Target, ...]", self.function_targets)
        return HeldOutErrors(values, self.losses(costs), targets, folds, self.classes)


def sample_rows(rows: int, functions: int, *, searched: bool) -> int:
    """Number of the rows on which so many functions are solved for first, of a table of so many.

    0 where nothing is searched for and there are too few rows to gain by it.
    """
    wanted = _SAMPLE_ROWS if functions < _MANY_FUNCTIONS else _FEWER_ROWS
    if not searched and rows < _WORTH_A_SAMPLE * wanted:
        return 0
    # A larger table wants a start that is nearer, and has the time for it.
    return min(rows, max(wanted, min(rows // _ROWS_PER_SAMPLED, _LARGER_SAMPLE * wanted)))
