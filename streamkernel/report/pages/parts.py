"""Parts that pages of several kinds share: cards, tables, sections, warnings. Text is escaped when it becomes HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from streamkernel.byte_counts import format_bytes
from streamkernel.errors import StreamKernelError
from streamkernel.factors import SavedBasis
from streamkernel.kinds import title_of
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.ridge import RidgeModel
from streamkernel.records import BasisRecord
from streamkernel.report.facts.calibration import Check, ProbabilityCheck
from streamkernel.report.facts.factors import BoundCurve
from streamkernel.report.facts.fit import (
    Absent,
    Memory,
    class_names,
    memory_use,
    sweep_times,
    target_names,
    trace_curve,
)
from streamkernel.report.facts.metric import MetricTrials, directions, feature_weights, metric_trials
from streamkernel.report.facts.pairs import ClassPairs, Targets, check_pairs
from streamkernel.report.figures import plot
from streamkernel.report.figures.costs import memory_figure, time_figure
from streamkernel.report.figures.fit import trace_figure
from streamkernel.report.figures.metric import directions_figure, trials_figure, weights_figure
from streamkernel.report.figures.predictions import prediction_figures
from streamkernel.report.text import (
    capitalised,
    count,
    duration,
    kernel_of,
    percent,
    plain,
    plural,
    score_text,
    significant,
    with_error,
)

Rows = list[tuple[str, str]]  # names and values
Picture = tuple[str, list[plot.Drawing]]

_SCALINGS = {
    "standard": "standardised",
    "robust": "standardised after a clip of far values",
    "rank": "replaced by their ranks",
    "sparse": "divided by their deviations, not centred",
}
_MOST_NAMES = 12
_MOST_TARGETS = 24


@dataclass(frozen=True)
class Card:
    """A number with its name above and a note below."""

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Table:
    """Rows of text; `columns` is empty for a list of names and values, `wide` is set if they hold text, not numbers."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...] = ()
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """Figures under one heading, and tables below them."""

    title: str
    figures: Sequence[plot.Drawing]
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Page:
    """A page: text, cards, warnings, sections, tables of settings, and the record of the model that it shows, if any.

    A section without figures and tables is left out.
    """

    title: str
    lead: str
    cards: Sequence[Card]
    notices: Sequence[str]
    sections: Sequence[Section]
    settings: Sequence[Table]
    record: BasisRecord | None


def model_page(
    model: PredictingModel,
    opening: str,
    cards: Sequence[Card],
    notices: Sequence[str],
    sections: Sequence[Section],
    settings: Rows,
) -> Page:
    """The page of a model that predicts, with the parts that all such pages have: costs, and the data.

    Parameters
    ----------
    opening : the lead's beginning: what was fitted.
    cards : the first ten of twelve numbers, because twelve fills rows of six, four, three and two.
    notices : warnings to read before trusting the report, a sentence each.
    settings : the user's choices, and the results; those without a value are left out.
    """
    choices = Table("Settings", tuple((name, words) for name, words in settings if words))
    return Page(
        title=capitalised(plain(title_of(model))),
        lead=fitted_text(opening, model),
        cards=[*cards, *cost_cards(model)],
        notices=[*saturation_notice(model), *notices, *memory_notice(memory_use(model))],
        sections=[*sections, cost_section(model)],
        settings=[choices, data_table(model)],
        record=model.record,
    )


def model_picture(model: PredictingModel, opening: str, middle: plot.Drawing, last: plot.Drawing = None) -> Picture:
    """Lead and figures of the small picture of a model that predicts; `middle` is that of its kind.

    Parameters
    ----------
    last : the figure of its predictions, where these are neither numbers nor classes.
    """
    predictions = prediction_figures(check_pairs(model))[0] if last is None else last
    return fitted_text(opening, model), [trace_figure(trace_curve(model)), middle, predictions]


def prediction_section(pairs: Targets | ClassPairs | Absent) -> Section:
    """Predicted against true values."""
    errors = target_table(pairs)
    return Section("Predictions", prediction_figures(pairs), [] if errors is None else [errors])


def metric_section(model: SavedBasis) -> Section:
    """Which features matter, and how that was found; empty for a model without a metric."""
    trials = metric_trials(model)
    figures = [
        weights_figure(feature_weights(model)),
        directions_figure(directions(model)),
        trials_figure(trials) if isinstance(trials, MetricTrials) else None,
    ]
    return Section("Metric", figures)


def cost_section(model: SavedBasis, between: str = "picking, algebra, check") -> Section:
    """Time and memory; `between` names the work between sweeps."""
    return Section("Cost", [time_figure(sweep_times(model), between), memory_figure(memory_use(model))])


