"""A fit of kernel canonical correlations: scalers and lengthscales -> pairs of functions -> one sweep -> variates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamkernel.engine import Plan, Session
from streamkernel.errors import DegenerateBandwidthError, EmptyDataError, warn_user
from streamkernel.factors import FactorCCA
from streamkernel.fits.cca.kernel_cca_plan import (
    CCASettings,
    curve_sizes,
    needs_statistics,
    plan_cca,
    sampled_rows,
    settings_and_views,
    tuning_rows,
)
from streamkernel.fits.cca.kernel_cca_views import Paired
from streamkernel.fits.steps.choose_basis import Chosen
from streamkernel.fits.steps.record import fitted_fields, scaler_arrays, scaler_record
from streamkernel.fits.steps.run import checked_plan, measured, warn_of_fewer_rows
from streamkernel.fits.steps.scalers import bounded_scaler, standard_scaler
from streamkernel.kernels import Kernel
from streamkernel.models.certificate import certificate_of, path_of
from streamkernel.models.kernel_cca import (
    KernelCCABound,
    KernelCCAModel,
    KernelCCARecord,
    KernelCCASettingsRecord,
    KernelCCASolution,
    ViewRecord,
)
from streamkernel.records import Certificate, LengthscaleChoice, Run
from streamkernel.reductions import Moments, Sample, View, draw_rows
from streamkernel.reductions.sums import CrossDisagreements, CrossFeatureSums, CrossGram, Features, FeatureTimes
from streamkernel.selection import RowCache, Selection
from streamkernel.selection.cross_greedy import CrossProblem, CrossSelection
from streamkernel.selection.row_cache import STATISTICS
from streamkernel.settings.basis import BasisSettings
from streamkernel.settings.transformers import KernelCCASettings
from streamkernel.solvers import choose_lengthscale, with_choice
from streamkernel.store.plain import plain
from streamkernel.table import RowScaler, SparseScaler, Table, TableStatistics
from streamkernel.type_aliases import AnyArray, Float, Int, Unchecked

_SAMPLE_STREAM = (6,)


@dataclass(frozen=True)
class _ViewChoice:
    """A view with its scaler, and the kernel with its lengthscale."""

    view: View
    kernel: Kernel
    choice: LengthscaleChoice | None

    def record(self, names: tuple[str, ...], certificate: Certificate) -> ViewRecord:
        return ViewRecord(
            names=tuple(names),
            columns=self.view.columns,
            kernel=self.kernel.to_config(),
            lengthscale=getattr(self.kernel, "lengthscale", None),
            lengthscale_choice=self.choice,
            scaler=scaler_record(self.view.scaler),
            certificate=certificate,
        )


def fit_kernel_cca(table: Table, settings: KernelCCASettings, session: Session, **options: Unchecked) -> KernelCCAModel:
    """Canonical correlations of the two views of a table; options and errors are those of `fit_cca`."""
    paired, resolved = settings_and_views(table, settings)
    if paired.table.n_rows < 2:
        raise EmptyDataError("the table has 1 row, and correlations need at least two")
    return fit_cca(paired, resolved, session, **options)


def fit_cca(
    paired: Paired,
    settings: CCASettings,
    session: Session,
    *,
    memory_limit: int | None = None,
    driver_bytes: int | None = None,
    plan: Plan | None = None,
) -> KernelCCAModel:
    """Choose pairs of functions, sum their features over all rows, decompose.

    Parameters
    ----------
    memory_limit, driver_bytes, plan : as in `checked_plan`.

    Raises
    ------
    ResourceLimitError
        The plan exceeds a limit.
    DataError, StoreError, NumericalError
        See `streamkernel.errors`.
    """
    table = paired.table
    settings.check_sparse(paired)
    warn_of_fewer_rows("basis_size", settings.asked, table)
    for kernel, width in zip(settings.kernels(paired), paired.widths, strict=True):
        kernel.check_features(width)
    plan = checked_plan(
        lambda machine, n: plan_cca(paired, replace(settings, size=n), machine),
        settings.size,
        table,
        session,
        memory_limit,
        driver_bytes,
        plan,
    )
    with measured(session, plan) as record:
        choices, cache = _choose_kernels(paired, settings, session)
        views = choices[0].view, choices[1].view
        problem = settings.problem(paired, views, (choices[0].kernel, choices[1].kernel))
        chosen = settings.rule.select(problem, session, cache)
        bases = chosen.bases
        if len(bases[0]) < settings.size:
            warn_user(
                f"only {len(bases[0])} of {settings.size} pairs of basis functions are linearly independent in both "
                "views; the others were left out (duplicate rows, or a lengthscale that is large for the data)"
            )
        features = Features.of_basis(bases[0]), Features.of_basis(bases[1])
        sums = session.sweep(CrossGram(features, views), table, "final sweep")
        ridges = settings.regularization * sums.traces
        cca = FactorCCA.of(sums, (ridges[0], ridges[1]), settings.components, at_basis=bases[0].L)
        curve = {} if settings.gamma is None else _curve(problem, features, bases[0].rows, sums, settings, session)
    if len(cca.correlations) < settings.components:
        warn_user(
            f"only {len(cca.correlations)} of {settings.components} pairs of components are independent; the others "
            "were left out"
        )
    return _model(paired, settings, choices, chosen, sums, cca, curve, record())


def _choose_kernels(
    paired: Paired, settings: CCASettings, session: Session
) -> tuple[tuple[_ViewChoice, _ViewChoice], RowCache]:
    """Scalers, and lengthscales from a sample that is fetched together with all candidates."""
    table, statistics, cache = paired.table, paired.table.own_statistics, RowCache(paired.table, session)
    drawn = draw_rows(table, sampled_rows(paired, settings), settings.seed, _SAMPLE_STREAM)
    sampled = drawn.rows
    kernels = settings.kernels(paired)
    problem = settings.problem(paired, paired.views, kernels)
    wanted = np.concatenate([sampled, settings.rule.prefetch(problem)])
    if needs_statistics(paired, settings):
        statistics = cache.fetch_with(wanted, Moments.of(table, table.n_targets), STATISTICS)
    else:
        cache.fetch(wanted)
    sample = replace(cache.get(sampled), weights=drawn.importance)
    views = [
        replace(view, scaler=_scaler(view, names, each, statistics, sample))
        for view, names, each in zip(paired.views, paired.names, settings.views, strict=True)
    ]
    sample = cache.get(sampled[: tuning_rows(paired, settings)])
    choices = []
    for view, kernel, each, name in zip(views, kernels, settings.views, ("first", "second"), strict=True):
        choice = None
        if each.searches_lengthscale:
            points = view.of(sample.X, sample.Y)
            try:
                choice = _median(points, kernel)
            except DegenerateBandwidthError as error:
                raise DegenerateBandwidthError(f"the {name} view: {error.message}") from None
            kernel = with_choice(kernel, choice, points)
            session.progress.note(f"lengthscale {choice.value:.6g}")
        choices.append(_ViewChoice(view, kernel, choice))
    return (choices[0], choices[1]), cache


def _scaler(
    view: View,
    names: tuple[str, ...],
    settings: BasisSettings,
    statistics: TableStatistics | None,
    sample: Sample,
) -> RowScaler | None:
    """The scaler of a view, which has none yet."""
    if settings.scale == "none":
        return None
    assert statistics is not None
    of = statistics.y if view.of_targets else statistics.X
    assert of is not None
    of = of if view.columns is None else of.of_columns(list(view.columns))
    if view.sparse:
        return SparseScaler.of(of)
    if not settings.samples_scaling:
        return standard_scaler(of, names)
    return bounded_scaler(settings.scale, of, names, view.of(sample.X, sample.Y), sample.weights)


def _median(points: Float, kernel: Kernel) -> LengthscaleChoice:
    """The median distance of distinct rows."""
    sample = Sample(np.arange(len(points)), points, np.zeros((len(points), 0)), np.ones(len(points)))
    return choose_lengthscale(sample, kernel, search=False, intercept=True, scale=np.zeros(0))


def _curve(
    problem: CrossProblem,
    features: tuple[Features, Features],
    rows: Int,
    sums: CrossFeatureSums,
    settings: CCASettings,
    session: Session,
) -> dict[str, AnyArray]:
    """For the first t functions: the number of other rows on which the first pair of variates is apart."""
    n, ridges = sums.size, settings.regularization * sums.traces
    sizes = curve_sizes(n)
    A, offsets = np.zeros((2, n, len(sizes))), np.zeros((2, len(sizes)))
    for position, size in enumerate(sizes):
        first = FactorCCA.of(sums.first(int(size)), (ridges[0], ridges[1]), 1)
        for view in range(2):
            A[view, :size, position] = first.directions[view][:, 0]
            offsets[view, position] = -(first.means[view] @ first.directions[view][:, 0])
    x, y = (FeatureTimes.of(features[view], A[view], offsets[view]) for view in range(2))
    assert settings.gamma is not None
    work = CrossDisagreements((x, y), problem.views, settings.gamma, rows, sizes)
    errors = session.sweep(work, problem.table, "rows on which the views disagree")
    return {"bound_sizes": sizes, "bound_errors": errors}


def _model(
    paired: Paired,
    settings: CCASettings,
    choices: tuple[_ViewChoice, _ViewChoice],
    found: CrossSelection,
    sums: CrossFeatureSums,
    cca: FactorCCA,
    curve: dict[str, AnyArray],
    run: Run,
) -> KernelCCAModel:
    paths = [path_of(float(trace), squares) for trace, squares in zip(sums.traces, sums.squares, strict=True)]
    certificates = [certificate_of(float(path[0]), float(path[-1])) for path in paths]
    first, second = (
        choice_of_view.record(names, certificate)
        for choice_of_view, names, certificate in zip(choices, paired.names, certificates, strict=True)
    )
    selection = Selection(found.bases[0], found.quotients, found.rounds, found.ended)
    none = np.zeros(0)
    chosen = Chosen(paired.table, choices[0].view.scaler, choices[0].kernel, choices[0].choice, selection, none, none)
    ridges = settings.regularization * sums.traces
    fields = {
        **fitted_fields(KernelCCAModel.KIND, chosen, settings.views[0], settings.size, len(run.sweeps)),
        "rule": "cross-quotient",
        "settings": KernelCCASettingsRecord.from_config(plain(settings.to_config())),
    }
    record = KernelCCARecord(
        **fields,
        views=(first, second.changed(named=paired.named)),
        cca=KernelCCASolution(
            requested=settings.components, count=len(cca.correlations), ridges=(float(ridges[0]), float(ridges[1]))
        ),
        bound=None if settings.gamma is None else KernelCCABound(gamma=settings.gamma, delta=settings.delta),
        certificate=certificates[0],
        run=run,
    )
    features = Features.of_basis(found.bases[0]), Features.of_basis(found.bases[1])
    x, y = cca.variates(features)
    arrays = {
        "components": found.bases[0].points,
        "components_y": found.bases[1].points,
        "component_indices": found.bases[0].rows,
        "gains": found.quotients,
        "residual_path": paths[0],
        "residual_path_y": paths[1],
        "correlations": cca.correlations,
        "singular_values": cca.singular_values,
        "dual_coef": x.coefficients,
        "dual_coef_y": y.coefficients,
        "intercept": x.offset,
        "intercept_y": y.offset,
        **scaler_arrays(choices[0].view.scaler),
        **scaler_arrays(choices[1].view.scaler, "_y"),
        **curve,
    }
    return KernelCCAModel(record, arrays).with_bases(found.bases)
