"""Key numbers and settings of a matching pursuit."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamkernel.models.pursuit import PursuitModel
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
    config, n = model.config, int(model.config["basis_size"])
    kernel = kernel_words(config["kernel"])
    rows = round(float(config["totals"]["rows"]))
    return heading(model), (
        f"{plural(n, 'function')} of a {kernel} kernel, picked one by one ({plain(config['settings']['variant'])}) for "
        f"{plural(rows, 'row')} of {plural(len(config['columns']), 'feature')} in "
        f"{plural(int(config['sweep_count']), 'sweep')} over the data."
    )


def pursuit_cards(model: PursuitModel, pairs: Targets | ClassPairs | Absent, check: Check) -> list[Card]:
    """Twelve numbers, as on every page."""
    config, solution = model.config, model.config["solution"]
    terms, tried = int(solution["terms"]), int(solution["terms_tried"])
    cards = check_cards(model, pairs)
    if isinstance(check, ProbabilityCheck):
        cards = (cards[0], Card("Log loss", significant(check.found.scalars["log_loss"]), check.where))
    return [
        Card("Rows", count(float(config["totals"]["rows"])), "of the fit"),
        Card("Features", count(len(config["columns"])), scaling_words(model)),
        Card("Terms", count(terms), f"of {count(tried)} tried" if terms < tried else _ENDED.get(config["ended"], "")),
        Card("Sweeps", count(config["sweep_count"]), f"{plural(len(config.get('rounds', [])), 'round')} of picking"),
        _loss_card(model),
        _validation_card(model),
        Card("Least weakness", significant(solution["least_weakness"]), "1: always the best candidate"),
        Card("Lengthscale", *lengthscale_words(model)),
        *cards,
        Card("Time", duration((config.get("run") or {}).get("seconds")), place_words(model)),
        memory_card(model),
    ]


def _loss_card(model: PursuitModel) -> Card:
    losses = loss_curve(model)
    if losses is None:
        return Card(
            "Squares left", percent(float(np.mean(model.config["solution"]["relative_rss"]))), "of a constant's"
        )
    guess = significant(float(losses.training[0]))
    return Card("Logistic loss", significant(losses.at_kept(False)), f"nats a row of the fit; {guess} for a guess")


def _validation_card(model: PursuitModel) -> Card:
    solution, rows = model.config["solution"], round(float(model.config["totals"]["validation_rows"]))
    if not rows:
        return Card("Validation error", "–", "no validation rows")
    where = f"of {plural(rows, 'validation row')}"
    error = solution.get("validation_error")
    if model.classes is not None and error is not None:
        return Card("Validation error", percent(error), where)
    values = solution["validation_rmse"]
    if values is None:
        return Card("Validation error", "–", "not kept")
    if len(values) > 1 and model.classes is None:
        ratio = np.asarray(values) / np.asarray(model.config.get("target_scale") or [1.0] * len(values))
        error = significant(float(np.sqrt((ratio**2).mean())))
        return Card("Validation RMSE", error, f"in standard deviations, {where}")
    return Card("Validation RMSE", significant(float(np.mean(values))), where)


def pursuit_notices(model: PursuitModel) -> list[str]:
    """Warnings to read before trusting the report."""
    config = model.config
    if config.get("ended") != "rank":
        return []
    asked = int(config.get("requested_basis", 0))
    return [
        f"The pursuit ended at {count(config['solution']['terms_tried'])} of {count(asked)} terms: no candidate was "
        "left that does not depend on the functions before it (duplicate rows, or a lengthscale that is large for the "
        "data)."
    ]


def pursuit_settings(model: PursuitModel) -> list[Table]:
    """Tables of the user's choices, the data, and the software and machine."""
    config = model.config
    settings: dict[str, Any] = config.get("settings", {})
    lengthscale, how = lengthscale_words(model)
    asked = [
        ("Kernel", kernel_words(config["kernel"])),
        ("Lengthscale", f"{lengthscale} ({how})"),
        ("Variant", plain(settings.get("variant", "–"))),
        ("Loss", plain(settings.get("loss", "squared"))),
        ("Shrinkage", significant(settings["shrinkage"]) if settings.get("variant") == "basic" else ""),
        ("Pool", plain(settings.get("pool", "–"))),
        ("Candidates drawn", {"uniform": "at random", "residual": "by what was left of them"}.get(
            str(settings.get("draw")), "")),
        ("Candidates of a pick", count(settings["candidates"]) if settings.get("candidates") else "by default"),
        ("Picks of a sweep", count(settings["picks"]) if settings.get("picks") else "by default"),
        ("Terms asked for", count(config.get("requested_basis", config["basis_size"]))),
        ("Tolerance of the squared error", f"{100.0 * settings['tol']:.4g} %" if settings.get("tol") else "none"),
        ("Validation rows", _validation_words(settings.get("validation"))),
        ("Size chosen by", {"loss": "the loss of validation rows", "error": "the errors on validation rows"}.get(
            str(settings.get("choose_by")), "") if settings.get("validation") else ""),
        ("Patience", plural(settings["patience"], "term") if settings.get("patience") else ""),
        ("Gamma of the bound", f"{settings['bound_gamma']:g}" if settings.get("bound_gamma") else ""),
        ("Ended by", _ENDED.get(str(config.get("ended")), plain(config.get("ended", "–")))),
        ("Constant", "fitted" if settings.get("fit_intercept", True) else "none"),
        ("Features", scaling_words(model)),
        ("Seed", plain(settings.get("seed", "–"))),
    ]  # fmt: skip
    return [Table("Settings", tuple((name, words) for name, words in asked if words)), data_table(model)]


def _validation_words(validation: Any) -> str:
    if isinstance(validation, dict):
        return f"a table of {plural(int(validation.get('rows', 0)), 'row')}"
    return "none" if not validation else f"{percent(float(validation))} of the table"