def rising_notice(model: PredictingModel) -> list[str]:
    """A sentence if the last basis functions are lost in rounding."""
    curve = trace_curve(model)
    if isinstance(curve, Absent) or not curve.left > 2.0 * float(curve.relative.min()):
        return []
    return [
        f"The residual trace rises after its least value, {percent(float(curve.relative.min()))}: beyond there it is "
        "rounding, and so are the last basis functions. A smaller basis or lengthscale does as well."
    ]


def saturation_notice(model: PredictingModel) -> list[str]:
    """A sentence if the data would determine more functions than the basis has."""
    verdict = None if model.degrees is None else model.degrees.verdict
    return [] if verdict is None else [f"Saturated: {verdict}."]


def bound_card(curves: Sequence[tuple[str, BoundCurve | Absent]]) -> Card:
    """The least compression bound of several bases, each with a name; empty if there is one."""
    label, known = "Compression bound", [(name, each) for name, each in curves if isinstance(each, BoundCurve)]
    if not known:
        return Card(label, "–", "none for this kernel or basis")
    name, least = min(known, key=lambda pair: pair[1].best)
    if least.vacuous:
        return Card(label, "vacuous", "at every rank: too few rows")
    by = f", {name}" if name else ""
    return Card(label, significant(least.best), f"of k(x, x), at rank {count(least.best_size)}{by}")


def scaling_text(model: SavedBasis) -> str:
    """How the features were scaled, as text."""
    scaler = model.record.scaler
    return "as they are" if scaler is None else _SCALINGS[scaler.kind]


def lengthscale_text(model: SavedBasis) -> tuple[str, str]:
    """The lengthscale, and how it was chosen."""
    value, choice = model.lengthscale, model.record.lengthscale_choice
    if value is None and choice is not None:
        how = "of each part, times one step by GCV" if choice.grid else "of each part"
        return significant(choice.value), f"of the first part; median distance {how}"
    if value is None:
        return "–", "the kernel has none of its own"
    if isinstance(value, list):
        each = "feature" if model.metric is None else "direction of the metric"
        return f"{significant(min(value))} to {significant(max(value))}", f"one for each {each}"
    if choice is None:
        return significant(value), "as given"
    if model.record.metric_choice is not None:
        return significant(value), "by the error on held-out rows"
    if choice.grid:
        return significant(value), f"by GCV; the median is {significant(choice.median)}"
    return significant(value), "median distance"


def metric_text(model: SavedBasis) -> str:
    """The metric, as text; empty for a model without one."""
    fields = model.metric_fields
    if fields is None:
        return ""
    if fields["form"] == "none":
        return "none: the plain kernel did as well"
    how = "as given" if fields["held_out_error"] is None else f"learned: {plain(fields['form'])}"
    return f"{plural(fields['columns'], 'direction')} ({how})"


def fitted_text(opening: str, model: PredictingModel) -> str:
    """The sentence below the heading: what was fitted, and to what data."""
    record = model.record
    return (
        f"{opening} {plural(record.row_count, 'row')} of {plural(len(record.columns), 'feature')} in "
        f"{plural(record.sweep_count, 'sweep')} over the data."
    )


def check_cards(model: PredictingModel, pairs: Targets | ClassPairs | Absent, check: Check = None) -> tuple[Card, Card]:
    """Two scores on the check rows; of class probabilities the second is their log loss."""
    if isinstance(pairs, Absent):
        return Card("RMSE", "–", "no rows to check"), Card("R²", "–", "no rows to check")
    where = pairs.where
    if isinstance(pairs, ClassPairs):
        accuracy = Card("Accuracy", with_error(pairs.accuracy, pairs.accuracy_se, percent), where)
        if isinstance(check, ProbabilityCheck):
            return accuracy, Card("Log loss", score_text(check.calibration.scalars, "log_loss"), check.where)
        return accuracy, Card("Baseline", percent(pairs.baseline), "always the commonest class")
    if len(pairs.targets) == 1:
        target = pairs.targets[0]
        return (
            Card("RMSE", with_error(target.rmse, target.rmse_se), where),
            Card("R²", with_error(target.r2, target.r2_se), where),
        )
    error = with_error(*pairs.relative_error(model.record.target_scale))
    r2 = np.array([target.r2 for target in pairs.targets])
    mean_r2 = float(r2[np.isfinite(r2)].mean()) if np.isfinite(r2).any() else float("nan")
    return (
        Card("RMSE", error, f"in standard deviations, {where}"),
        Card("R²", significant(mean_r2), f"mean over targets, {where}"),
    )


