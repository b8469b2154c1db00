"""The first steps of every fit: table -> scaler -> lengthscale -> basis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamkernel.engine import Session
from streamkernel.errors import NumericRangeError, SingularKernelError, warn_user
from streamkernel.fits._plan_steps import needs_moments
from streamkernel.kernels import Kernel
from streamkernel.reductions import Moments, Sample, stream_generator
from streamkernel.reductions.pools import Origins, Repeats
from streamkernel.selection import Problem, RowCache, Selection
from streamkernel.settings.basis import BasisSettings
from streamkernel.solvers import LengthscaleChoice, choose_lengthscale
from streamkernel.table import ColumnStatistics, Scaler, Table, TableStatistics
from streamkernel.tuning import Tuning
from streamkernel.type_aliases import Float, Int

_SAMPLE_STREAM = (6,)
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
_LEAST_SPREAD = 1e-140  # of targets: the eighth digit of their squares is then still a normal number


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
    """

    table: Table
    scaler: Scaler | None
    kernel: Kernel
    lengthscale: LengthscaleChoice | None
    selection: Selection
    centre: Float
    scale: Float
    tuning: Tuning | None = None
    sample: Sample | None = None
    repeats: Repeats | None = None

    @property
    def independent(self) -> float:
        """Share of the rows that count as independent."""
        return 1.0 if self.repeats is None else self.repeats.share


Tuner = Callable[[Sample, Kernel, Float, Float], Tuning]
"""Function of sampled rows in random order, a kernel to start from, and the centre and spread (d,) of the targets."""


def choose_basis(table: Table, settings: BasisSettings, session: Session, n: int, tuner: Tuner | None = None) -> Chosen:
    """Scale the rows, find the lengthscale, choose n of the rows.

    Parameters
    ----------
    tuner : search for hyper-parameters on the sample; None to use the lengthscale of the settings.

    Raises
    ------
    DataError, StoreError, NumericalError
        See `streamkernel.errors`.
    """
    statistics = _statistics(table, settings, session)
    scaler = None
    if settings.scale == "standard":
        assert statistics is not None
        scaler = standard_scaler(statistics.X, table.columns)
    table = table.with_scaler(scaler)
    kernel = settings.kernel_template
    rule = settings.selection_rule(has_targets=table.n_targets > 0)
    if rule.keyed:
        table = table.with_keys()
    cache = RowCache(table, session)
    sampled = _sample_rows(table, settings)
    draft = Problem(table, kernel, n, settings.tol, settings.seed)
    wanted = np.concatenate([sampled, rule.prefetch(draft)])
    repeats = None
    if table.n_targets:
        repeats = cache.count_repeats(wanted, _origins(table, statistics))
    else:
        cache.fetch(wanted)
    sample = cache.get(sampled)
    if repeats is not None:
        # Copies of a row share one error: in the sample they would look like rows without noise.
        sample = repeats.each_once(sample)
    centre, scale = _centre_and_scale(table, settings, statistics, sample)
    choice = None
    if settings.searches_lengthscale:
        choice = choose_lengthscale(
            sample,
            kernel,
            search=settings.lengthscale == "auto",
            intercept=settings.fit_intercept,
            scale=scale,
        )
        kernel = kernel.with_lengthscale(choice.value)
        session.progress.note(f"lengthscale {choice.value:.6g}")
    tuning = None
    if tuner is not None:
        tuning = tuner(sample, kernel, centre, scale)
        kernel = tuning.kernel
    problem = Problem(table, kernel, n, settings.tol, settings.seed, centre, scale)
    selection = rule.select(problem, session, cache)
    _warn(selection, n, settings, _told_of(repeats))
    return Chosen(table, scaler, kernel, choice, selection, centre, scale, tuning, sample, repeats)


def _origins(table: Table, statistics: TableStatistics | None) -> Origins:
    """Where rows, as the fit sees them, are to be looked at from when it is asked which are alike."""
    if statistics is None:
        return Origins()
    features = None if table.scaler is not None else statistics.X
    return Origins.of(features, None if table.classes is not None else statistics.y)


