"""Members of a committee in a fit of a Gaussian process: the blocks of rows of "pitc", their noise and query points."""

from __future__ import annotations

from dataclasses import replace

from streamkernel.committee import QuerySetRule, cells_of, degrees_of_sample, least_ratio, query_set
from streamkernel.engine import Session
from streamkernel.errors import NumericalError, warn_user
from streamkernel.fits.steps.choose_basis import Chosen
from streamkernel.reductions.members.weights import MemberWeights
from streamkernel.reductions.sums import BlockNoise, GaussianEquations, GaussianSums
from streamkernel.settings.gaussian import DEGREES_ROWS, EVIDENCE, CommitteeSettings, GaussianSettings
from streamkernel.type_aliases import AnyArray, Float

_LIFTS = 6  # of the noise of members, each to ten times as much, at most


def at_queries(chosen: Chosen, settings: GaussianSettings) -> Chosen:
    """The same choice, with the points that predictions are asked for added to its basis."""
    queries = query_points(settings)
    if queries is None:
        return chosen
    joined = query_set(chosen.selection.basis, chosen.table.scaled(queries))[0]
    return replace(chosen, selection=chosen.selection.joined(joined))


def noise_of_members(
    signal: float, noise: float, chosen: Chosen, session: Session, settings: GaussianSettings
) -> BlockNoise:
    """The blocks of rows, and their noise: where variances are searched, at least what the members' digits carry."""
    cells = cells_of(settings.partition, chosen.table, chosen.kernel, session=session, seed=settings.seed)
    found = BlockNoise(signal, noise, settings.block_size, cells, chosen.independent)
    if not settings.searches_variances or chosen.sample is None:
        return found
    size = min(settings.block_size, chosen.table.n_rows)
    # The noise of a row is divided by its weight, as far as it is of independent copies.
    sums = chosen.table.weight_sums
    largest = 1.0 if sums is None else float(sums.largest.max()) * chosen.independent
    ratio = noise / signal / largest
    least = least_ratio(chosen.selection.basis, chosen.sample.X[:DEGREES_ROWS], size, ratio)
    return _lifted(found, least * largest, settings, session) if least > ratio else found


def sums_of_members(
    chosen: Chosen, noise: BlockNoise, session: Session, settings: GaussianSettings
) -> tuple[BlockNoise, GaussianSums, Float]:
    """The noise of the final sweep, its sums, and the shares of blocks in them."""
    table = chosen.table
    equations = GaussianEquations(chosen.selection.basis, chosen.centre, noise)
    for last in [False] * (_LIFTS if settings.searches_variances else 0) + [True]:
        try:
            work = MemberWeights(replace(equations, row_noise=noise), table.n_rows)
            members = session.sweep(work, table, "final sweep")
            break
        except NumericalError:
            # The sampled rows did not tell how few digits this member has.
            if last or noise.noise >= noise.signal:
                raise
            noise = _lifted(noise, 10.0 * noise.noise / noise.signal, settings, session)
    return noise, members.sums, members.weights


def _lifted(noise: BlockNoise, ratio: float, settings: GaussianSettings, session: Session) -> BlockNoise:
    """Noise and signal of a larger ratio: of the two what was searched moves."""
    if settings.noise_variance == EVIDENCE:
        found = replace(noise, noise=ratio * noise.signal)
    else:
        found = replace(noise, signal=noise.noise / ratio)
    session.progress.note(
        f"noise variance / signal variance = {noise.noise / noise.signal:.3g} is lost in rounding: {ratio:.3g} "
        "instead, the least that the members' digits carry"
    )
    return found


def query_points(settings: GaussianSettings) -> AnyArray | None:
    """(q, p) points that predictions are asked for, or None."""
    asked = settings.queries if isinstance(settings, CommitteeSettings) else None
    return None if asked is None else asked.points


def query_set_rule(chosen: Chosen, noise: BlockNoise) -> QuerySetRule | None:
    """Check on sampled rows that the basis is large enough for members to be independent given f at its points."""
    sample = chosen.sample
    if sample is None or len(sample) == 0:
        return None
    X = sample.X[:DEGREES_ROWS]
    rows = max(round(chosen.independent * chosen.table.weight), len(X))
    degrees = degrees_of_sample(X, rows, chosen.kernel, noise.signal, noise.noise)
    rule = QuerySetRule(len(chosen.selection.basis), from_sample=degrees, sample=len(X))
    if rule.warning is not None:
        warn_user(rule.warning)
    return rule
