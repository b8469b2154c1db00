"""Scale: the seconds that the model of time predicts against those that are measured, and its word on 1,000 workers.

Five parts. `here`: sweeps and whole fits on local workers, more of them than cores too, by rates measured just before.
`two`: a long sweep on two workers against one, and against two processes that share nothing but the machine.
`sleepers`: a scheduler and many workers, threads of a few processes, whose leaves sleep; states are real, and travel.
`storage`: a table on an S3 server that is slowed on purpose, read by threads that work or do not. `thousand`: a billion
rows on up to 1,000 workers, by the formula and by a simulation of its schedule, task by task. Nothing else may run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import dask.array as da
import numpy as np
from _report import Part, at_least, at_most, by_parts, main
from _sleeper import Sleeper, rows_of
from _tables import write_store
from data_sets import smooth_target_table
from s3_server import running_s3
from simulated_sweep import simulated_seconds
from slow_server import slowed

from streamkernel import ingest, open_table
from streamkernel.basis import Basis
from streamkernel.engine import (
    Executor,
    Machine,
    Session,
    TableShape,
    ThreadExecutor,
    available_cpus,
    branch_leaves,
    make_plan,
    step_of,
    summed_states,
)
from streamkernel.engine.cluster import ClusterExecutor, local_cluster
from streamkernel.fits import fit_ridge, plan_ridge
from streamkernel.kernels import Gaussian
from streamkernel.reductions.sums import NormalEquations
from streamkernel.settings import RidgeSettings
from streamkernel.table import Table
from streamkernel.table.statistics import ColumnStatistics, TableStatistics
from streamkernel.timing import (
    BUILT_IN,
    Rates,
    Slots,
    SweepCost,
    plan_seconds,
    scaling,
    sweep_seconds,
)
from streamkernel.timing.calibrate import calibrate, network_rate, storage_rates, task_rates
from streamkernel.timing.scaling import sweep_cost

P, OFF = 20, 0.20
PLAIN = RidgeSettings(kernel="gaussian", metric="none", alpha="gcv", objective="prediction")


def compared(part: str, what: str, predicted: float, measured: float) -> tuple[list[Any], dict[str, Any]]:
    """A row of the table, and the claim that predicted seconds differ from measured ones by at most 20 %."""
    off = predicted / measured - 1.0
    row = [part, what, round(predicted, 3), round(measured, 3), round(off, 3)]
    return row, at_most(f"{part}, {what}: error of the model", abs(off), OFF)


# --------------------------------------------------------------------------------------------------------------- here
def here(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """1, 2 and 4 local workers: a final sweep, and a whole fit."""
    m, n = (60_000, 200) if quick else (600_000, 500)
    rows, claims, seconds = [], [], dict[tuple[str, int], float]()
    with tempfile.TemporaryDirectory(prefix="streamkernel-scale-") as folder:
        store = Path(folder) / "table.zarr"
        write_store(store, lambda start, count: smooth_target_table(count, P, start=start), m, P, "float32")
        table = open_table(store)
        work = work_of(table, n)
        step = step_of("final sweep", work, table, kernel_columns=n)
        plan = make_plan([step], TableShape.of(table), Machine(1, 1), disk_bytes=0)
        settings = replace(PLAIN, n_components=n)
        for workers in (1, 2, 4):
            slots = Slots(workers, 1, available_cpus())
            with local_cluster(workers) as executor:
                rates = calibrate(executor, str(store))
                measured = median(swept(executor, work, table) for _ in range(1 if quick else 3))
                fitted = median(fit_seconds(executor, settings, table) for _ in range(1 if quick else 3))
            seconds["sweep", workers], seconds["fit", workers] = measured, fitted
            predicted = sweep_seconds(sweep_cost(step, plan, rates), slots, rates).seconds
            of_fit = plan_seconds(plan_ridge(table, settings, Machine(workers, 1)), rates, slots).seconds
            for what, found, real in (("final sweep", predicted, measured), ("fit", of_fit, fitted)):
                row, claim = compared("here", f"{what}, {workers} workers, m = {m:,}, n = {n}", found, real)
                rows.append(row)
                claims.append(claim)
    for what in ("sweep", "fit"):
        ratio = seconds[what, 1] / seconds[what, 2]
        claims.append(at_least(f"here: {what} on 1 worker over that on 2", ratio, 1.9))
    return rows, claims


def work_of(table: Table, n: int, kernel: Gaussian | None = None) -> NormalEquations:
    """The sums of n functions of the first rows."""
    X = table.slice(0, n).read(0, n).X
    basis = Basis(kernel or Gaussian(float(np.sqrt(table.n_features))), X, np.arange(n))
    return NormalEquations.of(basis, np.zeros(max(table.n_targets, 0)), table.n_rows)


def swept(executor: Executor, work: Any, table: Table) -> float:
    session = Session(executor)
    session.sweep(work, table, "sweep")
    return session.records[-1].seconds


def fit_seconds(executor: Executor, settings: RidgeSettings, table: Table) -> float:
    began = time.perf_counter()
    fit_ridge(table, settings, Session(executor))
    return time.perf_counter() - began


# ---------------------------------------------------------------------------------------------------------------- two
def two(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """A sweep on two workers against one. Predicted is the machine's limit: the ratio of two independent processes."""
    m, n, repeats = (100_000, 200, 1) if quick else (2_000_000, 1000, 5)
    source = generated(m)
    table = open_table(source)
    work, first = work_of(table, n), open_table(generated(m // 20))
    # Cores that are shared with other machines are not the same from one minute to the next: all three in turns.
    ratios, limits = [], []
    with ExitStack() as stack:
        workers = [stack.enter_context(local_cluster(count)) for count in (1, 2)]
        processes = stack.enter_context(ProcessPoolExecutor(2, mp_context=get_context("spawn")))
        list(processes.map(alone, [generated(m // 20)] * 2, [n] * 2))
        for executor in workers:
            swept(executor, work, first)
        for _ in range(repeats):
            one, both = (swept(executor, work, table) for executor in workers)
            ratios.append(one / both)
            single = processes.submit(alone, source, n).result()
            limits.append(2.0 * single / max(processes.map(alone, [source] * 2, [n] * 2)))
    ratio, limit = median(ratios), median(limits)
    what = f"sweep on 1 worker over that on 2, m = {m:,}, n = {n}"
    return [["two", what, round(limit, 3), round(ratio, 3), round(limit / ratio - 1.0, 3)]], [
        at_least(f"two: {what}", ratio, 1.9),
        at_least(f"two: {what}, share of the ratio of two independent processes", ratio / limit, 0.97),
    ]


def generated(rows: int) -> str:
    return f"synthetic://friedman?rows={rows}&seed=0"


def alone(source: str, n: int) -> float:
    """Seconds of a sweep on one thread of this process."""
    table = open_table(source)
    return swept(ThreadExecutor(1), work_of(table, n), table)


# ----------------------------------------------------------------------------------------------------------- sleepers
@contextmanager
def many_workers(count: int, processes: int) -> Iterator[ClusterExecutor]:
    """A scheduler in a process of its own, and workers that are threads of a few others."""
    from distributed import Client

    with ExitStack() as stack:

        def started(*command: str) -> subprocess.Popen[str]:
            # The scheduler unpickles what tasks are sent: it must find the module of the sleepers, too.
            modules = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": modules}
            process = subprocess.Popen(
                [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        scheduler = started(
            "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"
        )
        address = said(scheduler, "Scheduler at:").split()[-1]
        share = count // processes
        code = str(Path(__file__).with_name("_sleeper.py"))
        for process in [started(code, address, str(share)) for _ in range(processes)]:
            said(process, "joined")
        client = stack.enter_context(Client(address, timeout=60))
        client.wait_for_workers(share * processes, timeout=120)
        yield ClusterExecutor(client, remote=False)


def said(process: subprocess.Popen[str], words: str) -> str:
    """The first line of its output that has these words; the rest is read and dropped.

    A scheduler writes some lines for each worker. It would wait for ever once the pipe is full, with 256 workers.
    """
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if words in line:
            Thread(target=deque, args=(process.stdout, 0), daemon=True).start()
            return line
    raise RuntimeError("".join(lines))


def sleepers(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Leaves that sleep, on a real scheduler."""
    counts, leaf, n = ((8, 32), 1.0, 50) if quick else ((64, 256), 5.0, 300)
    rows, claims = [], []
    for count in counts:
        leaves = (5 if quick else 8) * count
        with many_workers(count, 4) as executor:
            rates = BUILT_IN.changed(
                **task_rates(executor), network_bytes=network_rate(executor.client), memory_bytes=1e9, busy=1.0
            )
            table, layout = rows_of(leaves)
            work = Sleeper(n, leaf)
            began = time.perf_counter()
            executor.reduce(work, table, layout, lambda rows: None)
            measured = time.perf_counter() - began
        cost = SweepCost(leaves, leaf, 0.0, work.sealed_bytes())
        predicted = sweep_seconds(cost, Slots(count), rates).seconds
        what = f"{count} workers, {leaves} leaves of {leaf} s, n = {n}, {1e3 * rates.task_seconds:.2g} ms a task"
        row, claim = compared("sleepers", what, predicted, measured)
        rows.append(row)
        claims.append(claim)
    return rows, claims


# ------------------------------------------------------------------------------------------------------------ storage
class Waiter(NormalEquations):
    """Sums of no functions, that take `seconds` a row of a core that does nothing else."""

    seconds: float = 0.0

    def fold(self, state: Any, block: Any) -> Any:
        time.sleep(self.seconds * len(block))
        state["totals"] += [len(block), len(block), 0.0]
        return state


def waiter(seconds: float) -> Waiter:
    found = Waiter(Basis(Gaussian(1.0), np.zeros((1, P), np.float32), np.arange(1)), np.zeros(1), 0)
    object.__setattr__(found, "seconds", seconds)
    return found


def storage(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """A table on a slowed S3 server, with leaves that wait for rows, for work, or for both."""
    m, chunk = (100_000, 5000) if quick else (400_000, 5000)
    rows, claims = [], []
    with tempfile.TemporaryDirectory(prefix="streamkernel-scale-") as folder, ExitStack() as stack:
        server = stack.enter_context(running_s3(Path(folder) / "log"))
        os.environ.update(server.environment())
        data = smooth_target_table(m, P)
        np.save(Path(folder) / "rows.npy", np.column_stack([data.X, data.y]).astype(np.float32))
        place = f"{server.bucket()}/table"
        ingest(Path(folder) / "rows.npy", place, target=P, chunk_rows=chunk)
        # Each answer waits; or all answers together have few bytes a second.
        for what, delay, rate in (("answers after 50 ms", 0.05, 1e9), ("4 MB/s in all", 0.0, 4e6)):
            with slowed(server.endpoint, delay=delay, rate=rate) as slow:
                os.environ["AWS_ENDPOINT_URL"] = slow.endpoint
                table = open_table(place)
                row_bytes = TableShape.of(table).row_bytes
                for threads in (1, 2, 4):
                    executor = ThreadExecutor(threads)
                    rates = calibrate_reading(executor, place)
                    for work in (0.0, 2e-5):
                        reduction = waiter(work)
                        measured = swept(executor, reduction, table)
                        step = step_of("sweep", reduction, table, kernel_columns=0)
                        cost = SweepCost(step.leaves, m * work / step.leaves, row_bytes * m / step.leaves)
                        predicted = sweep_seconds(cost, Slots(0, threads), rates).seconds
                        name = f"{what}, {threads} threads, {1e6 * work:.0f} us a row"
                        row, claim = compared("storage", name, predicted, measured)
                        rows.append(row)
                        claims.append(claim)
    return rows, claims


def calibrate_reading(executor: ThreadExecutor, place: str) -> Rates:
    """Built-in rates with those of the storage, as this many threads see it."""
    return BUILT_IN.changed(**storage_rates(executor, place), busy=1.0, thread_sweep_seconds=0.0)


# ----------------------------------------------------------------------------------------------------------- thousand
def thousand(quick: bool, sets: tuple[str, ...] | None) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """m = 1e9, n = 1,000 on up to 1,000 workers, of a table that `ingest` made: statistics of columns are known."""
    m, n = 1_000_000_000, 1000
    with local_cluster(available_cpus()) as executor:
        rates = calibrate(executor)
    # A network between machines, not loopback: 10 Gbit/s.
    rates = rates.changed(network_bytes=min(rates.network_bytes, 1.25e9))
    zeros = da.zeros((m, P), chunks=(65_536, -1), dtype=np.float32)
    some = np.random.default_rng(0).standard_normal((100, P))
    statistics = TableStatistics(*(replace(ColumnStatistics.of(some[:, :width]), count=m) for width in (P, 1)))
    table = replace(open_table(zeros, da.zeros(m, chunks=65_536)), statistics=statistics)
    settings = RidgeSettings(n_components=n)
    rows: list[list[Any]] = []
    found = scaling(lambda machine: plan_ridge(table, settings, machine), (1, 4, 16, 64, 256, 1000), rates)
    for each in found:
        rows.append(["thousand", f"{each.workers} workers: efficiency", round(each.efficiency, 3), None, None])
        rows.append(["thousand", f"{each.workers} workers: seconds", round(each.seconds, 1), None, None])
    plan = plan_ridge(table, settings, Machine(1000, 1))
    step = next(step for step in plan.steps if step.name == "final sweep")
    cost = sweep_cost(step, plan, rates)
    of = (cost.leaves, 1000, cost.work * rates.busy, 3 * cost.state_bytes / rates.memory_bytes)
    size = branch_leaves(cost.leaves, round(cost.state_bytes), 1000, cost.work * rates.busy)
    tree = size, summed_states(round(cost.state_bytes))
    simulated = simulated_seconds(*of, cost.state_bytes / rates.network_bytes, rates.task_seconds, *tree)
    predicted = sweep_seconds(cost, Slots(1000), rates.changed(sweep_seconds=0.0)).seconds
    row, claim = compared("thousand", "final sweep, 1,000 workers, against the simulation", predicted, simulated)
    one = cost.leaves * cost.work * rates.busy
    return [*rows, row], [
        claim,
        at_least("1,000 workers, m = 1e9, n = 1,000: efficiency of the fit, by the model", found[-1].efficiency, 0.8),
        at_least("... of its final sweep, simulated", one / (1000 * simulated), 0.8),
    ]


PARTS: dict[str, Part] = {"here": here, "two": two, "sleepers": sleepers, "storage": storage, "thousand": thousand}


def run(quick: bool = False, parts: str = ",".join(PARTS)) -> dict[str, Any]:
    rows, claims = by_parts(PARTS, parts, None, quick)
    return {
        "title": "Predicted against measured seconds",
        "columns": ["part", "what", "predicted", "measured", "off by"],
        "rows": rows,
        "claims": claims,
    }


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", default=",".join(PARTS), help="some of the parts, separated by commas")


if __name__ == "__main__":
    main(run, __doc__, _arguments)
