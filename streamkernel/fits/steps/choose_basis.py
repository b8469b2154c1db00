"""The first steps of every fit: table -> scaler -> lengthscale -> basis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session
from streamkernel.errors import DegenerateBandwidthError, NumericRangeError, SingularKernelError, warn_user
from streamkernel.fits.steps._first_sweep import statistics_and_rows
from streamkernel.fits.steps.kernel_matrix import check_matrix, check_sample, told_of_matrix
from streamkernel.fits.steps.near_copies import look_at_copies
from streamkernel.fits.steps.plan_steps import needs_moments
from streamkernel.fits.steps.scalers import bounded_scaler, standard_scaler, unit_scaler
from streamkernel.fits.steps.validation import checked_numbers, fetched_held_out
from streamkernel.kernels import Kernel, user_kernel_classes
from streamkernel.metric import MetricScaler
from streamkernel.records import LengthscaleChoice, MetricChoiceRecord
from streamkernel.reductions import DrawnRows, Sample, draw_rows
from streamkernel.reductions.pools import Lots, Origins, Repeats
from streamkernel.selection import Problem, RowCache, Selection
from streamkernel.selection.row_cache import as_stored, before_metric
from streamkernel.settings.basis import BasisSettings
from streamkernel.solvers import choose_lengthscale, with_choice
from streamkernel.table import ColumnStatistics, Folds, RowScaler, SparseScaler, Table, TableStatistics
from streamkernel.tuning import FORMS, MetricChoice, MetricSearch, Tuning
from streamkernel.type_aliases import AnyArray, Float, Int
from streamkernel.wording import option

_SAMPLE_STREAM = (6,)
_TRIED = 8  # rows on which a user's kernel is tried
_LEAST_SPREAD = 1e-140  # of targets: the eighth digit of their squares is then still a normal number


def _fetched_nothing(rows: Int) -> Sample:
    raise AssertionError("no rows were fetched for this basis")


@dataclass(frozen=True)
class Chosen:
    """A basis, and the scaled rows of the fit.

    Attributes
    ----------
    table : rows of the fit, scaled by `scaler`.
    kernel : kernel with its lengthscale.
    lengthscale : choice of the lengthscale; None where it was given.
    tuning : result of the search for hyper-parameters by evidence; None without it.
    sample : rows sampled for the lengthscale, in random order, each once; may be empty.
    selection : basis, and how the rule found it.
    centre, scale : (d,) mean and spread of each target.
    repeats : counts of repeated rows, where the table has targets.
    indefinite : whether the user was warned of a kernel matrix that is not positive semidefinite.
    points_of : function of a basis of rows of the fit: its points (n, p) in the units of the columns, or None where
        the scaler computes them. A fit may still cut the basis, or add points to it.
    metric : record of the search for a metric; None without a search.
    held : some rows of the validation folds, drawn uniformly, where the fit looks at their errors.
    fetch : function of numbers of rows: these rows, scaled. Those that were wanted `later` cost no sweep.
    """

    table: Table
    scaler: RowScaler | None
    kernel: Kernel
    lengthscale: LengthscaleChoice | None
    selection: Selection
    centre: Float
    scale: Float
    tuning: Tuning | None = None
    sample: Sample | None = None
    repeats: Repeats | None = None
    indefinite: bool = False
    points_of: Callable[[Basis], AnyArray | None] = lambda basis: None
    metric: MetricChoiceRecord | None = None
    held: Sample | None = None
    fetch: Callable[[Int], Sample] = _fetched_nothing

    @property
    def independent(self) -> float:
        """Share of the rows that count as independent."""
        return 1.0 if self.repeats is None else self.repeats.share


Tuner = Callable[[Sample, Kernel, Float, Float], Tuning]
"""Function of sampled rows in random order, a kernel to start from, and the centre and spread (d,) of the targets."""


def choose_basis(
    table: Table,
    settings: BasisSettings,
    session: Session,
    n: int,
    tuner: Tuner | None = None,
    folds: Folds | None = None,
    of_rows: int | None = None,
    looks_at_errors: bool = False,
    later: Int | None = None,
) -> Chosen:
    """Scale the rows, find the lengthscale, choose n of the rows.

    Parameters
    ----------
    tuner : search for hyper-parameters on the sample; None to use the lengthscale of the settings.
    folds : folds of the rows; targets of rows in validation folds then do not enter the choice.
    of_rows : number of rows that the fit is to, where the table is a part of them; None for those of the table.
    looks_at_errors : whether the fit looks at errors of the folds row by row (`Chosen.held`).
    later : numbers of the rows that the fit needs once there is a basis: they are fetched with those of the choice
        (`Chosen.fetch`).

    Raises
    ------
    DataError, StoreError, NumericalError
        See `streamkernel.errors`.
    """
    if table.of_matrix:
        check_matrix(table)
    rule = settings.rule_for(table)
    if rule.keyed or folds is not None:
        table = table.with_keys()
    given = settings.given_metric
    in_metric = settings.searches_sample or given is not None
    # Rows as they are before the scaler, which is not known yet.
    unscaled = as_stored(table) if settings.samples_scaling or in_metric else table
    draft = Problem(unscaled, settings.kernel_of(table), n, settings.tol, settings.seed, folds=folds, of_rows=of_rows)
    drawn = _sample_rows(table, settings, draft)
    sampled = drawn.rows
    checked = checked_numbers(table, folds if looks_at_errors else None, settings.seed)
    wanted = np.concatenate([sampled, rule.prefetch(draft), checked.rows, sampled[:0] if later is None else later])
    statistics, first = table.own_statistics, None
    if needs_moments(table, settings):
        keyed = table.with_keys() if settings.searches_sample else table
        statistics, first = statistics_and_rows(keyed, wanted, session, centred=settings.scale == "standard")
    columns: RowScaler | None = None
    if settings.scale == "standard":
        assert statistics is not None
        columns = SparseScaler.of(statistics.X) if table.sparse else standard_scaler(statistics.X, table.columns)
    # Rows are sampled before there is a metric, or ends of the columns.
    plain = table.with_scaler(columns)
    if settings.samples_scaling:
        plain = as_stored(table)
    elif in_metric:
        plain = before_metric(table, columns or unit_scaler(table.n_features))
    rows = plain.with_keys() if settings.searches_sample else plain
    cache = RowCache(rows, session) if first is None else first.of_blocks(rows)
    repeats = cache.repeats
    if not table.n_targets:
        cache.fetch(wanted)
    elif repeats is None:
        repeats = cache.count_repeats(wanted, Origins.of_table(table, statistics, scaled=columns is not None))
    if repeats is not None:
        if repeats.uneven:
            stored = Origins.of_table(table, statistics, scaled=False)
            repeats, rounding = look_at_copies(cache, plain, [drawn, checked], stored, settings.seed)
            if rounding is not None:
                # Else held-out rows would have twins among the others.
                table = table.with_keys(rounding)
                cache.take_keys(rounding)
        # Copies of a row share one error: in the sample they would look like rows without noise.
        drawn = drawn.where(Lots.among(cache.held(sampled), repeats).first)
        sampled = drawn.rows
    once = repeats is not None and repeats.share < 1.0
    if settings.samples_scaling:
        assert statistics is not None
        part = drawn.first(settings.scaling_rows(table))
        # No name for these rows: they are not kept.
        columns = _bounded(settings, statistics, table, _counted(cache.held(part.rows), part, once=once))
        cache = cache.mapped_by(columns, plain.dtype if in_metric else table.dtype)
    bare = _counted(cache.without_features(sampled), drawn, once=once)
    centre, scale = _centre_and_scale(table, settings, statistics, bare)
    search: MetricChoice | None = None
    scaler: RowScaler | None = columns
    kernel = settings.kernel_of(table)
    unmapped = columns or unit_scaler(table.n_features)
    if given is not None:
        scaler = MetricScaler(unmapped, given)
        cache = cache.mapped_by(scaler, table.dtype)
    if settings.searches_sample:
        seen = draft.trained_on(bare)
        # The search takes a copy of these rows: the one that it is given has no name, and is not kept beside it.
        search = _searched(
            MetricSearch(
                replace(seen, X=cache.get(seen.rows).X),
                settings.kernel_candidates,
                session,
                centre=centre,
                scale=scale,
                intercept=settings.fit_intercept,
                rank=settings.metric_rank,
                classes=table.classes is not None,
            ),
            settings,
            session,
        )
        kernel = search.kernel
        if search.metric is not None:
            scaler = MetricScaler(unmapped, search.metric)
        # Rows that are held as stored need their columns scaled even where the search found no metric.
        mapped = isinstance(scaler, MetricScaler) or settings.samples_scaling
        cache = cache.mapped_by(scaler if mapped else None, table.dtype)
    table = table.with_scaler(scaler)
    part = drawn.first(settings.tuning_rows(table))
    sample = _counted(cache.get(part.rows), part, once=once)
    if table.of_matrix:
        check_sample(sample)
        session.progress.note(f"rows of a kernel matrix: the rule {rule.name} chooses among them")
    choice = None
    if search is not None:
        choice = search.lengthscale
        kernel = kernel.with_lengthscale(choice.value)
    elif settings.searches_lengthscale:
        searched = settings.lengthscale == "auto"
        compared = draft.trained_on(sample) if searched else sample
        choice = choose_lengthscale(compared, kernel, search=searched, intercept=settings.fit_intercept, scale=scale)
        kernel = with_choice(kernel, choice, compared.X)
    if choice is not None:
        session.progress.note(f"lengthscale {choice.value:.6g}")
    tuning = None
    if tuner is not None:
        tuning = tuner(sample, kernel, centre, scale)
        kernel = tuning.kernel
    if user_kernel_classes(kernel):
        kernel.check_values(table.read(table.start, min(table.start + _TRIED, table.stop)).X)
    in_metric = isinstance(scaler, MetricScaler)
    problem = Problem(table, kernel, n, settings.tol, settings.seed, centre, scale, folds, in_metric, of_rows)
    selection = rule.select(problem, session, cache)
    expected = search is not None or not settings.needs_all_functions
    of_matrix = told_of_matrix(table, selection.basis) if table.of_matrix else ""
    _warn(selection, n, settings, session, [_told_of(repeats), of_matrix], expected=expected)
    held_rows = fetched_held_out(cache, checked, folds) if folds is not None and looks_at_errors else None
    if scaler is not None and not scaler.invertible:
        # A sweep of the choice: `points_of` then finds all rows in the cache.
        cache.fetch(selection.basis.rows[selection.basis.rows >= 0])
    return Chosen(
        table=table,
        scaler=scaler,
        kernel=kernel,
        lengthscale=choice,
        selection=selection,
        centre=centre,
        scale=scale,
        tuning=tuning,
        sample=sample,
        repeats=repeats,
        indefinite=bool(of_matrix),
        points_of=cache.points,
        metric=None if search is None else search.record,
        held=held_rows,
        fetch=cache.get,
    )


def _searched(search: MetricSearch, settings: BasisSettings, session: Session) -> MetricChoice:
    """Metric, kernel and lengthscale that a search finds."""
    try:
        choice = search.choose(FORMS[settings.metric] if settings.learns_metric else ())
    except DegenerateBandwidthError as error:
        # A search takes no lengthscale.
        raise DegenerateBandwidthError(f"{error.message}, {option('metric', 'none')} and a named kernel") from None
    if settings.chooses_kernel:
        session.progress.note(f"kernel {choice.kernel.name}: held-out error {choice.record.chosen.error:.4g}")
    if settings.learns_metric:
        session.progress.note(choice.metric_line)
    return choice


def _bounded(settings: BasisSettings, statistics: TableStatistics, table: Table, sample: Sample) -> RowScaler:
    """The scaler whose ends or ranks are those of sampled rows."""
    return bounded_scaler(settings.scale, statistics.X, table.columns, sample.X, sample.weights)


def _sample_rows(table: Table, settings: BasisSettings, draft: Problem) -> DrawnRows:
    """Rows for the lengthscale and for the shares of the classes, in random order."""
    count = settings.sampled_rows(table, draft.trained_share, draft.of_rows)
    return draw_rows(table, count, settings.seed, _SAMPLE_STREAM)


def _counted(sample: Sample, drawn: DrawnRows, *, once: bool) -> Sample:
    """The drawn rows as a search on them counts them: with `once` each as one row, as copies are too.

    Else as many as would be drawn if row i stood w_i times: their weights sum to the number of drawn rows, or to the
    sum of the weights where these are all rows, or fewer.
    """
    if drawn.weights is None:
        return sample
    if once:
        return replace(sample, weights=np.ones(len(sample)))
    counted = drawn.importance
    if not drawn.complete:
        counted = counted * (min(len(drawn), drawn.total) / drawn.total)
    return replace(sample, weights=counted)


def _centre_and_scale(
    table: Table, settings: BasisSettings, statistics: TableStatistics | None, sample: Sample
) -> tuple[Float, Float]:
    """Mean and spread of each target, for centring and for common units."""
    d = table.n_targets
    if d == 0:
        return np.zeros(0), np.zeros(0)
    if table.classes is not None:
        # Indicators have common units; the sums hold their exact means.
        centre, scale = _mean(sample), np.ones(d)
    else:
        assert statistics is not None
        assert statistics.y is not None
        _check_spread(statistics.y, table.target_names)
        centre = np.array(statistics.y.mean, dtype=np.float64)
        scale = np.array(np.where(statistics.y.std > 0.0, statistics.y.std, 1.0), dtype=np.float64)
    # Without an intercept the basis must explain the mean too.
    return (centre if settings.fit_intercept else np.zeros_like(centre)), scale


def _mean(sample: Sample) -> Float:
    """Mean (d,) of the targets of a sample."""
    if (sample.weights == 1.0).all():
        return np.asarray(sample.Y.mean(axis=0))
    return np.asarray(sample.weights @ sample.Y / sample.weights.sum())


def _check_spread(targets: ColumnStatistics, names: tuple[str, ...]) -> None:
    """Refuse targets whose squares underflow: no floating-point warning reports the digits that they lose."""
    lost = np.flatnonzero(~targets.constant & (targets.std < _LEAST_SPREAD))
    if lost.size:
        raise NumericRangeError(
            f"target {names[lost[0]]!r} has a standard deviation of {targets.std[lost[0]]:.3g}: the squares of its "
            f"residuals vanish; scale y, to a deviation above {_LEAST_SPREAD:.0e}"
        )


def _told_of(repeats: Repeats | None) -> str:
    """Text of the warning about rows that repeat others; empty without such rows."""
    if repeats is None or not repeats.copied:
        return ""
    return (
        f"about {repeats.distinct:.0f} of {repeats.stored} rows are distinct, the others repeat features and targets "
        "of one: each distinct row counts once where alpha, noise and lengthscale are chosen, but held-out "
        "figures on repeated rows are too good; drop the copies before the fit, or give these parameters as numbers"
    )


def _warn(
    selection: Selection, n: int, settings: BasisSettings, session: Session, further: list[str], *, expected: bool
) -> None:
    """Give one warning about a basis that is smaller than asked for, with what `further` there is to tell.

    Where the lengthscale was searched for, a smaller basis is its result, about which the user need not do anything: on
    few directions that matter few functions are independent. It is a note then, and for fits that need no certain size.
    """
    found = len(selection.basis)
    text = ""
    if selection.ended == "rank" or (selection.ended == "size" and found < n):
        if settings.needs_regular_system:
            raise SingularKernelError(
                f"alpha = 0 and the kernel matrix is singular: only {found} of {n} basis functions are "
                "independent (are there duplicate rows?); give alpha > 0 or 'gcv'"
            )
        text = f"only {found} of {n} basis functions are linearly independent; the others were left out"
        if expected:
            session.progress.note(text)
            text = ""
        else:
            other = "a matrix of this rank" if settings.of_matrix else "a lengthscale that is large for the data"
            text += f" (duplicate rows, or {other})"
    parts = [part for part in (text, *further) if part]
    if parts:
        warn_user("; ".join(parts))
