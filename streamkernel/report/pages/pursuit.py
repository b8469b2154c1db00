"""Key numbers and settings of a matching pursuit."""

from __future__ import annotations

import numpy as np

from streamkernel.models.pursuit import PursuitModel
from streamkernel.records.pursuit import ValidationTable
from streamkernel.report.facts.calibration import ProbabilityCheck
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.pairs import ClassPairs, Targets
from streamkernel.report.facts.pursuit import loss_curve
from streamkernel.report.pages.gaussian import Check
from streamkernel.report.pages.tables import (
    Card,
    Table,
    check_cards,
    data_table,
    heading,
    lengthscale_words,
    memory_card,
    place_words,
    scaling_words,
    seconds_of,
)
from streamkernel.report.text import count, duration, kernel_words, percent, plain, plural, significant

__all__ = ["pursuit_cards", "pursuit_headline", "pursuit_notices", "pursuit_settings"]

_ENDED = {
    "terms": "as many as were asked for",
    "tolerance": "little enough was left",
    "rank": "no independent function was left",
    "validation": "validation rows liked these best",
}


def pursuit_headline(model: PursuitModel) -> tuple[str, str]:
    """Kind of the model, and one sentence about it."""
    record, n = model.record, model.record.basis_size
    kernel = kernel_words(record.kernel)
    rows = round(record.totals.rows)
    return heading(model), (
        f"{plural(n, 'function')} of a {kernel} kernel, picked one by one ({plain(record.settings.variant)}) for "
        f"{plural(rows, 'row')} of {plural(len(record.columns), 'feature')} in "
        f"{plural(record.sweep_count, 'sweep')} over the data."
    )


def pursuit_cards(model: PursuitModel, pairs: Targets | ClassPairs | Absent, check: Check) -> list[Card]:
    """Twelve numbers, as on every page."""
    record, solution = model.record, model.record.solution
    terms, tried = solution.terms, solution.terms_tried
    cards = check_cards(model, pairs)
    if isinstance(check, ProbabilityCheck):
        cards = (cards[0], Card("Log loss", significant(check.found.scalars["log_loss"]), check.where))
    return [
        Card("Rows", count(record.totals.rows), "of the fit"),
        Card("Features", count(len(record.columns)), scaling_words(model)),
        Card("Terms", count(terms), f"of {count(tried)} tried" if terms < tried else _ENDED.get(record.ended, "")),
        Card("Sweeps", count(record.sweep_count), f"{plural(len(record.rounds), 'round')} of picking"),
        _loss_card(model),
        _validation_card(model),
        Card("Least weakness", significant(solution.least_weakness), "1: always the best candidate"),
        Card("Lengthscale", *lengthscale_words(model)),
        *cards,
        Card("Time", duration(seconds_of(record)), place_words(model)),
        memory_card(model),
    ]


def _loss_card(model: PursuitModel) -> Card:
    losses = loss_curve(model)
    if losses is None:
        return Card("Squares left", percent(float(np.mean(model.record.solution.relative_rss))), "of a constant's")
    guess = significant(float(losses.training[0]))
    return Card("Logistic loss", significant(losses.at_kept(False)), f"nats a row of the fit; {guess} for a guess")


def _validation_card(model: PursuitModel) -> Card:
    solution, rows = model.record.solution, round(model.record.totals.validation_rows)
    if not rows:
        return Card("Validation error", "–", "no validation rows")
    where = f"of {plural(rows, 'validation row')}"
    error = solution.validation_error
    if model.classes is not None and error is not None:
        return Card("Validation error", percent(error), where)
    values = solution.validation_rmse
    if values is None:
        return Card("Validation error", "–", "not kept")
    if len(values) > 1 and model.classes is None:
        ratio = np.asarray(values) / np.asarray(model.record.target_scale)
        mean = significant(float(np.sqrt((ratio**2).mean())))
        return Card("Validation RMSE", mean, f"in standard deviations, {where}")
    return Card("Validation RMSE", significant(float(np.mean(values))), where)


def pursuit_notices(model: PursuitModel) -> list[str]:
    """Warnings to read before trusting the report."""
    record = model.record
    if record.ended != "rank":
        return []
    asked = record.requested_basis
    return [
        f"The pursuit ended at {count(record.solution.terms_tried)} of {count(asked)} terms: no candidate was "
        "left that does not depend on the functions before it (duplicate rows, or a lengthscale that is large for the "
        "data)."
    ]


def pursuit_settings(model: PursuitModel) -> list[Table]:
    """Tables of the user's choices, the data, and the software and machine."""
    record = model.record
    settings = record.settings
    lengthscale, how = lengthscale_words(model)
    asked = [
        ("Kernel", kernel_words(record.kernel)),
        ("Lengthscale", f"{lengthscale} ({how})"),
        ("Variant", plain(settings.variant)),
        ("Loss", plain(settings.loss)),
        ("Shrinkage", significant(settings.shrinkage) if settings.variant == "basic" else ""),
        ("Pool", plain(settings.pool)),
        ("Candidates drawn", {"uniform": "at random", "residual": "by what was left of them"}.get(
            settings.draw, "")),
        ("Candidates of a pick", count(settings.candidates) if settings.candidates else "by default"),
        ("Picks of a sweep", count(settings.picks) if settings.picks else "by default"),
        ("Terms asked for", count(record.requested_basis)),
        ("Tolerance of the squared error", f"{100.0 * settings.tol:.4g} %" if settings.tol else "none"),
        ("Validation rows", _validation_words(settings.validation)),
        ("Size chosen by", {"loss": "the loss of validation rows", "error": "the errors on validation rows"}.get(
            settings.choose_by, "") if settings.validation else ""),
        ("Patience", plural(settings.patience, "term") if settings.patience else ""),
        ("Gamma of the bound", f"{settings.bound_gamma:g}" if settings.bound_gamma else ""),
        ("Ended by", _ENDED.get(record.ended, plain(record.ended))),
        ("Constant", "fitted" if settings.fit_intercept else "none"),
        ("Features", scaling_words(model)),
        ("Seed", plain(settings.seed)),
    ]  # fmt: skip
    return [Table("Settings", tuple((name, words) for name, words in asked if words)), data_table(model)]


def _validation_words(validation: ValidationTable | str | float | None) -> str:
    if isinstance(validation, ValidationTable):
        return f"a table of {plural(validation.rows, 'row')}"
    return "none" if not validation else f"{percent(float(validation))} of the table"
