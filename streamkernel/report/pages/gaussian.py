"""Key numbers and settings of models that predict distributions: Gaussian processes, committees and similar models."""

from __future__ import annotations

import numpy as np

from streamkernel.models.gaussian import GaussianModel
from streamkernel.models.generalised import GeneralisedModel
from streamkernel.records import GaussianSettingsRecord, GaussianSolutionRecord
from streamkernel.report.facts.calibration import CountCheck, GaussianCheck, ProbabilityCheck, binomial_band
from streamkernel.report.facts.fit import Absent, target_names
from streamkernel.report.facts.pairs import ClassPairs, Targets
from streamkernel.report.pages.tables import (
    Card,
    Table,
    data_table,
    heading,
    lengthscale_words,
    memory_card,
    place_words,
    scaling_words,
    seconds_of,
)
from streamkernel.report.text import count, duration, kernel_words, percent, plain, plural, significant

__all__ = ["Check", "TunedModel", "calibration_notice", "gaussian_cards", "gaussian_headline", "gaussian_settings"]

TunedModel = GaussianModel | GeneralisedModel
Check = GaussianCheck | ProbabilityCheck | CountCheck | Absent | None

_APPROXIMATIONS = {"dtc": "DTC", "fitc": "FITC", "pitc": "PITC", "exact": "exact"}
_FAR_OFF = 0.03  # difference from 0.95 at which intervals are clearly too narrow or too wide
_FEW_ROWS = 100


def gaussian_headline(model: TunedModel) -> tuple[str, str]:
    """Kind of the model, and one sentence about it."""
    record = model.record
    kernel, n = kernel_words(record.kernel), record.basis_size
    rows, how = int(record.totals.rows), _approximation(model)
    if record.estimator == "committee":
        members = model.arrays.get("member_weights")
        of = "of members" if members is None else f"of {plural(len(members), 'member')}"
        opening = f"A committee {of} that meets at {plural(n, 'query point')}, with a {kernel} kernel"
    else:
        opening = (
            f"{kernel[:1].upper()}{kernel[1:]} kernel on {plural(n, 'basis function')}{f' ({how})' if how else ''}"
        )
    return heading(model), (
        f"{opening}, fitted to {plural(rows, 'row')} of {plural(len(record.columns), 'feature')} in "
        f"{plural(record.sweep_count, 'sweep')} over the data."
    )


def gaussian_cards(model: TunedModel, pairs: Targets | ClassPairs | Absent, check: Check) -> list[Card]:
    """Twelve numbers, as on every page."""
    record, n = model.record, model.record.basis_size
    committee = record.estimator == "committee"
    asked = record.requested_basis
    certificate = record.certificate
    return [
        Card(
            "Rows",
            count(record.totals.rows),
            f"{plural(len(record.columns), 'feature')}, {scaling_words(model)}",
        ),
        Card(
            "Query points" if committee else "Basis functions",
            count(n),
            f"of {count(asked)} asked for" if n < asked else "chosen rows",
        ),
        Card("Sweeps", count(record.sweep_count), f"{plural(len(record.rounds), 'round')} of choosing"),
        Card("Residual trace", percent(certificate.relative_residual_trace), "of the kernel's trace, exact"),
        Card("Lengthscale", *_lengthscale(model)),
        _noise_card(model),
        _evidence_card(model),
        *_check_cards(pairs, check),
        Card("Time", duration(seconds_of(record)), place_words(model)),
        memory_card(model),
    ]


def _lengthscale(model: TunedModel) -> tuple[str, str]:
    value, how = lengthscale_words(model)
    settings = model.record.settings
    by_evidence = settings.lengthscale == "evidence" and model.record.tuning is not None
    return value, f"by evidence{', one for each feature' if 'to' in value else ''}" if by_evidence else how


def _variances(model: TunedModel, name: str) -> np.ndarray | None:
    # For classes and counts the model has one number, for all functions.
    if isinstance(model, GeneralisedModel):
        return np.array([model.record.signal_variance]) if name == "signal_variance" else None
    return model.arrays[name]


def _noise_card(model: TunedModel) -> Card:
    """Standard deviation of the noise; of the signal if the model has no noise variance (classes, counts)."""
    signal, noise = _variances(model, "signal_variance"), _variances(model, "noise_variance")
    if noise is None:
        return Card("Signal", "–" if signal is None else _range(np.sqrt(signal)), "standard deviation of the function")
    note = "standard deviation" if signal is None else f"standard deviation; signal {_range(np.sqrt(signal))}"
    return Card("Noise", _range(np.sqrt(noise)), note)


def _range(values: np.ndarray) -> str:
    low, high = significant(float(values.min())), significant(float(values.max()))
    return low if low == high else f"{low} to {high}"


def _evidence_card(model: TunedModel) -> Card:
    solution = model.record.solution
    values = max(int(model.record.totals.rows) * model.target_count, 1)
    unit = "nats a row" if model.target_count == 1 else "nats a row and target"
    if isinstance(solution, GaussianSolutionRecord) and solution.bound is not None:
        return Card("Evidence", significant(solution.bound / values), f"variational bound, {unit}")
    return Card("Evidence", significant(solution.log_evidence / values), unit)


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


def gaussian_settings(model: TunedModel) -> list[Table]:
    """Tables of the user's choices, the results, the data, and the software and machine."""
    record = model.record
    settings, tuning = record.settings, record.tuning
    blocks = settings if isinstance(settings, GaussianSettingsRecord) and settings.approximation == "pitc" else None
    value, how = _lengthscale(model)
    asked = [
        ("Kernel", kernel_words(record.kernel)),
        ("Lengthscale", f"{value} ({how})"),
        *_variance_rows(model),
        ("Approximation", _approximation(model)),
        ("Tuned on", {"sample": "a sample", "full": "a sample, then all rows", "none": "nothing"}.get(
            settings.tune, "")),
        ("Objective of the tuning", "" if tuning is None else plain(tuning.objective)),
        ("Rows of a block", "" if blocks is None else count(blocks.block_size)),
        ("Blocks", "" if blocks is None else {"order": "in the order of the rows", "cells": "cells of near rows"}.get(
            blocks.partition, "")),
        ("Basis functions asked for", count(record.requested_basis)),
        ("Tolerance of the residual trace", f"{100.0 * settings.tol:.4g} %" if settings.tol else "none"),
        ("Rule", plain(record.rule)),
        *((f"Rule's {plain(name)}", plain(each)) for name, each in settings.rule_options.items()),
        ("Features", scaling_words(model)),
        ("Seed", plain(settings.seed)),
    ]  # fmt: skip
    return [Table("Settings", tuple((name, words) for name, words in asked if words)), data_table(model)]


def _approximation(model: TunedModel) -> str:
    return _APPROXIMATIONS.get(model.record.approximation, "") if isinstance(model, GaussianModel) else ""


def _variance_rows(model: TunedModel) -> list[tuple[str, str]]:
    rows = []
    for name, words in (("signal_variance", "Signal variance"), ("noise_variance", "Noise variance")):
        values = _variances(model, name)
        if values is not None:
            given = getattr(model.record.settings, name)
            found = " (by evidence)" if given == "evidence" else " (as given)"
            names = target_names(model)
            each = ", ".join(
                f"{target} {significant(float(value), 4)}" for target, value in zip(names, values[:8], strict=False)
            )
            rows.append((words, (significant(float(values[0]), 4) if len(values) == 1 else each) + found))
    return rows
