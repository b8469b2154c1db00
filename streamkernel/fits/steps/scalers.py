"""Scalers of columns from their statistics, and from a sample of rows where these do not tell enough."""

from __future__ import annotations

import numpy as np
import scipy  # its parts are loaded when they are used: this one takes long

from streamkernel.errors import warn_user
from streamkernel.table import ClippedScaler, ColumnStatistics, RankScaler, RowScaler, Scaler
from streamkernel.type_aliases import AnyArray, Bool, Float, Int

_WHOLE = 2.0**53  # whole numbers below it are exact in float64
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)

# Deviations from the median at which "robust" clips. On spambase, whose columns have long tails, the share wrong is
# .072 with "standard", .052 with 3, .057 with 4, .058 with 6; on five other sets the errors with 3 and 4 differ by 1 %.
_CLIP = 3.0
# Shares of a central range of the rows, narrowest first: half of the rows may be one value, or nine in ten.
_CENTRAL = (0.5, 0.8, 0.9, 0.98)

_LEVELS = 128  # ranks at which the knots of "rank" are, in equal steps


def standard_scaler(statistics: ColumnStatistics, columns: tuple[str, ...]) -> Scaler:
    """Columns to mean 0 and deviation 1; constant ones, of which it warns, to 0."""
    constant = _constant(statistics)
    if constant.any():
        names = [columns[index] for index in np.flatnonzero(constant)]
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        far = np.flatnonzero(constant & (np.abs(statistics.mean) >= _WHOLE))
        # Nobody can tell any more whether they were so in the source.
        rounded = (
            f"; those of {columns[far[0]]} are beyond 2^53, where float64 rounds whole numbers: if they differ in the "
            "source, subtract a number near them there"
            if far.size
            else ""
        )
        warn_user(f"{len(names)} of {len(constant)} columns are constant and carry nothing: {shown}{rounded}")
    return Scaler(statistics.mean, np.where(constant, 1.0, statistics.std))


def _constant(statistics: ColumnStatistics) -> Bool:
    # What differs by some units in its last place alone is rounding of a constant.
    rounding = _ROUNDING * np.abs(statistics.mean)
    constant: Bool = statistics.constant | (statistics.std <= np.maximum(rounding, np.finfo(np.float64).tiny))
    return constant


def unit_scaler(p: int) -> Scaler:
    """The scaler that leaves p columns as they are."""
    return Scaler(np.zeros(p), np.ones(p))


def bounded_scaler(
    scale: str, statistics: ColumnStatistics, columns: tuple[str, ...], X: AnyArray, weights: Float
) -> RowScaler:
    """`robust_scaler` or `rank_scaler`, by the word of the parameter `scale`.

    Constant columns become 0, with a warning. A column that is constant in the sample and not in the table is
    standardised by the statistics of all rows, and clipped at 3 of their deviations.

    Parameters
    ----------
    statistics : of the columns, over all rows.
    columns : their names, for the warning of constant ones.
    X : (s, p) sampled rows as stored, s >= 1.
    weights : (s,) their weights.
    """
    return (robust_scaler if scale == "robust" else rank_scaler)(statistics, columns, X, weights)


def robust_scaler(statistics: ColumnStatistics, columns: tuple[str, ...], X: AnyArray, weights: Float) -> ClippedScaler:
    """Columns clipped at 3 robust deviations from their median, then standardised.

    The ends of a column are ``median +- 3 s``, or its smallest and largest value where these are nearer, with
    ``s = (q(1/2 + c/2) - q(1/2 - c/2)) / (2 z)``: q are weighted quantiles of the sample, c is the first of .5, .8, .9,
    .98 and 1 for which the quantiles differ, and z is the normal quantile of 1/2 + c/2, so that s is the deviation of a
    normal column (winsorising: Huber & Ronchetti 2009). Mean and deviation are those of the clipped sample. A column
    that the ends clip nowhere, such as one of two values, is standardised by the statistics of all rows. Parameters
    and columns that are constant: see `bounded_scaler`.
    """
    standard = standard_scaler(statistics, columns)
    mean, scale = standard.mean.copy(), standard.scale.copy()
    lower, upper = _ends_of_rare(standard, statistics)
    constant = _constant(statistics)
    for j, (values, shares) in _distributions(X, weights):
        if len(values) == 1 or constant[j]:
            continue
        spread = _spread(values, shares)
        median = _quantile(values, shares, 0.5)
        # Beyond the values of all rows no row tells what a prediction is.
        lower[j] = max(median - _CLIP * spread, statistics.minimum[j])
        upper[j] = min(median + _CLIP * spread, statistics.maximum[j])
        if not lower[j] < upper[j]:
            # The spread is below the digits of the values.
            lower[j], upper[j] = statistics.minimum[j], statistics.maximum[j]
        elif lower[j] > statistics.minimum[j] or upper[j] < statistics.maximum[j]:
            mean[j], scale[j] = _moments(np.clip(values, lower[j], upper[j]), shares)
    return ClippedScaler(mean, scale, lower, upper)