def _statistics(table: Table, settings: BasisSettings, session: Session) -> TableStatistics | None:
    if not needs_moments(table, settings):
        return table.statistics
    plain = table.without_targets() if table.classes is not None else table
    return session.sweep(Moments(table.n_features, plain.n_targets), plain, "column statistics")


def _sample_rows(table: Table, settings: BasisSettings) -> Int:
    """Row numbers for the lengthscale and for the shares of the classes, in random order."""
    generator = stream_generator(settings.seed, _SAMPLE_STREAM)
    picked = generator.choice(table.n_rows, settings.sampled_rows(table), replace=False)
    return table.start + picked.astype(np.int64)


def _centre_and_scale(
    table: Table, settings: BasisSettings, statistics: TableStatistics | None, sample: Sample
) -> tuple[Float, Float]:
    """Mean and spread of each target, for centring and for common units."""
    d = table.n_targets
    if d == 0:
        return np.zeros(0), np.zeros(0)
    if table.classes is not None:
        # Indicators have common units; the sums hold their exact means.
        centre, scale = sample.Y.mean(axis=0), np.ones(d)
    else:
        assert statistics is not None
        assert statistics.y is not None
        _check_spread(statistics.y, table.target_names)
        centre = np.array(statistics.y.mean, dtype=np.float64)
        scale = np.array(np.where(statistics.y.std > 0.0, statistics.y.std, 1.0), dtype=np.float64)
    # Without an intercept the basis must explain the mean too.
    return (centre if settings.fit_intercept else np.zeros_like(centre)), scale


def _check_spread(targets: ColumnStatistics, names: tuple[str, ...]) -> None:
    """Refuse targets whose squares underflow: no floating-point warning reports the digits that they lose."""
    lost = np.flatnonzero(~targets.constant & (targets.std < _LEAST_SPREAD))
    if lost.size:
        raise NumericRangeError(
            f"target {names[lost[0]]!r} has a standard deviation of {targets.std[lost[0]]:.3g}: the squares of its "
            f"residuals vanish; scale y, to a deviation above {_LEAST_SPREAD:.0e}"
        )


def standard_scaler(statistics: ColumnStatistics, columns: tuple[str, ...]) -> Scaler:
    """Columns to mean 0 and deviation 1; constant ones, of which it warns, to 0."""
    # What differs by some units in its last place alone is rounding of a constant.
    rounding = _ROUNDING * np.abs(statistics.mean)
    constant = statistics.constant | (statistics.std <= np.maximum(rounding, np.finfo(np.float64).tiny))
    if constant.any():
        names = [columns[index] for index in np.flatnonzero(constant)]
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        warn_user(f"{len(names)} of {len(constant)} columns are constant and carry nothing: {shown}")
    return Scaler(statistics.mean, np.where(constant, 1.0, statistics.std))


def _told_of(repeats: Repeats | None) -> str:
    """Text of the warning about rows that repeat others; empty without such rows."""
    if repeats is None or repeats.share == 1.0:
        return ""
    return (
        f"about {repeats.distinct:.0f} of {repeats.rows} rows are distinct, the others repeat the features and targets "
        "of one: each distinct row counts once where alpha, noise and lengthscale are chosen, but held-out "
        "figures on repeated rows are too good; drop the copies before the fit, or give these parameters as numbers"
    )


def _warn(selection: Selection, n: int, settings: BasisSettings, repeats: str) -> None:
    """Give one warning about a basis that is smaller than asked for, and about repeated rows."""
    found = len(selection.basis)
    if selection.ended not in ("rank", "size") or (selection.ended == "size" and found == n):
        if repeats:
            warn_user(repeats)
        return
    if settings.needs_regular_system:
        raise SingularKernelError(
            f"alpha = 0 and the kernel matrix is singular: only {found} of {n} basis functions are "
            "independent (are there duplicate rows?); give alpha > 0 or 'gcv'"
        )
    warn_user(
        f"only {found} of {n} basis functions are linearly independent; the others were left out "
        "(duplicate rows, or a lengthscale that is large for the data)" + (f"; {repeats}" if repeats else "")
    )
