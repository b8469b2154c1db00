"""The page and the picture of models that predict distributions: Gaussian processes, committees and similar models."""

from __future__ import annotations

import numpy as np

from streamkernel.models.predicting import PredictingModel
from streamkernel.report.facts.calibration import (
    CountCheck,
    GaussianCheck,
    ProbabilityCheck,
    binomial_band,
    distribution_check,
    row_intervals,
)
from streamkernel.report.facts.fit import Absent, lengthscale_curve, target_names, trace_curve
from streamkernel.report.facts.pairs import ClassPairs, Targets, check_pairs
from streamkernel.report.facts.tuning import freedom_curve, lengthscales, member_weights, tuning_path
from streamkernel.report.figures import plot
from streamkernel.report.figures.calibration import distribution_figures, rows_figures
from streamkernel.report.figures.committee import freedom_figures, members_figures
from streamkernel.report.figures.fit import lengthscale_figure, trace_figure
from streamkernel.report.figures.predictions import prediction_figures
from streamkernel.report.figures.tuning import lengthscales_figures, tuning_figures
from streamkernel.report.pages.sections import cost_section, fit_notices, prediction_section
from streamkernel.report.pages.tables import (
    Card,
    Page,
    Section,
    Table,
    common_settings,
    cost_cards,
    data_table,
    fitted_text,
    heading,
    lengthscale_text,
    scaling_text,
)
from streamkernel.report.text import capitalised, count, kernel_text, percent, plain, plural, significant
from streamkernel.type_aliases import Fields, FieldsView

__all__ = ["Check", "calibration_notice", "gaussian_page", "gaussian_picture"]

Check = GaussianCheck | ProbabilityCheck | CountCheck | Absent | None

_APPROXIMATIONS = {"dtc": "DTC", "fitc": "FITC", "pitc": "PITC", "exact": "exact"}
_FAR_OFF = 0.03  # difference from 0.95 at which intervals are clearly too narrow or too wide
_FEW_ROWS = 100


def gaussian_page(model: PredictingModel, pairs: FieldsView | None) -> Page:
    """The whole page."""
    checked, check = check_pairs(model, pairs), distribution_check(model, pairs)
    standardised = model.config.get("scaler") is not None
    parameters = [
        *tuning_figures(tuning_path(model)),
        *lengthscales_figures(lengthscales(model), standardised=standardised),
    ]
    if (model.config.get("lengthscale_choice") or {}).get("grid"):
        parameters.append(lengthscale_figure(lengthscale_curve(model), standardised=standardised))
    sections = [
        Section("Hyper-parameters", parameters),
        Section("Basis", [trace_figure(trace_curve(model)), *freedom_figures(freedom_curve(model))]),
        Section("Committee", members_figures(member_weights(model))),
        prediction_section(checked),
        Section("Uncertainty", [*rows_figures(row_intervals(model, pairs)), *distribution_figures(check)]),
        cost_section(model),
    ]
    return Page(
        heading(model), _lead(model), _cards(model, checked, check), [*calibration_notice(check), *fit_notices(model)],
        sections, _settings(model), model.config,
    )  # fmt: skip


def gaussian_picture(model: PredictingModel) -> tuple[str, list[plot.Drawing]]:
    """Lead and figures of the small picture."""
    none = plot.Missing("calibration", "Calibration", "no rows with predicted distributions")
    middle = [*distribution_figures(distribution_check(model)), none][0]
    return _lead(model), [trace_figure(trace_curve(model)), middle, prediction_figures(check_pairs(model))[0]]


def _lead(model: PredictingModel) -> str:
    config = model.config
    kernel, n = kernel_text(config["kernel"]), int(config["basis_size"])
    settings = config.get("settings") or {}
    how = _APPROXIMATIONS.get(str(settings.get("approximation")), "")
    if config.get("estimator") == "committee":
        members = model.arrays.get("member_weights")
        of = "of members" if members is None else f"of {plural(len(members), 'member')}"
        opening = f"A committee {of} that meets at {plural(n, 'query point')}, with a {kernel} kernel"
    else:
        opening = f"{capitalised(kernel)} kernel on {plural(n, 'basis function')}{f' ({how})' if how else ''}"
    return fitted_text(f"{opening}, fitted to", model)


def _cards(model: PredictingModel, pairs: Targets | ClassPairs | Absent, check: Check) -> list[Card]:
    """Twelve numbers, as on every page."""
    config, n = model.config, int(model.config["basis_size"])
    committee = config.get("estimator") == "committee"
    asked = int(config.get("requested_basis", n))
    certificate = config["certificate"]
    return [
        Card(
            "Rows",
            count(config["totals"]["rows"]),
            f"{plural(len(config['columns']), 'feature')}, {scaling_text(model)}",
        ),
        Card(
            "Query points" if committee else "Basis functions",
            count(n),
            f"of {count(asked)} requested" if n < asked else "chosen rows",
        ),
        Card("Sweeps", count(config["sweep_count"]), f"{plural(len(config.get('rounds', [])), 'round')} of choosing"),
        Card("Residual trace", percent(certificate["relative_residual_trace"]), "of the kernel's trace, exact"),
        Card("Lengthscale", *_lengthscale(model)),
        _noise_card(model),
        _evidence_card(model),
        *_check_cards(pairs, check),
        *cost_cards(model),
    ]


def _lengthscale(model: PredictingModel) -> tuple[str, str]:
    value, how = lengthscale_text(model)
    settings = model.config.get("settings") or {}
    by_evidence = settings.get("lengthscale") == "evidence" and model.config.get("tuning") is not None
    return value, f"by evidence{', one for each feature' if 'to' in value else ''}" if by_evidence else how


