"""The page of `bcm`: its tables and what they say; pictures are drawn by `_bcm_pictures`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from _bcm_pictures import draw_large, draw_losses, draw_partitions
from _bcm_runs import ASKED, CELLS, DTC, LANDMARKS, ROWS, Compared, Large, Run, paired
from _bcm_tables import large_table, listed, medians, runs_table, share_of, values, where
from _committees import NOISE, Loss
from _shared import markdown

RULE = 1.0


def page(folder: Path, small: Sequence[Compared], big: Sequence[Large], missing: Sequence[str]) -> list[str]:
    """Files in the folder, and the lines of the page."""
    lines = [
        "# The Bayesian committee machine against the exact Gaussian process",
        "",
        "Made by `scripts/reproduce bcm`, after the claims of Tresp 2001, section 3.1: no loss against the exact",
        "process if there are at least as many query points as effective parameters, and the larger the members the",
        "better; 60,000 rows and more in one pass.",
        "",
    ]
    if missing:
        lines += [f"Left out, their files not being in `../shared/data`: {', '.join(missing)}.", ""]
    runs = [run for outcome in small for run in outcome.runs]
    if runs:
        draw_losses(folder / "loss.png", small)
        runs_table(folder / "bcm.csv", runs)
        lines += [*_protocol(), "", *_sets(small), "", *_rule(small), "", "![loss](loss.png)", ""]
        lines += _member_sizes(runs)
        if any(run.partition == CELLS for run in runs):
            draw_partitions(folder / "partitions.png", small)
            lines += [*_partitions(runs), "", "![cells against rows](partitions.png)", ""]
    if big:
        draw_large(folder / "large.png", big)
        large_table(folder / "large.csv", big)
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
        "  rows to predict themselves (the rows asked for), so many at a time. At most 2,200.",
        "- *Loss*: of RMSE as a share of the exact process's; of NLPD in nats a row. Both are differences row by row",
        f"  of the test; beyond noise is a loss of more than {NOISE:g} of their standard errors. That is strict: what",
        "  the rows have in common cancels, and a loss may be beyond noise and too small to matter. So it is also held",
        f"  against {NOISE:g} standard errors of the exact process's own scores over the test, as two tests of so",
        "  many rows may differ.",
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
            f"{o.rmse:.4f} ± {NOISE * o.rmse_error * o.rmse:.4f}",
            f"{o.nlpd:.4f} ± {NOISE * o.nlpd_error:.4f}",
            f"{100 * o.coverage:.1f}",
        ]
        for o in small
    ]
    return ["## The exact process", "", *markdown(head, cells)]


def _rule(small: Sequence[Compared]) -> list[str]:
    told = [run for outcome in small for run in outcome.runs if run.query == LANDMARKS and run.partition == ROWS]
    if not told:
        return []
    head = ["query points / p_eff", "runs", "RMSE loss, median", "worst", "beyond noise"]
    head += ["NLPD loss, median", "worst", "beyond noise"]
    cells = []
    for share in values(told, "share"):
        these = [run for run in told if run.share == share]
        rmse, nlpd = [run.rmse_loss for run in these], [run.nlpd_loss for run in these]
        cells.append(
            [
                share_of(share),
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
        f"Landmarks, members by rows of {listed(values(told, 'size'))}, all sets.",
        "",
        *markdown(head, cells),
        "",
        *_rule_said(told, {outcome.name: outcome for outcome in small}),
        "",
        "All runs: [bcm.csv](bcm.csv).",
    ]


def _rule_said(told: Sequence[Run], sets: Mapping[str, Compared]) -> list[str]:
    shares = values(told, "share")
    kept = [run for run in told if run.share >= RULE]
    bands = [("fewer than p_eff", [run for run in told if run.share < RULE])]
    bands += [
        (f"{share_of(share)} p_eff", [run for run in told if run.share == share]) for share in shares if share >= RULE
    ]
    lines = []
    for words, these in bands:
        lost = [run for run in these if run.lost]
        without = [name for name in values(these, "name") if not any(run.name == name for run in lost)]
        lines.append(
            f"- {words}: a loss beyond noise, of RMSE or NLPD, in {len(lost)} of {len(these)} runs; without "
            f"one: {listed(without) or 'no set'}. Less than the noise of the exact process's own scores in "
            f"{sum(sets[run.name].hides(run) for run in these)}."
        )
    for name in values(kept, "name"):
        these = [run for run in kept if run.name == name and run.lost]
        if these:
            largest = max(these, key=lambda run: run.rmse_loss.mean)
            densest = max(these, key=lambda run: run.nlpd_loss.mean)
            lines.append(
                f"- {name}, from p_eff on: at worst {100 * largest.rmse_loss.mean:.2f} % of RMSE ({where(largest)}) "
                f"and {densest.nlpd_loss.mean:.4f} nats ({where(densest)})."
            )
    return [*lines, *_verdict_on_rule(told, sets)]


def _verdict_on_rule(told: Sequence[Run], sets: Mapping[str, Compared]) -> list[str]:
    """From which number of query points on there is no loss, strictly (but for what is by chance) and in practice."""
    lines = []
    for words, lost, chance in (
        ("no loss beyond noise", lambda run: run.lost, 20),
        ("no loss beyond the noise of the exact process's own scores", lambda run: not sets[run.name].hides(run), 0),
    ):
        enough = None
        for share in sorted(values(told, "share"), reverse=True):
            these = [run for run in told if run.share == share]
            # Of either score one in 40 is beyond two errors by chance.
            if sum(map(lost, these)) > (max(1, round(len(these) / chance)) if chance else 0):
                break
            enough = share
        if enough is None:
            lines.append(f"- So no number of query points tried here has {words} on all sets.")
        else:
            holds = "as the rule says" if enough <= RULE else "which is more than the rule asks"
            lines.append(f"- So there is {words} from {share_of(enough)} p_eff on, {holds}.")
    return lines


def _member_sizes(runs: Sequence[Run]) -> list[str]:
    """One table for each kind of query points; of landmarks with DTC beside."""
    lines = ["## Rows of a member, and which query points", "", "Median losses over the sets: RMSE, NLPD.", ""]
    for query in (LANDMARKS, ASKED):
        told = [run for run in runs if run.query == query and run.partition in (ROWS, DTC)]
        if not told:
            continue
        sizes = values(told, "size")
        head = ["query points / p_eff", "sets", *(f"members of {size:,}" if size else DTC for size in sizes)]
        cells = []
        for share in values(told, "share"):
            these = [run for run in told if run.share == share]
            found = [medians([run for run in these if run.size == size]) for size in sizes]
            cells.append([share_of(share), f"{len(values(these, 'name'))}", *found])
        lines += [f"Query points are {'the ' * (query == ASKED)}{query}:", "", *markdown(head, cells), ""]
        sizes = [size for size in sizes if size]
        if len(sizes) > 1:
            better = _lower(paired(told, "size", sizes[0], sizes[-1]))
            lines.append(f"- Members of {sizes[-1]:,} rows rather than {sizes[0]:,} lower {better}.")
        against = [pair for size in sizes for pair in _beside_dtc(told, size)]
        if against:
            lines.append(f"- The committee rather than DTC lowers {_lower(against)}.")
        lines.append("")
    together = [pair for size in values(runs, "size") for pair in _asked_beside(runs, size)]
    if together:
        lines += [
            f"- The rows asked for rather than landmarks, for the same members, lower {_lower(together)}. They take a",
            "  sweep for every lot; landmarks take one in all, and answer any row afterwards.",
            "",
        ]
    return lines


def _beside_dtc(runs: Sequence[Run], size: int) -> list[tuple[Run, Run]]:
    plain = {(run.name, run.share): run for run in runs if run.partition == DTC}
    return [(plain[run.name, run.share], run) for run in runs if run.size == size and (run.name, run.share) in plain]


def _asked_beside(runs: Sequence[Run], size: int) -> list[tuple[Run, Run]]:
    return paired([run for run in runs if (run.size, run.partition) == (size, ROWS)], "query", LANDMARKS, ASKED)


def _lower(pairs: Sequence[tuple[Run, Run]]) -> str:
    """How often the second has the lower scores, below the rule and from it on."""
    words = []
    for words_of, these in (
        ("with fewer than p_eff query points", [pair for pair in pairs if pair[0].share < RULE]),
        ("from p_eff on", [pair for pair in pairs if pair[0].share >= RULE]),
    ):
        rmse = sum(b.rmse_loss.mean < a.rmse_loss.mean for a, b in these)
        nlpd = sum(b.nlpd_loss.mean < a.nlpd_loss.mean for a, b in these)
        words.append(f"RMSE in {rmse} and NLPD in {nlpd} of {len(these)} pairs {words_of}")
    return ", ".join(words)


def _partitions(runs: Sequence[Run]) -> list[str]:
    told = [run for run in runs if run.query == LANDMARKS]
    head = ["query points / p_eff", "members of", "sets", "rows", "cells", "RMSE lower by cells", "NLPD lower by cells"]
    cells, total = [], []
    for share in values(told, "share"):
        for size in values([run for run in told if run.partition == CELLS], "size"):
            pairs = paired([run for run in told if (run.share, run.size) == (share, size)], "partition", ROWS, CELLS)
            if not pairs:
                continue
            total += pairs
            rmse = sum(b.rmse_loss.mean < a.rmse_loss.mean for a, b in pairs)
            nlpd = sum(b.nlpd_loss.mean < a.nlpd_loss.mean for a, b in pairs)
            found = [medians([pair[k] for pair in pairs]) for k in (0, 1)]
            cells.append([share_of(share), f"{size:,}", f"{len(pairs)}", *found, f"{rmse}", f"{nlpd}"])
    rmse = sum(b.rmse_loss.mean < a.rmse_loss.mean for a, b in total)
    lines = ["## Members by rows, or by k-means cells", "", "Median losses over the sets: RMSE, NLPD.", ""]
    return [*lines, *markdown(head, cells), "", f"Cells have the lower RMSE in {rmse} of {len(total)} pairs."]


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
        *markdown(head, cells),
        "",
    ]
    for name in values(big, "name"):
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
