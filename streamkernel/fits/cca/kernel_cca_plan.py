"""The options and the plan of a fit of kernel canonical correlations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from streamkernel.engine import Machine, Plan, Step, TableShape, driver_step, eigen_flops, make_plan, step_of
from streamkernel.errors import ParameterError
from streamkernel.fits.cca.kernel_cca_views import Paired, paired_table
from streamkernel.fits.steps.plan_steps import scaling_step
from streamkernel.kernels import Kernel, packing_bytes, sparse_kernel
from streamkernel.kernels.parameters import checked_probability
from streamkernel.reductions import Moments, View
from streamkernel.reductions.contract import AnyReduction
from streamkernel.reductions.sums import CrossDisagreements, CrossGram, Features, FeatureTimes
from streamkernel.selection.cross_greedy import POOLS, CrossGreedy, CrossProblem, cross_rule
from streamkernel.selection.problem import gather_step, sharing
from streamkernel.selection.pursuit_pools import candidates_of_a_pick, picks_of_a_sweep
from streamkernel.selection.row_cache import STATISTICS
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.checks import checked_choice, checked_number, checked_seed, checked_whole
from streamkernel.settings.transformers import PAIRS, KernelCCASettings
from streamkernel.solvers import choice_bytes
from streamkernel.table import Table
from streamkernel.type_aliases import Fields, FieldsView, Int
from streamkernel.wording import option

_CURVE = 48  # most sizes at which the bound is evaluated
_LEVEL = (0.05, 0.95)  # eps and quantile of candidates in a split pool
_PAIRED = ("kernel", "lengthscale", "gamma", "degree", "coef0", "kernel_params")


@dataclass(frozen=True)
class CCASettings:
    """The options of a fit.

    Parameters
    ----------
    views : kernel, lengthscale and scaling of either view.
    components : pairs of variates r.
    asked : pairs of basis functions that were asked for; None where they were left to the fit.
    size : pairs of basis functions n, at most the rows.
    rule, options : rule that chooses the pairs, and its options as given.
    regularization : ridge of either view as a share of the trace of its kernel matrix.
    gamma : gamma of Theorem 4; None for no bound.
    delta : probability that the bound fails.
    seed : seed of every draw.
    """

    views: tuple[BasisSettings, BasisSettings]
    components: int
    asked: int | None
    size: int
    rule: CrossGreedy
    options: Fields
    regularization: float
    gamma: float | None
    delta: float
    seed: int

    @classmethod
    def from_parameters(cls, parameters: FieldsView, rows: int | None) -> Self:
        """Make settings from the estimator's parameters, for this number of rows; None only checks them.

        Raises
        ------
        ParameterError
            One of them is wrong.
        """
        counts = {name: parameters[name] for name in ("n_components", "basis_size", "picks", "candidates")}
        for name, value in counts.items():
            if value is not None or name == "n_components":
                checked_whole(name, value, 1)
        r, size, picks, candidates = counts.values()
        if size is not None and r > size:
            raise ParameterError(f"{r} components of a basis of {size} functions; give a basis of at least {r}")
        checked_choice("pool", parameters["pool"], POOLS)
        gamma, delta = parameters["bound_gamma"], parameters["delta"]
        n = int(size or max(PAIRS, r))
        n = n if rows is None else min(n, rows)
        picks = int(picks or picks_of_a_sweep(n))
        if candidates is None and parameters["pool"] == "shared":
            candidates = candidates_of_a_pick(min(picks, n))
        options: Fields = {"pool": parameters["pool"]}
        if parameters["pool"] != "all":
            options |= {"picks": picks} | ({} if candidates is None else {"candidates": int(candidates)})
        seed = checked_seed(parameters["random_state"])
        return cls(
            views=(_view(parameters, 0, seed), _view(parameters, 1, seed)),
            components=int(r),
            asked=None if size is None else int(size),
            size=n,
            rule=cross_rule(parameters["pool"], picks, candidates, _LEVEL),
            options=options,
            regularization=checked_number("regularization", parameters["regularization"], least=0.0),
            gamma=None if gamma is None else checked_number("bound_gamma", gamma, least=0.0, exclusive=True),
            delta=checked_probability("delta", delta),
            seed=seed,
        )

    def problem(self, paired: Paired, views: tuple[View, View], kernels: tuple[Kernel, Kernel]) -> CrossProblem:
        return CrossProblem(paired.table, views, kernels, paired.widths, self.size, self.regularization, self.seed)

    def kernels(self, paired: Paired) -> tuple[Kernel, Kernel]:
        """The kernel of each view, which sees positions of the view's columns."""
        schema = paired.table.schema
        first, second = (
            sparse_kernel(each.located_kernel(names, schema), len(names))
            if view.sparse
            else each.located_kernel(names, schema)
            for each, names, view in zip(self.views, paired.names, paired.views, strict=True)
        )
        return first, second

    def check_sparse(self, paired: Paired) -> None:
        """Refuse sparse rows where the kernel or the scaling of a view needs dense ones."""
        for settings, view in zip(self.views, paired.views, strict=True):
            if view.sparse:
                settings.check_sparse(paired.table)

    def to_config(self) -> Fields:
        first, second = (each.to_config() for each in self.views)
        return {
            **first,
            "n_components": self.components,
            "basis_size": self.asked or self.size,
            "rule": "cross-quotient",
            "rule_options": self.options,
            "second_view": {name: second[name] for name in ("kernel", "lengthscale")},
            "regularization": self.regularization,
            "bound_gamma": self.gamma,
            "delta": self.delta,
        }


