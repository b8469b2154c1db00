"""The page and the picture of boosting."""

from __future__ import annotations

from streamkernel.models.boosting import BoostingModel
from streamkernel.report.facts.boosting import margins, member_weights, vote_errors
from streamkernel.report.facts.calibration import Check, ProbabilityCheck, distribution_check
from streamkernel.report.facts.fit import Absent, length_unit, lengthscale_curve
from streamkernel.report.facts.pairs import ClassPairs, Targets, check_pairs
from streamkernel.report.figures.boosting import margins_figure, vote_figure, weights_figure
from streamkernel.report.figures.calibration import distribution_figures
from streamkernel.report.figures.fit import lengthscale_figure
from streamkernel.report.figures.predictions import prediction_figures
from streamkernel.report.pages.parts import (
    Card,
    Page,
    Picture,
    Rows,
    Section,
    check_cards,
    common_settings,
    fitted_text,
    lengthscale_text,
    metric_section,
    model_page,
    prediction_section,
    scaling_text,
)
from streamkernel.report.text import capitalised, count, kernel_of, percent, plain, plural, significant
from streamkernel.type_aliases import FieldsView

_METHODS = {"resampling": "resampling (AdaBoost)", "filtering": "filtering (three machines)"}
_LEARNERS = {"svm": "support vector machine", "ridge": "kernel ridge", "kmp": "matching pursuit"}
_ENDED = {
    "members": "the requested number",
    "chance": "the next was no better than chance",
    "no errors": "the last is right on all rows",
    "patience": "no smaller error on held-out rows",
    "no disagreement": "two machines agree on all rows",
}


def boosting_page(model: BoostingModel, pairs: FieldsView | None) -> Page:
    """The whole page."""
    checked, check = check_pairs(model, pairs), distribution_check(model, pairs)
    sections = [
        Section("Members", [vote_figure(vote_errors(model)), weights_figure(member_weights(model))]),
        Section("Margins", [margins_figure(margins(model))]),
        Section("Kernel", [lengthscale_figure(lengthscale_curve(model), unit=length_unit(model))]),
        metric_section(model),
        prediction_section(checked),
        Section("Probabilities", distribution_figures(check)),
    ]
    return model_page(
        model, _opening(model), _cards(model, checked, check), _notices(model), sections, _settings(model)
    )


def boosting_picture(model: BoostingModel) -> Picture:
    """Lead and figures of the small picture."""
    drawn = [vote_figure(vote_errors(model)), margins_figure(margins(model)), prediction_figures(check_pairs(model))[0]]
    return fitted_text(_opening(model), model), drawn


def _opening(model: BoostingModel) -> str:
    solution = model.record.solution
    kernel, learner = kernel_of(model), _LEARNERS.get(solution.learner, plain(solution.learner))
    word = plural(solution.kept, f"{learner} member")
    return f"Vote of {word} with {kernel} kernels, each fitted to some of"


def _cards(model: BoostingModel, pairs: Targets | ClassPairs | Absent, check: Check) -> list[Card]:
    record, solution = model.record, model.record.solution
    first, second = check_cards(model, pairs, check)
    kept, tried = solution.kept, len(solution.members)
    last, bound = solution.members[kept - 1], model.bound
    most = max(each.rows for each in solution.members)
    return [
        Card("Rows", count(record.totals.rows), f"{plural(len(record.columns), 'feature')}, {scaling_text(model)}"),
        Card("Members", count(kept), f"of {count(tried)} tried" if kept < tried else _ENDED.get(solution.ended, "")),
        Card("Rows of a member", count(most), f"{percent(most / max(record.totals.rows, 1))} of the rows, at most"),
        Card("Functions", count(solution.functions), f"at {plural(record.basis_size, 'row')}"),
        Card("Sweeps", count(record.sweep_count), "one for each member that was tried"),
        Card("Lengthscale", *lengthscale_text(model)),
        _error_card("Training error", last.vote_training_error, "of the vote, by weight"),
        _error_card("Held-out error", last.vote_validation_error, f"of {plural(solution.validation_rows, 'row')}"),
        Card("Bound", "–", "of hard votes alone" if model.soft else "members are no better than chance")
        if bound is None
        else Card("Bound", percent(float(bound[-1])), "of the error, from the errors of the members"),
        first if isinstance(pairs, ClassPairs) and not isinstance(check, ProbabilityCheck) else second,
    ]


def _error_card(label: str, error: float | None, where: str) -> Card:
    return Card(label, "–", "no rows were held out") if error is None else Card(label, percent(error), where)


def _notices(model: BoostingModel) -> list[str]:
    solution = model.record.solution
    if solution.ended != "chance" or len(solution.members) > 1:
        return []
    return [
        "The only member is no better than chance on the rows of the fit. Give it more rows, or another kernel or "
        "lengthscale."
    ]


def _settings(model: BoostingModel) -> Rows:
    settings, solution = model.record.settings, model.record.solution
    first, last = common_settings(model, lengthscale_text(model))
    curves = {"calibration_slope": "by Platt's logistic curve", "calibration_knots": "by an isotonic curve"}
    rows = settings.member_rows
    return [
        *first,
        ("Method", _METHODS.get(settings.method, plain(settings.method))),
        ("Members", capitalised(_LEARNERS.get(settings.learner, plain(settings.learner)))),
        ("Votes", "by their confidence (soft)" if model.soft else "equal for each class (hard)"),
        ("Most members", count(settings.members) if settings.method == "resampling" else ""),
        ("Rows of a member", "by default" if rows is None else percent(rows) if rows < 1 else count(rows)),
        ("C", significant(settings.C, 5) if settings.learner == "svm" else ""),
        ("Alpha", significant(settings.member_alpha, 5) if settings.learner == "ridge" else ""),
        ("Rows searched", count(settings.search_rows) if settings.search_rows else ""),
        ("Held-out rows", percent(settings.validation) if settings.validation else "none"),
        ("Patience", plural(settings.patience, "member") if settings.patience else ""),
        ("Ended by", _ENDED.get(solution.ended, plain(solution.ended))),
        ("Probabilities", next((words for name, words in curves.items() if name in model.arrays), "none")),
        *last[1:],
    ]
