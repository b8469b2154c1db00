"""The share of a fit that is done, and the seconds that are left: the plan's counts at the rates seen so far.

The plan and the rates of the machine (`plan_seconds`) give seconds for every sweep, and for the work between two:
passes over samples, algebra. The work that this run did, in these planned seconds, took a time that is known. So there
are two factors, one of sweeps and one of the work between them, each drawn to that of both while little was seen::

    f = (T + a) / (W + a),    f_c = (T_c + a f) / (W_c + a),    a = 0.1 x planned seconds
    left = sum_c f_c (planned seconds of c that are not done)
    share = done / (done + left),    done = sum_c f_c (planned seconds of c that are done)

T seconds were spent on work of W planned ones. What was taken from checkpoints is done, and is in neither. Steps that a
fit leaves out, because an iteration has converged before its planned end, leave the sums. The share never falls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from threading import RLock

from streamkernel.engine import Plan, available_cpus
from streamkernel.timing.rates import Rates
from streamkernel.timing.scaling import plan_seconds
from streamkernel.timing.schedule import Slots

_PRIOR = 0.1  # of the planned seconds: what the planned rates weigh beside those that were seen
_MOST = 0.99  # before the fit has ended


@dataclass
class _Between:
    """Planned work between two sweeps: seconds, operations and number of passes over samples; seconds of all else."""

    passes: float = 0.0
    flops: float = 0.0
    times: int = 0
    algebra: float = 0.0

    @property
    def seconds(self) -> float:
        return self.passes + self.algebra

    def seconds_of(self, flops: float, share: float, each: float) -> float:
        """Planned seconds of operations and of a share of a pass, where a pass takes `each` beside its operations."""
        if self.times == 0:
            return 0.0
        each = min(each, self.passes / self.times)
        of_flops = (self.passes - each * self.times) / self.flops if self.flops > 0.0 else 0.0
        return flops * of_flops + share * each


@dataclass
class _Spent:
    """Planned seconds of work that is done, the part of it that this run did, and the time that this part took."""

    done: float = 0.0
    worked: float = 0.0
    seconds: float = 0.0

    def add(self, worked: float, seconds: float) -> None:
        self.done += worked
        if worked > 0.0:  # unplanned work says nothing about the planned rates
            self.worked += worked
            self.seconds += seconds


def moved(planned: float, reported: float, since: float, factor: float) -> float:
    """Planned seconds done of a piece of work, `since` seconds after it reported so many of them.

    What is not reported moves with the time up to its half; from there on it slows down and never ends by itself:
    ``1 - 1 / (4 x)`` after x times its expected seconds.
    """
    rest = planned - reported
    if rest <= 0.0 or factor <= 0.0:
        return planned
    x = since / (rest * factor)
    return reported + rest * (x if x <= 0.5 else 1.0 - 0.25 / x)


class TimeLeft:
    """The events of fits, one after another, against their plans. Calls may come from several threads.

    Without plans, the share and the seconds are those of each sweep, by its rows.

    Parameters
    ----------
    plans : plans of the fits, in their order; `next_fit` begins each.
    rates : rates of the machine.
    clock : function that returns the time in seconds.
    """

    def __init__(self, plans: Sequence[Plan], rates: Rates, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock, self._each_pass = clock, RLock(), rates.thread_sweep_seconds
        self._names: list[str] = []
        self._sweeps: list[float] = []
        self._between = [_Between()]
        self._fits: list[range] = []  # of their sweeps
        for plan in plans:
            self._add(plan, rates)
        # Planned seconds from each sweep on, and of the work from each place between sweeps on.
        self._sweeps_from = _sums_from(self._sweeps)
        self._between_from = _sums_from([each.seconds for each in self._between])
        self._prior = _PRIOR * (self._sweeps_from[0] + self._between_from[0]) or 1e-9
        self._of_sweeps, self._of_between = _Spent(), _Spent()
        self._fit, self._next, self._share = -1, 0, 0.0
        self._sweep: int | None = None  # the one that runs; None between sweeps, and for one that no plan counts
        self._unplanned = False
        self._rows = self._rows_done = 0
        self._began = self._reported_at = clock()
        self._reported = 0.0

    def _add(self, plan: Plan, rates: Rates) -> None:
        if self._fits:
            # Between two fits, so that the algebra at the end of one is not the first work of the next.
            self._names.append("")
            self._sweeps.append(0.0)
            self._between.append(_Between())
        first, machine = len(self._names), plan.machine
        slots = Slots(machine.workers, machine.threads, None if machine.workers else available_cpus())
        steps = (each.as_a_rule for each in plan.steps)  # whose operations are those that passes tell
        for step, seconds in zip(steps, plan_seconds(plan, rates, slots).steps, strict=True):
            if step.where == "sweep":
                algebra = step.algebra / rates.algebra_flops
                for _ in range(step.times):
                    self._names.append(step.name)
                    self._sweeps.append(max(seconds / step.times - algebra, 0.0))
                    self._between.append(_Between(algebra=algebra))
            elif step.where == "driver":
                self._between[-1].algebra += seconds
            else:
                self._between[-1].passes += seconds
                self._between[-1].flops += step.flops
                self._between[-1].times += step.times
        self._fits.append(range(first, len(self._names)))

    # --- events ------------------------------------------------------------------------------------------------------

    def next_fit(self) -> None:
        """The next fit begins; what was not done of the one before is left out."""
        with self._lock:
            if self._fit >= 0:
                self._close_between()
            if self._fit + 1 < len(self._fits):
                self._fit += 1
                self._next = self._fits[self._fit].start
            self._sweep, self._unplanned = None, False
            self._open()

    def begin(self, name: str, rows: int) -> None:
        """A sweep begins: the next one of this name in the plan; if there is none, the next one of any name."""
        with self._lock:
            self._close_between()
            of_fit = range(self._next, self._fits[self._fit].stop if self._fit >= 0 else 0)
            named = (i for i in of_fit if self._names[i] == name)
            self._sweep = next(named, self._next if of_fit else None)
            self._unplanned = self._sweep is None
            if not self._fits:
                self._share = 0.0
            if self._sweep is not None:
                self._next = self._sweep
            self._rows, self._rows_done = rows, 0
            self._open()

    def advance(self, rows: int) -> None:
        """Rows of the sweep are done."""
        with self._lock:
            self._rows_done += rows
            if self._sweep is not None and self._rows:
                self._reported = min(self._rows_done / self._rows, 1.0) * self._sweeps[self._sweep]
            self._reported_at = self._clock()

    def passed(self, flops: float, share: float) -> None:
        """Operations of a pass over a sample are done, a share of the pass."""
        with self._lock:
            between = self._between[self._next]
            if self._sweep is None and between.times:
                seconds = between.seconds_of(flops, share, self._each_pass)
                self._reported = min(self._reported + seconds, between.passes)
                self._reported_at = self._clock()

    def end(self) -> None:
        """The sweep has ended; without a `begin`, it was taken from its checkpoint."""
        with self._lock:
            now = self._clock()
            if self._sweep is not None:
                self._of_sweeps.add(self._sweeps[self._sweep], now - self._began)
                self._next = self._sweep + 1
            elif not self._unplanned:
                self._close_between()
                if self._fit >= 0 and self._next in self._fits[self._fit]:
                    self._of_sweeps.done += self._sweeps[self._next]
                    self._next += 1
            self._sweep, self._unplanned = None, False
            self._open()

    def _open(self) -> None:
        self._began = self._reported_at = self._clock()
        self._reported = 0.0

    def _close_between(self) -> None:
        """What was done since the last sweep; passes that did not come are left out."""
        if self._sweep is None and not self._unplanned:
            between = self._between[self._next]
            done = self._reported + between.algebra
            self._of_between.add(done, self._clock() - self._began)

    # --- the estimate ------------------------------------------------------------------------------------------------

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the end; None where nothing is known: after all planned sweeps, in one that no plan counts."""
        with self._lock:
            return self._estimate()[1]

    @property
    def share(self) -> float:
        """The share of the work that is done: it never falls, and is below 1 as long as the fits run."""
        with self._lock:
            done, left = self._estimate()
            if left is not None and done > 0.0:
                self._share = min(max(self._share, done / (done + left)), _MOST)
            return self._share

    def _estimate(self) -> tuple[float, float | None]:
        """Seconds of the work that is done, at the rates seen so far, and of that which is left."""
        now = self._clock()
        sweeps, between = self._of_sweeps, self._of_between
        reported, since = self._reported, self._reported_at - self._began
        in_sweep = self._sweep is not None
        running = since if reported > 0.0 else 0.0  # seconds that the reported work took
        at = self._factors(reported if in_sweep else 0.0, running, 0.0 if in_sweep else reported)
        if self._unplanned:
            taken, left = self._unplanned_seconds()
            if left is None:
                return 0.0, None
            later = self._sweeps_from[self._next] * at[0] + self._between_from[self._next] * at[1]
            return sweeps.done * at[0] + between.done * at[1] + taken, left + later
        if not self._fits:
            return 0.0, None
        planned = self._sweeps[self._sweep] if self._sweep is not None else self._between[self._next].seconds
        here = moved(planned, reported, now - self._reported_at, at[0] if in_sweep else at[1])
        first = self._next + 1 if in_sweep else self._next
        left_sweeps = self._sweeps_from[self._next] - (here if in_sweep else 0.0)
        left_between = self._between_from[first] - (0.0 if in_sweep else here)
        done_sweeps = sweeps.done + (here if in_sweep else 0.0)
        done_between = between.done + (0.0 if in_sweep else here)
        return done_sweeps * at[0] + done_between * at[1], left_sweeps * at[0] + left_between * at[1]

    def _unplanned_seconds(self) -> tuple[float, float | None]:
        """Seconds taken by a sweep that no plan counts, and left of it by its own rows."""
        taken = self._reported_at - self._began
        if self._rows_done == 0:
            return taken, None
        return taken, max(taken * (self._rows - self._rows_done) / self._rows_done, 0.0)

    def _factors(self, in_sweep: float, running: float, in_between: float) -> tuple[float, float]:
        """Seconds for a planned second: of sweeps, and of the work between them."""
        sweeps, between, a = self._of_sweeps, self._of_between, self._prior
        worked = [sweeps.worked + in_sweep, between.worked + in_between]
        seconds = [sweeps.seconds + (running if in_sweep else 0.0), between.seconds + (running if in_between else 0.0)]
        both = (sum(seconds) + a) / (sum(worked) + a)
        of_sweeps, of_between = ((s + a * both) / (w + a) for s, w in zip(seconds, worked, strict=True))
        return of_sweeps, of_between


def _sums_from(values: Sequence[float]) -> list[float]:
    """The sums of the values from each place to the end, and 0 after the last."""
    return [0.0, *accumulate(reversed(values))][::-1]
