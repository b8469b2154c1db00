"""Seconds, efficiency, bytes and memory of a planned fit on several numbers of workers.

Counts come from the plan: rows, bytes, kernel entries, operations, tasks, states. Rates come from `Rates`. Fits with a
fixed number of sweeps are counted as they are; iterations and searches by the number that is planned for them, the
largest one that is usual: `Scaling.rough_seconds` is their part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from streamkernel.engine import Machine, Parts, Plan, Step
from streamkernel.errors import ParameterError
from streamkernel.timing.rates import Rates
from streamkernel.timing.schedule import Slots, SweepCost, sweep_seconds
from streamkernel.type_aliases import Fields, Unchecked
from streamkernel.wording import option

MOST_WORKERS = 1_000_000


@dataclass(frozen=True)
class Scaling:
    """A planned fit on a number of workers.

    Attributes
    ----------
    workers : number of workers; 0 for threads of the driver.
    threads : threads of each, or of the driver.
    cores : cores that they share; None for a core a thread.
    seconds : time of the fit.
    efficiency : ``T_1 / (W T_W)``: seconds on one worker over the seconds of all workers together. For threads of the
        driver: of one thread, over those of all threads.
    sweep_seconds : part of the sweeps over the table. Of all else, workers do the longer passes over samples.
    rough_seconds : part of the steps whose number is a guess, because they end when they have converged.
    network_bytes : bytes between workers, and to the driver.
    worker_bytes, driver_bytes : memory of each worker, and of the driver.
    bound : what limits the longest sweep: work, reading, storage, scheduler or driver (which takes in the sums).
    """

    workers: int
    threads: int
    cores: int | None
    seconds: float
    efficiency: float
    sweep_seconds: float
    rough_seconds: float
    network_bytes: int
    worker_bytes: int
    driver_bytes: int
    bound: str

    def to_config(self) -> Fields:
        """The fields as JSON."""
        return asdict(self)


@dataclass(frozen=True)
class PlanSeconds:
    """Seconds of a plan, by step."""

    steps: tuple[float, ...]
    seconds: float
    sweeps: float
    rough: float
    network_bytes: float
    bound: str


def plan_seconds(plan: Plan, rates: Rates, slots: Slots, driver: Slots | None = None) -> PlanSeconds:
    """Seconds of the steps of a plan, one after another.

    Parameters
    ----------
    slots : threads of the sweeps.
    driver : threads of the steps over samples; default those of the plan's machine.
    """
    here = driver or Slots(0, plan.machine.driver_threads, plan.machine.driver_threads)
    steps, network, bound, longest = [], 0.0, "work", -1.0
    sweeps = rough = 0.0
    for step in (each.as_a_rule for each in plan.steps):
        on = slots if step.on_workers(plan.machine) or step.where == "sweep" else here
        algebra = step.algebra / rates.algebra_flops
        if step.where == "driver":
            seconds = algebra
        else:
            found = sweep_seconds(sweep_cost(step, plan, rates, _parts_of(step, on)), on, rates)
            seconds = step.times * (found.seconds + algebra)
            network += step.times * found.network_bytes
            if step.where == "sweep":
                sweeps += step.times * found.seconds
                if found.seconds * step.times > longest:
                    longest, bound = found.seconds * step.times, found.bound
            if step.in_memory or step.times > 1:
                rough += seconds
        steps.append(seconds)
    return PlanSeconds(tuple(steps), sum(steps), sweeps, rough, network, bound)


def _parts_of(step: Step, slots: Slots) -> Parts | None:
    """The parts of a sample's sums, where these threads compute them one by one, as `Session.shared` does."""
    parts = step.parts
    pay = parts is not None and parts.pay(step.leaves, step.flops_per_row, slots.count, slots.workers)
    return parts if pay else None