def _variances(model: PredictingModel, name: str) -> np.ndarray | None:
    # For classes and counts the model has one number, for all functions.
    values = np.atleast_1d(model.arrays[name] if name in model.arrays else model.config.get(name, ()))
    return np.asarray(values, dtype=np.float64) if len(values) else None


def _noise_card(model: PredictingModel) -> Card:
    """Standard deviation of the noise; of the signal if the model has no noise variance (classes, counts)."""
    signal, noise = _variances(model, "signal_variance"), _variances(model, "noise_variance")
    if noise is None:
        return Card("Signal", "–" if signal is None else _range(np.sqrt(signal)), "standard deviation of the function")
    note = "standard deviation" if signal is None else f"standard deviation; signal {_range(np.sqrt(signal))}"
    return Card("Noise", _range(np.sqrt(noise)), note)


def _range(values: np.ndarray) -> str:
    low, high = significant(float(values.min())), significant(float(values.max()))
    return low if low == high else f"{low} to {high}"


def _evidence_card(model: PredictingModel) -> Card:
    solution = model.config.get("solution") or {}
    values = max(int(model.config["totals"]["rows"]) * model.target_count, 1)
    unit = "nats a row" if model.target_count == 1 else "nats a row and target"
    for name, words in (("bound", "variational bound, "), ("log_evidence", "")):
        value = solution.get(name)
        if value is not None:
            return Card("Evidence", significant(float(value) / values), words + unit)
    return Card("Evidence", "–", "not kept")


def _check_cards(pairs: Targets | ClassPairs | Absent, check: Check) -> list[Card]:
    """Three scores on the check rows."""
    if isinstance(pairs, ClassPairs):
        first = Card("Accuracy", percent(pairs.accuracy), f"{pairs.where}; commonest {percent(pairs.baseline)}")
        if not isinstance(check, ProbabilityCheck):
            return [first, Card("Log loss", "–", "no probabilities"), Card("Brier score", "–", "no probabilities")]
        scalars = check.found.scalars
        return [
            first,
            Card("Log loss", significant(scalars["log_loss"]), check.where),
            Card("Brier score", significant(scalars["brier"]), check.where),
        ]
    if isinstance(pairs, Absent):
        return [Card(name, "–", "no rows to check") for name in ("RMSE", "NLPD", "Coverage")]
    if not isinstance(check, (GaussianCheck, CountCheck)):
        target = pairs.targets[0]
        return [
            Card("RMSE", significant(target.rmse), pairs.where),
            Card("R²", significant(target.r2), pairs.where),
            Card("NLPD", "–", "no distributions"),
        ]
    scalars = check.found.scalars
    several = "mean over targets, " if len(check.names) > 1 else ""
    first = Card("RMSE", significant(scalars["rmse"]), f"R² {significant(scalars['r2'])}, {several}{check.where}")
    density = Card("NLPD", significant(scalars["nlpd"]), f"nats a target, {check.where}")
    if isinstance(check, CountCheck):
        return [first, density, Card("Deviance", percent(scalars["d2"]), f"explained, {check.where}")]
    return [first, density, Card("Coverage", percent(scalars["coverage95"]), f"of 95 % intervals, {check.where}")]


def calibration_notice(check: Check) -> list[str]:
    """A sentence if the intervals hold far more or far fewer targets than they should."""
    if not isinstance(check, GaussianCheck) or check.where == "training rows" or check.count < _FEW_ROWS:
        return []
    held = check.found.scalars["coverage95"]
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


def _settings(model: PredictingModel) -> list[Table]:
    """Tables of the user's choices, the results, the data, and the software and machine."""
    config = model.config
    settings = config.get("settings") or {}
    tuning = config.get("tuning") or {}
    first, last = common_settings(model, _lengthscale(model))
    asked = [
        *first,
        *_variance_rows(model),
        ("Approximation", _APPROXIMATIONS.get(str(settings.get("approximation")), "")),
        ("Tuned on", {"sample": "a sample", "full": "a sample, then all rows", "none": "nothing"}.get(
            str(settings.get("tune")), "")),
        ("Objective of the tuning", plain(tuning.get("objective", ""))),
        ("Rows of a block", count(settings["block_size"]) if _in_blocks(settings) else ""),
        ("Blocks", {"order": "in the order of the rows", "cells": "cells of near rows"}.get(
            str(settings.get("partition")), "") if _in_blocks(settings) else ""),
        ("Basis functions requested", count(config["requested_basis"])),
        ("Tolerance of the residual trace", f"{100.0 * settings['tol']:.4g} %" if settings.get("tol") else "none"),
        *last,
    ]  # fmt: skip
    return [Table("Settings", tuple((name, words) for name, words in asked if words)), data_table(model)]


def _in_blocks(settings: Fields) -> bool:
    return settings.get("approximation") == "pitc" and "block_size" in settings


def _variance_rows(model: PredictingModel) -> list[tuple[str, str]]:
    rows = []
    for name, words in (("signal_variance", "Signal variance"), ("noise_variance", "Noise variance")):
        values = _variances(model, name)
        if values is not None:
            asked = (model.config.get("settings") or {}).get(name)
            found = "" if asked is None else " (by evidence)" if asked == "evidence" else " (as given)"
            names = target_names(model)
            each = ", ".join(
                f"{target} {significant(float(value), 4)}" for target, value in zip(names, values[:8], strict=False)
            )
            rows.append((words, (significant(float(values[0]), 4) if len(values) == 1 else each) + found))
    return rows
