"""The page of `bcm`: its tables and what they say; pictures are drawn by `_bcm_pictures`."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _bcm_pictures import TICKS, draw_large, draw_losses, draw_partitions
from _bcm_runs import ASKED, CELLS, LANDMARKS, ROWS, Compared, Large, Run, paired
from _committees import NOISE, Loss

RULE = 1.0


def page(
    folder: Path, small: Sequence[Compared], big: Sequence[Large], missing: Sequence[str], seconds: float
) -> list[str]:
    """Files in the folder, and the lines of the page."""
    lines = [
        "# The Bayesian committee machine against the exact Gaussian process",
        "",
        "Made by `scripts/reproduce bcm`, after the claims of Tresp 2001, section 3.1: no loss against the exact",
        "process if there are at least as many query points as effective parameters, and the larger the members the",
        f"better; 60,000 rows and more in one pass. This run took {seconds / 60:.0f} minutes, tuning included.",
        "",
    ]
    if missing:
        lines += [f"Left out, their files not being in `../shared/data`: {', '.join(missing)}.", ""]
    runs = [run for outcome in small for run in outcome.runs]
    if runs:
        draw_losses(folder / "loss.png", small)
        _runs_table(folder / "bcm.csv", runs)
        lines += [*_protocol(), "", *_sets(small), "", *_rule(runs), "", "![loss](loss.png)", ""]
        lines += _member_sizes(runs) + _asked(runs)
        if any(run.partition == CELLS for run in runs):
            draw_partitions(folder / "partitions.png", small)
            lines += [*_partitions(runs), "", "![cells against rows](partitions.png)", ""]
    if big:
        draw_large(folder / "large.png", big)
        _large_table(folder / "large.csv", big)
        lines += [*_large(big), "", "![large tables](large.png)"]
    return lines


def _protocol() -> list[str]:
    return [
        "- *Rows*: a seeded choice of the stored ones; columns and target have mean 0 and deviation 1 over the rows of",
        "  the fit. abalone: sex as three indicators.",
        "- *Hyper-parameters*: a Gaussian kernel with a lengthscale for each column, signal and noise variance, by the",
        "  FITC evidence of the rows of the fit (400 points), found once and used by all.",
        "- *p_eff* = tr s K (s K + noise I)^-1 of the rows of the fit, exact.",
        "- *Query points*: the first of few-sweep's landmarks (prediction objective), one choice for each set; or the",
        "  rows to predict themselves, so many at a time. At most 1,600.",
        "- *Loss*: of RMSE as a share of the exact process's; of NLPD in nats a row. Both are differences row by row",
        f"  of the test; beyond noise is a loss of more than {NOISE:g} of their standard errors. That is strict: what",
        "  the rows have in common cancels, so that a loss may be beyond noise and too small to matter.",
    ]


def _sets(small: Sequence[Compared]) -> list[str]:
    head = ["set", "rows", "columns", "tests", "signal", "noise", "p_eff", "RMSE", "NLPD", "in 95 %"]
    cells = [
        [
            o.name,
            f"{o.rows:,}",
            f"{o.columns}",
            f"{o.tests:,}",
            f"{o.signal:.3g}",
            f"{o.noise:.3g}",
            f"{o.degrees:.0f}",
            f"{o.rmse:.4f}",
            f"{o.nlpd:.4f}",
            f"{100 * o.coverage:.1f}",
        ]
        for o in small
    ]
    return ["## The exact process", "", *_markdown(head, cells)]


def _rule(runs: Sequence[Run]) -> list[str]:
    told = [run for run in runs if run.query == LANDMARKS and run.partition == ROWS]
    head = ["query points / p_eff", "runs", "RMSE loss, median", "worst", "beyond noise"]
    head += ["NLPD loss, median", "worst", "beyond noise"]
    cells = []
    for share in _values(told, "share"):
        these = [run for run in told if run.share == share]
        rmse, nlpd = [run.rmse_loss for run in these], [run.nlpd_loss for run in these]
        cells.append(
            [
                _share(share),
                f"{len(these)}",
                f"{100 * np.median([x.mean for x in rmse]):.2f} %",
                f"{100 * max(x.mean for x in rmse):.2f} %",
                f"{sum(x.beyond_noise for x in rmse)}",
                f"{np.median([x.mean for x in nlpd]):.4f}",
                f"{max(x.mean for x in nlpd):.4f}",
                f"{sum(x.beyond_noise for x in nlpd)}",
            ]
        )
    return [
        "## The size rule",
        "",
        f"Landmarks, members by rows of {_listed(_values(told, 'size'))}, all sets.",
        "",
        *_markdown(head, cells),
        "",
        *_rule_said(told),
        "",
        "All runs: [bcm.csv](bcm.csv).",
    ]


def _rule_said(told: Sequence[Run]) -> list[str]:
    kept = [run for run in told if run.share >= RULE]
    broken = [run for run in told if run.share < RULE]
    lines = []
    for words, these in (("With at least p_eff query points", kept), ("With fewer", broken)):
        if these:
            rmse = sum(run.rmse_loss.beyond_noise for run in these)
            nlpd = sum(run.nlpd_loss.beyond_noise for run in these)
            lines.append(
                f"- {words}, {len(these)} runs: a loss beyond noise of RMSE in {rmse}, of NLPD in {nlpd}; without "
                f"either {sum(not run.lost for run in these)}."
            )
    worst = [run for run in kept if run.lost]
    if kept:
        without = [name for name in _values(kept, "name") if not any(run.name == name for run in worst)]
        lines.append(f"- No loss beyond noise from p_eff on, whatever the members: {_listed(without) or 'no set'}.")
    for name in _values(worst, "name"):
        these = [run for run in worst if run.name == name]
        of = sum(run.name == name for run in kept)
        largest = max(these, key=lambda run: run.rmse_loss.mean)
        densest = max(these, key=lambda run: run.nlpd_loss.mean)
        lines.append(
            f"- {name}: a loss beyond noise in {len(these)} of {of} runs from p_eff on, at worst "
            f"{100 * largest.rmse_loss.mean:.2f} % of RMSE ({_where(largest)}) and {densest.nlpd_loss.mean:.4f} nats "
            f"({_where(densest)})."
        )
    return lines


def _member_sizes(runs: Sequence[Run]) -> list[str]:
    told = [run for run in runs if run.query == LANDMARKS and run.partition == ROWS]
    sizes = _values(told, "size")
    shares = _values(told, "share")
    head = ["query points / p_eff", *(f"members of {size:,}" for size in sizes)]
    cells = [
        [_share(share), *(_medians([run for run in told if (run.share, run.size) == (share, size)]) for size in sizes)]
        for share in shares
    ]
    lines = ["## Rows of a member", "", "Median losses over the sets: RMSE, NLPD.", "", *_markdown(head, cells), ""]
    if len(sizes) > 1:
        pairs = paired(told, "size", sizes[0], sizes[-1])
        fewer = sum(large.rmse_loss.mean < small.rmse_loss.mean for small, large in pairs)
        denser = sum(large.nlpd_loss.mean < small.nlpd_loss.mean for small, large in pairs)
        lines += [
            f"Members of {sizes[-1]:,} rows rather than {sizes[0]:,} lower the RMSE in {fewer} of {len(pairs)} pairs "
            f"(same set, same query points), the NLPD in {denser}.",
            "",
        ]
    return lines


def _asked(runs: Sequence[Run]) -> list[str]:
    size = next((run.size for run in runs if run.query == ASKED), None)
    told = [run for run in runs if run.size == size and run.partition == ROWS]
    pairs = paired(told, "query", LANDMARKS, ASKED)
    if not pairs:
        return []
    head = ["query points / p_eff", "sets", "landmarks", "rows asked for"]
    cells = []
    for share in _values(told, "share"):
        these = [pair for pair in pairs if pair[0].share == share]
        if these:
            medians = [_medians([pair[k] for pair in these]) for k in (0, 1)]
            cells.append([_share(share), f"{len(these)}", *medians])
    better = sum(asked.rmse_loss.mean < marks.rmse_loss.mean for marks, asked in pairs)
    return [
        "## Query points: landmarks, or the rows asked for",
        "",
        f"Members of {size:,} rows, by rows; median losses over the same sets: RMSE, NLPD.",
        "",
        *_markdown(head, cells),
        "",
        f"The RMSE is lower with the rows asked for in {better} of {len(pairs)} pairs. They take a sweep a lot;",
        "landmarks take one in all, and answer any row afterwards.",
        "",
    ]


def _partitions(runs: Sequence[Run]) -> list[str]:
    told = [run for run in runs if run.query == LANDMARKS]
    head = ["query points / p_eff", "members of", "sets", "rows", "cells", "RMSE lower by cells", "NLPD lower by cells"]
    cells, total = [], []
    for share in _values(told, "share"):
        for size in _values([run for run in told if run.partition == CELLS], "size"):
            pairs = paired([run for run in told if (run.share, run.size) == (share, size)], "partition", ROWS, CELLS)
            total += pairs
            rmse = sum(b.rmse_loss.mean < a.rmse_loss.mean for a, b in pairs)
            nlpd = sum(b.nlpd_loss.mean < a.nlpd_loss.mean for a, b in pairs)
            medians = [_medians([pair[k] for pair in pairs]) for k in (0, 1)]
            cells.append([_share(share), f"{size:,}", f"{len(pairs)}", *medians, f"{rmse}", f"{nlpd}"])
    rmse = sum(b.rmse_loss.mean < a.rmse_loss.mean for a, b in total)
    lines = ["## Members by rows, or by k-means cells", "", "Median losses over the sets: RMSE, NLPD.", ""]
    return [*lines, *_markdown(head, cells), "", f"Cells have the lower RMSE in {rmse} of {len(total)} pairs."]


def _large(big: Sequence[Large]) -> list[str]:
    head = ["set", "model", "rows", "query points", "seconds", "RMSE", "of DTC's", "NLPD", "less DTC's", "in 95 %"]
    cells = [
        [
            run.name,
            run.model,
            f"{run.rows:,}",
            "" if run.model.startswith("exact") else f"{run.n}",
            f"{run.seconds:.1f}",
            f"{run.rmse:.4f}",
            f"{100 * run.rmse_loss.mean:+.2f} ± {100 * NOISE * run.rmse_loss.error:.2f} %",
            f"{run.nlpd:.4f}",
            f"{run.nlpd_loss.mean:+.4f} ± {NOISE * run.nlpd_loss.error:.4f}",
            f"{100 * run.coverage:.1f}",
        ]
        for run in big
    ]
    lines = [
        "## Large tables",
        "",
        "Hyper-parameters by the FITC evidence of 5,000 rows; landmarks of few-sweep; then one sweep for each model on",
        "the same basis (seconds: of that sweep and the solution, landmarks and hyper-parameters not included).",
        "covtype-subset: the elevation from all other columns. ±: two standard errors of the difference row by row of",
        "the test. As numbers: [large.csv](large.csv).",
        "",
        *_markdown(head, cells),
        "",
    ]
    for name in _values(big, "name"):
        these = [run for run in big if run.name == name]
        first = these[0]
        holds = "keep" if first.n >= first.degrees else "break"
        lines.append(
            f"- {name}: {first.n} query points {holds} the size rule (p_eff at least {first.degrees:.0f}, by a "
            f"sample); landmarks took {first.picking:.0f} s. " + _large_said(these)
        )
    return lines


def _large_said(these: Sequence[Large]) -> str:
    return " ".join(
        f"{run.model}: RMSE {_verdict(run.rmse_loss)}, NLPD {_verdict(run.nlpd_loss)} DTC's." for run in these[1:]
    )


def _verdict(found: Loss) -> str:
    if found.beyond_noise:
        return "above"
    return "below" if found.negative.beyond_noise else "within noise of"


def _runs_table(path: Path, runs: Sequence[Run]) -> None:
    names = ("name", "query", "size", "partition", "share", "n", "rmse", "nlpd", "coverage")
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        known = ["set", "query", "members", "partition", "share_of_p_eff", "query_points", "rmse", "nlpd", "coverage95"]
        writer.writerow([*known, *_LOSSES])
        writer.writerows([*(_number(getattr(run, name)) for name in names), *_losses(run)] for run in runs)


def _large_table(path: Path, big: Sequence[Large]) -> None:
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


def _markdown(head: Sequence[str], cells: Iterable[Sequence[str]]) -> list[str]:
    rows = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return rows + ["| " + " | ".join(row) + " |" for row in cells]


def _medians(runs: Sequence[Run]) -> str:
    if not runs:
        return ""
    rmse, nlpd = (np.median([getattr(run, name).mean for run in runs]) for name in ("rmse_loss", "nlpd_loss"))
    return f"{100 * rmse:.2f} %, {nlpd:.4f}"


def _values(runs: Iterable[object], field: str) -> list[Any]:
    """In the order in which they first come."""
    return list(dict.fromkeys(getattr(run, field) for run in runs))


def _share(share: float) -> str:
    return TICKS.get(share, f"{share:g}")


def _where(run: Run) -> str:
    return f"members of {run.size:,}, {_share(run.share)} p_eff"


def _listed(values: Sequence[object]) -> str:
    return ", ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in values)