def place_text(model: SavedBasis) -> str:
    """Number of workers and threads, as text."""
    run = model.record.run
    threads, workers = (0, 0) if run is None else (run.executor.threads, run.executor.workers)
    if workers:
        return f"{plural(workers, 'worker')} × {plural(threads, 'thread')}"
    return f"on {plural(threads, 'thread')}" if threads else ""


def cost_cards(model: SavedBasis) -> list[Card]:
    """The last two cards: time, and memory measured and promised."""
    memory, run = memory_use(model), model.record.run
    return [
        Card("Time", duration(None if run is None else run.seconds), place_text(model)),
        Card("Peak memory", format_bytes(memory.measured), f"{format_bytes(memory.promised)} promised")
        if isinstance(memory, Memory)
        else Card("Peak memory", "–", "not recorded"),
    ]


def memory_notice(memory: Memory | Absent) -> list[str]:
    """A sentence if the measured memory exceeds the promised memory."""
    if isinstance(memory, Absent) or memory.measured <= memory.promised:
        return []
    return [f"Memory exceeded the promise: {format_bytes(memory.measured)} against {format_bytes(memory.promised)}."]


def target_table(pairs: Targets | ClassPairs | Absent) -> Table | None:
    """Errors of each target; None unless there are several."""
    if not isinstance(pairs, Targets) or len(pairs.targets) < 2:
        return None
    rows = [
        (
            target.name,
            with_error(target.rmse, target.rmse_se),
            with_error(target.mae, target.mae_se),
            with_error(target.r2, target.r2_se),
        )
        for target in pairs.targets[:_MOST_TARGETS]
    ]
    if len(pairs.targets) > _MOST_TARGETS:
        rows.append((f"and {count(len(pairs.targets) - _MOST_TARGETS)} more", "", "", ""))
    return Table(f"Each target, {pairs.rows}", tuple(rows), ("Target", "RMSE", "Mean absolute error", "R²"))


def common_settings(model: SavedBasis, lengthscale: tuple[str, str]) -> tuple[Rows, Rows]:
    """The first and the last rows of a table of settings; those of a kind stand between them."""
    record, (value, how) = model.record, lengthscale
    return [("Kernel", kernel_of(model)), ("Lengthscale", f"{value} ({how})")], [
        ("Rule", plain(record.rule)),
        *((f"Rule's {plain(name)}", plain(each)) for name, each in record.settings.rule_options.items()),
        ("Features", scaling_text(model)),
        *((("Metric", words),) if (words := metric_text(model)) else ()),
        ("Seed", plain(record.settings.seed)),
    ]


def data_table(model: PredictingModel) -> Table:
    """Table of the data, the software and the machine."""
    record, classes = model.record, class_names(model)
    several_labels = isinstance(model, RidgeModel) and model.multilabel
    noun = "Labels" if several_labels else "Classes" if classes else "Targets"
    data = [
        ("Rows", f"{count(record.rows.start)} to {count(record.rows.stop)}, the last excluded"),
        ("Arithmetic of kernel blocks", plain(record.dtype)),
        ("Columns", listed([plain(name, 40) for name in record.columns])),
        *([(noun, listed(classes or target_names(model)))] if model.SUPERVISED else []),
        *provenance(record, digest_row(model)),
    ]
    return Table("Data and software", tuple(data))


def provenance(record: BasisRecord, *digest: tuple[str, str]) -> Rows:
    """Names and values of the table's fingerprint, the `digest`, the software and the machine."""
    data = [("Fingerprint of the table", plain(record.table_fingerprint, 64)), *digest]
    software = {plain(name): plain(value) for name, value in (record.software or {}).items()}
    if software:
        machine = software.pop("machine", "")
        data.append(("Software", ", ".join(f"{name} {value}" for name, value in software.items())))
        data.append(("Machine", machine or "–"))
    return data


def digest_row(model: SavedBasis) -> tuple[str, str]:
    """Name and value of the model's digest."""
    try:
        return "Digest of the model", model.digest
    except StreamKernelError as error:
        # A model that cannot be saved, because JSON cannot hold one of its numbers, can still be drawn.
        return "Digest of the model", f"none, as {plain(error, 200)}"


def listed(names: Iterable[str]) -> str:
    """The first names of a list, and the number of the others."""
    every = list(names)
    shown = ", ".join(every[:_MOST_NAMES])
    rest = len(every) - _MOST_NAMES
    return f"{shown} and {count(rest)} more" if rest > 0 else shown
