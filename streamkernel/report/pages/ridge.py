"""The page and the picture of a kernel ridge regression or classifier."""

from __future__ import annotations

import numpy as np

from streamkernel.models.ridge import RidgeModel
from streamkernel.report.facts.calibration import Check, distribution_check
from streamkernel.report.facts.fit import (
    Absent,
    gcv_curve,
    gcv_error,
    held_out_curve,
    length_unit,
    lengthscale_curve,
    solved_by_iterations,
    target_names,
    trace_curve,
    validation_curve,
)
from streamkernel.report.facts.labels import LabelPairs, label_pairs
from streamkernel.report.facts.pairs import ClassPairs, Targets, check_pairs
from streamkernel.report.figures import plot
from streamkernel.report.figures.calibration import distribution_figures
from streamkernel.report.figures.fit import (
    gcv_figure,
    held_out_figure,
    lengthscale_figure,
    trace_figure,
    validation_figure,
)
from streamkernel.report.figures.labels import label_figures
from streamkernel.report.pages.labels import label_cards, label_section
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
    rising_notice,
    scaling_text,
)
from streamkernel.report.text import capitalised, count, kernel_of, percent, plain, plural, significant, with_error
from streamkernel.type_aliases import FieldsView

Checked = Targets | ClassPairs | LabelPairs | Absent

_FAR_ABOVE = 1.5  # times the GCV error: more than the scatter of some hundred rows can explain
_FEW_ROWS = 100


def ridge_page(model: RidgeModel, pairs: FieldsView | None) -> Page:
    """The whole page."""
    checked = label_pairs(model, pairs) if model.multilabel else check_pairs(model, pairs)
    check = distribution_check(model, pairs)
    validation = validation_curve(model)
    fit = [
        trace_figure(trace_curve(model)),
        _alpha_figure(model),
        *([] if validation is None else [validation_figure(validation)]),
        lengthscale_figure(lengthscale_curve(model), unit=length_unit(model)),
    ]
    sections = [
        Section("Basis and regularisation", fit),
        metric_section(model),
        _predictions(model, checked),
        Section("Probabilities", distribution_figures(check)),
    ]
    notices = _notices(model, checked)
    return model_page(model, _opening(model), _cards(model, checked, check), notices, sections, _settings(model))


def ridge_picture(model: RidgeModel) -> Picture:
    """Lead and figures of the small picture."""
    first = label_figures(label_pairs(model))[0] if model.multilabel else None
    return model_picture(model, _opening(model), _alpha_figure(model), first)


def _predictions(model: RidgeModel, found: Checked) -> Section:
    # A model of labels also gives the reason for missing rows in the words of labels.
    if isinstance(found, LabelPairs) or (model.multilabel and isinstance(found, Absent)):
        return label_section(found)
    return prediction_section(found)


def _scores(model: RidgeModel, found: Checked, check: Check) -> tuple[Card, Card]:
    if isinstance(found, LabelPairs) or (model.multilabel and isinstance(found, Absent)):
        return label_cards(found)
    return check_cards(model, found, check)


def _alpha_figure(model: RidgeModel) -> plot.Drawing:
    held_out = held_out_curve(model)
    return gcv_figure(gcv_curve(model)) if held_out is None else held_out_figure(held_out)


def _opening(model: RidgeModel) -> str:
    kernel, n = kernel_of(model), model.record.basis_size
    return f"{capitalised(kernel)} kernel on {plural(n, 'basis function')}, fitted to"


def _cards(model: RidgeModel, found: Checked, check: Check) -> list[Card]:
    record = model.record
    requested, n = record.requested_basis, record.basis_size
    ended = {"tolerance": "enough for the tolerance", "rank": "all that are independent"}
    basis_note = ended.get(record.ended, "")
    return [
        Card("Rows", count(record.totals.rows), "of the fit"),
        Card("Features", count(len(record.columns)), scaling_text(model)),
        Card(
            "Basis functions",
            count(n),
            f"of {count(requested)}: {basis_note}" if n < requested and basis_note else "chosen rows",
        ),
        Card("Sweeps", count(record.sweep_count), f"{plural(len(record.rounds), 'round')} of choosing"),
        Card("Residual trace", percent(record.certificate.relative_residual_trace), "of the kernel's trace, exact"),
        Card("Alpha", significant(record.alpha), _alpha_note(model)),
        Card("Lengthscale", *lengthscale_text(model)),
        # One error that chose alpha, so that there are twelve cards: that of folds, if there were some.
        *(_validation_cards(model) or [_gcv_card(model)]),
        *_scores(model, found, check),
    ]


