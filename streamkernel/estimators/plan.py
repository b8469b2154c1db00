"""The plan of a ridge fit: its steps, added up before anything is read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from streamkernel.engine import Machine, Plan, Step, TableShape, make_plan, step_of
from streamkernel.estimators.check_rows import check_bytes
from streamkernel.estimators.settings import BasisSettings, RidgeSettings
from streamkernel.kernels import packed_bytes
from streamkernel.reductions import FeatureGram, FeatureMap, Features, Moments, NormalEquations
from streamkernel.selection import Problem
from streamkernel.selection.problem import counting, gather_step, unfilled_basis
from streamkernel.solvers import choice_bytes, falkon_steps
from streamkernel.table import Table

__all__ = ["check_step", "needs_moments", "plan_factor", "plan_ridge", "steps_of_choice"]


def needs_moments(table: Table, settings: BasisSettings) -> bool:
    """Whether the fit needs a sweep for means and deviations of the columns, because the store has none."""
    wanted = settings.scale == "standard" or (table.n_targets > 0 and table.classes is None)
    return table.statistics is None and wanted


def steps_of_choice(table: Table, settings: BasisSettings, n: int) -> tuple[Problem, list[Step]]:
    """The steps up to a chosen basis, which all fits have in common."""
    d = table.n_targets
    problem = Problem(table, settings.kernel_template(), n, settings.tol, settings.seed, np.zeros(d), np.ones(d))
    steps: list[Step] = []
    if needs_moments(table, settings):
        moments = Moments(table.n_features, 0 if table.classes is not None else d)
        steps.append(step_of("column statistics", moments, table, kernel_columns=0))
    rule = settings.selection_rule(has_targets=d > 0)
    chosen = _with_sample(rule.steps(problem), problem, settings.sampled_rows(table))
    steps += counting(chosen, problem) if d else chosen
    if settings.searches_lengthscale:
        # Once the first rows are there, before any is chosen.
        fetched = next((i for i, step in enumerate(steps) if step.kept_bytes), len(steps) - 1) + 1
        steps.insert(fetched, _lengthscale_step(problem, settings))
    return problem, steps


def check_step(problem: Problem, n: int) -> Step:
    """The picture on some rows, which a fit of n functions ends with: the driver reads them, with the basis packed."""
    table, shape = problem.table, TableShape.of(problem.table)
    held = check_bytes(table) + packed_bytes(n, table.n_features, problem.kernel.formulas)
    held += 0 if shape.in_memory else 3 * shape.chunk_bytes
    return Step("check", "driver", 0, 1, 0.0, 0, 0, 0, 0, held)


def _lengthscale_step(problem: Problem, settings: BasisSettings) -> Step:
    """Distances of sampled rows, and the fits to them where a lengthscale is searched for."""
    table, kernel = problem.table, problem.kernel
    held = choice_bytes(
        settings.sampled_rows(table),
        table.n_features,
        table.dtype.itemsize,
        formulas=kernel.formulas,
        search=settings.lengthscale == "auto",
    )
    return Step("lengthscale", "driver", 0, 1, 0.0, 0, 0, 0, 0, held)


def plan_ridge(table: Table, settings: BasisSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory.

    Parameters
    ----------
    machine : workers and threads, with the bytes their processes hold already.
    n : basis size in place of the settings', to find one that fits.
    """
    n = settings.components(table) if n is None else n
    problem, steps = steps_of_choice(table, settings, n)
    if isinstance(settings, RidgeSettings) and settings.solver_for(table, n) == "cg":
        further, disk = _iterations(problem, n, settings.preconditioner_rows(table, n), machine)
    else:
        way_out = "--solver cg with a number for --alpha" if isinstance(settings, RidgeSettings) else ""
        further, disk = _decomposition(problem, n, way_out)
    if table.n_targets:
        further.append(check_step(problem, n))
    return make_plan(steps + further, TableShape.of(table), machine, disk_bytes=disk, kernel=problem.kernel)


