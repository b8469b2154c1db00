"""The plan of a fit with its time: `plan` in Python, and what the command `streamkernel plan` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from streamkernel.engine import Machine, Plan, available_cpus, executor_of, machine_of
from streamkernel.errors import ParameterError
from streamkernel.fits.steps.run import size_of_fit
from streamkernel.kinds import KINDS
from streamkernel.timing import Rates, Scaling, Slots, plan_seconds, read_rates, scaled, scaling, worker_counts
from streamkernel.type_aliases import Unchecked
from streamkernel.wording import option

if TYPE_CHECKING:
    # The command needs none of the estimators, with which scikit-learn would come.
    from streamkernel.estimators.base import SavedEstimator


@dataclass(frozen=True)
class TimedPlan:
    """The plan of a fit and its time.

    Attributes
    ----------
    plan : sweeps, bytes, operations and memory on the machine that the fit would run on.
    step_seconds : seconds of each of its steps there.
    scaling : the time on each number of workers that was asked for; else only that on this machine.
    rates : the rates by which times are computed; `rates.measured` is None where nothing was measured.
    """

    plan: Plan
    step_seconds: tuple[float, ...]
    scaling: tuple[Scaling, ...]
    rates: Rates

    @property
    def seconds(self) -> float:
        """Seconds of the fit on the machine of the plan."""
        return sum(self.step_seconds)


def timed_plan(
    plan: Plan,
    plan_of: Callable[[Machine], Plan],
    rates: Rates,
    *,
    workers: Sequence[int] | None = None,
    cores: int | None = None,
    here: bool = True,
) -> TimedPlan:
    """Add times to a plan.

    Parameters
    ----------
    plan_of : function that plans for another machine.
    workers : numbers of workers to compare, each of which has a core a thread; None for the machine alone.
    cores : cores that all these workers share.
    here : whether the threads of the plan's machine share the cores of this one.
    """
    machine, own = plan.machine, available_cpus() if here else None
    times = plan_seconds(plan, rates, Slots(machine.workers, machine.threads, own))
    if workers is None:
        rows = [scaled(plan, rates, own)]
    else:
        rows = scaling(plan_of, workers, rates, threads=machine.threads if machine.workers else 1, cores=cores)
    return TimedPlan(plan, times.steps, tuple(rows), rates)


def plan(
    estimator: SavedEstimator,
    X: Unchecked,
    y: Unchecked = None,
    *,
    sample_weight: Unchecked = None,
    workers: Unchecked = None,
    cores: int | None = None,
    rates: Rates | str | PathLike[str] | None = None,
) -> TimedPlan:
    """The plan of ``estimator.fit(X, y)``, and how long it takes on several numbers of workers. No row is read.

    Parameters
    ----------
    estimator : an estimator with the parameters of the fit. If it has a client, the plan is that of its cluster.
    X, y, sample_weight : the rows of the fit, as `fit` takes them.
    workers : numbers of workers, such as ``[1, 16, 256]``; None for the machine, or the cluster, of the fit.
    cores : number of cores that the `workers` share, where they are on one machine; None for a core each.
    rates : rates, or the file that holds them (`streamkernel calibrate`); None for those of this machine if they were
        measured, else for the built-in ones, which are slow.

    Raises
    ------
    ParameterError
        Numbers that are none, a file of rates of another version, an estimator that is none of this package.
    """
    kind = next((kind for kind in KINDS.values() if type(estimator) is kind.estimator), None)
    if kind is None:
        raise ParameterError(f"{option('estimator')} is a {type(estimator).__name__}; give one of streamkernel's")
    counts = None if workers is None else worker_counts(workers)
    if cores is not None and (isinstance(cores, bool) or not isinstance(cores, int) or cores < 1):
        raise ParameterError(f"{option('cores')} must be a whole number >= 1, not {cores!r}", value=cores)
    known = rates if isinstance(rates, Rates) else read_rates(rates)
    settings = estimator._settings()  # of every kind; the base class has none
    table = kind.open(X, y, weights=sample_weight)
    kind.check(table, kind.name)
    settings = settings.for_table(table)
    n = size_of_fit(settings, table)
    executor = executor_of(estimator.client)

    def plan_on(machine: Machine) -> Plan:
        made: Plan = kind.plan(table, settings, machine, n)
        return made

    return timed_plan(
        plan_on(machine_of(executor)), plan_on, known, workers=counts, cores=cores, here=not executor.remote
    )
