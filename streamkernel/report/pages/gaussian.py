"""The page and the picture of models that predict distributions: Gaussian processes, committees and similar models."""

from __future__ import annotations

import numpy as np

from streamkernel.models import GaussianModel, GeneralisedModel
from streamkernel.models.gaussian import GaussianSolutionRecord
from streamkernel.report.facts.calibration import (
    Check,
    CountCheck,
    DistributionCheck,
    GaussianCheck,
    ProbabilityCheck,
    binomial_band,
    distribution_check,
    row_intervals,
)
from streamkernel.report.facts.fit import Absent, length_unit, lengthscale_curve, target_names, trace_curve
from streamkernel.report.facts.pairs import ClassPairs, Targets, check_pairs
from streamkernel.report.facts.tuning import evidence_unit, freedom_curve, lengthscales, member_weights, tuning_path
from streamkernel.report.figures import plot
from streamkernel.report.figures.calibration import distribution_figures, rows_figure
from streamkernel.report.figures.committee import freedom_figure, members_figure
from streamkernel.report.figures.fit import lengthscale_figure, trace_figure
from streamkernel.report.figures.tuning import evidence_figure, lengthscales_figure, parameters_figure
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
from streamkernel.settings.gaussian import GaussianSettingsRecord
from streamkernel.type_aliases import FieldsView, Float

TunedModel = GaussianModel | GeneralisedModel

_APPROXIMATIONS = {"dtc": "DTC", "fitc": "FITC", "pitc": "PITC", "exact": "exact"}
_FAR_OFF = 0.03  # difference from 0.95 at which intervals are clearly too narrow or too wide
_FEW_ROWS = 100


def gaussian_page(model: TunedModel, pairs: FieldsView | None) -> Page:
    """The whole page."""
    checked, check = check_pairs(model, pairs), distribution_check(model, pairs)
    path = tuning_path(model)
    parameters = [
        evidence_figure(path),
        None if isinstance(path, Absent) else parameters_figure(path),
        lengthscales_figure(lengthscales(model), unit=length_unit(model)),
    ]
    choice = model.record.lengthscale_choice
    if choice is not None and choice.grid:
        parameters.append(lengthscale_figure(lengthscale_curve(model), unit=length_unit(model)))
    sections = [
        Section("Hyper-parameters", parameters),
        metric_section(model),
        Section("Basis", [trace_figure(trace_curve(model)), freedom_figure(freedom_curve(model))]),
        Section("Committee", [members_figure(member_weights(model))]),
        prediction_section(checked),
        Section("Uncertainty", [rows_figure(row_intervals(model, pairs)), *distribution_figures(check)]),
    ]
    notices = [*calibration_notice(check), *rising_notice(model)]
    return model_page(model, _opening(model), _cards(model, checked, check), notices, sections, _settings(model))


def gaussian_picture(model: TunedModel) -> Picture:
    """Lead and figures of the small picture."""
    none = plot.Missing("Calibration", "no rows with predicted distributions")
    middle = next((each for each in distribution_figures(distribution_check(model)) if each is not None), none)
    return model_picture(model, _opening(model), middle)


def _opening(model: TunedModel) -> str:
    record = model.record
    kernel, n, how = kernel_of(model), record.basis_size, _approximation(model)
    if record.estimator == "committee":
        members = model.arrays.get("member_weights")
        of = "of members" if members is None else f"of {plural(len(members), 'member')}"
        return f"A committee {of} that meets at {plural(n, 'query point')}, with a {kernel} kernel, fitted to"
    return f"{capitalised(kernel)} kernel on {plural(n, 'basis function')}{f' ({how})' if how else ''}, fitted to"


def _cards(model: TunedModel, pairs: Targets | ClassPairs | Absent, check: Check) -> list[Card]:
    record, n, requested = model.record, model.record.basis_size, model.record.requested_basis
    committee = record.estimator == "committee"
    return [
        Card(
            "Rows",
            count(record.totals.rows),
            f"{plural(len(record.columns), 'feature')}, {scaling_text(model)}",
        ),
        Card(
            "Query points" if committee else "Basis functions",
            count(n),
            f"of {count(requested)} requested" if n < requested else "chosen rows",
        ),
        Card("Sweeps", count(record.sweep_count), f"{plural(len(record.rounds), 'round')} of choosing"),
        Card("Residual trace", percent(record.certificate.relative_residual_trace), "of the kernel's trace, exact"),
        Card("Lengthscale", *_lengthscale(model)),
        _noise_card(model),
        _evidence_card(model),
        *_check_cards(model, pairs, check),
    ]


def _lengthscale(model: TunedModel) -> tuple[str, str]:
    value, how = lengthscale_text(model)
    record = model.record
    by_evidence = record.settings.lengthscale == "evidence" and record.tuning is not None
    return value, f"by evidence{f', {how}' if isinstance(model.lengthscale, list) else ''}" if by_evidence else how


def _signal_variance(model: TunedModel) -> Float:
    """One variance for each target; one number for all functions of classes and counts."""
    if isinstance(model, GaussianModel):
        return np.asarray(model.arrays["signal_variance"], dtype=np.float64)
    return np.array([model.record.signal_variance], dtype=np.float64)


def _noise_variance(model: TunedModel) -> Float | None:
    """One variance for each target; None for classes and counts."""
    if isinstance(model, GaussianModel):
        return np.asarray(model.arrays["noise_variance"], dtype=np.float64)
    return None


def _noise_card(model: TunedModel) -> Card:
    """Standard deviation of the noise; of the signal if the model has no noise variance (classes, counts)."""
    signal, noise = _range(np.sqrt(_signal_variance(model))), _noise_variance(model)
    if noise is None:
        return Card("Signal", signal, "standard deviation of the function")
    return Card("Noise", _range(np.sqrt(noise)), f"standard deviation; signal {signal}")


