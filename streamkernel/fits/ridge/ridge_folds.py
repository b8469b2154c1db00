"""Kernel ridge fits without each fold in turn, of the sums of one sweep.

With the sums H, g of all rows and H_v, g_v of fold v, in whitened features of a common basis (`FoldRows`)::

    beta_v = (H - H_v + alpha_v I)^-1 (g - g_v)

Of folds by time the fit sees the past of fold v alone, and ``H_v + ... + H_K`` takes the place of H_v.

alpha_v is chosen from ``H - H_v`` too: by GCV, or by the errors on some of the other folds u, each of the solution of
``H - H_v - H_u``. No row is read again for either (ALGORITHMS 20). The first fold by time has none before it: u is then
a share of the part beside the folds, whose targets have no part in the choice of the basis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from streamkernel.engine import Machine, Plan, Session, Step, TableShape, make_plan
from streamkernel.errors import SingleClassError
from streamkernel.fits.ridge._decomposition import by_decomposition, decomposition_steps
from streamkernel.fits.steps.choose_basis import choose_basis
from streamkernel.fits.steps.fold_rows import FoldRows, SharedSums, rows_are_enough
from streamkernel.fits.steps.plan_steps import fold_scores_step, steps_of_choice
from streamkernel.fits.steps.supervised import SupervisedRun
from streamkernel.fits.steps.target_checks import check_numbers
from streamkernel.fits.steps.validation import checked_numbers, checked_rows, held_out
from streamkernel.models.ridge import RidgeModel
from streamkernel.models.seen_rows import seen_by_fit
from streamkernel.reductions import Both, DrawnRows, Gather
from streamkernel.reductions.sums import FoldEquations, FoldSums, NormalEquations, RidgeSums
from streamkernel.selection.problem import gather_step
from streamkernel.settings.classes import BALANCED, RidgeClassifierSettings
from streamkernel.settings.ridge import RidgeSettings
from streamkernel.solvers.least_squares.validation import classes_in, usable
from streamkernel.table import Folds, PartFolds, Table


def ridge_shares_sums(table: Table, settings: RidgeSettings, share: float) -> bool:
    """Whether these fits can be made of the sums of one sweep, with the choices on a share of the rows.

    Not with conjugate gradients, which keep no sums; nor with balanced classes, whose weights differ from fold to fold.
    """
    of_table = settings.for_table(table)
    if of_table.solver_for(table, of_table.components(table)) == "cg":
        return False
    balanced = isinstance(settings, RidgeClassifierSettings) and settings.class_weight == BALANCED
    return not balanced and rows_are_enough(table, settings, share)


def fit_ridge_folds(
    rows: FoldRows,
    settings: RidgeSettings,
    session: Session,
    *,
    estimator: str = "ridge",
    memory_limit: int | None = None,
) -> tuple[RidgeModel, ...]:
    """K ridge models, each fitted without one fold.

    Raises
    ------
    ResourceLimitError
        The plan exceeds a limit.
    SingleClassError
        The rows without a fold are of one class.
    StreamKernelError
        As of `fit_ridge`.
    """
    if estimator == "ridge":
        check_numbers(rows.whole, estimator)
    settings, folds = rows.resolved(settings), _folds_of(rows, settings)
    run = SupervisedRun(
        rows.whole,
        settings,
        session,
        lambda _, given, machine, n: plan_ridge_folds(rows, given, machine, n),
        estimator=estimator,
        memory_limit=memory_limit,
    )
    solved = []
    with run.measured():
        choosing = run.weighted(rows.chosen_on)
        chosen = choose_basis(choosing, settings, session, run.n, folds=_beside(folds), of_rows=rows.count)
        basis, whole = chosen.selection.basis, run.table.with_scaler(chosen.scaler).with_keys()
        equations = NormalEquations.of(basis, chosen.centre, whole.counted, settings.given_alpha)
        drawn = _errors_looked_at(whole, settings, folds)
        # Rows by number come with the sums: rows that need not be read again.
        gather = Gather(drawn.ascending().rows, whole.width, whole.n_targets, whole.dtype)
        sums, sample = session.sweep(Both(FoldEquations(equations, folds), gather), whole, "sums by fold")
        held = held_out(sample.at(drawn.rows), drawn, folds)
        for fold, fitted in enumerate(rows.fitted):
            table = run.weighted(fitted).with_scaler(chosen.scaler)
            own = replace(chosen, table=table, held=held)
            seen = _seen(sums, rows, fold)
            _check_classes(seen, rows, fold)
            others = _with_choosing(seen, sums, rows, fold, settings, table, run.n)
            solved.append((own, by_decomposition(own, settings, session, others, folds)))
    multilabel = {"multilabel": True} if whole.multilabel else {}
    return tuple(
        run.model(
            RidgeModel,
            own,
            None,
            found.residual_path,
            found.arrays,
            **{"seen": seen_by_fit(own.table), "updates": None, "validation": None, **multilabel, **found.fields},
        )
        for own, found in solved
    )


def _errors_looked_at(whole: Table, settings: RidgeSettings, folds: Folds) -> DrawnRows:
    """Rows of the folds whose errors are looked at one by one, where folds choose alpha."""
    return checked_numbers(whole, folds if settings.alpha == "cv" else None, settings.seed)


def _folds_of(rows: FoldRows, settings: RidgeSettings) -> Folds:
    """The folds, and where the first of them has none before it that could choose its alpha, a share of the past."""
    if settings.alpha == "cv" and rows.past and isinstance(rows.folds, PartFolds):
        return rows.folds.with_one_beside()
    return rows.folds


def _beside(folds: Folds) -> Folds | None:
    """The rows of the part beside the folds that choose alpha, so that the choice of a basis does not see their y."""
    return folds.beside if isinstance(folds, PartFolds) else None


def _seen(sums: FoldSums, rows: FoldRows, fold: int) -> RidgeSums:
    """The sums of the rows that the fit of a fold sees."""
    total = sums.total
    for unseen in rows.unseen(fold):
        total = total.without(sums.folds[unseen])
    return total


def _check_classes(seen: RidgeSums, rows: FoldRows, fold: int) -> None:
    if rows.whole.classes is not None and classes_in(seen.Y1 / seen.weight + seen.centre) < 2:
        raise SingleClassError(
            f"{'before' if rows.past else 'without'} fold {fold + 1} the rows with a weight > 0 are of one class only; "
            "a classifier needs such rows of at least two classes"
        )


def _with_choosing(
    seen: RidgeSums, sums: FoldSums, rows: FoldRows, fold: int, settings: RidgeSettings, fitted: Table, n: int
) -> FoldSums | RidgeSums:
    """The sums that the fit of a fold sees: by those of the folds that choose alpha, or all together where none do."""
    none = seen.without(seen)
    own = settings.folds(fitted.counted, n)
    if own is None:
        return seen
    inner = _choosing(seen, sums, rows, fold, own.share, classes=fitted.classes is not None)
    # Folds keep their numbers: one without rows chooses nothing.
    return FoldSums(seen, tuple(each if at in inner else none for at, each in enumerate(sums.folds)), sums.effective)


def _choosing(
    seen: RidgeSums, sums: FoldSums, rows: FoldRows, fold: int, share: float, *, classes: bool
) -> Sequence[int]:
    """The folds that choose alpha for the fit of `fold`, at least such a share of the rows that it sees.

    They are those after it, and by time those before it, the last ones first; for the first fold by time a share of the
    part beside the folds. A fold without which one class is left chooses nothing, and the next one takes its place.
    """
    k = rows.models
    if rows.past:
        order = list(reversed(range(fold))) if fold else list(range(k, len(sums.folds)))
        parts = fold + 1
    else:
        order, parts = [(fold + after) % k for after in range(1, k)], k + 1
    able = [each for each in order if usable(sums.folds[each], seen, classes)]
    return able[: ceil(share * parts)]


def plan_ridge_folds(rows: FoldRows, settings: RidgeSettings, machine: Machine, n: int | None = None) -> Plan:
    """The cost of `fit_ridge_folds` and of the scores of its models; parameters are those of `plan_ridge`."""
    settings = rows.resolved(settings)
    n, folds = settings.components(rows.whole) if n is None else n, _folds_of(rows, settings)
    problem, steps = steps_of_choice(rows.chosen_on, settings, n, _beside(folds), of_rows=rows.count)
    whole = rows.whole.with_scaler(problem.table.scaler)
    problem = replace(problem, table=whole, folds=folds)
    further, disk = decomposition_steps(problem, n, "", settings.given_alpha, models=rows.models)
    if settings.alpha == "cv":
        further[0] = _with_rows(further[0], gather_step(problem, checked_rows(whole, folds)))
    steps += [*further, fold_scores_step(problem, n, rows.models)]
    return make_plan(steps, TableShape.of(whole), machine, disk_bytes=disk, kernel=problem.kernel)


def _with_rows(sweep: Step, gather: Step) -> Step:
    """A sweep that fetches rows by number, too."""
    names = ("state_bytes", "held_bytes", "kept_bytes")
    return replace(sweep, **{name: getattr(sweep, name) + getattr(gather, name) for name in names})


RIDGE_FOLDS = SharedSums(ridge_shares_sums, fit_ridge_folds, plan_ridge_folds)