def rank_scaler(statistics: ColumnStatistics, columns: tuple[str, ...], X: AnyArray, weights: Float) -> RankScaler:
    """Columns mapped to their ranks, then standardised.

    A value v of the sample gets its mid-rank, the share of rows below v plus half the share of rows at v, by weight
    (Conover 1999). The map is linear between values and constant beyond the ends. Of more than 256 values
    it keeps those at 128 equal steps of the rank, and both values at a larger jump of it, which a value of many rows
    makes: so no value is off by more than a step. The ranks of the sample are then shifted and divided to mean 0 and
    deviation 1.

    Ranks stay uniform. Normal scores of them stretch the ends of a column that is uniform already: on kin40k and
    kin-8nm they multiply the error by 1.6 and 1.3, where ranks leave it as it is.

    A column of two values is standardised by the statistics of all rows. Parameters and columns that are constant: see
    `bounded_scaler`.
    """
    standard = standard_scaler(statistics, columns)
    lower, upper = _ends_of_rare(standard, statistics)
    medians, knots, images = standard.mean.copy(), [], []
    constant = _constant(statistics)
    for j, (values, shares) in _distributions(X, weights):
        medians[j] = _quantile(values, shares, 0.5)
        if len(values) == 1 or constant[j]:
            points = np.unique([lower[j], upper[j]])
        elif len(values) == 2 and statistics.minimum[j] >= values[0] and statistics.maximum[j] <= values[1]:
            points = values
        else:
            ranks = np.cumsum(shares) - 0.5 * shares
            kept = _knots(ranks)
            mean, scale = _moments(np.interp(values, values[kept], ranks[kept]), shares)
            knots.append(values[kept])
            images.append((ranks[kept] - mean) / scale)
            continue
        knots.append(points)
        images.append((points - standard.mean[j]) / standard.scale[j])
    counts = np.array([len(each) for each in knots], dtype=np.int64)
    return RankScaler(medians, np.concatenate(knots), np.concatenate(images), counts)


def _distributions(X: AnyArray, weights: Float) -> list[tuple[int, tuple[Float, Float]]]:
    """The distinct values of each column, ascending, and their shares of the weight."""
    held = weights > 0.0
    if held.any():
        X, weights = X[held], weights[held]
    else:
        weights = np.ones(len(X))
    found = []
    for j in range(X.shape[1]):
        # -0.0 is 0.0.
        values, place = np.unique(X[:, j].astype(np.float64) + 0.0, return_inverse=True)
        sums = np.bincount(place.reshape(-1), weights)
        found.append((j, (values, sums / sums.sum())))
    return found


def _ends_of_rare(standard: Scaler, statistics: ColumnStatistics) -> tuple[Float, Float]:
    """Ends (p,) of columns that are constant in the sample: of all rows, and 3 deviations at most."""
    reach = _CLIP * standard.scale
    return (
        np.clip(standard.mean - reach, statistics.minimum, statistics.maximum),
        np.clip(standard.mean + reach, statistics.minimum, statistics.maximum),
    )


def _quantile(values: Float, shares: Float, q: float) -> float:
    """The value below which a share q of the rows is; the mean of the two values that have it between them."""
    below = np.cumsum(shares)
    # Shares are sums of rounded numbers: a quantile must not hang on their last digits.
    first = int(np.searchsorted(below, q - _ROUNDING))
    last = int(np.searchsorted(below, q + _ROUNDING))
    ends = values[[min(first, len(values) - 1), min(last, len(values) - 1)]]
    return float(0.5 * ends[0] + 0.5 * ends[1])


def _spread(values: Float, shares: Float) -> float:
    """The robust deviation s of at least two values; see `robust_scaler`."""
    for share in _CENTRAL:
        q = 0.5 + 0.5 * share
        width = _quantile(values, shares, q) - _quantile(values, shares, 1.0 - q)
        if width > 0.0:
            return width / (2.0 * float(scipy.special.ndtri(q)))
    # Fewer rows than one in a hundred differ: the range is that of normal scores of so few.
    farthest = -float(scipy.special.ndtri(0.5 * min(shares[0], shares[-1])))
    return float(values[-1] - values[0]) / (2.0 * farthest)


def _moments(values: Float, shares: Float) -> tuple[float, float]:
    """Mean and deviation of at least two values, without squares that overflow."""
    origin, width = values[0], values[-1] - values[0]
    relative = (values - origin) / width
    mean = float(shares @ relative)
    deviation = float(np.sqrt(shares @ (relative - mean) ** 2))
    return float(origin + mean * width), float(deviation * width)


def _knots(ranks: Float) -> Int:
    """Positions of the values that a map keeps: at equal steps of the rank, and both sides of larger jumps."""
    if len(ranks) <= 2 * _LEVELS:
        return np.arange(len(ranks))
    levels = np.linspace(ranks[0], ranks[-1], _LEVELS)
    after = np.searchsorted(ranks, levels)
    before = np.maximum(after - 1, 0)
    jumps = ranks[after] - ranks[before] > levels[1] - levels[0]
    return np.unique(np.concatenate([after, before[jumps]]))
