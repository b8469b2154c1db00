"""Key numbers of one or several factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamkernel.engine import format_bytes
from streamkernel.report.facts.factors import FactorCurve, PcaCurve, differences, times_the_optimum
from streamkernel.report.facts.fit import Absent, Memory, Sweeps
from streamkernel.report.pages.factor_tables import (
    ENDED,
    FactorCurves,
    disk_text,
    rules_text,
    sweeps_text,
)
from streamkernel.report.pages.parts import Card, bound_card, cost_cards, lengthscale_text, scaling_text
from streamkernel.report.text import count, duration, kernel_text, percent, plain, shortened, significant


def factor_cards(factors: Sequence[FactorCurves], pca: PcaCurve | Absent | None) -> list[Card]:
    """Twelve numbers, as on a model's page."""
    return _one(factors[0], pca) if len(factors) == 1 else _several(factors, pca)


def _one(one: FactorCurves, pca: PcaCurve | Absent | None) -> list[Card]:
    record, (rows, n) = one.factor.record, one.factor.shape
    ended = ENDED.get(record.ended, "")
    requested = record.requested_basis
    return [
        Card("Rows", count(rows), "of the kernel matrix"),
        Card("Features", count(len(record.column_names)), scaling_text(one.factor)),
        Card("Rank", count(n), f"of {count(requested)}: {ended}" if n < requested and ended else "columns of G"),
        Card("Rounds", count(_rounds(one)), f"of choosing, by {plain(record.rule, 40)}"),
        Card("Residual trace", percent(one.relative), _exact(one)),
        _optimum(pca, n, one),
        bound_card([("", one.bound)]),
        Card("Lengthscale", *lengthscale_text(one.factor)),
        Card("Sweeps", *sweeps_text(one)),
        *cost_cards(one.factor),
        Card("G on disk", *disk_text(one)),
    ]


def _several(factors: Sequence[FactorCurves], pca: PcaCurve | Absent | None) -> list[Card]:
    first = factors[0].factor
    different = differences([one.factor for one in factors])
    ranks = [one.rank for one in factors]
    common = min(ranks)
    at = {one.label: float(one.curve.relative[common]) for one in factors if isinstance(one.curve, FactorCurve)}
    best = min(at, key=lambda label: at[label], default="")
    return [
        Card("Factors", count(len(factors)), shortened(rules_text(factors), 60)),
        Card("Rows", count(first.shape[0]), "not of all" if "rows" in different else "of the kernel matrix"),
        Card("Kernel", kernel_text(first.record.kernel), "not of all" if different else "of all"),
        Card("Lengthscale", *lengthscale_text(first)),
        Card("Rank", count(common) if common == max(ranks) else f"{count(common)} to {count(max(ranks))}", "columns"),
        _least(factors, "Least residual trace", lambda one: one.relative, percent),
        Card(f"At rank {count(common)}", percent(at.get(best)), f"by {best}" if best else "nothing to explain"),
        _optimum(pca, common, factors[0]),
        bound_card([(one.label, one.bound) for one in factors]),
        _least(factors, "Fewest sweeps", lambda one: _number(one.times, "sweeps"), count),
        _least(factors, "Shortest time", lambda one: _number(one.times, "total"), duration),
        _least(
            factors, "Least peak memory", lambda one: _number(one.memory, "measured"), lambda b: format_bytes(int(b))
        ),
    ]


def _number(record: Sweeps | Memory | Absent, name: str) -> float | None:
    if isinstance(record, Absent):
        return None
    found = getattr(record, name)
    return float(len(found) if name == "sweeps" else found)


def _least(
    factors: Sequence[FactorCurves],
    label: str,
    value: Callable[[FactorCurves], float | None],
    text: Callable[[float], str],
) -> Card:
    known = [(number, one.label) for one in factors if (number := value(one)) is not None]
    if not known:
        return Card(label, "–", "not recorded")
    least, who = min(known, key=lambda pair: pair[0])
    ties = sum(number == least for number, _ in known)
    return Card(label, text(least), f"{who} and {ties - 1} more" if ties > 1 else who)


def _exact(one: FactorCurves) -> str:
    rounding = isinstance(one.curve, FactorCurve) and one.curve.vanished
    return "only rounding errors" if rounding else "of the kernel's trace, exact"


def _optimum(pca: PcaCurve | Absent | None, rank: int, first: FactorCurves) -> Card:
    label = f"PCA at rank {count(rank)}"
    if pca is None:
        return Card(label, "–", "no table was given")
    if isinstance(pca, Absent):
        return Card(label, "–", "too many rows, or no trace")
    times = times_the_optimum(first.curve, pca, rank)
    note = "the optimum" if times is None else f"the optimum; {first.label} has {significant(times)} times it"
    return Card(label, percent(pca.at(rank)), note)


def _rounds(one: FactorCurves) -> int:
    return sum(each.stop > each.start for each in one.factor.record.rounds)
