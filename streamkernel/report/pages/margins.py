"""The page and the picture of support vector machines and of quantiles."""

from __future__ import annotations

from streamkernel.models.linear import LinearSolutionRecord
from streamkernel.models.margins import MarginModel, QuantileModel
from streamkernel.report.facts.calibration import Check, distribution_check
from streamkernel.report.facts.fit import Absent, length_unit, lengthscale_curve, trace_curve
from streamkernel.report.facts.margins import (
    cost_path,
    decision_map,
    function_names,
    gap_curves,
    tube_errors,
    value_histograms,
)
from streamkernel.report.facts.pairs import ClassPairs, Targets, check_pairs
from streamkernel.report.facts.programs import program_path
from streamkernel.report.facts.quantiles import QuantileCheck, quantile_check
from streamkernel.report.figures import plot
from streamkernel.report.figures.calibration import distribution_figures
from streamkernel.report.figures.decision_maps import map_figures
from streamkernel.report.figures.fit import lengthscale_figure, trace_figure
from streamkernel.report.figures.margins import cost_figure, gap_figure, tube_figure, value_figures
from streamkernel.report.figures.programs import program_figure
from streamkernel.report.figures.quantiles import quantile_figures
from streamkernel.report.pages.parts import (
    Card,
    Page,
    Picture,
    Rows,
    Section,
    Table,
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
from streamkernel.report.text import (
    capitalised,
    count,
    kernel_of,
    percent,
    plain,
    plural,
    score_text,
    significant,
    with_error,
)
from streamkernel.settings.gap import GapSettingsRecord
from streamkernel.settings.linear import LinearClassifierSettingsRecord, LinearRegressorSettingsRecord
from streamkernel.settings.margins import (
    MarginClassifierSettingsRecord,
    MarginRegressorSettingsRecord,
    MarginSettingsRecord,
)
from streamkernel.settings.quantile import QuantileSettingsRecord
from streamkernel.type_aliases import FieldsView

_METHODS = {
    "newton": "Newton's method, a sweep for each iteration",
    "interior-point": "interior point, a sweep for each iteration",
    "linear-program": "linear programs of some rows and columns, a sweep for others that they lack",
    "chunking": "a working set of rows in memory, a sweep for those outside that violate the margin",
}
_CURVES = {"calibration_slope": "by Platt's logistic curve", "calibration_knots": "by an isotonic curve"}
_MOST_FUNCTIONS = 24


def margin_page(model: MarginModel, pairs: FieldsView | None) -> Page:
    """The whole page."""
    checked, check = check_pairs(model, pairs), distribution_check(model, pairs)
    quantiles = quantile_check(model, pairs)
    solution = [cost_figure(cost_path(model)), gap_figure(gap_curves(model)), program_figure(program_path(model))]
    functions = _function_table(model)
    sections = [
        Section("Solution", solution, [] if functions is None else [functions]),
        Section("Margins", _margin_figures(model, checked)),
        Section("Quantiles", quantile_figures(quantiles)),
        Section("Decision map", map_figures(decision_map(model))),
        Section("Basis", basis_figures(model)),
        metric_section(model),
        prediction_section(checked),
        Section("Probabilities", distribution_figures(check)),
    ]
    notices = [*gap_notice(model), *rising_notice(model)]
    return model_page(
        model, _opening(model), _cards(model, checked, check, quantiles), notices, sections, _settings(model)
    )


def margin_picture(model: MarginModel) -> Picture:
    """Lead and figures of the small picture: of the path of C, else the values, else the gap."""
    quantiles = quantile_figures(quantile_check(model))
    choices = [*quantiles, cost_figure(cost_path(model)), *_margin_figures(model, check_pairs(model))]
    drawn = (each for each in choices if isinstance(each, plot.Figure))
    return model_picture(model, _opening(model), next(drawn, gap_figure(gap_curves(model))))


def _margin_figures(model: MarginModel, pairs: Targets | ClassPairs | Absent) -> list[plot.Drawing]:
    loss = _loss(model)
    return [
        *value_figures(value_histograms(model), hinge=loss in ("hinge", "squared_hinge")),
        tube_figure(tube_errors(model, pairs)),
    ]


def _loss(model: MarginModel) -> str:
    """Name of the loss; empty for a kind with a loss of its own."""
    settings = model.record.settings
    if isinstance(settings, LinearClassifierSettingsRecord):
        return "hinge"
    if isinstance(settings, LinearRegressorSettingsRecord):
        return "epsilon_insensitive"
    return (
        settings.loss if isinstance(settings, (MarginClassifierSettingsRecord, MarginRegressorSettingsRecord)) else ""
    )


def _opening(model: MarginModel) -> str:
    kernel, n, loss = kernel_of(model), model.record.basis_size, plain(_loss(model)).replace("_", "-")
    end = f" with the {loss} loss" if loss else ""
    return f"{capitalised(kernel)} kernel on {plural(n, noun_of_functions(model))}{end}, fitted to"


def noun_of_functions(model: MarginModel) -> str:
    """What a function of the model is."""
    if isinstance(model.record.solution, LinearSolutionRecord):
        return "row"
    return "support vector" if model.full else "basis function"


def basis_figures(model: MarginModel) -> list[plot.Drawing]:
    """The residual trace of a basis, which support vectors have not, and the choice of the lengthscale."""
    trace = Absent("all rows are functions, and no features are computed of the support vectors")
    lengthscale = lengthscale_figure(lengthscale_curve(model), unit=length_unit(model))
    return [trace_figure(trace if model.full else trace_curve(model)), lengthscale]


def basis_cards(model: MarginModel) -> list[Card]:
    """The number of functions, the sweeps, and what the functions leave of the kernel."""
    record, requested, n = model.record, model.record.requested_basis, model.record.basis_size
    if isinstance(record.solution, LinearSolutionRecord):
        of, capped = record.solution.candidates, record.solution.capped
        note = f"of {count(of or record.totals.rows)} candidates"
        return [
            Card("Functions", count(n), f"{note}, as many as were allowed" if capped else note),
            Card("Sweeps", count(record.sweep_count), "each prices all candidates" if of is None else "over the rows"),
            Card("Residual trace", "–", "none: the functions are those of all candidates"),
        ]
    if model.full:
        share = percent(n / max(record.totals.rows, 1))
        return [
            Card("Support vectors", count(n), f"{share} of the rows; room for {count(requested)} of each function"),
            Card("Sweeps", count(record.sweep_count), "each finds rows that violate the margin"),
            Card("Residual trace", "–", "none: the machine is that of all rows"),
        ]
    return [
        Card("Basis functions", count(n), f"of {count(requested)} requested" if n < requested else "chosen rows"),
        Card("Sweeps", count(record.sweep_count), f"{plural(len(record.rounds), 'round')} of choosing"),
        Card("Residual trace", percent(record.certificate.relative_residual_trace), "of the kernel's trace, exact"),
    ]


def _cards(
    model: MarginModel, pairs: Targets | ClassPairs | Absent, check: Check, quantiles: QuantileCheck | Absent | None
) -> list[Card]:
    record, solution = model.record, model.record.solution
    first, second = check_cards(model, pairs, check)
    if isinstance(pairs, ClassPairs) and second.label != "Baseline":
        first = Card(first.label, first.value, f"{pairs.where}; commonest {percent(pairs.baseline)}")
    if isinstance(quantiles, QuantileCheck):
        first, second = _quantile_cards(quantiles)
    sweeps = max((len(each.gaps) for each in solution.problems), default=0)
    return [
        Card("Rows", count(record.totals.rows), f"{plural(len(record.columns), 'feature')}, {scaling_text(model)}"),
        *basis_cards(model),
        Card("Lengthscale", *lengthscale_text(model)),
        Card("C", significant(solution.C), _cost_note(model)),
        Card("Duality gap", significant(solution.gap), f"of the objective, exact, after {plural(sweeps, 'sweep')}"),
        _held_out_card(model),
        first,
        second,
    ]


def _quantile_cards(check: QuantileCheck) -> tuple[Card, Card]:
    """The pinball loss, and what is below the only level or between the outer ones."""
    levels, scalars, shares = check.levels, check.calibration.scalars, check.calibration.coverage
    loss, lowest, highest = Card("Pinball loss", score_text(scalars, "pinball"), check.where), levels[0], levels[-1]
    if len(levels) == 1:
        return loss, Card(
            "Below the quantile",
            score_text(scalars, f"below_{lowest:g}", percent),
            f"{100 * lowest:g} % should, {check.where}",
        )
    wanted = f"{100.0 * (highest - lowest):g}"
    held = f"coverage{wanted}"
    share = score_text(scalars, held, percent) if held in scalars else percent(float(shares[-1] - shares[0]))
    return loss, Card(f"Between {lowest:g} and {highest:g}", share, f"{wanted} % should, {check.where}")


def _cost_note(model: MarginModel) -> str:
    """How C was found."""
    path, settings = model.record.path, model.record.settings
    if path is not None and len(path.C) > 1:
        return f"by held-out rows, of {count(len(path.C))} values"
    searched = isinstance(settings, MarginSettingsRecord) and isinstance(settings.C, str)
    return "too few rows for a search" if searched else "as given"


def _held_out_card(model: MarginModel) -> Card:
    """The error of the chosen C on the validation fold, with its standard error."""
    path = model.record.path
    if path is None or model.record.solution.C not in path.C:
        return Card("Held-out error", "–", "no rows were held out")
    at = path.C.index(model.record.solution.C)
    error, se = path.errors[at], path.errors_se[at]
    rows = plural(path.rows, "row")
    if model.record.classes is not None:
        return Card("Held-out error", with_error(error, se, percent), f"wrong, {rows} held out")
    return Card("Held-out error", with_error(error, se), f"loss for C = 1, {rows} held out")


def gap_notice(model: MarginModel, easier: str = "a smaller C") -> list[str]:
    """A sentence if the solution did not reach the tolerance."""
    solution, settings = model.record.solution, model.record.settings
    if solution.converged:
        return []
    if isinstance(solution, LinearSolutionRecord) and solution.capped:
        return [
            f"The objective is within {significant(solution.gap)} of its least value with all candidates as functions: "
            f"as many functions were allowed. Allow more of them, or take {easier}."
        ]
    wanted = f", not {settings.gap_tol:g}" if isinstance(settings, GapSettingsRecord) else ""
    return [
        f"The objective is within {significant(solution.gap)} of its least value{wanted}, as the sweeps that were "
        f"allowed ended. Allow more of them, or take {easier}."
    ]


def _function_table(model: MarginModel) -> Table | None:
    """Objectives of each function; None unless there are several."""
    problems = model.record.solution.problems
    if len(problems) < 2:
        return None
    rows = [
        (name, significant(each.primal, 6), significant(each.dual, 6), count(len(each.gaps)))
        for name, each in zip(function_names(model), problems[:_MOST_FUNCTIONS], strict=False)
    ]
    if len(problems) > _MOST_FUNCTIONS:
        rows.append((f"and {count(len(problems) - _MOST_FUNCTIONS)} more", "", "", ""))
    return Table("Each function", tuple(rows), ("Function", "Objective", "Dual bound", "Sweeps"))


def _settings(model: MarginModel) -> Rows:
    solution = model.record.solution
    first, last = common_settings(model, lengthscale_text(model))
    return [
        *first,
        *_loss_rows(model),
        ("C", f"{significant(solution.C, 5)} ({_cost_note(model)})"),
        *solver_rows(model),
        *basis_rows(model),
        ("Intercept", _intercept_text(model)),
        *last,
    ]


def _intercept_text(model: MarginModel) -> str:
    if not model.record.settings.fit_intercept:
        return "none"
    return "fitted, and not penalised" if model.full or isinstance(model, QuantileModel) else "fitted, and penalised"


def basis_rows(model: MarginModel) -> Rows:
    """What was asked for of the functions."""
    record, tol = model.record, model.record.settings.tol
    if isinstance(record.solution, LinearSolutionRecord):
        of = record.solution.candidates
        return [
            ("Candidates for functions", "all rows" if of is None else count(of)),
            ("Most functions of each program", count(record.requested_basis)),
        ]
    if model.full:
        return [("Machine", "full: all rows"), ("Most rows of the working set", count(record.requested_basis))]
    return [
        ("Basis functions requested", count(record.requested_basis)),
        ("Tolerance of the residual trace", f"{100.0 * tol:.4g} %" if tol else "none"),
    ]


def solver_rows(model: MarginModel) -> Rows:
    """How the problem was solved."""
    settings, method = model.record.settings, model.record.solution.method
    rows = [("Solver", _METHODS.get(method, plain(method)))]
    if isinstance(settings, GapSettingsRecord):
        rows += [("Tolerance of the gap", f"{settings.gap_tol:g}"), ("Most sweeps", count(settings.max_sweeps))]
    return rows


def _loss_rows(model: MarginModel) -> Rows:
    settings, loss = model.record.settings, plain(_loss(model)).replace("_", " ")
    if isinstance(settings, MarginClassifierSettingsRecord):
        smoothed = settings.loss == "smoothed_hinge"
        how = next((words for name, words in _CURVES.items() if name in model.arrays), "none")
        return [
            ("Loss", loss),
            ("Sharpness of the hinge", f"{settings.sharpness:g}" if smoothed else ""),
            ("Probabilities", how),
        ]
    if isinstance(settings, LinearClassifierSettingsRecord):
        how = next((words for name, words in _CURVES.items() if name in model.arrays), "none")
        return [("Loss", "hinge"), ("Probabilities", how)]
    if isinstance(settings, LinearRegressorSettingsRecord):
        return [("Loss", "epsilon insensitive"), ("Epsilon", f"{settings.epsilon:g} deviations of the target")]
    if isinstance(settings, MarginRegressorSettingsRecord):
        return [("Loss", loss), ("Epsilon", f"{settings.epsilon:g} deviations of the target")]
    if isinstance(settings, QuantileSettingsRecord):
        given = settings.quantile if isinstance(settings.quantile, tuple) else (settings.quantile,)
        shifted = "by the held-out rows" if "calibration_shift" in model.arrays else "none"
        return [("Quantiles", ", ".join(f"{level:g}" for level in given)), ("Shifts", shifted)]
    return []