def _decomposition(problem: Problem, n: int, way_out: str) -> tuple[list[Step], int]:
    """Steps and bytes on disk of the direct solve."""
    table = problem.table
    final = NormalEquations(unfilled_basis(problem, n), problem.centre)
    # The sums, their whitened copy, its eigenvectors and LAPACK's workspace (evd takes 2 n^2 beside the matrix).
    algebra = 8 * n * (8 * n + 4 * table.n_targets)
    steps = [
        step_of("final sweep", final, table, kernel_columns=n, held_bytes=16 * n * n),
        Step("solve", "driver", 0, 1, 0.0, 0, 0, 0, 0, algebra, way_out),
    ]
    return steps, final.state_bytes() * 2 + n * table.n_features * 8


def _iterations(problem: Problem, n: int, sample: int, machine: Machine) -> tuple[list[Step], int]:
    """Steps and bytes on disk of conjugate gradients, for the usual number of iterations.

    Parameters
    ----------
    sample : number of rows that the preconditioner is computed from.
    """
    table = problem.table
    basis, d = unfilled_basis(problem, n), table.n_targets
    gather = gather_step(problem, sample)
    gather = replace(gather, name="rows for the preconditioner", held_bytes=gather.held_bytes + 8 * n * n)
    steps = [gather, *falkon_steps(basis, table, d, sample=sample)]
    # Threads end with their sweep; what the allocator holds for them does not, and the factors come on top of it.
    here = [step for step in steps if step.where == "sample" or not machine.workers]
    kept = machine.driver_threads * sum(step.scratch_bytes for step in here)
    steps[-1] = replace(steps[-1], held_bytes=steps[-1].held_bytes + kept)
    states = sum(step.times * step.state_bytes for step in steps if step.where == "sweep")
    return steps, states + 8 * n * (table.n_features + d)


def plan_factor(
    table: Table,
    settings: BasisSettings,
    machine: Machine,
    n: int,
    chunk_rows: int,
    dtype: np.dtype[Any] | None,
    *,
    sums: bool = False,
) -> Plan:
    """The plan of a factor.

    Parameters
    ----------
    chunk_rows : rows of a chunk of G; a task holds whole chunks.
    dtype : dtype of G on disk, or None where its columns are only summed.
    sums : whether a sweep of sums decides how many picks to keep.
    """
    problem, steps = steps_of_choice(table, settings, n)
    basis = unfilled_basis(problem, n)
    disk = 8 * n * (table.n_features + 4)
    if sums:
        work = NormalEquations(basis, problem.centre)
        steps.append(step_of("sums for the stop", work, table, kernel_columns=n, held_bytes=64 * n * n))
    if dtype is None:
        gram = FeatureGram(Features.of_basis(basis))
        steps.append(step_of("final sweep", gram, table, kernel_columns=n, held_bytes=16 * n * n))
    else:
        features = FeatureMap(Features.of_basis(basis), dtype=dtype)
        # Beside its block a task holds the chunk that it computes, and the one before, which is being written. By
        # measurement the allocator keeps the memory of another one.
        chunk = 3 * dtype.itemsize * n * min(chunk_rows, table.n_rows)
        step = step_of("write the factor", features, table, kernel_columns=n)
        steps.append(replace(step, scratch_bytes=step.scratch_bytes + chunk))
        disk += dtype.itemsize * n * table.n_rows
    return make_plan(steps, TableShape.of(table), machine, disk_bytes=disk, kernel=problem.kernel)


def _with_sample(steps: list[Step], problem: Problem, rows: int) -> list[Step]:
    """The rule's steps, with sampled rows added to its first sweep for rows by number, or in a sweep of their own."""
    if rows == 0:
        return steps
    sample, whole = gather_step(problem, rows), gather_step(problem, problem.table.n_rows)
    for index, step in enumerate(steps):
        if step.name == sample.name:
            # Rows that both want are fetched once: never more than there are.
            both = replace(
                step,
                state_bytes=min(step.state_bytes + sample.state_bytes, whole.state_bytes),
                held_bytes=min(step.held_bytes + sample.held_bytes, whole.held_bytes),
                kept_bytes=min(step.kept_bytes + sample.kept_bytes, whole.kept_bytes),
            )
            return [*steps[:index], both, *steps[index + 1 :]]
    return [sample, *steps]
