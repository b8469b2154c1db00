"""The rows of fits that share one sweep: each leaves out folds, and what they choose they choose on rows of none.

::

    folds 0 .. K - 1      left out in turn: fit v sees all rows but those of fold v; by time, the rows before fold v
    the part beside them  in no fold, and by time before all of them: scaling, metric, kernel, lengthscale and basis
                          of all K fits are chosen on it

No row of a fold has a part in what is chosen, so that the error on it is as honest as that of a fit of its own. The
sums of a sweep with the common basis, kept apart by fold, then give the K solutions (ALGORITHMS 20).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from streamkernel.engine import Machine, Plan
from streamkernel.models.predicting import PredictingModel
from streamkernel.selection import Problem
from streamkernel.settings.basis import BasisSettings
from streamkernel.table import Folds, Table

LEAST_CHOSEN_ON = 2_000  # rows that a choice for all folds is made on: the means of columns are then known to 2 %
LEAST_PER_FUNCTION = 20  # rows

S = TypeVar("S", bound=BasisSettings)


@dataclass(frozen=True)
class FoldRows:
    """The rows of K fits.

    Attributes
    ----------
    folds : assignment of the rows to K validation folds, and to the part beside them.
    whole : all rows.
    chosen_on : the rows in no fold; all others have weight 0.
    fitted : K tables; of table v the rows that fit v does not see have weight 0.
    past : whether fit v sees the rows before fold v alone: the part beside the folds, and folds 0 to v - 1.
    """

    folds: Folds
    whole: Table
    chosen_on: Table
    fitted: tuple[Table, ...]
    past: bool = False

    @property
    def models(self) -> int:
        """Number K of fits."""
        return len(self.fitted)

    @property
    def count(self) -> int:
        """Number of rows of weight > 0 of one of these fits; by time of the one with the most."""
        return self.fitted[-1 if self.past else 0].counted

    def unseen(self, fold: int) -> range:
        """The folds whose rows the fit of this fold does not see."""
        return range(fold, self.models if self.past else fold + 1)

    def resolved(self, settings: S) -> S:
        """The settings: all that the user left open is chosen as for the rows of one of these fits (`count`)."""
        table = self.fitted[-1 if self.past else 0]
        settings = settings.for_table(table)
        if settings.n_components is None and not settings.takes_columns(table):
            settings = replace(settings, n_components=settings.components(table))
        return settings


@dataclass(frozen=True)
class SharedSums:
    """The fits of a kind that leave out one fold each, made of the sums of one sweep.

    Attributes
    ----------
    possible : ``possible(table, settings, share)``: whether they are, with the choices on such a share of the rows.
    fit : ``fit(rows, settings, session, estimator=..., memory_limit=...)``: a model for each fold.
    plan : ``plan(rows, settings, machine, n)``, with n None for the basis size of the settings.
    """

    possible: Callable[[Table, Any, float], bool]
    fit: Callable[..., tuple[PredictingModel, ...]]
    plan: Callable[[FoldRows, Any, Machine, int | None], Plan]


def rows_are_enough(table: Table, settings: BasisSettings, share: float) -> bool:
    """Whether a share of a table has rows enough to choose on them as on all: a basis as good, but for some per cent.

    All that a fit samples for a metric or for hyper-parameters, twice as many as score candidates, so that rounds of
    picks need not look at the same ones, and 20 for each function.
    """
    settings = settings.for_table(table)
    n, in_metric = settings.components(table), settings.learns_metric or settings.given_metric is not None
    problem = Problem(table, settings.kernel_of(table), n, in_metric=in_metric)
    scoring = settings.rule_for(table).scoring_rows(problem)
    wanted = max(settings.sampled_rows(table), 2 * scoring, LEAST_PER_FUNCTION * n, LEAST_CHOSEN_ON)
    return share * table.counted >= wanted
