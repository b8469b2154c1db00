"""The page and the picture of one class."""

from __future__ import annotations

from streamkernel.models.margins import OneClassModel
from streamkernel.report.facts.fit import trace_curve
from streamkernel.report.facts.margins import decision_map, decision_values, gap_curves
from streamkernel.report.figures.decision_maps import map_figures
from streamkernel.report.figures.fit import trace_figure
from streamkernel.report.figures.margins import decision_figure, gap_figure
from streamkernel.report.pages.margins import (
    basis_cards,
    basis_figures,
    basis_rows,
    gap_notice,
    noun_of_functions,
    solver_rows,
)
from streamkernel.report.pages.parts import (
    Card,
    Page,
    Picture,
    Rows,
    Section,
    common_settings,
    fitted_text,
    lengthscale_text,
    metric_section,
    model_page,
    rising_notice,
    scaling_text,
)
from streamkernel.report.text import capitalised, count, kernel_of, percent, plural, significant
from streamkernel.type_aliases import FieldsView


def one_class_page(model: OneClassModel, pairs: FieldsView | None) -> Page:
    """The whole page."""
    sections = [
        Section("Decision values", [decision_figure(decision_values(model, pairs))]),
        Section("Decision map", map_figures(decision_map(model))),
        Section("Solution", [gap_figure(gap_curves(model))]),
        Section("Basis", basis_figures(model)),
        metric_section(model),
    ]
    notices = [*gap_notice(model, "a larger nu"), *rising_notice(model)]
    return model_page(model, _opening(model), _cards(model), notices, sections, _settings(model))


def one_class_picture(model: OneClassModel) -> Picture:
    """Lead and figures of the small picture."""
    drawn = [
        *([] if model.full else [trace_figure(trace_curve(model))]),
        gap_figure(gap_curves(model)),
        decision_figure(decision_values(model)),
    ]
    return fitted_text(_opening(model), model), drawn


def _opening(model: OneClassModel) -> str:
    kernel, n = kernel_of(model), model.record.basis_size
    return f"{capitalised(kernel)} kernel on {plural(n, noun_of_functions(model))}, fitted without targets to"


def _cards(model: OneClassModel) -> list[Card]:
    record, solution, threshold = model.record, model.record.solution, model.record.threshold
    sweeps = max((len(each.gaps) for each in solution.problems), default=0)
    return [
        Card("Rows", count(record.totals.rows), f"{plural(len(record.columns), 'feature')}, {scaling_text(model)}"),
        *basis_cards(model),
        Card("Lengthscale", *lengthscale_text(model)),
        Card("nu", significant(record.settings.nu), "largest share of outliers"),
        Card("Outliers", percent(threshold.outliers), "of the rows of the fit, by weight"),
        Card("Threshold", significant(threshold.rho), "rho, of kernel values averaged by weights"),
        Card("Duality gap", significant(solution.gap), f"of the objective, exact, after {plural(sweeps, 'sweep')}"),
        Card(
            "Objective", significant(min((each.primal for each in solution.problems), default=0.0)), "its least value"
        ),
    ]


def _settings(model: OneClassModel) -> Rows:
    settings = model.record.settings
    first, last = common_settings(model, lengthscale_text(model))
    return [
        *first,
        ("nu", significant(settings.nu, 5)),
        *solver_rows(model),
        *basis_rows(model),
        *last,
    ]
