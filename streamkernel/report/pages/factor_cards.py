"""Key numbers of one or several factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamkernel.engine import format_bytes
from streamkernel.report.facts.factors import BoundCurve, FactorCurve, PcaCurve, differences, times_the_optimum
from streamkernel.report.facts.fit import Absent, Memory, Sweeps
from streamkernel.report.pages.factor_tables import (
    ENDED,
    Drawn,
    disk_words,
    memory_words,
    rules_words,
    sweeps_words,
    time_words,
)
from streamkernel.report.pages.tables import Card, lengthscale_words, scaling_words
from streamkernel.report.text import count, duration, kernel_words, percent, plain, shortened, significant

__all__ = ["factor_cards"]


def factor_cards(drawn: Sequence[Drawn], pca: PcaCurve | Absent | None) -> list[Card]:
    """Twelve numbers, as on a model's page."""
    return _one(drawn[0], pca) if len(drawn) == 1 else _several(drawn, pca)


def _one(one: Drawn, pca: PcaCurve | Absent | None) -> list[Card]:
    record, (rows, n) = one.factor.record, one.factor.shape
    ended = ENDED.get(record.ended, "")
    asked = record.requested_basis
    return [
        Card("Rows", count(rows), "of the kernel matrix"),
        Card("Features", count(len(record.column_names)), scaling_words(one.factor)),
        Card("Rank", count(n), f"of {count(asked)}: {ended}" if n < asked and ended else "columns of G"),
        Card("Rounds", count(_rounds(one)), f"of choosing, by {plain(record.rule, 40)}"),
        Card("Residual trace", percent(one.relative), _exact(one)),
        _optimum(pca, n, one),
        _least_bound([one]),
        Card("Lengthscale", *lengthscale_words(one.factor)),
        Card("Sweeps", *sweeps_words(one)),
        Card("Time", *time_words(one)),
        Card("Peak memory", *memory_words(one)),
        Card("G on disk", *disk_words(one)),
    ]


def _several(drawn: Sequence[Drawn], pca: PcaCurve | Absent | None) -> list[Card]:
    first = drawn[0].factor
    kept = differences([one.factor for one in drawn])
    ranks = [one.rank for one in drawn]
    common = min(ranks)
    at = {one.label: float(one.curve.relative[common]) for one in drawn if isinstance(one.curve, FactorCurve)}
    best = min(at, key=lambda label: at[label], default="")
    return [
        Card("Factors", count(len(drawn)), shortened(rules_words(drawn), 60)),
        Card("Rows", count(first.shape[0]), "not of all" if "rows" in kept else "of the kernel matrix"),
        Card("Kernel", kernel_words(first.record.kernel), "not of all" if kept else "of all"),
        Card("Lengthscale", *lengthscale_words(first)),
        Card("Rank", count(common) if common == max(ranks) else f"{count(common)} to {count(max(ranks))}", "columns"),
        _least(drawn, "Least residual trace", lambda one: one.relative, percent),
        Card(f"At rank {count(common)}", percent(at.get(best)), f"by {best}" if best else "nothing to explain"),
        _optimum(pca, common, drawn[0]),
        _least_bound(drawn),
        _least(drawn, "Fewest sweeps", lambda one: _number(one.times, "sweeps"), count),
        _least(drawn, "Shortest time", lambda one: _number(one.times, "total"), duration),
        _least(drawn, "Least peak memory", lambda one: _number(one.memory, "measured"), lambda b: format_bytes(int(b))),
    ]


def _number(record: Sweeps | Memory | Absent, name: str) -> float | None:
    if isinstance(record, Absent):
        return None
    found = getattr(record, name)
    return float(len(found) if name == "sweeps" else found)


def _least(
    drawn: Sequence[Drawn], label: str, value: Callable[[Drawn], float | None], words: Callable[[float], str]
) -> Card:
    known = [(number, one.label) for one in drawn if (number := value(one)) is not None]
    if not known:
        return Card(label, "–", "not recorded")
    least, who = min(known, key=lambda pair: pair[0])
    ties = sum(number == least for number, _ in known)
    return Card(label, words(least), f"{who} and {ties - 1} more" if ties > 1 else who)


def _exact(one: Drawn) -> str:
    rounding = isinstance(one.curve, FactorCurve) and one.curve.vanished
    return "no more than rounding" if rounding else "of the kernel's trace, exact"


def _optimum(pca: PcaCurve | Absent | None, rank: int, first: Drawn) -> Card:
    label = f"PCA at rank {count(rank)}"
    if pca is None:
        return Card(label, "–", "no table was given")
    if isinstance(pca, Absent):
        return Card(label, "–", "too many rows, or no trace")
    times = times_the_optimum(first.curve, pca, rank)
    note = "the optimum" if times is None else f"the optimum; {first.label} has {significant(times)} times it"
    return Card(label, percent(pca.at(rank)), note)


def _least_bound(drawn: Sequence[Drawn]) -> Card:
    bounds = [one.bound for one in drawn if isinstance(one.bound, BoundCurve)]
    if not bounds:
        return Card("Compression bound", "–", "none for this kernel or basis")
    least = min(bounds, key=lambda bound: bound.best)
    if least.vacuous:
        return Card("Compression bound", "vacuous", "at every rank: too few rows")
    by = f", {least.label}" if len(drawn) > 1 else ""
    return Card("Compression bound", significant(least.best), f"of k(x, x), at rank {count(least.best_size)}{by}")


def _rounds(one: Drawn) -> int:
    return sum(one_round.stop > one_round.start for one_round in one.factor.record.rounds)