def _view(parameters: FieldsView, view: int, seed: int) -> BasisSettings:
    """Settings of one view; a tuple of two has one value per view."""
    given = {name: parameters[name] for name in _PAIRED}
    for name, value in given.items():
        if isinstance(value, tuple):
            if len(value) != 2:
                raise ParameterError(
                    f"{name} is a tuple of {len(value)}; give one for each view, or a list for the columns of one"
                )
            given[name] = value[view]
    settings = BasisSettings(**given, objective="trace", scale=parameters["scale"], seed=seed)
    if settings.chooses_kernel:
        raise ParameterError(
            f"{option('kernel')} 'auto' is chosen by how well targets are predicted; give the name of a kernel here"
        )
    if settings.searches_lengthscale and settings.lengthscale != "median":
        raise ParameterError(
            f"{option('lengthscale')} 'auto' is searched for by how well targets are predicted; give 'median' here"
        )
    return settings


def plan_kernel_cca(table: Table, settings: KernelCCASettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of the fit: sweeps, bytes, flops, memory; parameters are those of `plan_ridge`."""
    paired, resolved = settings_and_views(table, settings)
    return plan_cca(paired, resolved if n is None else replace(resolved, size=n), machine)


def settings_and_views(table: Table, settings: KernelCCASettings) -> tuple[Paired, CCASettings]:
    """The two views of a table, and the settings of each.

    Raises
    ------
    ParameterError
        There is no second view, a column is not there, or a setting is wrong.
    """
    if settings.view_columns is not None:
        table = table.without_targets()
    paired = paired_table(table, None, settings.view_columns)
    return paired, CCASettings.from_parameters(settings.to_parameters(), paired.table.counted)


def plan_cca(paired: Paired, settings: CCASettings, machine: Machine) -> Plan:
    table, n = paired.table, settings.size
    problem = settings.problem(paired, paired.views, settings.kernels(paired))
    gathered = len(settings.rule.prefetch(problem)) + sampled_rows(paired, settings)
    choice = settings.rule.steps(problem)
    gather = gather_step(problem.draws, gathered)
    # The cached rows stay; the sample of them is there until scalers and kernels are found, one view after the other.
    steps = [replace(gather, kept_bytes=gather.state_bytes)]
    if needs_statistics(paired, settings):
        moments = Moments.of(table, table.n_targets)
        steps = sharing(steps, step_of(STATISTICS, moments, table, kernel_columns=0))
    sample = gather_step(problem.draws, sampled_rows(paired, settings)).state_bytes
    found = _lengthscale_steps(paired, settings)
    if settings.views[0].samples_scaling:
        found = [scaling_step(settings.views[0].scaling_rows(table), max(paired.widths)), *found]
    steps += [*(replace(step, held_bytes=step.held_bytes + sample) for step in found), *choice[1:]]
    unfilled = problem.unfilled(n)
    features = Features.of_basis(unfilled[0]), Features.of_basis(unfilled[1])
    final = CrossGram(features, paired.views)

    # Points are of either view, and not of the table's width.
    def sweep(name: str, work: AnyReduction, held: int) -> Step:
        packed, rows = problem.packed_bytes(n) + packing_bytes(max(paired.widths)), 8 * n * sum(paired.widths)
        step = step_of(name, work, table, kernel_columns=2 * n, points=0, held_bytes=held, packed_bytes=packed)
        return problem.filling(replace(step, rows_bytes=rows))

    steps.append(sweep("final sweep", final, 32 * n * n))
    # The sums, centred; eigenvectors of either block with LAPACK's workspace; the product between, and its vectors.
    steps.append(driver_step("solve", 8 * 24 * n * n, algebra=4 * eigen_flops(n)))
    if settings.gamma is not None:
        sizes = curve_sizes(n)
        zeros = np.broadcast_to(np.zeros(()), (n, len(sizes)))
        x, y = (FeatureTimes(each, zeros, np.zeros(len(sizes))) for each in features)
        work = CrossDisagreements((x, y), paired.views, settings.gamma, unfilled[0].rows, sizes)
        held = 8 * 24 * n * n + 32 * n * len(sizes)
        steps.append(sweep("bound", work, held))
    # Views of two inputs both have names.
    shape = replace(TableShape.of(table), names=max(table.n_features, sum(paired.widths)))
    return make_plan(steps, shape, machine, disk_bytes=8 * n * (sum(paired.widths) + 4 * n))


def _lengthscale_steps(paired: Paired, settings: CCASettings) -> list[Step]:
    """Distances of sampled rows, in one view after the other, which is float64."""
    rows = tuning_rows(paired, settings)
    held = (8 * rows * width + choice_bytes(rows, width, 8) for width in paired.widths)
    return [driver_step("lengthscale", max(held))] if rows else []


def needs_statistics(paired: Paired, settings: CCASettings) -> bool:
    known = paired.own_statistics and paired.table.statistics is not None
    return settings.views[0].scale != "none" and not known


def sampled_rows(paired: Paired, settings: CCASettings) -> int:
    return max(each.sampled_rows(paired.table) for each in settings.views)


def tuning_rows(paired: Paired, settings: CCASettings) -> int:
    """Number of the sampled rows that lengthscales are found from."""
    return max(each.tuning_rows(paired.table) for each in settings.views)


def curve_sizes(n: int) -> Int:
    """Sizes at which the bound is evaluated: all up to 48, else 48 sizes in geometric steps."""
    if n <= _CURVE:
        return np.arange(1, n + 1, dtype=np.int64)
    return np.unique(np.geomspace(1, n, _CURVE).round().astype(np.int64))