def _range(values: np.ndarray) -> str:
    low, high = significant(float(values.min())), significant(float(values.max()))
    return low if low == high else f"{low} to {high}"


def _evidence_card(model: TunedModel) -> Card:
    solution = model.record.solution
    unit, values = evidence_unit(model)
    if isinstance(solution, GaussianSolutionRecord) and solution.bound is not None:
        return Card("Evidence", significant(solution.bound / values), f"variational bound, {unit}")
    return Card("Evidence", significant(solution.log_evidence / values), unit)


def _check_cards(model: TunedModel, pairs: Targets | ClassPairs | Absent, check: Check) -> list[Card]:
    """Three scores on the check rows."""
    if isinstance(pairs, ClassPairs):
        first = Card(
            "Accuracy",
            with_error(pairs.accuracy, pairs.accuracy_se, percent),
            f"{pairs.where}; commonest {percent(pairs.baseline)}",
        )
        if not isinstance(check, ProbabilityCheck):
            return [first, Card("Log loss", "–", "no probabilities"), Card("Brier score", "–", "no probabilities")]
        scalars = check.calibration.scalars
        return [
            first,
            Card("Log loss", score_text(scalars, "log_loss"), check.where),
            Card("Brier score", score_text(scalars, "brier"), check.where),
        ]
    if isinstance(pairs, Absent):
        return [Card(name, "–", "no rows to check") for name in ("RMSE", "NLPD", "Coverage")]
    if not isinstance(check, DistributionCheck):
        target = pairs.targets[0]
        return [
            Card("RMSE", with_error(target.rmse, target.rmse_se), pairs.where),
            Card("R²", with_error(target.r2, target.r2_se), pairs.where),
            Card("NLPD", "–", "no distributions"),
        ]
    scalars = check.calibration.scalars
    several = len(check.names) > 1
    # Targets may have different units.
    error = check_cards(model, pairs)[0].value if several else score_text(scalars, "rmse")
    unit, mean = ("in standard deviations, ", ", mean over targets") if several else ("", "")
    first = Card("RMSE", error, f"{unit}R² {score_text(scalars, 'r2')}{mean}, {check.where}")
    density = Card("NLPD", score_text(scalars, "nlpd"), f"nats a target, {check.where}")
    if isinstance(check, CountCheck):
        return [first, density, Card("Deviance", percent(scalars["d2"]), f"explained, {check.where}")]
    return [
        first,
        density,
        Card("Coverage", score_text(scalars, "coverage95", percent), f"of 95 % intervals, {check.where}"),
    ]


def calibration_notice(check: Check) -> list[str]:
    """A sentence if the intervals hold far more or far fewer targets than they should."""
    if not isinstance(check, GaussianCheck) or check.where == "training rows" or check.count < _FEW_ROWS:
        return []
    held = check.calibration.scalars["coverage95"]
    low, high = (float(end[0]) for end in binomial_band(np.array([0.95]), check.count))
    if abs(held - 0.95) <= _FAR_OFF or low <= held <= high:
        return []
    narrow = held < 0.95
    return [
        f"The 95 % intervals hold {percent(held)} of the {check.where}: the predicted distributions are too "
        f"{'narrow' if narrow else 'wide'}. "
        + (
            "These rows differ from those of the fit, or the noise was not found: tune it, or give a larger one."
            if narrow
            else "A larger basis, or hyper-parameters found by evidence, may be sharper."
        )
    ]


def _settings(model: TunedModel) -> Rows:
    record, settings = model.record, model.record.settings
    objective = "" if record.tuning is None else plain(record.tuning.objective)
    first, last = common_settings(model, _lengthscale(model))
    return [
        *first,
        *_variance_rows(model),
        ("Approximation", _approximation(model)),
        ("Tuned on", {"sample": "a sample", "full": "a sample, then all rows", "none": "nothing"}.get(
            settings.tune, "")),
        ("Objective of the tuning", objective),
        *_block_rows(model),
        ("Basis functions requested", count(record.requested_basis)),
        ("Tolerance of the residual trace", f"{100.0 * settings.tol:.4g} %" if settings.tol else "none"),
        *last,
    ]  # fmt: skip


def _approximation(model: TunedModel) -> str:
    settings = model.record.settings
    return _APPROXIMATIONS.get(settings.approximation, "") if isinstance(settings, GaussianSettingsRecord) else ""


def _block_rows(model: TunedModel) -> Rows:
    settings = model.record.settings
    if not isinstance(settings, GaussianSettingsRecord) or settings.approximation != "pitc":
        return []
    blocks = {"order": "in the order of the rows", "cells": "cells of near rows"}
    return [("Rows of a block", count(settings.block_size)), ("Blocks", blocks.get(settings.partition, ""))]


def _variance_rows(model: TunedModel) -> Rows:
    settings = model.record.settings
    rows = [_variance_row(model, "Signal", _signal_variance(model), settings.signal_variance)]
    noise = _noise_variance(model)
    if noise is not None and isinstance(settings, GaussianSettingsRecord):
        rows.append(_variance_row(model, "Noise", noise, settings.noise_variance))
    return rows


def _variance_row(model: TunedModel, name: str, values: Float, setting: str | float) -> tuple[str, str]:
    each = ", ".join(
        f"{target} {significant(float(value))}"
        for target, value in zip(target_names(model), np.sqrt(values[:8]), strict=False)
    )
    found = "by evidence" if isinstance(setting, str) else f"given as the variance {significant(setting, 4)}"
    shown = significant(float(np.sqrt(values[0]))) if len(values) == 1 else each
    return f"{name}, standard deviation", f"{shown} ({found})"
