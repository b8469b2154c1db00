"""Key numbers as cards, and settings as tables: text only, escaped by the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from streamkernel.engine import format_bytes
from streamkernel.errors import StreamKernelError
from streamkernel.factors import SavedBasis
from streamkernel.kinds import title_of
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.ridge import RidgeModel
from streamkernel.records import BasisRecord
from streamkernel.report.facts.fit import (
    Absent,
    Memory,
    Recorded,
    class_names,
    gcv_error,
    memory_use,
    solved_by_iterations,
    target_names,
)
from streamkernel.report.facts.pairs import ClassPairs, Targets
from streamkernel.report.text import count, duration, kernel_words, percent, plain, plural, significant

__all__ = [
    "Card",
    "Table",
    "cards",
    "check_cards",
    "data_table",
    "heading",
    "headline",
    "lengthscale_words",
    "listed",
    "memory_card",
    "place_words",
    "provenance",
    "scaling_words",
    "seconds_of",
    "settings_tables",
    "target_table",
]

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


def headline(model: PredictingModel) -> tuple[str, str]:
    """Kind of the model, and one sentence about it."""
    record = model.record
    kernel = kernel_words(record.kernel)
    rows, n = int(record.totals.rows), record.basis_size
    sentence = (
        f"{kernel[:1].upper()}{kernel[1:]} kernel on {plural(n, 'basis function')}, fitted to {plural(rows, 'row')} of "
        f"{plural(len(record.columns), 'feature')} in {plural(record.sweep_count, 'sweep')} over the data."
    )
    return heading(model), sentence


def heading(model: PredictingModel) -> str:
    """The title of the model's kind, as a page's heading."""
    title = plain(title_of(model))
    return f"{title[:1].upper()}{title[1:]}"


def cards(model: RidgeModel, pairs: Targets | ClassPairs | Absent) -> list[Card]:
    """Twelve numbers, because twelve fills rows of six, four, three and two."""
    record = model.record
    asked, n = record.requested_basis, record.basis_size
    certificate, rounds = record.certificate, len(record.rounds)
    ended = {"tolerance": "enough for the tolerance", "rank": "all that are independent"}
    basis_note = ended.get(record.ended, "")
    return [
        Card("Rows", count(record.totals.rows), "of the fit"),
        Card("Features", count(len(record.columns)), scaling_words(model)),
        Card(
            "Basis functions",
            count(n),
            f"of {count(asked)}: {basis_note}" if n < asked and basis_note else "chosen rows",
        ),
        Card("Sweeps", count(record.sweep_count), f"{plural(rounds, 'round')} of choosing"),
        Card("Residual trace", percent(certificate.relative_residual_trace), "of the kernel's trace, exact"),
        Card("Alpha", significant(record.alpha), _alpha_note(model)),
        Card("Lengthscale", *lengthscale_words(model)),
        _gcv_card(model),
        *check_cards(model, pairs),
        Card("Time", duration(seconds_of(record)), place_words(model)),
        memory_card(model),
    ]


def seconds_of(record: BasisRecord) -> float | None:
    """Seconds of the run, where they were recorded."""
    return None if record.run is None else record.run.seconds


def scaling_words(model: Recorded) -> str:
    """Whether the features were standardised, as text."""
    return "as they are" if model.record.scaler is None else "standardised"


def _alpha_note(model: RidgeModel) -> str:
    return "by GCV" if model.record.settings.alpha == "gcv" else "as given"


def _solver_words(model: RidgeModel) -> str:
    if not solved_by_iterations(model):
        return "direct"
    solution = model.record.solution
    left = max(solution.relative_residual, default=0.0)
    iterations = plural(solution.iterations or 0, "iteration")
    return f"conjugate gradients, {iterations} to a relative residual of {left:.1g}"


def lengthscale_words(model: Recorded) -> tuple[str, str]:
    """The lengthscale, and how it was chosen."""
    value, choice = model.lengthscale, model.record.lengthscale_choice
    if value is None:
        return "–", "the kernel has none of its own"
    if isinstance(value, list):
        return f"{significant(min(value))} to {significant(max(value))}", "one for each feature"
    if choice is None:
        return significant(value), "as given"
    if choice.grid:
        return significant(value), f"by GCV; the median is {significant(choice.median)}"
    return significant(value), "median distance"


def _gcv_card(model: RidgeModel) -> Card:
    # The score is None if the fit has no GCV error.
    error, _ = gcv_error(model, model.record.solution.gcv)
    if solved_by_iterations(model):
        note = "not known to conjugate gradients"
    elif not np.isfinite(error):
        note = "none is defined: no degrees of freedom are left"
    elif model.record.classes is not None:
        note = "squared, per row"
    elif model.target_count > 1:
        note = "in standard deviations"
    else:
        note = f"in units of {plain(target_names(model)[0], 24)}"
    return Card("GCV error", significant(float(error)), note)


def check_cards(model: PredictingModel, pairs: Targets | ClassPairs | Absent) -> tuple[Card, Card]:
    """Two scores on the check rows."""
    if isinstance(pairs, Absent):
        return Card("RMSE", "–", "no rows to check"), Card("R²", "–", "no rows to check")
    where = pairs.where
    if isinstance(pairs, ClassPairs):
        return (
            Card("Accuracy", percent(pairs.accuracy), where),
            Card("Baseline", percent(pairs.baseline), "always the commonest class"),
        )
    if len(pairs.targets) == 1:
        target = pairs.targets[0]
        return Card("RMSE", significant(target.rmse), where), Card("R²", significant(target.r2), where)
    scales = model.record.target_scale
    ratio = np.array([target.rmse / scale for target, scale in zip(pairs.targets, scales, strict=True)])
    r2 = np.array([target.r2 for target in pairs.targets])
    mean_r2 = float(r2[np.isfinite(r2)].mean()) if np.isfinite(r2).any() else float("nan")
    return (
        Card("RMSE", significant(float(np.sqrt((ratio**2).mean()))), f"in standard deviations, {where}"),
        Card("R²", significant(mean_r2), f"mean over targets, {where}"),
    )


def place_words(model: Recorded) -> str:
    """Number of workers and threads, as text."""
    run = model.record.run
    threads, workers = (0, 0) if run is None else (run.executor.threads, run.executor.workers)
    if workers:
        return f"{plural(workers, 'worker')} × {plural(threads, 'thread')}"
    return f"on {plural(threads, 'thread')}" if threads else ""


def memory_card(model: Recorded) -> Card:
    """Memory measured and promised."""
    memory = memory_use(model)
    if not isinstance(memory, Memory):
        return Card("Peak memory", "–", "not recorded")
    return Card("Peak memory", format_bytes(memory.measured), f"{format_bytes(memory.promised)} promised")


def target_table(pairs: Targets | ClassPairs | Absent) -> Table | None:
    """Errors of each target; None unless there are several."""
    if not isinstance(pairs, Targets) or len(pairs.targets) < 2:
        return None
    rows = [
        (target.name, significant(target.rmse), significant(target.mae), significant(target.r2))
        for target in pairs.targets[:_MOST_TARGETS]
    ]
    if len(pairs.targets) > _MOST_TARGETS:
        rows.append((f"and {count(len(pairs.targets) - _MOST_TARGETS)} more", "", "", ""))
    return Table(f"Each target, {pairs.rows}", tuple(rows), ("Target", "RMSE", "Mean absolute error", "R²"))


def settings_tables(model: RidgeModel) -> list[Table]:
    """Tables of the user's choices, the data, and the software and machine."""
    record = model.record
    settings = record.settings
    lengthscale, how = lengthscale_words(model)
    asked = [
        ("Kernel", kernel_words(record.kernel)),
        ("Lengthscale", f"{lengthscale} ({how})"),
        ("Alpha", f"{significant(record.alpha, 5)} ({_alpha_note(model)})"),
        ("Solver", _solver_words(model)),
        ("Basis functions asked for", count(record.requested_basis)),
        ("Tolerance of the residual trace", f"{100.0 * settings.tol:.4g} %" if settings.tol else "none"),
        ("Rule", plain(record.rule)),
        *((f"Rule's {plain(name)}", plain(value)) for name, value in settings.rule_options.items()),
        ("Intercept", "fitted" if settings.fit_intercept else "none"),
        ("Features", scaling_words(model)),
        ("Seed", plain(settings.seed)),
    ]
    return [Table("Settings", tuple(asked)), data_table(model)]


