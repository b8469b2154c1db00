"""The page of `rsvm`: what was measured, from its files, beside what the review prints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _shared import WIDTH, finish, markdown
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Fit:
    """One fit: basis size, sweeps, seconds, relative duality gap, accuracy on the test rows."""

    n: int
    sweeps: int
    seconds: float
    gap: float
    accuracy: float


@dataclass(frozen=True)
class Rsvm:
    """The fits with one penalty, at a width (in median distances) and C."""

    penalty: str
    width: float
    C: float
    fits: list[Fit]


@dataclass(frozen=True)
class Full:
    """The machine on all rows."""

    width: float
    C: float
    seconds: float
    support: int
    accuracy: float


@dataclass(frozen=True)
class Large:
    """ASVM on a stored table: sweeps, their seconds, those of writing the table; bytes; gap after each sweep."""

    rows: int
    columns: int
    threads: int
    sweeps: int
    seconds: float
    written: float
    peak: int
    gap: float
    gaps: list[float]


TESTS = 16_281  # rows of Adult
WORDS = {"w'w": "`w'w`, the paper's", "w'Kw": "`w'Kw`, of the kernel's space"}


def page(folder: Path) -> list[str]:
    """The lines of the page, and its picture in the folder."""
    stored = json.loads((folder / "rsvm.json").read_text(encoding="utf-8"))
    machines = [Rsvm(**{**each, "fits": [Fit(**fit) for fit in each["fits"]]}) for each in stored["machines"]]
    lines = [
        "# Reduced support vector machines, repeated",
        "",
        "Made by `scripts/reproduce rsvm`, after Tresp 2001, section 3.5.3, on Lee & Mangasarian: on Adult, 32,600",
        "rows with n = 326 of them at random as basis, RSVM needed 16 minutes, where SMO on all rows needed more than",
        "two hours; the random choice of the basis did not add much variance to the predictions.",
        "",
        "- *Rows*: Adult as 123 indicators (`a9a`), its own split: 32,561 rows to fit, 16,281 to test.",
        "- *Machine*: Gaussian kernel, `C sum g(1 - t f)^2` with gamma = 5, by Newton's method, until the exact",
        "  duality gap is 1e-6 of the objective. Penalties: `w'w + b^2` on the kernel values, as printed, and",
        "  `w'Kw + b^2`, which is that of the whitened features.",
        "- *Width and C* by a fifth of the rows to fit, held out, from 1/4 to 2 median distances and .01 to 100.",
        "- *Fits*: seconds are those of the fit alone, with the draw of the basis, on two threads.",
        "",
        "## Adult",
        "",
        *_table(machines, stored["full"]),
        "",
        *_reading(machines, stored["full"]),
    ]
    _picture(folder / "draws.png", machines, stored["full"])
    lines += ["", "![Accuracy on the test rows, by draw of the basis](draws.png)"]
    file = folder / "large.json"
    if file.exists():
        lines += ["", *_large(Large(**json.loads(file.read_text(encoding="utf-8"))))]
    return lines


def _of(machine: Rsvm, name: str) -> Any:
    return np.array([getattr(fit, name) for fit in machine.fits])


def _spread(values: Any) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _table(machines: list[Rsvm], full: dict[str, Any] | None) -> list[str]:
    head = ("", "functions", "width", "C", "sweeps", "seconds", "test accuracy, %")
    cells = [
        (
            f"RSVM, {WORDS[each.penalty]}, {len(each.fits)} draws",
            f"{_of(each, 'n').mean():.0f}",
            f"{each.width:g}",
            f"{each.C:g}",
            f"{_of(each, 'sweeps').mean():.1f}",
            f"{np.median(_of(each, 'seconds')):.2f}",
            f"{100 * _of(each, 'accuracy').mean():.2f} ± {100 * _spread(_of(each, 'accuracy')):.2f}",
        )
        for each in machines
    ]
    if full is not None:
        found = Full(**full)
        cells.append(
            (
                "all rows, scikit-learn's `SVC`",
                f"{found.support:,}",
                f"{found.width:g}",
                f"{found.C:g}",
                "-",
                f"{found.seconds:.0f}",
                f"{100 * found.accuracy:.2f}",
            )
        )
    cells += [
        ("RSVM in the review, machines of 2000", "326", "-", "-", "-", "960", "-"),
        ("SMO in the review, machines of 2000", "-", "-", "-", "-", "> 7,200", "-"),
    ]
    return markdown(head, cells)


def _reading(machines: list[Rsvm], full: dict[str, Any] | None) -> list[str]:
    printed, ours = (next(each for each in machines if each.penalty == name) for name in ("w'w", "w'Kw"))
    apart = 100 * (_of(ours, "accuracy").mean() - _of(printed, "accuracy").mean())
    noise = 100 * float(np.sqrt(0.15 * 0.85 / TESTS))
    most = max(100 * _spread(_of(each, "accuracy")) for each in machines)
    lines = [
        f"The two penalties differ by {abs(apart):.2f} points of accuracy, and draws of the basis by {most:.2f} (one",
        f"standard deviation). That of an accuracy on {TESTS:,} rows is {noise:.2f}: the draws add "
        + ("little, as the review says." if most < noise else "more than that."),
    ]
    if full is not None:
        found = Full(**full)
        ratio = found.seconds / np.median(_of(ours, "seconds"))
        below = 100 * (found.accuracy - _of(ours, "accuracy").mean())
        more = "above" if below >= 0 else "below"
        lines += [
            f"The machine on all rows takes {ratio:.0f} times as long (more than 7.5 times in the review), and is",
            f"{abs(below):.2f} points {more} the one with the penalty `w'Kw`.",
        ]
    return lines


def _large(found: Large) -> list[str]:
    gaps = ", ".join(f"{gap:.1e}" if gap > 1e-15 else "0" for gap in found.gaps)
    return [
        "## The active set method on a large table",
        "",
        f"Tresp 2001, section 3.3.1: 7 million rows, five iterations, 95 minutes. Here {found.rows:,} rows of",
        f"{found.columns} linear features (normal rows around 100 centres on either side of a plane), from Zarr, by",
        "`solve_active_set`, until no row changes sides:",
        "",
        *markdown(
            ("rows", "sweeps", "seconds", "seconds a sweep", "peak MiB of the process"),
            [
                (
                    f"{found.rows:,}",
                    f"{found.sweeps}",
                    f"{found.seconds:.1f}",
                    f"{found.seconds / found.sweeps:.2f}",
                    f"{found.peak / 2**20:,.0f}",
                )
            ],
        ),
        "",
        f"The first sweep is at 0, so that {found.sweeps - 1} are iterations. Relative duality gap after each: {gaps}.",
    ]


def _picture(path: Path, machines: list[Rsvm], full: dict[str, Any] | None) -> None:
    figure = Figure(figsize=(WIDTH, 2.4))
    axis = figure.subplots()
    for position, (machine, color) in enumerate(zip(machines, ("#d55e00", "#0072b2"), strict=True)):
        values = 100 * _of(machine, "accuracy")
        axis.plot(values, np.full(len(values), position), "o", color=color, alpha=0.6)
    if full is not None:
        axis.axvline(100 * full["accuracy"], color="#70757a", linewidth=1)
        # Beside the line, on its inner side.
        place = (100 * full["accuracy"], 1.5)
        axis.annotate("all rows", place, (4, 0), textcoords="offset points", color="#70757a", va="center")
    axis.set_yticks(range(len(machines)), [machine.penalty for machine in machines])
    axis.set_ylim(-0.5, 1.8)
    axis.tick_params(labelsize=9)
    axis.set_xlabel("accuracy on the test rows, %; one point a draw", fontsize=9)
    finish(figure, path)
