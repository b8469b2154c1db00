"""The page and the picture of a matching pursuit."""

from __future__ import annotations

import numpy as np

from streamkernel.models.pursuit import PursuitModel
from streamkernel.report.facts.calibration import Check, distribution_check
from streamkernel.report.facts.fit import Absent, length_unit, lengthscale_curve, trace_curve
from streamkernel.report.facts.pairs import ClassPairs, Targets, check_pairs
from streamkernel.report.facts.pursuit import (
    error_rates,
    error_text,
    loss_curve,
    pursuit_bound,
    squared_errors,
    weakness,
)
from streamkernel.report.figures import plot
from streamkernel.report.figures.calibration import distribution_figures
from streamkernel.report.figures.fit import lengthscale_figure, trace_figure
from streamkernel.report.figures.pursuit import (
    error_bound_figure,
    error_figure,
    loss_figure,
    rate_figure,
    weakness_figure,
)
from streamkernel.report.pages.parts import (
    Card,
    Page,
    Picture,
    Rows,
    Section,
    check_cards,
    common_settings,
    lengthscale_text,
    metric_section,
    model_page,
    model_picture,
    prediction_section,
    scaling_text,
)
from streamkernel.report.text import count, kernel_of, percent, plain, plural, significant
from streamkernel.settings.pursuit import ValidationTable
from streamkernel.type_aliases import FieldsView

_ENDED = {
    "terms": "the requested number",
    "tolerance": "the tolerance was met",
    "rank": "no independent function was left",
    "validation": "least error on validation rows",
}


def pursuit_page(model: PursuitModel, pairs: FieldsView | None) -> Page:
    """The whole page."""
    checked, check = check_pairs(model, pairs), distribution_check(model, pairs)
    by_error = model.record.settings.choose_by == "error"
    path = [
        loss_figure(loss_curve(model)) or error_figure(squared_errors(model), chose=not by_error),
        rate_figure(error_rates(model), error_text(model), chose=by_error),
        error_bound_figure(pursuit_bound(model), "Hussain & Shawe-Taylor, Theorem 3"),
        weakness_figure(weakness(model)),
    ]
    choice = lengthscale_figure(lengthscale_curve(model), unit=length_unit(model))
    sections = [
        Section("Path", path),
        Section("Functions", [trace_figure(trace_curve(model)), choice]),
        metric_section(model),
        prediction_section(checked),
        Section("Probabilities", distribution_figures(check)),
    ]
    cards = _cards(model, checked, check)
    return model_page(model, _opening(model), cards, _notices(model), sections, _settings(model))


def pursuit_picture(model: PursuitModel) -> Picture:
    """Lead and figures of the small picture."""
    rates = rate_figure(error_rates(model) if model.classes is not None else None, error_text(model))
    middle = rates if isinstance(rates, plot.Figure) else error_figure(squared_errors(model))
    return model_picture(model, _opening(model), middle)


def _opening(model: PursuitModel) -> str:
    record = model.record
    kernel, variant = kernel_of(model), plain(record.settings.variant)
    return f"{plural(record.basis_size, 'function')} of a {kernel} kernel, picked one by one ({variant}) for"


def _cards(model: PursuitModel, pairs: Targets | ClassPairs | Absent, check: Check) -> list[Card]:
    record, solution = model.record, model.record.solution
    terms, tried = solution.terms, solution.terms_tried
    cards = check_cards(model, pairs, check)
    return [
        Card("Rows", count(record.row_count), "of the fit"),
        Card("Features", count(len(record.columns)), scaling_text(model)),
        Card("Terms", count(terms), f"of {count(tried)} tried" if terms < tried else _ENDED.get(record.ended, "")),
        Card("Sweeps", count(record.sweep_count), f"{plural(len(record.rounds), 'round')} of picking"),
        _loss_card(model),
        _validation_card(model),
        Card("Least weakness", significant(solution.least_weakness), "1: always the best candidate"),
        Card("Lengthscale", *lengthscale_text(model)),
        *cards,
    ]


def _loss_card(model: PursuitModel) -> Card:
    losses = loss_curve(model)
    if losses is None:
        return Card("Squares left", percent(float(np.mean(model.record.solution.relative_rss))), "of a constant's")
    guess = significant(float(losses.training[0]))
    return Card("Logistic loss", significant(losses.at_chosen(False)), f"nats a row of the fit; {guess} for a guess")


def _validation_card(model: PursuitModel) -> Card:
    solution, totals = model.record.solution, model.record.totals
    if not totals.validation_rows:
        return Card("Validation error", "–", "no validation rows")
    # Of weighted rows it is a sum of weights.
    counted = totals.rows == model.record.row_count
    where = f"of {plural(round(totals.validation_rows), 'validation row')}" if counted else "of the validation rows"
    if model.classes is not None and solution.validation_error is not None:
        return Card("Validation error", percent(solution.validation_error), where)
    values = solution.validation_rmse
    if values is None:
        return Card("Validation error", "–", "not kept")
    if len(values) > 1 and model.classes is None:
        ratio = np.asarray(values) / np.asarray(model.record.target_scale)
        error = significant(float(np.sqrt((ratio**2).mean())))
        return Card("Validation RMSE", error, f"in standard deviations, {where}")
    return Card("Validation RMSE", significant(float(np.mean(values))), where)


def _notices(model: PursuitModel) -> list[str]:
    record = model.record
    if record.ended != "rank":
        return []
    return [
        f"The pursuit ended at {count(record.solution.terms_tried)} of {count(record.requested_basis)} terms: no "
        "candidate was left that does not depend on the functions before it (duplicate rows, or a lengthscale that is "
        "large for the data)."
    ]


def _settings(model: PursuitModel) -> Rows:
    record, settings = model.record, model.record.settings
    first, last = common_settings(model, lengthscale_text(model))
    return [
        *first,
        ("Variant", plain(settings.variant)),
        ("Loss", plain(settings.loss)),
        ("Shrinkage", significant(settings.shrinkage) if settings.variant == "basic" else ""),
        ("Pool", plain(settings.pool)),
        ("Candidates drawn", {"uniform": "at random", "residual": "by what was left of them"}.get(
            settings.draw, "")),
        ("Candidates of a pick", count(settings.candidates) if settings.candidates else "by default"),
        ("Picks of a sweep", count(settings.picks) if settings.picks else "by default"),
        ("Terms requested", count(record.requested_basis)),
        ("Tolerance of the squared error", f"{100.0 * settings.tol:.4g} %" if settings.tol else "none"),
        ("Validation rows", _validation_text(settings.validation)),
        ("Size chosen by", {"loss": "the loss of validation rows", "error": "the errors on validation rows"}.get(
            settings.choose_by, "") if settings.validation else ""),
        ("Patience", plural(settings.patience, "term") if settings.patience else ""),
        ("Gamma of the bound", f"{settings.bound_gamma:g}" if settings.bound_gamma else ""),
        ("Ended by", _ENDED.get(record.ended, plain(record.ended))),
        ("Constant", "fitted" if settings.fit_intercept else "none"),
        *last[-2:],
    ]  # fmt: skip


def _validation_text(validation: ValidationTable | str | float | None) -> str:
    if isinstance(validation, ValidationTable):
        return f"a table of {plural(validation.rows, 'row')}"
    return "none" if not validation else f"{percent(float(validation))} of the table"