def data_table(model: PredictingModel) -> Table:
    """Table of the data, the software and the machine."""
    record, classes = model.record, class_names(model)
    rows = record.rows
    data = [
        ("Rows", f"{count(rows.start)} to {count(rows.stop)}, the last excluded"),
        ("Arithmetic of kernel blocks", plain(record.dtype)),
        ("Columns", listed([plain(name, 40) for name in record.columns])),
        ("Classes" if classes else "Targets", listed(classes or target_names(model))),
        *provenance(model),
    ]
    return Table("Data and software", tuple(data))


def provenance(model: SavedBasis) -> list[tuple[str, str]]:
    """Names and values of the table's fingerprint, the model's digest, the software and the machine."""
    record = model.record
    data = [
        ("Fingerprint of the table", plain(record.table_fingerprint, 64)),
        ("Digest of the model", _digest(model)),
    ]
    software = {plain(name): plain(value) for name, value in (record.software or {}).items()}
    if software:
        machine = software.pop("machine", "")
        data.append(("Software", ", ".join(f"{name} {value}" for name, value in software.items())))
        data.append(("Machine", machine or "–"))
    return data


def _digest(model: SavedBasis) -> str:
    try:
        return model.digest
    except StreamKernelError as error:
        # A model that cannot be saved, because JSON cannot hold one of its numbers, can still be drawn.
        return f"none, as {plain(error, 200)}"


def listed(names: Iterable[str]) -> str:
    """The first names of a list, and the number of the others."""
    every = list(names)
    shown = ", ".join(every[:_MOST_NAMES])
    rest = len(every) - _MOST_NAMES
    return f"{shown} and {count(rest)} more" if rest > 0 else shown