def sweep_cost(step: Step, plan: Plan, rates: Rates, parts: Parts | None = None) -> SweepCost:
    """What one sweep of a step needs: its kernel entries, the operations beside them, its bytes.

    Operations of a row beside the kernel's are ``flops - 2 columns p`` (`Reduction.flops_per_row`).

    Parameters
    ----------
    parts : parts of its sums, where tasks have one each.
    """
    table = plan.table
    dtype = "float32" if step.single or table.itemsize == 4 else "float64"
    columns, rows = step.kernel_columns, max(step.rows, 1)
    entry = sum(rates.entry_seconds(family, dtype, table.width) for family in plan.families)
    flops, count = step.flops_per_row, 1
    if parts is not None:
        # The rows come again for each part.
        columns, flops, count = parts.kernel_columns, parts.flops_per_row, parts.count
        rows *= count
    beside = max(flops - 2.0 * columns * table.width, 0.0)
    row = columns * entry + beside / rates.sum_flops(dtype, max(columns, 1), single=step.single)
    in_memory = table.in_memory or step.in_memory
    row += table.row_bytes / (rates.memory_bytes if in_memory else rates.decode_bytes)
    leaves = count * max(1, step.leaves)
    return SweepCost(
        leaves,
        row * rows / leaves,
        0.0 if in_memory else table.row_bytes * rows / leaves,
        step.sealed_bytes,
        _payload_bytes(step, plan),
        step.grows,
        count,
    )


def _payload_bytes(step: Step, plan: Plan) -> float:
    """Bytes that each worker gets before its first task: points, and the rows of a sample."""
    if step.where == "sample":
        return 0.0
    rows = step.rows * plan.table.row_bytes if step.in_memory else 0
    return 8.0 * step.points * plan.table.width + rows


def scaled(plan: Plan, rates: Rates, cores: int | None = None) -> Scaling:
    """The time of a plan on its machine.

    Parameters
    ----------
    cores : cores that all workers share, if they are on one machine; None for a core a thread.
    """
    workers, threads = plan.machine.workers, plan.machine.threads
    times = plan_seconds(plan, rates, Slots(workers, threads, cores))
    if workers:
        one = plan_seconds(plan, rates, Slots(1, threads, cores))
    else:
        one = plan_seconds(plan, rates, Slots(0, 1, cores), Slots(0, 1, cores))
    together = (workers or threads) * times.seconds
    return Scaling(
        workers=workers,
        threads=threads,
        cores=cores,
        seconds=times.seconds,
        efficiency=one.seconds / together if together > 0.0 else 1.0,
        sweep_seconds=times.sweeps,
        rough_seconds=times.rough,
        network_bytes=round(times.network_bytes),
        worker_bytes=plan.worker_bytes,
        driver_bytes=plan.driver_bytes,
        bound=times.bound,
    )


def scaling(
    plan_of: Callable[[Machine], Plan],
    workers: Sequence[int],
    rates: Rates,
    *,
    threads: int = 1,
    cores: int | None = None,
) -> list[Scaling]:
    """The plan on clusters of these numbers of workers.

    Parameters
    ----------
    plan_of : function that plans for a machine.
    threads : threads of each worker.
    cores : as of `scaled`.
    """
    return [scaled(plan_of(Machine(count, threads)), rates, cores) for count in workers]


def worker_counts(value: Unchecked) -> list[int]:
    """Numbers of workers from a whole number, several of them, or text such as "1,4,16".

    Raises
    ------
    ParameterError
        There is none, or one is not a whole number from 1 to a million, or is there twice.
    """
    parts = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, (list, tuple)) else [value]
    counts: list[int] = []
    for part in parts:
        text = str(part).strip()
        if isinstance(part, bool) or not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_WORKERS:
            raise ParameterError(
                f"{option('workers')} must be whole numbers from 1 to {MOST_WORKERS:,}, such as 1,4,16, not {value!r}",
                value=value,
            )
        if int(text) in counts:
            raise ParameterError(
                f"{option('workers')} has {int(text)} twice: {value!r}; give each number once", value=value
            )
        counts.append(int(text))
    if not counts:
        raise ParameterError(f"{option('workers')} has no number; give one or more, such as 1,4,16", value=value)
    return counts
