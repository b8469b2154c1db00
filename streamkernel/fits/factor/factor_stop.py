"""The number of picks to keep: a bound decides where more picks would not pay, and the basis is cut there.

The first t picks are a basis of their own, and the sums of one sweep over all n picks give the residual for each t.
Stopping by a bound therefore costs one sweep, for any n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamkernel.bounds import BoundStop, GapStop, Stop, dual_gap_path, stop_at
from streamkernel.engine import Session
from streamkernel.errors import ParameterError
from streamkernel.factors import FeatureRows
from streamkernel.fits.steps.choose_basis import Chosen
from streamkernel.records import StopRecord
from streamkernel.reductions.sums import NormalEquations
from streamkernel.settings.basis import BasisSettings
from streamkernel.solvers import RidgeSystem
from streamkernel.solvers.least_squares.ridge import least_squares
from streamkernel.table import Table
from streamkernel.wording import option

STOPS = ("trace", "bound", "gap")


@dataclass(frozen=True)
class Stopped:
    """The picks that are kept, and the reason.

    Attributes
    ----------
    chosen : choice with the basis that is kept.
    rule : one of `STOPS`.
    stop : place where the rule stopped; None for "trace", which the selection itself applies.
    """

    chosen: Chosen
    rule: str
    stop: Stop | None

    @property
    def record(self) -> StopRecord:
        """The rule and its result, as a factor stores them."""
        if self.stop is None:
            return StopRecord(rule=self.rule)
        stop = self.stop
        return StopRecord(rule=self.rule, looked=stop.looked, reached=stop.reached, value=stop.value)


def check_stop(stop: str, table: Table, settings: BasisSettings) -> None:
    """Raise `ParameterError`, before any work, for a stopping rule that lacks the input it needs."""
    if stop not in STOPS:
        raise ParameterError(f"{option('stop')} must be one of {', '.join(STOPS)}, not {stop!r}", value=stop)
    if stop == "gap" and table.n_targets == 0:
        raise ParameterError(
            f"{option('stop', 'gap')} compares risks and needs targets; ingest them with {option('target')}, or give y"
        )
    if stop == "bound" and not settings.kernel_template.stationary:
        raise ParameterError(
            f"stop 'bound' needs a kernel whose k(x, x) is bounded, which {settings.kernel_template.to_config()} is "
            "not; use 'trace' or 'gap'"
        )


def stopped(chosen: Chosen, stop: str, settings: BasisSettings, session: Session) -> Stopped:
    """Cut the basis by the rule `stop`; one sweep, none for "trace".

    Parameters
    ----------
    stop : "bound" cuts at the smallest compression bound along the path (Hussain & Shawe-Taylor, Theorem 2); "gap" at
        the first basis that a full fit could improve by at most 1 % of the regularised risk, at the alpha chosen for
        the whole basis (Smola & Schoelkopf 2000, eqs. (5) to (7)).
    """
    basis, table = chosen.selection.basis, chosen.table
    if stop == "trace" or len(basis) == 0:
        return Stopped(chosen, stop, None)
    name = f"sums for the {stop}"
    if stop == "bound":
        sums = FeatureRows(table, basis).gram(session, name)
        assert sums.trace is not None
        left = np.maximum(sums.trace - np.cumsum(sums.squares), 0.0)
        largest = float(chosen.kernel.diagonal(basis.points[:1])[0])
        found = stop_at(left, BoundStop(table.n_rows, largest=largest, patience=None))
    else:
        found = _at_gap(chosen, settings, session, name)
    if found.size == len(basis):
        return Stopped(chosen, stop, found)
    selection = chosen.selection.first(found.size, ended=stop)
    return Stopped(replace(chosen, selection=selection), stop, found)


def _at_gap(chosen: Chosen, settings: BasisSettings, session: Session, name: str) -> Stop:
    basis, table, scale = chosen.selection.basis, chosen.table, chosen.scale
    sums = session.sweep(NormalEquations.of(basis, chosen.centre, table.n_rows), table, name)
    system = RidgeSystem(basis, sums, intercept=settings.fit_intercept, scale=scale**2, independent=chosen.independent)
    H, g, square = least_squares(sums, settings.fit_intercept)
    yy = float((square / scale**2).sum())
    gaps = dual_gap_path(H, g / scale, yy, system.choose_alpha(), system.residual_path[1:], table.n_rows)
    return stop_at([gap.relative for gap in gaps], GapStop())
