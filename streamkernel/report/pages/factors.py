"""The page of one or several factors with its key numbers, and their picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamkernel.byte_counts import format_bytes
from streamkernel.errors import ParameterError
from streamkernel.factors import Factor
from streamkernel.report.facts.factors import (
    FactorCurve,
    PcaCurve,
    bound_curve,
    differences,
    factor_curve,
    factor_labels,
    times_the_optimum,
)
from streamkernel.report.facts.fit import Absent, Memory, Sweeps, fitted_to_rows
from streamkernel.report.figures import plot
from streamkernel.report.figures.costs import sweeps_figure
from streamkernel.report.figures.factors import bound_figure, residual_figure
from streamkernel.report.figures.palette import MOST_LINES
from streamkernel.report.pages.factor_tables import (
    ENDED,
    FactorCurves,
    disk_text,
    factor_headline,
    factor_notices,
    factor_tables,
    rules_text,
    sweeps_text,
)
from streamkernel.report.pages.parts import (
    Card,
    Page,
    Section,
    bound_card,
    cost_cards,
    cost_section,
    lengthscale_text,
    metric_section,
    scaling_text,
)
from streamkernel.report.text import count, duration, kernel_text, percent, plain, plural, shortened, significant


def factors_page(factors: Sequence[Factor], optimum: PcaCurve | Absent | None = None) -> Page:
    """The whole page."""
    if not 1 <= len(factors) <= MOST_LINES:
        raise ParameterError(f"{len(factors)} factors: give from 1 to {MOST_LINES}, so that their lines differ")
    labels = factor_labels(factors)
    curves = [
        FactorCurves(factor, label, factor_curve(factor, label), bound_curve(factor, label))
        for factor, label in zip(factors, labels, strict=True)
    ]
    rows = f"the {plural(factors[0].shape[0], 'row')}" if "rows" not in differences(factors) else "each factor's rows"
    fitted = list(dict.fromkeys(name for factor in factors for name in fitted_to_rows(factor.record)))
    approximation = [
        residual_figure([one.curve for one in curves], optimum, rows),
        bound_figure([one.bound for one in curves], fitted),
    ]
    costs = Section("Cost", [sweeps_figure([one.times for one in curves], labels)])
    beside, settings = factor_tables(curves, optimum)
    kind, lead = factor_headline(curves)
    return Page(
        kind, lead, _cards(curves, optimum), factor_notices(curves),
        [
            Section("Approximation", approximation),
            *([metric_section(factors[0])] if len(curves) == 1 else []),
            costs if len(curves) > 1 else cost_section(factors[0], "picking and algebra"),
            Section("Facts", [], beside),
        ],
        settings, factors[0].record,
    )  # fmt: skip


def factors_picture(factors: Sequence[Factor], optimum: PcaCurve | Absent | None) -> plot.Figure:
    """The one figure of the small picture.

    Raises
    ------
    ParameterError
        No factor has a residual trace.
    """
    curves = [factor_curve(*one) for one in zip(factors, factor_labels(factors), strict=True)]
    figure = residual_figure(curves, optimum, "")
    if not isinstance(figure, plot.Figure):
        raise ParameterError("no factor has a residual trace to draw: the kernel matrix is 0, or there are no columns")
    return figure


def _cards(factors: Sequence[FactorCurves], pca: PcaCurve | Absent | None) -> list[Card]:
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