def _alpha_note(model: RidgeModel) -> str:
    if model.record.validation is not None:
        return "by held-out folds"
    if model.record.settings.alpha == "cv" and model.record.updates is not None:
        # Folds chose it, or the update did: the record of that was left out with their errors.
        return "as of the last update"
    return "by GCV" if isinstance(model.record.settings.alpha, str) else "as given"


def _solver_text(model: RidgeModel) -> str:
    if not solved_by_iterations(model):
        return "direct"
    solution = model.record.solution
    left = max(solution.relative_residual, default=0.0)
    iterations = plural(solution.iterations or 0, "iteration")
    return f"conjugate gradients, {iterations} to a relative residual of {left:.1g}"


def _validation_cards(model: RidgeModel) -> list[Card]:
    """The error on held-out folds, with its standard error; none for a model that was fitted without folds."""
    found = model.record.validation
    if found is None:
        return []
    if found.wrong is not None:
        error = with_error(found.wrong, found.wrong_se, percent)
        return [Card("Held-out error", error, f"wrong, {plural(found.checked_rows, 'row')} of held-out folds")]
    rows = plural(found.rows, "row")
    if len(found.rmse) == 1:
        error = with_error(found.rmse[0], found.rmse_se[0])
        return [Card("Held-out error", error, f"RMSE, {rows} of held-out folds")]
    common, _ = gcv_error(model, found.error)
    return [Card("Held-out error", significant(float(common)), f"in standard deviations, {rows} of held-out folds")]


def _folds_and_gcv(model: RidgeModel) -> str:
    found = model.record.validation
    if found is None or not found.differs or found.gcv_alpha is None:
        return ""
    return (
        f"GCV would take alpha = {significant(found.gcv_alpha)}, which is worse on held-out folds by more than chance: "
        "rows may be repeated or related, so that they are not independent."
    )


def _gcv_card(model: RidgeModel) -> Card:
    # The score is None if the fit has no GCV error.
    error, _ = gcv_error(model, model.record.solution.gcv)
    if solved_by_iterations(model):
        note = "not known to conjugate gradients"
    elif not np.isfinite(error):
        note = "none is defined: no degrees of freedom are left"
    elif model.classes is not None:
        note = "squared, per row"
    elif model.target_count > 1:
        note = "in standard deviations"
    else:
        note = f"in units of {plain(target_names(model)[0], 24)}"
    return Card("GCV error", significant(float(error)), note)


def _lost_digits(model: RidgeModel) -> str:
    score = model.record.solution.gcv
    if score != 0.0 or not (np.asarray(model.arrays["sum_YY"]).diagonal() > 0.0).any():
        return ""
    return (
        "The GCV error is 0 to rounding. Unless the basis holds the targets without noise, digits were lost in the "
        "sums: give a larger alpha or a smaller lengthscale."
    )


def _held_out(model: RidgeModel, pairs: Checked) -> str:
    if not isinstance(pairs, Targets) or pairs.where == "training rows" or len(pairs.targets) != 1:
        return ""
    target = pairs.targets[0]
    expected = float(gcv_error(model, model.record.solution.gcv)[0])
    if len(target.true) < _FEW_ROWS or not np.isfinite(expected) or target.rmse <= _FAR_ABOVE * expected:
        return ""
    return (
        f"The RMSE on {pairs.where}, {significant(target.rmse)}, is far above the GCV error, {significant(expected)}: "
        "these rows differ from those of the fit (are the rows sorted?), or the fit has lost digits."
    )


def _settings(model: RidgeModel) -> Rows:
    record, settings = model.record, model.record.settings
    first, last = common_settings(model, lengthscale_text(model))
    return [
        *first,
        ("Alpha", f"{significant(record.alpha, 5)} ({_alpha_note(model)})"),
        ("Solver", _solver_text(model)),
        ("Basis functions requested", count(record.requested_basis)),
        ("Tolerance of the residual trace", f"{100.0 * settings.tol:.4g} %" if settings.tol else "none"),
        ("Intercept", "fitted" if settings.fit_intercept else "none"),
        *last,
    ]


def _notices(model: RidgeModel, pairs: Checked) -> list[str]:
    """Warnings to read before trusting the report: one sentence each, none if all is well."""
    found = [_lost_digits(model), _held_out(model, pairs), _folds_and_gcv(model)]
    return [*(notice for notice in found if notice), *rising_notice(model)]
