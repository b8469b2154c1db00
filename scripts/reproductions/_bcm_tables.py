"""Tables of `bcm`: files of numbers, and how a page puts them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _bcm_runs import Large, Run

TICKS = {0.125: "1/8", 0.25: "1/4", 0.5: "1/2", 1.0: "1", 2.0: "2", 4.0: "4"}


def runs_table(path: Path, runs: Sequence[Run]) -> None:
    names = ("name", "query", "size", "partition", "share", "n", "rmse", "nlpd", "coverage")
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        known = ["set", "query", "members", "partition", "share_of_p_eff", "query_points", "rmse", "nlpd", "coverage95"]
        writer.writerow([*known, *_LOSSES])
        writer.writerows([*(_number(getattr(run, name)) for name in names), *_losses(run)] for run in runs)


def large_table(path: Path, big: Sequence[Large]) -> None:
    names = ("name", "model", "rows", "n", "degrees", "picking", "seconds", "rmse", "nlpd", "coverage")
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        known = ["set", "model", "rows", "query_points", "p_eff_at_least", "seconds_of_landmarks", "seconds"]
        writer.writerow([*known, "rmse", "nlpd", "coverage95", *_LOSSES])
        writer.writerows([*(_number(getattr(run, name)) for name in names), *_losses(run)] for run in big)


_LOSSES = ("rmse_loss", "its_error", "nlpd_loss", "its_error")


def _losses(run: Run | Large) -> list[str]:
    found = (run.rmse_loss, run.nlpd_loss)
    return [_number(value) for one in found for value in (one.mean, one.error)]


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def medians(runs: Sequence[Run]) -> str:
    if not runs:
        return ""
    rmse, nlpd = (np.median([getattr(run, name).mean for run in runs]) for name in ("rmse_loss", "nlpd_loss"))
    return f"{100 * rmse:.2f} %, {nlpd:.4f}"


def values(runs: Iterable[object], field: str) -> list[Any]:
    """In the order in which they first come."""
    return list(dict.fromkeys(getattr(run, field) for run in runs))


def share_of(number: float) -> str:
    return TICKS.get(number, f"{number:g}")


def where(run: Run) -> str:
    return f"members of {run.size:,}, {share_of(run.share)} p_eff"


def listed(values: Sequence[object]) -> str:
    return ", ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in values)
